//! A scope in which no budget holds.

use std::future::Future;

tokio::task_local! {
    static DISABLED: ();
}

/// Runs `future` with every budget switched off, shared ones included: its calls are neither paced nor throttled nor capped, they spend
/// nothing, and what they are answered teaches nothing.
///
/// For the call that must go out whatever the budget says: a health check, an operator's own request. It holds for what runs within
/// this task; what the future spawns is a task of its own.
pub async fn policy_disabled<F: Future>(future: F) -> F::Output {
    DISABLED.scope((), future).await
}

pub(super) fn is_disabled() -> bool {
    DISABLED.try_with(|()| ()).is_ok()
}
