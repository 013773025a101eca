//! A call's turn of a rate budget, as far as its caller may be kept waiting for it.

use std::time::Duration;

use adjourn_core::{Interpretation, Signal, Source, Timestamp};

use super::Allowance;
use crate::{InFlight, NoTurn, Now, RateBudget, WaitReason};

/// A wait just before a call that is none: whoever may not wait in process takes a turn that comes so soon.
const NO_WAIT: Duration = Duration::from_secs(1);

/// Why a call has no turn.
#[derive(Debug)]
pub(crate) enum TooLate {
    /// It would not come in time.
    Turn(NoTurn),
    /// The time by which the call had to be over is past.
    Deadline,
}

/// Waits for the turn of a call that costs so many points and may take `timeout`, and takes it. Past the deadline there is none, not even now.
pub(crate) async fn turn(
    budget: &RateBudget,
    path: &str,
    cost: u32,
    allowance: &Allowance,
    now: &Now,
    timeout: Duration,
) -> Result<InFlight, TooLate> {
    in_time(allowance, now)?;
    // Mostly nothing holds a call, and then nobody's time has to be looked at.
    if cost == 1
        && let Some(in_flight) = budget.sent_now(path)
    {
        return Ok(in_flight);
    }
    // What waits is large, and no call that goes out at once should carry it along.
    Box::pin(wait(budget, path, cost, allowance, now, timeout)).await
}

async fn wait(
    budget: &RateBudget,
    path: &str,
    cost: u32,
    allowance: &Allowance,
    now: &Now,
    timeout: Duration,
) -> Result<InFlight, TooLate> {
    loop {
        let within = patience(allowance, now(), timeout);
        let asleep = allowance.asleep(now);
        let turn = budget.turn_costing(path, cost, Some(within)).await;
        drop(asleep);
        match turn.map_err(TooLate::Turn)?.sent() {
            Ok(in_flight) => return Ok(in_flight),
            // A pause began since the turn came: another one, if there is time for it.
            Err(no_turn) if no_turn.retry_after >= patience(allowance, now(), timeout) => {
                return Err(TooLate::Turn(no_turn));
            }
            Err(_) => {}
        }
    }
}

/// How long a turn may be waited for now, before a call that may take `timeout`.
pub(crate) fn patience(allowance: &Allowance, now: Timestamp, timeout: Duration) -> Duration {
    allowance.budget_of_at_least(NO_WAIT, now, timeout)
}

/// Whether there is any time left for a call.
pub(crate) fn in_time(allowance: &Allowance, now: &Now) -> Result<(), TooLate> {
    match allowance.deadline() {
        Some(deadline) if deadline <= now() => Err(TooLate::Deadline),
        Some(_) | None => Ok(()),
    }
}

/// A call without a turn in time, as a refusal. Of a pause: with the status that asked for it and the moment at which it ends, which is
/// the provider's. Of our own pace: with the turn's moment, which nobody but us named.
pub(crate) fn refused(provider: &str, too_late: TooLate, now: Timestamp) -> Signal {
    let no_turn = match too_late {
        TooLate::Turn(no_turn) => no_turn,
        TooLate::Deadline => {
            return Signal::new(provider, now).reason("the call's deadline is past; it was not made");
        }
    };
    let why = no_turn.reason.as_str();
    let reason = format!("our own budget has no turn in time: {why}");
    let signal = Signal::new(provider, now).reason(&reason);
    let signal = match no_turn.status {
        Some(status) => signal.status(status),
        None => signal,
    };
    let at = now + no_turn.retry_after;
    match no_turn.reason {
        _ if no_turn.retry_after.is_zero() => signal,
        WaitReason::TooDear => signal,
        WaitReason::Paused | WaitReason::Pushback => signal
            .read_by(Source::Parser, "budget", why, Interpretation::Computed)
            .retry_at(at),
        WaitReason::Paced | WaitReason::Throttled | WaitReason::InFlight | WaitReason::Closed => signal.turn_at(at),
    }
}
