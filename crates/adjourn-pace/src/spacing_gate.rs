//! A spacing gate with a circuit: what a careful client of our own making would do without measuring.
//!
//! Starts are spaced: nothing until the first refusal, then 100 ms, doubled by each further one up to 2 s, and shortened by a tenth by each
//! success. A named moment pauses the gate. So many new refusals without a success between them open a circuit (as in M. Nygard: Release
//! It!, 2007): then nothing is retried and nothing delayed until a call succeeds.

use std::time::Duration;

use crate::{Answer, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, starts::Starts};

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// A gap shorter than this is none.
const NONE_BELOW: Duration = Duration::from_millis(1);

/// Starts spaced by what was refused, with a circuit.
#[derive(Clone, Debug)]
pub struct SpacingGate {
    gap: Duration,
    starts: Starts,
    /// Refusals of calls up to this one are no news.
    changed_at: u64,
    refusals: u32,
    open: bool,
    /// The last success, by the number of starts at that time.
    progress: u64,
    ladder: Ladder,
}

impl SpacingGate {
    /// Retries by the waits and the count of `ladder`.
    #[must_use]
    pub fn new(ladder: Ladder) -> Self {
        Self {
            gap: Duration::ZERO,
            starts: Starts::default(),
            changed_at: 0,
            refusals: 0,
            open: false,
            progress: 0,
            ladder,
        }
    }

    fn most_refusals(&self, hinted: bool) -> u32 {
        let retries = self.ladder.attempts().saturating_sub(1);
        retries.saturating_add(if hinted { 1 } else { 4 })
    }

    fn refused(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        if self.open {
            return Next::GiveUp;
        }
        let news = ticket.number > self.changed_at;
        if news {
            self.changed_at = self.starts.count();
            self.refusals += 1;
            self.gap = (self.gap * 2).clamp(FIRST, LONGEST);
            self.starts.hold_until(now + self.gap);
        }
        if self.refusals >= self.most_refusals(answer.retry_at.is_some()) {
            // The pause that this refusal asks for is not kept: when the circuit closes, it is long over.
            self.open = true;
            self.starts.release(now);
            return Next::GiveUp;
        }
        if let Some(at) = answer.retry_at {
            self.starts.hold_until(at);
        }
        // While others pass, a refusal is not this job's fault, up to as many times as it may be called at all.
        let progressed = self.progress >= ticket.number;
        let at = answer.retry_at.unwrap_or(now).max(now);
        if progressed && ticket.tries.free < self.ladder.attempts() {
            return Next::Again { at, spent: false };
        }
        match self.ladder.after(ticket.attempt()) {
            Some(_) => Next::Again { at, spent: true },
            None => Next::GiveUp,
        }
    }
}

impl Strategy for SpacingGate {
    fn name(&self) -> &'static str {
        "spacing-gate"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        if self.open { Turn::Now } else { self.starts.turn(now) }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.starts.start(tries, self.gap, now)
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        self.starts.unmade(ticket);
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        match answer.outcome {
            Outcome::Passed => {
                self.open = false;
                self.refusals = 0;
                self.progress = self.starts.count();
                self.gap = self.gap.mul_f64(0.9);
                if self.gap < NONE_BELOW {
                    self.gap = Duration::ZERO;
                }
                Next::Settled
            }
            Outcome::Refused => self.refused(ticket, answer, now),
            // A 503 says nothing of the pace.
            Outcome::Failed => crate::fixed::on_its_own(&self.ladder, ticket, answer, now),
        }
    }

    fn rate(&self) -> Option<f64> {
        (!self.gap.is_zero()).then(|| 1.0 / self.gap.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    fn answer(outcome: Outcome, retry_at: Option<Moment>) -> Answer {
        Answer {
            outcome,
            retry_at,
            counter: None,
        }
    }

    /// One call, answered at once.
    fn call(gate: &mut SpacingGate, outcome: Outcome, retry_at: Option<Moment>, now: Moment) -> Next {
        let ticket = gate.started(Tries::default(), now);
        gate.answered(ticket, &answer(outcome, retry_at), now)
    }

    #[test]
    fn the_gap_doubles_from_100_ms_to_2_s_and_a_success_takes_a_tenth_of_it() {
        let mut gate = SpacingGate::new(Ladder::new(vec![Duration::from_secs(1)], 20));
        for expected in [100, 200, 400, 800, 1600, 2000, 2000] {
            call(&mut gate, Outcome::Refused, None, at(0));
            assert_eq!(gate.gap, Duration::from_millis(expected));
        }
        call(&mut gate, Outcome::Passed, None, at(60_000));
        assert_eq!(gate.gap, Duration::from_millis(1800));
    }

    #[test]
    fn a_refusal_of_a_call_that_was_sent_before_the_last_one_is_no_news() {
        let mut gate = SpacingGate::new(Ladder::default());
        let (one, two) = (
            gate.started(Tries::default(), at(0)),
            gate.started(Tries::default(), at(0)),
        );
        gate.answered(one, &answer(Outcome::Refused, None), at(10));
        gate.answered(two, &answer(Outcome::Refused, None), at(10));
        assert_eq!(gate.gap, Duration::from_millis(100));
    }

    #[test]
    fn the_circuit_opens_after_so_many_refusals_and_a_success_closes_it() {
        // Seven calls are six retries: seven refusals with a named moment, ten without.
        for (hint, refusals) in [(Some(at(30_000)), 7), (None, 10)] {
            let mut gate = SpacingGate::new(Ladder::default());
            for count in 1..refusals {
                assert_ne!(call(&mut gate, Outcome::Refused, hint, at(0)), Next::GiveUp, "{count}");
            }
            assert_eq!(call(&mut gate, Outcome::Refused, hint, at(0)), Next::GiveUp);
            assert_eq!(
                gate.turn(at(0)),
                Turn::Now,
                "nothing is delayed, nor paused by the opening refusal"
            );
            assert_eq!(
                call(&mut gate, Outcome::Refused, hint, at(1)),
                Next::GiveUp,
                "nothing is retried"
            );
            assert_eq!(call(&mut gate, Outcome::Passed, None, at(2)), Next::Settled);
            assert_ne!(call(&mut gate, Outcome::Refused, None, at(60_000)), Next::GiveUp);
        }
    }

    #[test]
    fn while_others_pass_a_retry_is_free_up_to_the_requests_own_number() {
        let mut gate = SpacingGate::new(Ladder::default());
        let mut refused_with = |free| {
            let mine = gate.started(Tries { spent: 0, free }, at(0));
            call(&mut gate, Outcome::Passed, None, at(1));
            gate.answered(mine, &answer(Outcome::Refused, None), at(2))
        };
        assert!(matches!(refused_with(0), Next::Again { spent: false, .. }));
        assert!(matches!(refused_with(6), Next::Again { spent: false, .. }));
        assert!(matches!(refused_with(7), Next::Again { spent: true, .. }));
    }

    #[test]
    fn a_503_spaces_nothing() {
        let mut gate = SpacingGate::new(Ladder::default());
        call(&mut gate, Outcome::Failed, None, at(0));
        assert_eq!(gate.turn(at(0)), Turn::Now);
    }
}
