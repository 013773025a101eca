//! What a job's run came to, and what the integration says to a refusal.

use alloc::string::{String, ToString};

use crate::{Signal, Timestamp, signal::truncated};

/// What a job's run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It had its effect.
    Done,
    /// The provider said "not now".
    Throttled(Signal),
    /// It failed and may be tried again.
    Failed(Fault),
    /// It may or may not have had its effect, and must not be repeated.
    Unknown(Fault),
    /// It can never succeed.
    Rejected(Fault),
}

/// What went wrong, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    reason: String,
    status: Option<u16>,
    retry_at: Option<Timestamp>,
}

impl Fault {
    /// A fault with its reason (cut at 500 bytes).
    #[must_use]
    pub fn new(reason: &str) -> Self {
        Self {
            reason: truncated(reason, Signal::MAX_REASON_BYTES).to_string(),
            status: None,
            retry_at: None,
        }
    }

    /// The status of the response that said so.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The moment before which a server error asked for no further attempt.
    #[must_use]
    pub fn retry_at(mut self, at: Timestamp) -> Self {
        self.retry_at = Some(at);
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.reason
    }

    /// The status of the response that said so.
    #[must_use]
    pub fn last_status(&self) -> Option<u16> {
        self.status
    }

    /// The moment before which the server asked for no further attempt.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        self.retry_at
    }
}

/// What the integration's own handler of the RATE_LIMITED event answered.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Verdict {
    /// The default handler decides.
    #[default]
    Default,
    /// Not before this moment; never earlier than the provider said.
    Defer {
        /// Not before this moment.
        until: Timestamp,
    },
    /// The job is not wanted any more.
    Drop {
        /// Why.
        reason: String,
    },
    /// Counts as a failure, at the later of the backoff and the provider's moment.
    Retry,
    /// The job has failed for good.
    DeadLetter {
        /// Why.
        reason: String,
    },
}
