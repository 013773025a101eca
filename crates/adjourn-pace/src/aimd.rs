//! Additive increase, multiplicative decrease, under a configured rate.
//!
//! D.-M. Chiu, R. Jain: Analysis of the increase and decrease algorithms for congestion avoidance in computer networks, Computer Networks
//! and ISDN Systems 17, 1989. A refusal, or a counter that says that nothing is left, halves the rate; each second in which answers
//! below 500 come gives a tenth of the configured rate back. A refusal of a call that was sent before the last decrease says nothing new.

use crate::{
    Answer, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn,
    fixed::{interval, on_its_own},
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
    next_at: Moment,
    started: u64,
    ladder: Ladder,
}

impl Aimd {
    /// At most so many calls a second; what is refused is repeated after the waits of `ladder`.
    #[must_use]
    pub fn new(per_second: f64, ladder: Ladder) -> Self {
        Self {
            configured: per_second,
            throttle: Throttle::default(),
            next_at: Moment::ORIGIN,
            started: 0,
            ladder,
        }
    }
}

impl Strategy for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        if self.next_at > now {
            Turn::At(self.next_at)
        } else {
            Turn::Now
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.started += 1;
        self.next_at = self.next_at.max(now) + interval(self.configured * self.throttle.share());
        Ticket {
            sent_at: now,
            number: self.started,
            tries,
        }
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        if ticket.number == self.started {
            self.next_at = self.next_at - interval(self.configured * self.throttle.share());
        }
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
