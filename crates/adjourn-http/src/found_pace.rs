//! The worker's pacer: finds the pace of a provider that nobody configured a rate for, by [`Evidence`], and keeps to the provider's own
//! counters where there are any.

#[cfg(test)]
mod counted_tests;
mod counters;

use std::{collections::HashMap, time::Duration};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_pace::{Answer, Evidence, Ladder, Moment, Outcome, Strategy, Ticket, Tries, Turn};
use adjourn_worker::{
    Counter,
    port::{CallEnd, FindPace, Pacer, PacerTurn},
};

use counters::Counters;

/// More starts than this are not planned in one look.
const MOST_PLANNED: u32 = 256;

/// Pacers by evidence, one for each scope.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoundPace;

impl FindPace for FoundPace {
    fn pacer(&self, _scope: &ScopeKey) -> Box<dyn Pacer> {
        // How often a job is called is the worker's business: the strategy never gives up.
        Box::new(ByEvidence {
            evidence: Evidence::new(Ladder::plain(u32::MAX)),
            counters: Counters::new(),
            in_flight: HashMap::new(),
            passed: false,
            engaged: false,
        })
    }
}

#[derive(Debug)]
struct ByEvidence {
    evidence: Evidence,
    /// A counter is evidence by itself: it holds whether or not anything was refused.
    counters: Counters,
    in_flight: HashMap<u64, Ticket>,
    passed: bool,
    /// Something has passed, and something was refused without a time or a spent counter. Before that the strategy holds nothing back: a
    /// provider that names its moments is the gate's business, and one that refuses nothing is nobody's.
    engaged: bool,
}

/// A wall clock may step back; the strategy's moments count from the epoch, and a start in its past is as good as one now.
fn moment(at: Timestamp) -> Moment {
    Moment::after(at.since(Timestamp::EPOCH))
}

/// A part of a millisecond counts as a whole one, so that nothing starts early.
fn timestamp(at: Moment) -> Timestamp {
    Timestamp::EPOCH + at.since(Moment::ORIGIN)
}

fn heard(counter: &Counter) -> adjourn_pace::Counter {
    adjourn_pace::Counter {
        limit: counter.limit,
        remaining: counter.remaining,
        resets_at: moment(counter.resets_at),
    }
}

impl Pacer for ByEvidence {
    fn turn(&mut self, now: Timestamp) -> PacerTurn {
        match self.counters.turn(moment(now)) {
            Turn::Now => {}
            Turn::At(reset) => return PacerTurn::Reset(timestamp(reset)),
            Turn::AfterAnswer | Turn::Defer => return PacerTurn::AfterEnd,
        }
        if !self.engaged {
            return PacerTurn::Now;
        }
        match self.evidence.turn(moment(now)) {
            Turn::Now => PacerTurn::Now,
            Turn::At(at) => PacerTurn::At(timestamp(at)),
            Turn::AfterAnswer | Turn::Defer => PacerTurn::AfterEnd,
        }
    }

    fn startable(&self, now: Timestamp, most: u32) -> u32 {
        let now = moment(now);
        let left = self.counters.startable(now);
        let most = left.map_or(most, |left| u32::try_from(left).unwrap_or(u32::MAX).min(most));
        if !self.engaged {
            return most;
        }
        let mut trial = self.evidence.clone();
        let mut count = 0;
        while count < most.min(MOST_PLANNED) && trial.turn(now) == Turn::Now {
            trial.started(Tries::default(), now);
            count += 1;
        }
        count
    }

    fn started(&mut self, now: Timestamp) -> u64 {
        let ticket = self.evidence.started(Tries::default(), moment(now));
        self.in_flight.insert(ticket.number, ticket);
        self.counters.started(ticket);
        ticket.number
    }

    fn unmade(&mut self, call: u64, now: Timestamp) {
        if let Some(ticket) = self.in_flight.remove(&call) {
            self.counters.ended(ticket);
            self.evidence.unmade(ticket, moment(now));
        }
    }

    fn answered(&mut self, call: u64, end: CallEnd, counters: &[Counter], now: Timestamp) {
        let Some(ticket) = self.in_flight.remove(&call) else {
            return;
        };
        let outcome = match end {
            CallEnd::Passed => Outcome::Passed,
            CallEnd::Refused(None) => Outcome::Refused,
            // A named moment is kept by the gate, and tells nothing that has to be found.
            CallEnd::Refused(Some(_)) | CallEnd::Failed => Outcome::Failed,
        };
        let now = moment(now);
        self.counters.ended(ticket);
        // What got no answer tells nothing of counters either.
        if outcome == Outcome::Passed || !counters.is_empty() {
            let counters: Vec<_> = counters.iter().map(heard).collect();
            self.counters.told(&counters, ticket, &self.in_flight, now);
        }
        self.passed |= outcome == Outcome::Passed;
        // What a spent counter explains says nothing of a pace.
        self.engaged |= self.passed && outcome == Outcome::Refused && !self.counters.is_spent(now);
        let answer = Answer {
            outcome,
            retry_at: None,
            counter: self.counters.binding(self.in_flight.len(), now),
        };
        self.evidence.answered(ticket, &answer, now);
    }

