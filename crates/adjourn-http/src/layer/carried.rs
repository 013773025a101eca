//! What a call keeps of the task that made it, wherever its future is run.

use std::future::Future;

use crate::{Allowance, budget::is_disabled, policy_disabled};

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
