//! The events of budgets.

use std::time::Duration;

use super::{WaitReason, state::State};

/// A call waits: why, and how long as far as that is known.
pub(super) fn waits(budget: &State, reason: WaitReason, span: Option<Duration>) {
    tracing::debug!(
        provider = &*budget.terms.provider,
        scope = &*budget.key,
        reason = reason.as_str(),
        wait_ms = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        "a call waits for its turn"
    );
}

/// A response asked for a pause.
pub(super) fn pauses(budget: &State, status: Option<u16>, span: Duration) {
    tracing::info!(
        provider = &*budget.terms.provider,
        scope = &*budget.key,
        status,
        pause_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
        "the provider asked for a pause"
    );
}
