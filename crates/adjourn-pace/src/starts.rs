//! The starts of a scope: how many there were, and when the next may come.

use std::time::Duration;

use crate::{Moment, Ticket, Tries, Turn};

/// What every strategy that spaces its starts, or only counts them, has to remember of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starts {
    count: u64,
    next_at: Moment,
    /// What `next_at` was before the last start, for a call that is not made.
    before: Moment,
}

impl Default for Starts {
    fn default() -> Self {
        Self {
            count: 0,
            next_at: Moment::ORIGIN,
            before: Moment::ORIGIN,
        }
    }
}

impl Starts {
    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the next one may come now.
    pub(crate) fn turn(&self, now: Moment) -> Turn {
        if self.next_at > now {
            Turn::At(self.next_at)
        } else {
            Turn::Now
        }
    }

    /// A call starts, and the next not before `interval` has passed. Late starts are not made up for: a pace is an upper bound.
    pub(crate) fn start(&mut self, tries: Tries, interval: Duration, now: Moment) -> Ticket {
        self.count += 1;
        self.before = self.next_at;
        self.next_at = self.next_at.max(now) + interval;
        Ticket {
            sent_at: now,
            number: self.count,
            tries,
        }
    }

    /// The call was not made: its turn is given back, unless another has started since.
    pub(crate) fn unmade(&mut self, ticket: Ticket) {
        if ticket.number == self.count {
            self.next_at = self.before;
        }
    }

    /// The next start not before that moment, whether or not the last one is given back.
    pub(crate) fn hold_until(&mut self, at: Moment) {
        self.next_at = self.next_at.max(at);
        self.before = self.before.max(at);
    }

    /// The next start whenever it is asked for.
    pub(crate) fn release(&mut self, now: Moment) {
        self.next_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    #[test]
    fn only_the_last_start_is_given_back_and_a_hold_outlasts_it() {
        let mut starts = Starts::default();
        let interval = Duration::from_millis(100);
        let first = starts.start(Tries::default(), interval, at(0));
        let last = starts.start(Tries::default(), interval, at(100));
        starts.unmade(first);
        assert_eq!(starts.turn(at(100)), Turn::At(at(200)));
        starts.unmade(last);
        assert_eq!(starts.turn(at(100)), Turn::Now);
        let held = starts.start(Tries::default(), interval, at(100));
        starts.hold_until(at(5000));
        starts.unmade(held);
        assert_eq!((starts.turn(at(4999)), starts.count()), (Turn::At(at(5000)), 3));
    }
}
