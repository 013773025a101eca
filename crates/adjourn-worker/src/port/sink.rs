//! Event sinks: told of a refusal once its wait is durable. They never change an outcome.

use async_trait::async_trait;

use super::PortError;
use crate::Notice;

/// Takes the copy of a RATE_LIMITED event that says what was decided.
#[async_trait]
pub trait EventSink: Send + Sync + std::fmt::Debug + 'static {
    /// Takes the event.
    ///
    /// # Errors
    /// When it was not taken; a warning is logged and the job goes on.
    async fn emit(&self, notice: &Notice) -> Result<(), PortError>;
}

/// Writes each event as one line of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSink;

#[async_trait]
impl EventSink for LogSink {
    async fn emit(&self, notice: &Notice) -> Result<(), PortError> {
        let json = serde_json::to_string(notice).map_err(PortError::refused)?;
        tracing::info!(target: "adjourn::event", event = json, "RATE_LIMITED");
        Ok(())
    }
}
