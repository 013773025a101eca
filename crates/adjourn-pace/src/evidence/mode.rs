//! What is believed of the limit at the moment.

use std::time::Duration;

use crate::Moment;

use super::trial::Trial;

/// Successes after which one more call at a time is tried, where calls at a time are what is limited.
const ROOM: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// No limit is known: so many in flight as have passed so far.
    Open { window: f64 },
    /// Nothing passes: one call at a time asks whether that has changed.
    Closed(Closed),
    /// A question was answered after a while: is it one token, or is all open again?
    Second {
        /// How long nothing passed, in seconds.
        span: f64,
        /// The gap before the question that passed, and the longest after which one was refused.
        gap: f64,
        refused_after: f64,
    },
    /// It passes: faster with each success.
    Grow {
        /// Calls that had passed when it began, and at the last raise but one.
        passed: u64,
        raised: [u64; 2],
    },
    /// At the pace that the evidence says.
    Hold,
    /// A few calls at once: has the pace anything to do with what is refused?
    Trial(Trial),
    /// Others draw from the same limit, or refusals come by chance: no bucket explains them, so that a share of them is kept.
    Shared {
        /// Refusals in a row that one bucket explains.
        calm: u32,
    },
}

/// A closure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Closed {
    pub(super) since: Moment,
    /// The longest gap since the last call that passed after which a question was refused, in seconds.
    pub(super) refused_after: f64,
    pub(super) wait: Duration,
    pub(super) next_at: Moment,
    pub(super) asked: Option<u64>,
    pub(super) questions: u32,
}

/// How many calls at a time pass, where that is what is limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    most: Option<u32>,
    since: u32,
    /// The shortest time that a call took which passed, and one that was refused.
    pub(super) passed_in: Duration,
    pub(super) refused_in: Duration,
}

impl Mode {
    /// It begins to pass, `passed` calls after the start.
    pub(super) fn growing(passed: u64) -> Self {
        Self::Grow {
            passed,
            raised: [passed; 2],
        }
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            most: None,
            since: 0,
            passed_in: Duration::MAX,
            refused_in: Duration::MAX,
        }
    }
}

impl Crowd {
    /// Whether there is no place for one more beside so many in flight.
    pub(super) fn is_full(&self, in_flight: u32) -> bool {
        self.most.is_some_and(|most| in_flight >= most.max(1))
    }

    /// Where refusals come at once while calls that pass take long, it is the calls at a time that are too many.
    pub(super) fn suspected(&self) -> bool {
        self.passed_in < Duration::MAX && self.refused_in < self.passed_in / 2
    }

    pub(super) fn passes(&mut self) {
        self.since += 1;
        if self.since >= ROOM {
            self.since = 0;
            self.most = self.most.map(|most| most.saturating_add(1));
        }
    }

    pub(super) fn refuses(&mut self, others: u32) {
        self.since = 0;
        self.most = Some(self.most.map_or(others, |most| most.min(others)));
    }
}
