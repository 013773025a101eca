//! What is said of a wait in process. What is handed to the caller is not logged here: whoever gets it does that once.

use adjourn_core::Signal;

use super::Pause;

/// A refusal is being waited out. To wait for the provider's own moment is the ordinary course; a wait that nobody named a
/// moment for may be of interest.
pub(crate) fn told_refusal(provider: &str, signal: &Signal, pause: Pause) {
    let (wait_ms, until, reason) = (millis(pause), pause.until, signal.why());
    if signal.earliest_retry_at().is_some() {
        tracing::trace!(provider, wait_ms, %until, reason, "refused; waiting until the provider's moment");
    } else {
        tracing::debug!(provider, wait_ms, %until, reason, "refused without a time; waiting");
    }
}

/// A failure is about to be tried again.
pub(crate) fn told_failure(provider: &str, reason: &str, pause: Pause) {
    let (wait_ms, until) = (millis(pause), pause.until);
    tracing::debug!(provider, wait_ms, %until, reason, "failed; waiting before another attempt");
}

fn millis(pause: Pause) -> u64 {
    u64::try_from(pause.span.as_millis()).unwrap_or(u64::MAX)
}
