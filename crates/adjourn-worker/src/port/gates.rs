//! The gate store: what one worker's refusal tells the others.

use adjourn_core::{Observation, ScopeKey, Timestamp};
use async_trait::async_trait;

use super::PortError;

/// Shares closed gates between workers.
#[async_trait]
pub trait GateStore: Send + Sync + std::fmt::Debug + 'static {
    /// Closes gates, each until the later of what is stored and what is asked.
    ///
    /// # Errors
    /// When nothing was written.
    async fn close(&self, closings: &[Closing]) -> Result<(), PortError>;

    /// The closed gates among `scopes`, one answer for each: until when, and why.
    ///
    /// # Errors
    /// When the store cannot be read: then the worker goes on with what it knows.
    async fn closed(&self, scopes: &[ScopeKey]) -> Result<Vec<Option<(Timestamp, String)>>, PortError>;
}

/// A gate to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The scope.
    pub scope: ScopeKey,
    /// Not before this moment.
    pub until: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// What was seen.
    pub observation: Observation,
}
