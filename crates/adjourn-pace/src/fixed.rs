//! Fixed: one call each interval, whatever is answered. What a configured rate without any feedback does.

use std::time::Duration;

use crate::{Answer, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, starts::Starts};

/// One call each interval.
#[derive(Clone, Debug)]
pub struct Fixed {
    interval: Duration,
    starts: Starts,
    ladder: Ladder,
}

impl Fixed {
    /// So many calls a second; what is refused or fails is repeated after the waits of `ladder`.
    #[must_use]
    pub fn new(per_second: f64, ladder: Ladder) -> Self {
        Self {
            interval: interval(per_second),
            starts: Starts::default(),
            ladder,
        }
    }
}

/// The emission interval of a rate; a rate of nothing is one call in thirty years.
pub(crate) fn interval(per_second: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / per_second.max(1e-9)).unwrap_or(Duration::MAX)
}

/// The next call of a job that counts its own calls and knows nothing of the others.
pub(crate) fn on_its_own(ladder: &Ladder, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
    if answer.outcome == Outcome::Passed {
        return Next::Settled;
    }
    match ladder.after(ticket.attempt()) {
        Some(wait) => Next::Again {
            at: answer.retry_at.unwrap_or(now + wait).max(now),
            spent: true,
        },
        None => Next::GiveUp,
    }
}

impl Strategy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        self.starts.turn(now)
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.starts.start(tries, self.interval, now)
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        self.starts.unmade(ticket);
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        on_its_own(&self.ladder, ticket, answer, now)
    }

    fn rate(&self) -> Option<f64> {
        Some(1.0 / self.interval.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    #[test]
    fn one_call_each_interval_and_late_ones_are_not_made_up_for() {
        let mut fixed = Fixed::new(10.0, Ladder::default());
        assert_eq!(fixed.turn(at(0)), Turn::Now);
        fixed.started(Tries::default(), at(0));
        assert_eq!(fixed.turn(at(50)), Turn::At(at(100)));
        fixed.started(Tries::default(), at(1000));
        assert_eq!(fixed.turn(at(1050)), Turn::At(at(1100)));
    }

    #[test]
    fn a_call_that_was_not_made_gives_its_turn_back() {
        let mut fixed = Fixed::new(10.0, Ladder::default());
        let ticket = fixed.started(Tries::default(), at(0));
        fixed.unmade(ticket, at(1));
        assert_eq!(fixed.turn(at(1)), Turn::Now);
    }

    #[test]
    fn a_rate_of_nothing_is_no_panic() {
        assert!(interval(0.0) > Duration::from_secs(30 * 365 * 86_400));
        assert!(interval(f64::INFINITY).is_zero());
    }
}
