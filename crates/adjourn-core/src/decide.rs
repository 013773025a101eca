//! What a job's outcome means: done, a wait, or its end.

use alloc::{
    format,
    string::{String, ToString},
};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Cap, Counters, Ending, EndingKind, Fault, Kind, Monthly, Outcome, Policy, Signal, Timestamp, Verdict,
    signal::truncated,
};

/// The most that jitter adds to a deferral.
const MAX_DEFERRAL_JITTER: Duration = Duration::from_secs(30);
/// The least wait after a refusal whose moment is zero or already past.
const PAST_FLOOR: Duration = Duration::from_secs(1);

/// What happens to the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is done.
    Complete,
    /// The integration does not want it any more.
    Drop {
        /// Why.
        reason: String,
    },
    /// It comes back later.
    Wait(Wait),
    /// It has ended without success.
    End(Ending),
}

/// A wait: until when, why, and what it counts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Not before this moment; jitter is in it.
    pub until: Timestamp,
    /// What put the job off.
    pub cause: Cause,
    /// Which counter it spends.
    pub counter: Counter,
    /// How much of the wait is jitter.
    pub jitter: Duration,
    /// Why, in words.
    pub reason: String,
    /// What was odd about the moment that was named, in words.
    pub anomaly: Option<&'static str>,
}

/// What put a job off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The provider refused and named a moment.
    RefusedUntil,
    /// The provider refused and named none.
    Refused,
    /// The integration's handler chose the moment.
    Verdict,
    /// The call failed.
    Failed,
    /// It arrived before its due time.
    NotDue,
    /// The job itself says not before.
    NotBefore,
    /// Its scope's gate is closed.
    GateClosed,
    /// As many of its scope are running as may.
    ScopeFull,
    /// The invocation has no time left for it.
    OutOfTime,
}

/// Which counter a wait spends: being put off costs no attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// A refusal.
    Deferral,
    /// A hand-off without a call.
    Hop,
    /// A failed call.
    Failure,
}

/// What is known of a job when its outcome is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the envelope counted.
    pub counters: Counters,
    /// Receives that no store explains. A hold cannot write, so where nothing else remembers, each counts as a deferral.
    pub unexplained_receives: u32,
    /// When the job was first deferred.
    pub first_deferred_at: Option<Timestamp>,
    /// Since when it has been refused without a time.
    pub unnamed_since: Option<Timestamp>,
    /// After this moment the job is useless.
    pub deadline: Option<Timestamp>,
    /// The next turn of the scope, where its pace is being found: what a refusal without a time waits for instead of the ladder.
    pub found_turn: Option<Timestamp>,
}

impl Facts {
    /// The facts of a message that was never handed on and has no deadline.
    #[must_use]
    pub fn first_delivery() -> Self {
        Self {
            counters: Counters::default(),
            unexplained_receives: 0,
            first_deferred_at: None,
            unnamed_since: None,
            deadline: None,
            found_turn: None,
        }
    }

    /// How often the job was deferred, as far as anything can tell.
    #[must_use]
    pub fn deferrals(&self) -> u32 {
        self.counters.deferrals.saturating_add(self.unexplained_receives)
    }
}

/// Decides what `outcome` means for a job. Total: every input has an answer, and a wait is never earlier than the signal.
#[must_use]
pub fn decide(
    policy: &Policy,
    facts: &Facts,
    outcome: &Outcome,
    verdict: &Verdict,
    now: Timestamp,
    entropy: u64,
) -> Decision {
    let context = Context {
        policy,
        facts,
        now,
        entropy,
    };
    match outcome {
        Outcome::Done => Decision::Complete,
        Outcome::Throttled(signal) => context.throttled(signal, verdict),
        Outcome::Failed(fault) => context.failed(fault),
        Outcome::Unknown(fault) => {
            Decision::End(Ending::new(EndingKind::Unknown, fault.why()).status(fault.last_status()))
        }
        Outcome::Rejected(fault) => {
            Decision::End(Ending::new(EndingKind::Rejected, fault.why()).status(fault.last_status()))
        }
    }
}

