//! Additive increase, multiplicative decrease, under a configured rate.
//!
//! D.-M. Chiu, R. Jain: Analysis of the increase and decrease algorithms for congestion avoidance in computer networks, Computer Networks
//! and ISDN Systems 17, 1989. A refusal, or a counter that says that nothing is left, halves the rate; each second in which answers
//! below 500 come gives a tenth of the configured rate back. A refusal of a call that was sent before the last decrease says nothing new.

use crate::{
    Answer, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn,
    fixed::{interval, on_its_own},
    starts::Starts,
};

/// What a decrease leaves.
const DECREASE: f64 = 0.5;
/// The least share of the configured rate.
const FLOOR: f64 = 0.1;
/// The share of the configured rate that comes back in a second.
const INCREASE: f64 = 0.1;

/// The rate that a configured one is throttled to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// Of the configured rate, from [`FLOOR`] to 1.
    share: f64,
    decreased_at: Option<Moment>,
    increased_at: Moment,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            share: 1.0,
            decreased_at: None,
            increased_at: Moment::ORIGIN,
        }
    }
}

impl Throttle {
    /// The share of the configured rate that is to be kept, from 0.1 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// A call that was sent at `sent_at` was refused, or its answer said that nothing is left. Says whether that was news.
    pub fn refused(&mut self, sent_at: Moment, now: Moment) -> bool {
        if self.decreased_at.is_some_and(|decreased_at| sent_at <= decreased_at) {
            return false;
        }
        self.share = (self.share * DECREASE).max(FLOOR);
        self.decreased_at = Some(now);
        self.increased_at = now;
        true
    }

    /// A call was answered with less than 500 and not refused.
    pub fn passed(&mut self, now: Moment) {
        let since = now.since(self.increased_at).as_secs_f64();
        // Silence earns nothing: at most a second's worth for one answer.
        self.share = (self.share + INCREASE * since.min(1.0)).min(1.0);
        self.increased_at = self.increased_at.max(now);
    }
}

/// A configured rate, throttled.
#[derive(Clone, Debug)]
pub struct Aimd {
    configured: f64,
    throttle: Throttle,
    starts: Starts,
    ladder: Ladder,
}

impl Aimd {
    /// At most so many calls a second; what is refused is repeated after the waits of `ladder`.
    #[must_use]
    pub fn new(per_second: f64, ladder: Ladder) -> Self {
        Self {
            configured: per_second,
            throttle: Throttle::default(),
            starts: Starts::default(),
            ladder,
        }
    }
}

impl Strategy for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        self.starts.turn(now)
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        let interval = interval(self.configured * self.throttle.share());
        self.starts.start(tries, interval, now)
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        self.starts.unmade(ticket);
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        let spent = answer.counter.is_some_and(|counter| counter.remaining == 0);
        match answer.outcome {
            Outcome::Refused => {
                self.throttle.refused(ticket.sent_at, now);
            }
            Outcome::Passed if spent => {
                self.throttle.refused(ticket.sent_at, now);
            }
            Outcome::Passed => self.throttle.passed(now),
            Outcome::Failed => {}
        }
        on_its_own(&self.ladder, ticket, answer, now)
    }

    fn rate(&self) -> Option<f64> {
        Some(self.configured * self.throttle.share())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    #[test]
    fn a_refusal_halves_and_a_tenth_comes_back_each_second() {
        let mut throttle = Throttle::default();
        assert!(throttle.refused(at(0), at(100)));
        assert!((throttle.share() - 0.5).abs() < 1e-9);
        for second in 1..=4 {
            throttle.passed(at(100 + second * 1000));
        }
        assert!((throttle.share() - 0.9).abs() < 1e-9, "{}", throttle.share());
        throttle.passed(at(9_000));
        throttle.passed(at(9_100));
        assert!((throttle.share() - 1.0).abs() < 1e-9, "never above the configured rate");
    }

    #[test]
    fn refusals_of_calls_sent_before_the_last_decrease_say_nothing_new() {
        let mut throttle = Throttle::default();
        assert!(throttle.refused(at(0), at(100)));
        assert!(!throttle.refused(at(50), at(110)));
        assert!(!throttle.refused(at(100), at(120)));
        assert!((throttle.share() - 0.5).abs() < 1e-9);
        assert!(throttle.refused(at(101), at(130)));
        assert!((throttle.share() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_hundred_refusals_leave_a_tenth_and_all_is_back_within_ten_seconds_of_successes() {
        let mut throttle = Throttle::default();
        for step in 0..100 {
            throttle.refused(at(step * 10 + 1), at(step * 10 + 5));
        }
        assert!((throttle.share() - 0.1).abs() < 1e-9);
        for step in 1..=10 {
            throttle.passed(at(1000 + step * 1000));
        }
        assert!((throttle.share() - 1.0).abs() < 1e-9, "{}", throttle.share());
    }

    #[test]
    fn silence_earns_no_more_than_a_second() {
        let mut throttle = Throttle::default();
        throttle.refused(at(0), at(1));
        throttle.passed(at(60_000));
        assert!((throttle.share() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_counter_that_says_nothing_is_left_counts_as_a_refusal_and_a_503_as_nothing() {
        let mut aimd = Aimd::new(10.0, Ladder::default());
        let answer = |outcome, remaining| Answer {
            outcome,
            retry_at: None,
            counter: Some(crate::Counter {
                limit: None,
                remaining,
                resets_at: at(60_000),
            }),
        };
        let ticket = aimd.started(Tries::default(), at(0));
        aimd.answered(ticket, &answer(Outcome::Failed, 0), at(10));
        assert_eq!(aimd.rate(), Some(10.0));
        let ticket = aimd.started(Tries::default(), at(100));
        assert_eq!(
            aimd.answered(ticket, &answer(Outcome::Passed, 0), at(110)),
            Next::Settled
        );
        assert_eq!(aimd.rate(), Some(5.0));
        assert_eq!(
            aimd.turn(at(111)),
            Turn::At(at(200)),
            "the start of 100 ms took its interval"
        );
    }
}
