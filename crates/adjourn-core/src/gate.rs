//! What one refusal teaches the others: a gate for each scope, closed until a moment, reopening as a slope.
//!
//! The state of one gate; who shares it with whom is the worker's business. A pace, where one is known, is kept by the
//! generic cell rate algorithm in its virtual-scheduling form (ITU-T I.371, annex A): a theoretical arrival time moves on
//! by one emission interval with each start, and may lag behind the present by the burst tolerance.

use alloc::string::{String, ToString};
use core::time::Duration;

use crate::{Timestamp, signal::truncated};

/// Successes in a row after which a reopened gate no longer counts what is in flight.
const OPEN_AT: u32 = 64;
/// After so long without a refusal a reopened gate has nothing to remember.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// How fast a scope may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The emission interval: the time that one call takes from the rate.
    pub interval: Duration,
    /// How many calls may start back to back.
    pub burst: u32,
}

impl Pace {
    /// `requests` each `period`, all of them back to back if they were saved up.
    #[must_use]
    pub fn new(requests: u32, period: Duration) -> Self {
        let burst = requests.max(1);
        Self {
            interval: period.checked_div(burst).unwrap_or(period),
            burst,
        }
    }

    fn tolerance(self) -> Duration {
        self.interval.saturating_mul(self.burst.saturating_sub(1))
    }
}

/// What a gate answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A call may start.
    Open,
    /// No call before that moment.
    Closed {
        /// Not before this moment.
        until: Timestamp,
        /// Why, in words.
        reason: String,
    },
    /// As many calls are in flight as may be: ask again when one ends.
    Full,
}

/// One scope's gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    closed_until: Timestamp,
    changed_at: Timestamp,
    reason: String,
    /// How many may be in flight while it reopens; none once it is open.
    window: Option<u32>,
    in_flight: u32,
    max_in_flight: Option<u32>,
    pace: Option<Pace>,
    arrival: Timestamp,
    /// How many jobs were parked since the gate closed, where no pace is known.
    turns: u32,
    /// The turn after the last one that was given to a parked job, where a pace is known.
    next_turn: Timestamp,
}

impl Gate {
    /// An open gate of a scope with these limits.
    #[must_use]
    pub fn new(pace: Option<Pace>, max_in_flight: Option<u32>) -> Self {
        Self {
            closed_until: Timestamp::EPOCH,
            changed_at: Timestamp::EPOCH,
            reason: String::new(),
            window: None,
            in_flight: 0,
            max_in_flight,
            pace,
            arrival: Timestamp::EPOCH,
            turns: 0,
            next_turn: Timestamp::EPOCH,
        }
    }

    /// Takes over the scope's limits as they are configured now; they hold from the next start on.
    pub fn limit(&mut self, pace: Option<Pace>, max_in_flight: Option<u32>) {
        self.pace = pace;
        self.max_in_flight = max_in_flight;
    }

    /// Whether a call may start at `now`.
    #[must_use]
    pub fn check(&self, now: Timestamp) -> Passage {
        if self.closed_until > now {
            return Passage::Closed {
                until: self.closed_until,
                reason: self.reason.clone(),
            };
        }
        if self.room() == 0 {
            return Passage::Full;
        }
        match self.next_start() {
            Some(at) if at > now => Passage::Closed {
                until: at,
                reason: String::from("the configured rate is spent"),
            },
            _ => Passage::Open,
        }
    }

    /// How many calls may start at `now`, at most `most`.
    #[must_use]
    pub fn startable(&self, now: Timestamp, most: u32) -> u32 {
        if self.closed_until > now {
            return 0;
        }
        let room = self.room().min(most);
        let Some(pace) = self.pace else { return room };
        let mut trial = self.arrival;
        let mut count = 0_u32;
        while count < room && trial - pace.tolerance() <= now {
            trial = trial.max(now) + pace.interval;
            count = count.saturating_add(1);
        }
        count
    }

    /// The moment from which the next call may start, as far as it is known: the reopening or the next turn of the rate.
    #[must_use]
    pub fn opens_at(&self, now: Timestamp) -> Timestamp {
        self.closed_until.max(self.next_start().unwrap_or(now)).max(now)
    }