/// A hand-off without a call: the job comes back at `until`, for `cause`, in these words.
///
/// Only [`Cause::NotBefore`] may wait past `max_deferred`, since that is the sender's own wish.
#[must_use]
pub fn hop(policy: &Policy, facts: &Facts, until: Timestamp, cause: Cause, reason: &str, now: Timestamp) -> Decision {
    let context = Context {
        policy,
        facts,
        now,
        entropy: 0,
    };
    let until = until.max(now);
    if facts.counters.hops >= policy.deferral.max_hops {
        return exhausted(
            Cap::Hops,
            &format!(
                "handed on {} times without a call (max_hops): {reason}",
                facts.counters.hops
            ),
            None,
        );
    }
    if let Some(end) = context.past_deadline(until, reason, None) {
        return end;
    }
    // The skew is ours, so it is no part of what the cap measures.
    let told = match cause {
        Cause::NotDue | Cause::GateClosed => until - policy.deferral.clock_skew,
        Cause::RefusedUntil
        | Cause::Refused
        | Cause::Verdict
        | Cause::Failed
        | Cause::NotBefore
        | Cause::ScopeFull
        | Cause::OutOfTime => until,
    };
    // A hop to this very moment puts nothing off.
    if cause != Cause::NotBefore
        && until > now
        && let Some(end) = context.past_deferred_time(told, reason, None)
    {
        return end;
    }
    Decision::Wait(Wait {
        until,
        cause,
        counter: Counter::Hop,
        jitter: Duration::ZERO,
        reason: truncated(reason, Signal::MAX_REASON_BYTES).to_string(),
        anomaly: None,
    })
}

struct Context<'a> {
    policy: &'a Policy,
    facts: &'a Facts,
    now: Timestamp,
    entropy: u64,
}

