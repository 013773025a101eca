//! What happens to a message before its job runs.

use alloc::{format, string::String};
use core::time::Duration;

use crate::{Cause, Ending, EndingKind, Envelope, Passage, Policy, QueueKind, ScopeKey, Timestamp, UnsafeRedelivery};

/// A wait shorter than this, just before the call, is none: queues delay by whole seconds.
const NO_WAIT: Duration = Duration::from_secs(1);

/// Whether a message may start its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may start once `after` has passed; when that is not zero, it is asked again then.
    Admit {
        /// What is left to wait, under a second unless `max_in_process_wait` allows more.
        after: Duration,
    },
    /// It waits until then.
    Park {
        /// Not before this moment.
        until: Timestamp,
        /// What holds it.
        cause: Cause,
        /// Why, in words.
        reason: String,
    },
    /// It has ended without a call.
    End(Ending),
    /// It is a wake-up that nobody waits for any more.
    Discard(Discarded),
    /// As many of its scope are running as may: asked again when one ends.
    Full,
    /// The invocation has no time for it: given back at once.
    Yield,
}

/// Why a wake-up is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discarded {
    /// A newer step or revision of the job exists.
    Stale,
    /// A person cancelled it.
    Cancelled,
    /// The job has already ended.
    Ended,
}

/// What the store of jobs says of this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Standing {
    /// There is no such store, or it does not answer.
    #[default]
    Unrecorded,
    /// This step is the job's newest, and nothing says that it was started.
    Current,
    /// This step is the job's newest, and its call was started before.
    Started,
    /// Nobody waits for this step any more.
    Over(Discarded),
}

/// What is known of a message before its job starts.
#[derive(Clone, Debug)]
pub struct AdmissionFacts<'a> {
    /// This moment.
    pub now: Timestamp,
    /// The message's envelope, if it was handed on before.
    pub envelope: Option<&'a Envelope>,
    /// What the store of jobs says.
    pub standing: Standing,
    /// The kind of queue it came from.
    pub queue: QueueKind,
    /// How often this message was received, this time included.
    pub receive_count: u32,
    /// After how many receives the queue gives it up; none where it is not known.
    pub max_receive_count: Option<u32>,
    /// Whether its call may be made a second time without harm.
    pub repeatable: bool,
    /// The job's own earliest moment.
    pub not_before: Option<Timestamp>,
    /// After this moment it is useless.
    pub deadline: Option<Timestamp>,
    /// Its scope.
    pub scope: &'a ScopeKey,
    /// What its scope's gate says.
    pub gate: &'a Passage,
    /// Whether the call still fits into the invocation.
    pub time_left: bool,
}

/// Decides whether a job may start. Total.
#[must_use]
pub fn admit(policy: &Policy, facts: &AdmissionFacts<'_>) -> Admission {
    if let Standing::Over(why) = facts.standing {
        return Admission::Discard(why);
    }
    if let Some(ending) = crashed(facts)
        .or_else(|| repeated_unsafely(policy, facts))
        .or_else(|| too_late(facts))
    {
        return Admission::End(ending);
    }
    if let Some(wait) = not_due(policy, facts) {
        return wait;
    }
    match facts.gate {
        Passage::Closed { until, reason } => {
            let opens_at = *until + policy.deferral.clock_skew;
            let left = opens_at.since(facts.now);
            if !left.is_zero() && in_process(policy, left) {
                return Admission::Admit { after: left };
            }
            if !left.is_zero() {
                return Admission::Park {
                    until: opens_at,
                    cause: Cause::GateClosed,
                    reason: format!("{} is closed until {until}: {reason}", facts.scope),
                };
            }
        }
        Passage::Full => return Admission::Full,
        Passage::Open => {}
    }
    if !facts.time_left {
        return Admission::Yield;
    }
    Admission::Admit { after: Duration::ZERO }
}

