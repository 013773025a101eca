//! The ledger: what a store of jobs knows of each step.

use std::sync::Arc;

use adjourn_core::Standing;
use async_trait::async_trait;

use super::PortError;
use crate::Message;

/// A store that remembers which jobs were started, superseded or cancelled.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug + 'static {
    /// What is known of each message, before admission.
    ///
    /// # Errors
    /// When the store cannot be read: then the worker goes on without it.
    async fn standing(&self, messages: &[Arc<Message>]) -> Result<Vec<Standing>, PortError>;

    /// Marks a message's call as started, durably, just before it is made. Anything but [`Standing::Current`] forbids
    /// the call.
    ///
    /// # Errors
    /// When the mark could not be written: then the call is not made.
    async fn mark_started(&self, message: &Arc<Message>) -> Result<Standing, PortError>;
}
