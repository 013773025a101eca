//! An event sink that remembers what it was told.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::{
    faults::{Faults, Process},
    lock,
};
use crate::{
    Notice,
    port::{EventSink, PortError},
};

/// Keeps every notice. Its clones are the same sink.
#[derive(Clone, Debug)]
pub struct RecordingSink {
    notices: Arc<Mutex<Vec<Notice>>>,
    process: Process,
}

impl Default for RecordingSink {
    fn default() -> Self {
        Self {
            notices: Arc::default(),
            process: Faults::none().process(),
        }
    }
}

impl RecordingSink {
    /// The same sink as this process uses it.
    #[must_use]
    pub fn used_by(&self, process: &Process) -> Self {
        Self {
            process: process.clone(),
            ..self.clone()
        }
    }

    /// What it was told, oldest first.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        lock(&self.notices).clone()
    }
}

#[async_trait]
impl EventSink for RecordingSink {
    async fn emit(&self, notice: &Notice) -> Result<(), PortError> {
        self.process
            .call("sink.emit", || lock(&self.notices).push(notice.clone()))
            .await
    }
}
