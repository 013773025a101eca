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

    /// How far ahead of the present the theoretical arrival time is when the whole burst has just been spent.
    fn spent(self) -> Duration {
        self.tolerance().saturating_add(self.interval)
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
    /// The pace that is being found where none is configured, as it is believed now.
    found: Option<Pace>,
    /// The theoretical arrival time, since the epoch. Finer than a millisecond, since many an emission interval is: rounded
    /// up, 600 calls a second would become 500.
    arrival: Duration,
    /// How many jobs were parked since the gate closed, where no pace is known.
    turns: u32,
    /// The turn after the last one that was given to a parked job, where a pace is known.
    next_turn: Duration,
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
            found: None,
            arrival: Duration::ZERO,
            turns: 0,
            next_turn: Duration::ZERO,
        }
    }

    /// Takes over the scope's limits as they are configured now; they hold from the next start on.
    pub fn limit(&mut self, pace: Option<Pace>, max_in_flight: Option<u32>) {
        self.pace = pace;
        self.max_in_flight = max_in_flight;
    }

    /// Takes over the pace that is being found for a scope whose rate nobody configured; none where nothing holds it back.
    pub fn find(&mut self, found: Option<Pace>) {
        self.found = found;
    }

    /// The configured pace, or else the one that is being found.
    fn effective(&self) -> Option<Pace> {
        self.pace.or(self.found)
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
        match self.next_start(now) {
            Some(at) if at > now => Passage::Closed {
                until: at,
                reason: String::from(if self.pace.is_some() {
                    "the configured rate is spent"
                } else {
                    "it is this call's turn at the pace that was found"
                }),
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
        let Some(pace) = self.effective() else { return room };
        let present = since_epoch(now);
        let mut trial = self.arrival(pace, present);
        let mut count = 0_u32;
        while count < room && trial.saturating_sub(pace.tolerance()) <= present {
            trial = trial.max(present).saturating_add(pace.interval);
            count = count.saturating_add(1);
        }
        count
    }

    /// The moment from which the next call may start, as far as it is known: the reopening or the next turn of the rate.
    #[must_use]
    pub fn opens_at(&self, now: Timestamp) -> Timestamp {
        self.closed_until.max(self.next_start(now).unwrap_or(now)).max(now)
    }

    /// Whether nothing is known of this scope that a new gate would not know: nothing in flight, closed or reopening.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let settled = self.window.is_none() || now.since(self.changed_at) > FORGOTTEN_AFTER;
        // A burst that is not saved up again is known, too: a new gate would grant it a second time.
        let present = since_epoch(now);
        let saved_up = self.arrival <= present && self.next_turn <= present;
        self.in_flight == 0 && settled && saved_up && self.closed_until <= now
    }

    /// Until when the gate is closed by a refusal, and why; none while it is open.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Option<(Timestamp, &str)> {
        (self.closed_until > now).then_some((self.closed_until, self.reason.as_str()))
    }

    /// The configured pace, or else the one that is being found.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        self.effective()
    }

    /// A call starts at `now`.
    pub fn start(&mut self, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_add(1);
        if let Some(pace) = self.effective() {
            let present = since_epoch(now);
            self.arrival = self.arrival(pace, present).max(present).saturating_add(pace.interval);
        }
    }

    /// A start that made no call gives its turn back.
    pub fn give_back(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(pace) = self.effective() {
            self.arrival = self.arrival.saturating_sub(pace.interval);
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
        if let Some(pace) = self.effective() {
            let turn = self.next_turn.max(since_epoch(opens_at));
            self.next_turn = turn.saturating_add(pace.interval);
            return Timestamp::EPOCH + turn;
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

    /// The first moment at which one more call conforms to the pace; rounded up to a millisecond.
    fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let pace = self.effective()?;
        let arrival = self.arrival(pace, since_epoch(now));
        Some(Timestamp::EPOCH + arrival.saturating_sub(pace.tolerance()))
    }

    /// The theoretical arrival time. More than a whole burst ahead it can be only by a clock that stepped back or by a pace
    /// that was slower then: then one call may start, and the pace goes on from there.
    fn arrival(&self, pace: Pace, present: Duration) -> Duration {
        if self.arrival <= present.saturating_add(pace.spent()) {
            self.arrival
        } else {
            present.saturating_add(pace.tolerance())
        }
    }
}

fn since_epoch(at: Timestamp) -> Duration {
    at.since(Timestamp::EPOCH)
}

#[cfg(test)]
mod tests;
