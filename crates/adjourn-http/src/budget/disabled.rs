//! A scope in which no budget holds.

use std::{
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
};

tokio::task_local! {
    static DISABLED: ();
}

/// How many such scopes there are in the process: none, as a rule, and then no task need be looked at.
static SCOPES: AtomicUsize = AtomicUsize::new(0);

/// Counts a scope for as long as it lives.
struct Counted;

impl Counted {
    fn new() -> Self {
        SCOPES.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        SCOPES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `future` with every budget switched off, shared ones included: its calls are neither paced nor throttled nor capped, they spend
/// nothing, and what they are answered teaches nothing.
///
/// For the call that must go out whatever the budget says: a health check, an operator's own request. It holds for what runs within
/// this task; what the future spawns is a task of its own.
pub async fn policy_disabled<F: Future>(future: F) -> F::Output {
    let _counted = Counted::new();
    DISABLED.scope((), future).await
}

/// Whether no budget holds here.
#[inline]
pub(crate) fn is_disabled() -> bool {
    SCOPES.load(Ordering::Acquire) > 0 && is_disabled_here()
}

#[inline(never)]
fn is_disabled_here() -> bool {
    DISABLED.try_with(|()| ()).is_ok()
}
