//! A trial: a few calls at once, just after a refusal.
//!
//! A bucket that has just refused holds less than one token, so of calls that follow at once it lets through no more than came in since. Refusals
//! by chance let most of them through. No slower pace could tell one from the other: a share of refused calls that stays the same at every pace
//! is chance, or somebody else's doing.

use crate::{Moment, Ticket};

/// Calls of a trial beside those that the pace itself would make in a round trip.
const CALLS: f64 = 5.0;
/// A trial of more calls is none.
const MOST: u32 = 10;
/// Calls that the pace makes in a round trip, up to which a trial asks one call after the other: it costs one refusal at most.
const ONE_BY_ONE: f64 = 0.5;
/// Tokens beside the one that the first call may find, and the calls that have to pass at least, before the pace is refuted.
const BEYOND: f64 = 0.9;
const AT_LEAST: f64 = 3.0;
/// Refusals that are suspicious before a trial is made: while a pace is held, and while the limit is shared.
const HELD: u32 = 3;
const SHARED: u32 = 8;
/// Successes between two refusals, up to which the second is suspicious.
const SOON: u64 = 15;
/// Each trial that proves the pace doubles the refusals before the next, so often at most.
const DOUBLINGS: u32 = 3;
/// A pace of this share of the one that was tried last is tried again.
const FALLEN: f64 = 0.5;

/// Calls that were sent to find out whether the pace has anything to do with what is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    refused_at: Moment,
    last_at: Moment,
    /// Calls up to this one do not belong to it.
    after: u64,
    left: u32,
    sent: u32,
    passed: u32,
    refused: u32,
    in_flight: u32,
    one_by_one: bool,
    /// Whether the limit was taken for a shared one before.
    pub(super) shared: bool,
}

impl Trial {
    /// A trial after the refusal of `ticket`, when `started` calls have been sent; none where it would take too many.
    pub(super) fn after(ticket: Ticket, pace: f64, shared: bool, started: u64, now: Moment) -> Option<Self> {
        let meanwhile = pace * now.since(ticket.sent_at).as_secs_f64();
        let left = (1..=MOST).find(|&calls| f64::from(calls) >= CALLS + meanwhile)?;
        Some(Self {
            refused_at: ticket.sent_at,
            last_at: now,
            after: started,
            left,
            sent: 0,
            passed: 0,
            refused: 0,
            in_flight: 0,
            one_by_one: meanwhile < ONE_BY_ONE,
            shared,
        })
    }

    /// Whether one more of its calls may be sent now: the first, and then the others together or one by one, as long as none was refused.
    pub(super) fn may_start(&self) -> bool {
        let first = self.sent == 0;
        let others = self.passed > 0 && !(self.one_by_one && self.in_flight > 0);
        self.left > 0 && self.refused == 0 && (first || others)
    }

    pub(super) fn started(&mut self, now: Moment) {
        self.left = self.left.saturating_sub(1);
        self.sent += 1;
        self.in_flight += 1;
        self.last_at = now;
    }

    /// A call ended: `Some(true)` it passed, `Some(false)` it was refused, `None` it was not made or tells nothing.
    pub(super) fn ended(&mut self, ticket: Ticket, passed: Option<bool>) {
        if ticket.number <= self.after {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        match passed {
            Some(true) => self.passed += 1,
            Some(false) => self.refused += 1,
            None if self.sent == 1 => {
                // The first has to tell, so that it is sent again.
                self.sent = 0;
                self.left += 1;
            }
            None => {}
        }
    }

    /// Whether nothing more is to be learnt.
    pub(super) fn is_over(&self) -> bool {
        self.in_flight == 0 && !self.may_start()
    }

    /// Whether no bucket of this rate would have let so many through.
    pub(super) fn refutes(&self, pace: f64) -> bool {
        let most = 1.0 + pace * self.last_at.since(self.refused_at).as_secs_f64();
        f64::from(self.passed) >= (most + BEYOND).max(AT_LEAST)
    }
}

/// When a trial is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    refusals: u32,
    /// Calls that had passed at the last refusal.
    passed: u64,
    /// Trials in a row that proved the pace, up to [`DOUBLINGS`].
    proven: u32,
    /// The pace at the last trial.
    tried: f64,
}

impl Suspicion {
    pub(super) fn none() -> Self {
        Self {
            refusals: 0,
            passed: 0,
            proven: 0,
            tried: f64::INFINITY,
        }
    }

