//! Independent retries: every job waits on its own and knows nothing of the others. What most clients do.
//!
//! Two ways to wait: the rungs of a ladder, and "full jitter": a random time up to an exponentially growing bound (M. Brooker:
//! Exponential backoff and jitter, AWS Architecture Blog, 2015).

use std::time::Duration;

use crate::{
    Answer, Chance, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, fixed::on_its_own, starts::Starts,
};

/// No pace at all; refused calls wait the rungs of a ladder.
#[derive(Clone, Debug)]
pub struct Independent {
    ladder: Ladder,
    starts: Starts,
}

impl Independent {
    /// Refused and failed calls are repeated after the waits of `ladder`, or at the moment that the answer named.
    #[must_use]
    pub fn new(ladder: Ladder) -> Self {
        Self {
            ladder,
            starts: Starts::default(),
        }
    }
}

impl Strategy for Independent {
    fn name(&self) -> &'static str {
        "independent"
    }

    fn turn(&mut self, _now: Moment) -> Turn {
        Turn::Now
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.starts.start(tries, Duration::ZERO, now)
    }

    fn unmade(&mut self, _ticket: Ticket, _now: Moment) {}

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        on_its_own(&self.ladder, ticket, answer, now)
    }

    fn rate(&self) -> Option<f64> {
        None
    }
}

/// No pace at all; refused calls wait a random time up to a bound that doubles.
#[derive(Clone, Debug)]
pub struct FullJitter {
    base: Duration,
    cap: Duration,
    attempts: u32,
    chance: Chance,
    starts: Starts,
}

impl FullJitter {
    /// Waits up to `base` after the first refusal, twice that after the second, never over `cap`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration, attempts: u32, chance: Chance) -> Self {
        Self {
            base,
            cap,
            attempts,
            chance,
            starts: Starts::default(),
        }
    }
}

impl Strategy for FullJitter {
    fn name(&self) -> &'static str {
        "full-jitter"
    }

    fn turn(&mut self, _now: Moment) -> Turn {
        Turn::Now
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.starts.start(tries, Duration::ZERO, now)
    }

    fn unmade(&mut self, _ticket: Ticket, _now: Moment) {}

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        if answer.outcome == Outcome::Passed {
            return Next::Settled;
        }
        if ticket.attempt() >= self.attempts {
            return Next::GiveUp;
        }
        let doubled = 1_u32
            .checked_shl(ticket.attempt().saturating_sub(1))
            .unwrap_or(u32::MAX);
        let bound = self.base.saturating_mul(doubled).min(self.cap);
        Next::Again {
            at: answer.retry_at.unwrap_or(now).max(now) + bound.mul_f64(self.chance.share()),
            spent: true,
        }
    }

    fn rate(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    fn refused(retry_at: Option<Moment>) -> Answer {
        Answer {
            outcome: Outcome::Refused,
            retry_at,
            counter: None,
        }
    }

    #[test]
    fn each_job_climbs_its_ladder_and_is_given_up_after_its_calls() {
        let mut independent = Independent::new(Ladder::new([1, 2, 4].map(Duration::from_secs).to_vec(), 5));
        for (spent, wait) in [(0, Some(1)), (1, Some(2)), (2, Some(4)), (3, Some(4)), (4, None)] {
            let ticket = independent.started(Tries { spent, free: 0 }, at(0));
            let next = independent.answered(ticket, &refused(None), at(500));
            let expected = wait.map_or(Next::GiveUp, |seconds| Next::Again {
                at: at(500 + seconds * 1000),
                spent: true,
            });
            assert_eq!(next, expected, "after {} calls", spent + 1);
        }
    }

    #[test]
    fn a_moment_that_was_named_is_kept_and_jitter_only_adds() {
        let mut jitter = FullJitter::new(Duration::from_secs(1), Duration::from_secs(60), 9, Chance::of(7));
        for spent in 0..8 {
            let ticket = jitter.started(Tries { spent, free: 0 }, at(0));
            let next = jitter.answered(ticket, &refused(Some(at(5000))), at(100));
            let Next::Again { at: again, spent: true } = next else {
                panic!("{next:?}")
            };
            let bound = Duration::from_secs(1 << spent).min(Duration::from_secs(60));
            assert!(again >= at(5000) && again <= at(5000) + bound, "{again:?}");
        }
        let ticket = jitter.started(Tries { spent: 8, free: 0 }, at(0));
        assert_eq!(jitter.answered(ticket, &refused(None), at(1)), Next::GiveUp);
    }
}
