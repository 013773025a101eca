//! A call's turn of a rate budget, as far as its caller may be kept waiting for it.

use std::time::Duration;

use adjourn_core::{Interpretation, Signal, Source, Timestamp};

use super::Allowance;
use crate::{InFlight, NoTurn, Now, RateBudget, WaitReason};

/// A wait just before a call that is none: whoever may not wait in process takes a turn that comes so soon.
const NO_WAIT: Duration = Duration::from_secs(1);

/// Waits for the turn of a call that may take `timeout`, and takes it.
pub(crate) async fn turn(
    budget: &RateBudget,
    path: &str,
    allowance: &Allowance,
    now: &Now,
    timeout: Duration,
) -> Result<InFlight, NoTurn> {
    loop {
        let within = allowance.budget(now(), timeout).max(NO_WAIT);
        let asleep = allowance.asleep(now);
        let turn = budget.turn(path, Some(within)).await;
        drop(asleep);
        match turn?.sent() {
            Ok(in_flight) => return Ok(in_flight),
            // A pause began since the turn came: another one, if there is time for it.
            Err(no_turn) if no_turn.retry_after >= allowance.budget(now(), timeout).max(NO_WAIT) => {
                return Err(no_turn);
            }
            Err(_) => {}
        }
    }
}

/// A call without a turn in time, as a refusal: of the status that asked for a pause, with the moment of the turn where that is
/// known.
pub(crate) fn refused(provider: &str, no_turn: NoTurn, now: Timestamp) -> Signal {
    let why = no_turn.reason.as_str();
    let reason = format!("our own budget has no turn in time: {why}");
    let signal = Signal::new(provider, now).reason(&reason);
    let signal = match no_turn.status {
        Some(status) => signal.status(status),
        None => signal,
    };
    if no_turn.retry_after.is_zero() || no_turn.reason == WaitReason::TooDear {
        return signal;
    }
    signal
        .read_by(Source::Contract, "budget", why, Interpretation::Computed)
        .retry_at(now + no_turn.retry_after)
}