    /// A refusal while a pace is held, after so many successes in all. Says whether a trial is due.
    pub(super) fn refused_while_held(&mut self, passed: u64) -> bool {
        if passed - self.passed <= SOON {
            self.refusals += 1;
        }
        self.passed = passed;
        self.refusals >= HELD << self.proven
    }

    /// The same while the limit is shared.
    pub(super) fn refused_while_shared(&mut self, pace: f64) -> bool {
        self.refusals += 1;
        pace < self.tried * FALLEN || self.refusals >= SHARED << self.proven
    }

    /// A trial was made at this pace.
    pub(super) fn tries(&mut self, pace: f64) {
        self.tried = pace;
    }

    /// What came of it.
    pub(super) fn judged(&mut self, refuted: bool) {
        self.refusals = 0;
        self.proven = if refuted { 0 } else { (self.proven + 1).min(DOUBLINGS) };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Tries;

    const RTT: Duration = Duration::from_millis(100);

    fn ticket(number: u64, sent_at: Moment) -> Ticket {
        Ticket {
            number,
            sent_at,
            tries: Tries::default(),
        }
    }

    /// A trial at so many calls a second, in which calls answer in `RTT` and pass as `passes` says. Returns it and how many it sent.
    fn play(pace: f64, passes: &[bool]) -> (Trial, u32) {
        let mut now = Moment::after(RTT);
        let mut trial = Trial::after(ticket(1, Moment::ORIGIN), pace, false, 1, now).unwrap();
        let (mut number, mut outcomes) = (1, passes.iter().copied().cycle());
        while !trial.is_over() {
            let mut sent = Vec::new();
            while trial.may_start() {
                number += 1;
                trial.started(now);
                sent.push(ticket(number, now));
            }
            now += RTT;
            for ticket in sent {
                trial.ended(ticket, outcomes.next());
            }
        }
        let sent = trial.sent;
        (trial, sent)
    }

    #[test]
    fn a_bucket_costs_a_trial_one_refusal_where_the_pace_is_slow() {
        let (trial, sent) = play(1.0, &[false]);
        assert_eq!(sent, 1);
        assert!(!trial.refutes(1.0));
        let (trial, sent) = play(1.0, &[true, false]);
        assert_eq!(sent, 2, "one after the other");
        assert!(!trial.refutes(1.0), "a token may have come");
    }

    #[test]
    fn calls_that_pass_at_once_refute_the_pace() {
        let (trial, sent) = play(1.0, &[true]);
        assert_eq!(sent, 6);
        assert!(trial.refutes(1.0));
        assert!(!trial.refutes(20.0), "a bucket of twenty a second has so many by then");
    }

    #[test]
    fn what_tells_nothing_neither_proves_nor_hangs() {
        let now = Moment::after(RTT);
        let mut trial = Trial::after(ticket(1, Moment::ORIGIN), 1.0, false, 1, now).unwrap();
        trial.started(now);
        trial.ended(ticket(1, Moment::ORIGIN), Some(false));
        assert!(!trial.is_over(), "a call of before does not count");
        trial.ended(ticket(2, now), None);
        assert!(trial.may_start() && !trial.is_over(), "the first is asked again");
        trial.started(now);
        trial.ended(ticket(3, now), Some(false));
        assert!(trial.is_over() && !trial.refutes(1.0));
    }

    #[test]
    fn no_trial_where_it_would_take_many_calls() {
        assert!(Trial::after(ticket(1, Moment::ORIGIN), 100.0, false, 1, Moment::after(RTT)).is_none());
    }

    #[test]
    fn trials_become_rarer_while_they_prove_the_pace() {
        let mut suspicion = Suspicion::none();
        let due = |suspicion: &mut Suspicion| (1..).find(|_| suspicion.refused_while_held(7)).unwrap_or(0);
        for expected in [3, 6, 12, 24, 24] {
            assert_eq!(due(&mut suspicion), expected);
            suspicion.judged(false);
        }
        suspicion.judged(true);
        assert_eq!(due(&mut suspicion), 3);
    }

    #[test]
    fn a_refusal_after_many_successes_is_as_it_should_be() {
        let mut suspicion = Suspicion::none();
        assert!((1..100).all(|count| !suspicion.refused_while_held(count * (SOON + 1))));
    }
}