fn crashed(facts: &AdmissionFacts<'_>) -> Option<Ending> {
    let max = facts.max_receive_count?;
    // A FIFO hold spends receives and cannot write, so there receives prove nothing unless a store says the call started.
    let unexplained = match (facts.standing, facts.queue) {
        (Standing::Started, _) | (Standing::Unrecorded, QueueKind::Standard) => true,
        (Standing::Unrecorded, QueueKind::Fifo) | (Standing::Current | Standing::Over(_), _) => false,
    };
    (unexplained && facts.receive_count > 1 && facts.receive_count >= max.saturating_sub(1)).then(|| {
        Ending::new(
            EndingKind::Crashed,
            &format!(
                "received {} times of {max} and never settled: its process did not survive it, or it was never started",
                facts.receive_count
            ),
        )
    })
}

fn repeated_unsafely(policy: &Policy, facts: &AdmissionFacts<'_>) -> Option<Ending> {
    if facts.repeatable {
        return None;
    }
    let repeats = policy.deferral.unsafe_redelivery == UnsafeRedelivery::Repeat;
    match facts.standing {
        Standing::Started => Some(Ending::new(
            EndingKind::Unknown,
            "its call was started before and may have had its effect; it cannot be repeated safely",
        )),
        Standing::Unrecorded if facts.receive_count > 1 && !repeats => Some(Ending::new(
            EndingKind::Unknown,
            &format!(
                "received {} times: its call may have had its effect, and it cannot be repeated safely",
                facts.receive_count
            ),
        )),
        Standing::Unrecorded | Standing::Current | Standing::Over(_) => None,
    }
}

fn too_late(facts: &AdmissionFacts<'_>) -> Option<Ending> {
    let deadline = facts.deadline?;
    if facts.now > deadline {
        return Some(Ending::new(
            EndingKind::Deadline,
            &format!("its deadline {deadline} has passed; it was not sent"),
        ));
    }
    let not_before = facts.not_before.filter(|&at| at > deadline)?;
    Some(Ending::new(
        EndingKind::Deadline,
        &format!("it may not start before {not_before}, after its deadline {deadline}"),
    ))
}

fn not_due(policy: &Policy, facts: &AdmissionFacts<'_>) -> Option<Admission> {
    let by_clock = |at: Timestamp| at.since(facts.now);
    let due = facts.envelope.map(|envelope| {
        let left = match envelope.rest {
            // The queue has delayed this copy in full: but for the rest it is due, whatever this clock says.
            Some(rest) => by_clock(envelope.due).min(rest),
            None if by_clock(envelope.due).is_zero() && envelope.identity.sequence == 0 => Duration::ZERO,
            None => by_clock(envelope.due + policy.deferral.clock_skew),
        };
        // A wait until the job's own moment is the sender's wish, however many copies it takes.
        let own_wish = facts
            .not_before
            .is_some_and(|at| at <= envelope.due && envelope.due <= at + policy.deferral.clock_skew);
        let cause = if own_wish { Cause::NotBefore } else { Cause::NotDue };
        (left, cause, envelope.due)
    });
    // A copy that was put off until then or later has waited for the job's own moment as well.
    let own = facts
        .not_before
        .filter(|&at| facts.envelope.is_none_or(|envelope| envelope.due < at))
        .map(|at| (by_clock(at), Cause::NotBefore, at));
    let (left, cause, at) = [due, own].into_iter().flatten().max_by_key(|&(left, ..)| left)?;
    if left.is_zero() {
        return None;
    }
    if in_process(policy, left) {
        return Some(Admission::Admit { after: left });
    }
    let reason = match (cause, facts.envelope) {
        (Cause::NotDue, Some(envelope)) if !envelope.reason.is_empty() => envelope.reason.clone(),
        (Cause::NotDue, _) => format!("it arrived before its due time {at}"),
        _ => format!("the job itself says not before {at}"),
    };
    Some(Admission::Park {
        until: facts.now + left,
        cause,
        reason,
    })
}

fn in_process(policy: &Policy, left: Duration) -> bool {
    left < NO_WAIT || left <= policy.deferral.max_in_process_wait
}

#[cfg(test)]
mod tests;