    /// Whether nothing is known of this scope that a new gate would not know: nothing in flight, closed or reopening.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let settled = self.window.is_none() || now.since(self.changed_at) > FORGOTTEN_AFTER;
        self.in_flight == 0 && settled && self.opens_at(now) <= now
    }

    /// Until when the gate is closed by a refusal, and why; none while it is open.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Option<(Timestamp, &str)> {
        (self.closed_until > now).then_some((self.closed_until, self.reason.as_str()))
    }

    /// The configured emission interval.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        self.pace
    }

    /// A call starts at `now`.
    pub fn start(&mut self, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_add(1);
        if let Some(pace) = self.pace {
            self.arrival = self.arrival.max(now) + pace.interval;
        }
    }

    /// A start that made no call gives its turn back.
    pub fn give_back(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(pace) = self.pace {
            self.arrival = self.arrival - pace.interval;
        }
    }

    /// A call ended, neither refused nor a success to learn from.
    pub fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call that started at `started_at` succeeded: a reopened gate lets one more in flight.
    pub fn succeed(&mut self, started_at: Timestamp) {
        self.end();
        if started_at < self.changed_at {
            return;
        }
        self.window = self
            .window
            .map(|window| window.saturating_add(1))
            .filter(|&window| window < OPEN_AT);
    }

    /// A call was refused at `now`: closed until the later of what is known and `until`.
    ///
    /// Returns whether the gate closes later than it did.
    pub fn refuse(&mut self, until: Timestamp, now: Timestamp, reason: &str) -> bool {
        self.end();
        self.close(until, now, reason)
    }

    /// Closes the gate until the later of what is known and `until`; used for what others have learnt, too.
    pub fn close(&mut self, until: Timestamp, now: Timestamp, reason: &str) -> bool {
        self.window = Some(1);
        self.changed_at = now;
        if until <= self.closed_until {
            return false;
        }
        self.closed_until = until;
        self.reason = truncated(reason, 200).to_string();
        self.turns = 0;
        true
    }

    /// The moment for the next parked job to come back: the reopening, spread by the pace where one is known, and otherwise
    /// one in the first second, two in the next, then four, so that what comes back is a slope and not a cliff.
    pub fn turn(&mut self, now: Timestamp) -> Timestamp {
        let opens_at = self.opens_at(now);
        if let Some(pace) = self.pace {
            let turn = self.next_turn.max(opens_at);
            self.next_turn = turn + pace.interval;
            return turn;
        }
        let turn = self.turns;
        self.turns = self.turns.saturating_add(1);
        opens_at + Self::slope(turn)
    }

    fn slope(turn: u32) -> Duration {
        let position = turn.saturating_add(1);
        let second = position.ilog2();
        let start = 1_u32.checked_shl(second).unwrap_or(1);
        let within = u64::from(position.saturating_sub(start))
            .saturating_mul(1000)
            .checked_div(u64::from(start));
        Duration::from_secs(u64::from(second)).saturating_add(Duration::from_millis(within.unwrap_or(0)))
    }

    fn room(&self) -> u32 {
        let most = self
            .window
            .unwrap_or(u32::MAX)
            .min(self.max_in_flight.unwrap_or(u32::MAX));
        most.saturating_sub(self.in_flight)
    }

    fn next_start(&self) -> Option<Timestamp> {
        self.pace.map(|pace| self.arrival - pace.tolerance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_000_000 + ms)
    }

    #[test]
    fn a_refusal_closes_until_the_later_of_two_moments() {
        let mut gate = Gate::new(None, None);
        gate.start(at(0));
        gate.start(at(0));
        assert!(gate.refuse(at(5000), at(10), "burst"));
        assert!(!gate.refuse(at(3000), at(11), "burst"));
        assert_eq!(
            gate.check(at(4999)),
            Passage::Closed {
                until: at(5000),
                reason: "burst".to_string()
            }
        );
        assert_eq!(gate.check(at(5000)), Passage::Open);
    }

    #[test]
    fn reopening_grows_with_each_success() {
        let mut gate = Gate::new(None, None);
        gate.close(at(100), at(0), "burst");
        assert_eq!(gate.startable(at(99), 50), 0);
        let mut started = Vec::new();
        for _ in 0..6 {
            let n = gate.startable(at(200), 50);
            started.push(n);
            (0..n).for_each(|_| gate.start(at(200)));
            (0..n).for_each(|_| gate.succeed(at(200)));
        }
        assert_eq!(started, [1, 2, 4, 8, 16, 32]);
        (0..2).for_each(|_| gate.start(at(300)));
        assert_eq!(gate.startable(at(300), 50), 50, "after {OPEN_AT} successes it is open");
    }

    #[test]
    fn a_success_of_a_call_from_before_the_refusal_opens_nothing() {
        let mut gate = Gate::new(None, None);
        gate.start(at(0));
        gate.start(at(0));
        gate.refuse(at(100), at(50), "burst");
        gate.succeed(at(0));
        assert_eq!(gate.startable(at(200), 50), 1);
    }

    #[test]
    fn full_is_not_closed() {
        let mut gate = Gate::new(None, Some(2));
        gate.start(at(0));
        gate.start(at(0));
        assert_eq!(gate.check(at(0)), Passage::Full);
        gate.end();
        assert_eq!(gate.check(at(0)), Passage::Open);
    }

    #[test]
    fn a_pace_allows_its_burst_and_then_one_each_interval() {
        let mut gate = Gate::new(Some(Pace::new(10, Duration::from_secs(1))), None);
        assert_eq!(gate.startable(at(0), 50), 10);
        (0..10).for_each(|_| gate.start(at(0)));
        assert_eq!(
            gate.check(at(0)),
            Passage::Closed {
                until: at(100),
                reason: "the configured rate is spent".to_string()
            }
        );
        assert_eq!(gate.startable(at(250), 50), 2);
        gate.give_back();
        assert_eq!(
            gate.startable(at(250), 50),
            3,
            "a start that made no call gives its turn back"
        );
    }

    #[test]
    fn parked_jobs_come_back_on_a_slope() {
        let mut gate = Gate::new(None, None);
        gate.close(at(0), at(-10), "burst");
        let turns: Vec<u64> = (0..7)
            .map(|_| u64::try_from(gate.turn(at(-5)).since(at(0)).as_millis()).unwrap())
            .collect();
        assert_eq!(turns, [0, 1000, 1500, 2000, 2250, 2500, 2750]);
        let mut paced = Gate::new(Some(Pace::new(4, Duration::from_secs(1))), None);
        paced.close(at(0), at(-10), "burst");
        let turns: Vec<u64> = (0..3)
            .map(|_| u64::try_from(paced.turn(at(-5)).since(at(0)).as_millis()).unwrap())
            .collect();
        assert_eq!(turns, [0, 250, 500]);
    }

    use std::vec::Vec;
}
