//! The named ends of a job that did not succeed.

use alloc::string::{String, ToString};

use crate::{Signal, signal::truncated};

/// The end of a job that did not succeed, with its cause in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    kind: EndingKind,
    reason: String,
    status: Option<u16>,
}

/// The named ends. There is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndingKind {
    /// A cap was reached.
    Exhausted(Cap),
    /// It can never succeed.
    Rejected,
    /// It is useless by now, or would be.
    Deadline,
    /// It may have had its effect and must not be repeated.
    Unknown,
    /// Its message is no job.
    Undecodable,
    /// It was delivered again and again, and the process did not survive it.
    Crashed,
    /// It has to wait and nothing can hold it.
    Unholdable,
}

/// Which cap was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cap {
    /// `max_attempts`.
    Attempts,
    /// `max_deferrals`.
    Deferrals,
    /// `max_deferred_ms`.
    DeferredTime,
    /// `max_hops`.
    Hops,
    /// `unknown_max_ms`.
    UnknownTime,
    /// A monthly quota that names no reset.
    MonthlyQuota,
}

impl Ending {
    /// An end with its cause in words.
    #[must_use]
    pub fn new(kind: EndingKind, reason: &str) -> Self {
        Self {
            kind,
            reason: truncated(reason, Signal::MAX_REASON_BYTES).to_string(),
            status: None,
        }
    }

    /// The last status that the provider answered.
    #[must_use]
    pub fn status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// Which end.
    #[must_use]
    pub fn kind(&self) -> EndingKind {
        self.kind
    }

    /// Its cause in words.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.reason
    }

    /// The last status that the provider answered.
    #[must_use]
    pub fn last_status(&self) -> Option<u16> {
        self.status
    }

    /// The word for this end in logs, receipts and dead letters.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.kind {
            // A job out of attempts has failed; exhausted is what waits are.
            EndingKind::Exhausted(Cap::Attempts) => "failed",
            EndingKind::Exhausted(_) => "exhausted",
            EndingKind::Rejected => "rejected",
            EndingKind::Deadline => "deadline",
            EndingKind::Unknown => "unknown",
            EndingKind::Undecodable => "undecodable",
            EndingKind::Crashed => "crashed",
            EndingKind::Unholdable => "unholdable",
        }
    }

    /// Whether the job's state is `exhausted` (a cap on waits) rather than `failed`.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        match self.kind {
            EndingKind::Exhausted(Cap::Attempts) => false,
            EndingKind::Exhausted(_) => true,
            EndingKind::Rejected
            | EndingKind::Deadline
            | EndingKind::Unknown
            | EndingKind::Undecodable
            | EndingKind::Crashed
            | EndingKind::Unholdable => false,
        }
    }
}
