//! What is said of a wait in process. What is handed to the caller is not logged here: whoever gets it does that once.

use adjourn_core::Signal;

use super::Pause;
use crate::WaitReason;

/// A refusal is being waited out. To wait for the provider's own moment is the ordinary course; a wait that nobody named a
/// moment for may be of interest.
pub(crate) fn told_refusal(provider: &str, signal: &Signal, pause: Pause) {
    if signal.earliest_retry_at().is_some() {
        told_pushback(provider, signal.why(), pause);
        return;
    }
    let (wait_ms, until, reason) = (millis(pause), pause.until, signal.why());
    tracing::debug!(provider, wait_ms, %until, reason, "refused without a time; waiting");
}

/// A failure is about to be tried again; `named` says whether the server named a moment for that.
pub(crate) fn told_failure(provider: &str, reason: &str, named: bool, pause: Pause) {
    if named {
        told_pushback(provider, reason, pause);
        return;
    }
    let (wait_ms, until) = (millis(pause), pause.until);
    tracing::debug!(provider, wait_ms, %until, reason, "failed; waiting before another attempt");
}

/// A call waits for the moment that the provider named for it. The reason is that of a budget's events; the words are the provider's.
fn told_pushback(provider: &str, said: &str, pause: Pause) {
    let (wait_ms, until, reason) = (millis(pause), pause.until, WaitReason::Pushback.as_str());
    tracing::trace!(provider, wait_ms, %until, reason, said, "a call waits for the moment that the provider named for it");
}

fn millis(pause: Pause) -> u64 {
    u64::try_from(pause.span.as_millis()).unwrap_or(u64::MAX)
}