impl Context<'_> {
    fn throttled(&self, signal: &Signal, verdict: &Verdict) -> Decision {
        let status = signal.observation().status;
        match verdict {
            Verdict::Default => self.default_handler(signal),
            Verdict::Defer { until } => self.deferral_by_verdict(*until, signal),
            Verdict::Drop { reason } => Decision::Drop { reason: reason.clone() },
            Verdict::Retry => {
                let fault = Fault::new(signal.why()).retry_at(self.floor(signal));
                let fault = status.map_or(fault.clone(), |status| fault.status(status));
                self.failed(&fault)
            }
            Verdict::DeadLetter { reason } => Decision::End(Ending::new(EndingKind::Rejected, reason).status(status)),
        }
    }

    fn default_handler(&self, signal: &Signal) -> Decision {
        let deferral = &self.policy.deferral;
        let status = signal.observation().status;
        if signal.limit_kind() == Kind::AccountDisabled {
            return Decision::End(
                Ending::new(
                    EndingKind::Rejected,
                    &format!("account disabled, no wait helps: {}", signal.why()),
                )
                .status(status),
            );
        }
        if let Some(allowed) = self.allowed(signal) {
            let anomaly = signal
                .is_past()
                .then_some("the provider named a moment that was already past");
            return self.deferral(allowed, self.latest(), signal, Cause::RefusedUntil, anomaly);
        }
        let classified_otherwise = status.is_some_and(|status| status != 429);
        match signal.limit_kind() {
            Kind::Monthly if deferral.monthly == Monthly::Exhaust => exhausted(
                Cap::MonthlyQuota,
                &format!("the month's quota is spent and no reset was named: {}", signal.why()),
                status,
            ),
            Kind::Monthly | Kind::Daily => self.probe(signal),
            Kind::Short | Kind::Concurrency | Kind::Unknown | Kind::AccountDisabled if classified_otherwise => {
                self.probe(signal)
            }
            Kind::Short | Kind::Concurrency | Kind::Unknown | Kind::AccountDisabled => self.ladder(signal),
        }
    }

    fn deferral_by_verdict(&self, asked: Timestamp, signal: &Signal) -> Decision {
        let past = asked <= self.now;
        let mut floor = self.floor(signal);
        if past && signal.not_before().is_none() {
            floor = floor.max(self.now + PAST_FLOOR);
        }
        let anomaly = match (asked < floor, past) {
            (false, _) => None,
            (true, true) => Some("the handler asked for a moment that was already past"),
            (true, false) => Some("the handler asked for less than the provider or min_retry_after_ms allows"),
        };
        self.deferral(asked.max(floor), self.latest(), signal, Cause::Verdict, anomaly)
    }

    /// The earliest moment that the provider's word (or the caller's own pace, where that held the call) and the floors allow; none when
    /// there is none.
    fn allowed(&self, signal: &Signal) -> Option<Timestamp> {
        let named = signal.not_before()?;
        let floor = if named <= self.now || signal.is_past() {
            PAST_FLOOR
        } else {
            Duration::ZERO
        };
        Some(named.max(self.now + floor.max(self.policy.deferral.min_retry_after)))
    }

    /// The earliest moment that any answer to this refusal may choose.
    fn floor(&self, signal: &Signal) -> Timestamp {
        self.allowed(signal)
            .unwrap_or(self.now + self.policy.deferral.min_retry_after)
    }

    fn probe(&self, signal: &Signal) -> Decision {
        let until = self.now + self.floored(self.policy.deferral.probe_interval);
        self.deferral(until, self.latest(), signal, Cause::Refused, None)
    }

    fn ladder(&self, signal: &Signal) -> Decision {
        // What a hold could not write down counts here as it does among the deferrals.
        let held = self.facts.unexplained_receives;
        let refusals = self.facts.counters.unnamed.saturating_add(held);
        let until = match self.facts.found_turn {
            Some(turn) => turn.max(self.now + self.policy.deferral.min_retry_after),
            None => self.now + self.floored(rung(&self.policy.deferral.ladder, refusals)),
        };
        let first_held = self.facts.first_deferred_at.filter(|_| held > 0);
        let since = self.facts.unnamed_since.or(first_held).unwrap_or(self.now);
        let mut limit = self.policy.deferral.unknown_max;
        if let Some(deadline) = self.facts.deadline {
            limit = limit.min(deadline.since(since).checked_div(2).unwrap_or_default());
        }
        if until.since(since) > limit {
            return exhausted(
                Cap::UnknownTime,
                &format!(
                    "refused without a time since {since}, and the next try at {until} would pass unknown_max_ms or half of what the deadline leaves: {}",
                    signal.why()
                ),
                signal.observation().status,
            );
        }
        let latest = self.latest().min(since + whole_ms(limit));
        self.deferral(until, latest, signal, Cause::Refused, None)
    }

    fn floored(&self, span: Duration) -> Duration {
        span.max(self.policy.deferral.min_retry_after).max(PAST_FLOOR)
    }

    /// A deferral to `until` plus jitter, which only adds and never turns an allowed wait into one past `latest`.
    fn deferral(
        &self,
        until: Timestamp,
        latest: Timestamp,
        signal: &Signal,
        cause: Cause,
        anomaly: Option<&'static str>,
    ) -> Decision {
        let deferral = &self.policy.deferral;
        let status = signal.observation().status;
        let made = self.facts.deferrals();
        if made >= deferral.max_deferrals {
            return exhausted(
                Cap::Deferrals,
                &format!(
                    "deferral cap: deferred {made} times (max_deferrals), and refused again: {}",
                    signal.why()
                ),
                status,
            );
        }
        if let Some(end) = self.past_deferred_time(until, signal.why(), status) {
            return end;
        }
        if let Some(end) = self.past_deadline(until, signal.why(), status) {
            return end;
        }
        let spread = until
            .since(self.now)
            .checked_div(10)
            .unwrap_or_default()
            .min(MAX_DEFERRAL_JITTER);
        let jitter = share(spread, self.entropy).min(latest.since(until));
        Decision::Wait(Wait {
            until: until + jitter,
            cause,
            counter: Counter::Deferral,
            jitter,
            reason: signal.why().to_string(),
            anomaly,
        })
    }

    fn failed(&self, fault: &Fault) -> Decision {
        let retry = &self.policy.retry;
        let failures = self.facts.counters.failures.saturating_add(1);
        if failures >= retry.max_attempts {
            return exhausted(
                Cap::Attempts,
                &format!("failed {failures} times (max_attempts): {}", fault.why()),
                fault.last_status(),
            );
        }
        let backoff = rung(&retry.backoff, self.facts.counters.failures);
        let until = (self.now + backoff).max(fault.not_before().unwrap_or(self.now));
        if let Some(end) = self.past_deferred_time(until, fault.why(), fault.last_status()) {
            return end;
        }
        if let Some(end) = self.past_deadline(until, fault.why(), fault.last_status()) {
            return end;
        }
        let spread = backoff.checked_div(4).unwrap_or_default();
        let jitter = share(spread, self.entropy).min(self.latest().since(until));
        Decision::Wait(Wait {
            until: until + jitter,
            cause: Cause::Failed,
            counter: Counter::Failure,
            jitter,
            reason: fault.why().to_string(),
            anomaly: None,
        })
    }

    fn first_deferred_at(&self) -> Timestamp {
        self.facts.first_deferred_at.unwrap_or(self.now)
    }

    /// The last moment that the caps on time allow.
    fn latest(&self) -> Timestamp {
        let capped = self.first_deferred_at() + whole_ms(self.policy.deferral.max_deferred);
        self.facts.deadline.map_or(capped, |deadline| deadline.min(capped))
    }

    fn past_deferred_time(&self, until: Timestamp, reason: &str, status: Option<u16>) -> Option<Decision> {
        let first = self.first_deferred_at();
        let cap = self.policy.deferral.max_deferred;
        (until.since(first) > cap).then(|| {
            exhausted(
                Cap::DeferredTime,
                &format!(
                    "due at {until}, {} s after it was first put off; max_deferred_ms allows {} s: {reason}",
                    until.since(first).as_secs(),
                    cap.as_secs()
                ),
                status,
            )
        })
    }

    fn past_deadline(&self, until: Timestamp, reason: &str, status: Option<u16>) -> Option<Decision> {
        let deadline = self.facts.deadline.filter(|&deadline| until > deadline)?;
        Some(Decision::End(
            Ending::new(
                EndingKind::Deadline,
                &format!("it could not be tried before {until}, after its deadline {deadline}: {reason}"),
            )
            .status(status),
        ))
    }
}

fn exhausted(cap: Cap, reason: &str, status: Option<u16>) -> Decision {
    Decision::End(Ending::new(EndingKind::Exhausted(cap), reason).status(status))
}

/// The wait of rung `n`; the last one repeats, and an empty ladder waits nothing.
fn rung(ladder: &[Duration], n: u32) -> Duration {
    let last = ladder.len().saturating_sub(1);
    ladder
        .get(usize::try_from(n).unwrap_or(usize::MAX).min(last))
        .copied()
        .unwrap_or_default()
}

/// A share of `span` from nothing to all of it, in ten-thousandths, by `entropy`.
fn share(span: Duration, entropy: u64) -> Duration {
    let parts = u32::try_from(entropy % 10_001).unwrap_or_default();
    whole_ms(
        span.checked_mul(parts)
            .and_then(|span| span.checked_div(10_000))
            .unwrap_or_default(),
    )
}

/// The span without its part of a millisecond: a moment rounds such a part up, which is right for a wait and wrong for
/// its bounds.
fn whole_ms(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
