//! The gate store: what one worker's refusal tells the others, and what a person sees of the paces that workers have found.

use std::time::Duration;

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

    /// Writes down the paces that this process has found, for who looks: they close nothing, and no other worker keeps to them, since each
    /// finds what the limit leaves to it. Asked at most once a second, with news alone. A store that shows nobody anything has nothing
    /// to do, which is the default.
    ///
    /// # Errors
    /// When nothing was written: it is told again.
    async fn note_paces(&self, paces: &[FoundPaceNote]) -> Result<(), PortError> {
        let _ = paces;
        Ok(())
    }
}

/// The pace of a scope, as a process has found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPaceNote {
    /// The scope.
    pub scope: ScopeKey,
    /// The time between two calls; none where it keeps to no pace any more.
    pub interval: Option<Duration>,
    /// When it was found to be so.
    pub at: Timestamp,
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
