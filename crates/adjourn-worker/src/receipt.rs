//! A line of a job's history.

use adjourn_core::{Cause, Mechanism, Observation, Timestamp};
use serde::{Deserialize, Serialize};

/// One consequential transition of a job, for the person who asks why it waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub transition: Transition,
    /// Why, in words.
    pub cause: String,
    /// Until when the job waits.
    pub until: Option<Timestamp>,
    /// How the wait is held.
    pub mechanism: Mechanism,
    /// The step that this transition made.
    pub sequence: u32,
    /// The scope whose gate decided.
    pub gate: Option<String>,
    /// The version of the policy that decided.
    pub policy_version: u32,
    /// How much of the wait is jitter.
    pub jitter_ms: u64,
    /// What the provider's answer was.
    pub observation: Option<Observation>,
}

/// The version of the rules that this build decides by; it rises when a rule changes what a stored wait means.
pub const POLICY_VERSION: u32 = 1;

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transition {
    /// It was sent.
    Sent,
    /// The provider refused, and it waits.
    Deferred,
    /// It failed, and waits for its next attempt.
    Retrying,
    /// It waits without having been called.
    Parked,
    /// It is done.
    Done,
    /// The integration dropped it.
    Dropped,
    /// A wake-up that nobody waited for was discarded.
    Discarded,
    /// It ended without success.
    Ended,
    /// A person cancelled it.
    Cancelled,
    /// A person brought it back.
    Redriven,
    /// A newer revision took its place.
    Superseded,
}

impl Transition {
    /// What a wait for this cause is.
    #[must_use]
    pub fn of(cause: Cause) -> Self {
        match cause {
            Cause::RefusedUntil | Cause::Refused | Cause::Verdict => Self::Deferred,
            Cause::Failed => Self::Retrying,
            Cause::NotDue | Cause::NotBefore | Cause::GateClosed | Cause::ScopeFull | Cause::OutOfTime => Self::Parked,
        }
    }
}
