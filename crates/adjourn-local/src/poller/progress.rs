//! How far a run has come, for who watches it.

use adjourn_core::Timestamp;
use serde::Serialize;

use crate::{GateView, Status};

/// How far a run has come. Sent at most four times a second, and only when something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Jobs that had their effect.
    pub done: u64,
    /// Jobs that can be taken.
    pub ready: u64,
    /// Jobs that are being done.
    pub running: u64,
    /// Jobs that wait for a moment, or for a gate.
    pub waiting: u64,
    /// Jobs that ended without success, at a cap on waits, or with a person.
    pub failed: u64,
    /// When the next waiting job is due.
    pub next_due: Option<Timestamp>,
    /// The closed gates, the first to open first.
    pub gates: Vec<GateView>,
}

impl From<Status> for Progress {
    fn from(status: Status) -> Self {
        Self {
            done: status.done,
            ready: status.ready,
            running: status.running,
            waiting: status.waiting,
            failed: status.failed + status.exhausted + status.review,
            next_due: status.next_due_at,
            gates: status
                .gates
                .into_iter()
                .filter(|gate| gate.closed_until.is_some())
                .collect(),
        }
    }
}
