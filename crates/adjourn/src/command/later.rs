//! Commands that are named already and not built yet: each says what will bring it.

use crate::ending::{Ended, Failure};

fn later(command: &str, brought_by: &str, until_then: &str) -> Ended {
    Err(Failure::bad(format!(
        "`adjourn {command}` is not built yet; it comes with {brought_by}. Until then: {until_then}"
    )))
}

pub(crate) fn doctor() -> Ended {
    later(
        "doctor",
        "the deployment and its checks",
        "`adjourn status` opens the store, and `adjourn run` checks the whole of adjourn.toml before it starts",
    )
}

pub(crate) fn gate() -> Ended {
    later(
        "gate",
        "the shared gates and the ledger",
        "`adjourn status` lists the closed gates; a gate opens by itself at the moment that it shows",
    )
}
