//! The answer to "what does this response say", as JSON.

use adjourn_core::{Interpretation, Kind, Mechanism, ScopeHint, Source, Timestamp};
use serde::Serialize;

use crate::{Executed, Reading, UserHint};

/// What a response says, and what would become of its job. As JSON: camelCase, times in RFC 3339, UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// Whether it is a limit.
    pub rate_limited: bool,
    /// Which one.
    pub kind: Kind,
    /// Whom it concerns, as far as the response reveals it.
    pub scope_hint: ScopeHint,
    /// Everybody whom it concerns, where one refusal closes more than one scope.
    pub scopes: Vec<ScopeHint>,
    /// The moment that the response names.
    pub retry_at: Option<Timestamp>,
    /// The wait that it names, from its receipt, in milliseconds.
    pub wait_ms: Option<u64>,
    /// Whether the named value was beyond what a time can hold, and was clamped.
    pub saturated: bool,
    /// What named the moment.
    pub source: Source,
    /// The parser that read it.
    pub parser: Option<String>,
    /// The header or the field that it stood in.
    pub field: Option<String>,
    /// What stood there, bounded, never a credential.
    pub raw: Option<String>,
    /// How it was understood.
    pub interpretation: Interpretation,
    /// By how much the moment may be off, in milliseconds.
    pub clock_uncertainty_ms: u64,
    /// Why, in words.
    pub reason: String,
    /// The provider's own code.
    pub code: Option<String>,
    /// How much of the call was carried out, where a 2xx says that it was not all of it.
    pub executed: Option<Executed>,
    /// The response's status.
    pub status: Option<u16>,
    /// The provider by whose contract it was read.
    pub provider: Option<String>,
    /// When it was received.
    pub received_at: Timestamp,
    /// What would become of the job.
    pub decision: ExplainedDecision,
    /// What was seen and not used, and why.
    pub ignored: Vec<ExplainedIgnored>,
    /// The state of the provider's limits, as far as headers tell it.
    pub limits: Vec<ExplainedLimit>,
    /// What to tell the person who waits.
    pub hint: Option<UserHint>,
}

/// What would become of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedDecision {
    /// defer, exhaust, reject, retry or complete.
    pub kind: &'static str,
    /// How a standard queue would hold the wait.
    pub mechanism: Mechanism,
    /// Until when.
    pub until: Option<Timestamp>,
    /// Why it ends, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ExplainedDecision {
    pub(super) fn ending(kind: &'static str, reason: Option<String>) -> Self {
        Self {
            kind,
            mechanism: Mechanism::None,
            until: None,
            reason,
        }
    }
}

/// A field that was seen and not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedIgnored {
    /// The header, or the field of the body.
    pub field: String,
    /// What stood there.
    pub raw: String,
    /// Why it was not used.
    pub why: &'static str,
}

/// The state of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedLimit {
    /// Its name.
    pub name: String,
    /// How much it allows.
    pub limit: Option<i64>,
    /// What remains.
    pub remaining: Option<i64>,
    /// When it starts anew.
    pub resets_at: Option<Timestamp>,
}

impl Explanation {
    pub(super) fn new(
        reading: &Reading,
        provider: Option<String>,
        hint: Option<UserHint>,
        decision: ExplainedDecision,
    ) -> Self {
        let signal = reading.signal();
        let seen = signal.observation();
        Self {
            rate_limited: reading.is_limited(),
            kind: signal.limit_kind(),
            scope_hint: signal.concerns(),
            scopes: reading.scopes().to_vec(),
            retry_at: signal.earliest_retry_at(),
            wait_ms: signal
                .wait()
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            saturated: signal.is_saturated(),
            source: signal.source(),
            parser: signal.parser().map(str::to_string),
            field: reading.field().map(str::to_string),
            raw: seen.raw.clone(),
            interpretation: seen.interpretation,
            clock_uncertainty_ms: seen.clock_uncertainty_ms,
            reason: signal.why().to_string(),
            code: seen.code.clone(),
            executed: reading.executed(),
            status: seen.status,
            provider,
            received_at: seen.observed_at,
            decision,
            ignored: reading
                .ignored()
                .iter()
                .map(|ignored| ExplainedIgnored {
                    field: ignored.field().to_string(),
                    raw: ignored.raw().to_string(),
                    why: ignored.why(),
                })
                .collect(),
            limits: reading
                .limits()
                .iter()
                .map(|limit| ExplainedLimit {
                    name: limit.name.clone(),
                    limit: limit.limit,
                    remaining: limit.remaining,
                    resets_at: limit.resets_at,
                })
                .collect(),
            hint,
        }
    }
}