    fn interval(&self) -> Option<Duration> {
        let rate = self.evidence.rate().filter(|rate| *rate > 0.0 && self.engaged)?;
        Duration::try_from_secs_f64(1.0 / rate).ok()
    }

    fn knows(&self) -> bool {
        self.engaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer() -> Box<dyn Pacer> {
        FoundPace.pacer(&ScopeKey::provider("acme"))
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::parse("2026-07-10T20:00:00Z").unwrap() + Duration::from_millis(ms)
    }

    /// Plays a bucket of `interval` milliseconds without a burst against a pacer, for so many calls. Returns when the last passed, and how many
    /// calls were refused.
    fn play(pacer: &mut dyn Pacer, interval: u64, calls: u32) -> (u64, u32) {
        let (mut now, mut next_token, mut passed, mut refused) = (0, 0, 0, 0);
        while passed < calls {
            match pacer.turn(at(now)) {
                PacerTurn::Now => {
                    assert!(pacer.startable(at(now), 10) >= 1);
                    let call = pacer.started(at(now));
                    let end = if now >= next_token {
                        next_token = now + interval;
                        passed += 1;
                        CallEnd::Passed
                    } else {
                        refused += 1;
                        CallEnd::Refused(None)
                    };
                    pacer.answered(call, end, &[], at(now));
                }
                PacerTurn::At(turn) => {
                    assert!(turn > at(now), "a turn that has come is Now");
                    assert_eq!(pacer.startable(at(now), 10), 0);
                    now = u64::try_from(turn.since(at(0)).as_millis()).unwrap();
                }
                PacerTurn::Reset(_) => panic!("nobody tells a counter"),
                PacerTurn::AfterEnd => panic!("nothing is in flight"),
            }
        }
        (now, refused)
    }

    #[test]
    fn finds_the_pace_of_a_limit_that_nobody_configured() {
        let mut pacer = pacer();
        assert!(!pacer.knows());
        let (took, refused) = play(&mut *pacer, 500, 300);
        assert!(pacer.knows());
        // The limit alone needs 299 intervals.
        assert!(took <= 299 * 500 * 105 / 100, "{took} ms");
        assert!(refused <= 15, "{refused} refused");
        let interval = pacer.interval().unwrap();
        assert!(
            interval >= Duration::from_millis(490) && interval <= Duration::from_millis(525),
            "{interval:?}"
        );
    }

    #[test]
    fn nothing_is_held_back_before_something_passed_and_something_was_refused_without_a_time() {
        let mut pacer = pacer();
        let named = CallEnd::Refused(Some(at(30_000)));
        for end in [
            CallEnd::Refused(None),
            CallEnd::Failed,
            named,
            CallEnd::Passed,
            named,
            CallEnd::Failed,
        ] {
            let call = pacer.started(at(0));
            pacer.answered(call, end, &[], at(0));
            assert_eq!(
                (pacer.turn(at(0)), pacer.startable(at(0), 10)),
                (PacerTurn::Now, 10),
                "{end:?}"
            );
            assert_eq!((pacer.knows(), pacer.interval()), (false, None), "{end:?}");
        }
        let call = pacer.started(at(0));
        pacer.answered(call, CallEnd::Refused(None), &[], at(0));
        assert!(pacer.knows());
    }

    #[test]
    fn a_call_that_was_not_made_or_is_told_twice_changes_nothing() {
        let mut pacer = pacer();
        let call = pacer.started(at(0));
        pacer.answered(call, CallEnd::Passed, &[], at(0));
        pacer.answered(call, CallEnd::Refused(None), &[], at(0));
        let unmade = pacer.started(at(0));
        pacer.unmade(unmade, at(0));
        pacer.answered(unmade, CallEnd::Refused(None), &[], at(0));
        pacer.unmade(unmade, at(0));
        assert_eq!((pacer.turn(at(0)), pacer.knows()), (PacerTurn::Now, false));
    }

    #[test]
    fn moments_are_rounded_up_and_never_early() {
        let exact = at(1);
        assert_eq!(timestamp(moment(exact)), exact);
        assert_eq!(
            timestamp(moment(exact) + Duration::from_nanos(1)),
            exact + Duration::from_millis(1)
        );
    }
}
