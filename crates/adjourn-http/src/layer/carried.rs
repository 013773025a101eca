//! What a call keeps of the task that made it, wherever its future is run.

use std::{
    future::Future,
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

use crate::{Allowance, Rate, RateBudget, policy_disabled};

/// The future with its maker's allowance, and outside of every budget where its maker is.
pub(super) fn carried<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let disabled = is_disabled();
    Allowance::carry(async move {
        if disabled {
            policy_disabled(future).await
        } else {
            future.await
        }
    })
}

/// Whether no budget holds here: then even that passes at once which costs more than a whole budget.
fn is_disabled() -> bool {
    static NARROW: LazyLock<RateBudget> = LazyLock::new(|| RateBudget::new(Rate::per_hour(1)));
    let turn = pin!(NARROW.turn_costing("/", 2, None));
    matches!(turn.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
}
