//! A provider that counts in fixed windows and says so, against a pacer, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use super::*;

/// A window of so many calls.
struct Window {
    limit: u64,
    length: u64,
    used: BTreeMap<u64, u64>,
}

impl Window {
    fn of(limit: u64, length: u64) -> Self {
        Self {
            limit,
            length,
            used: BTreeMap::new(),
        }
    }

    fn remaining(&self, now: u64) -> u64 {
        self.limit - self.used.get(&(now / self.length)).copied().unwrap_or(0)
    }

    fn counter(&self, now: u64) -> Counter {
        Counter {
            limit: Some(self.limit),
            remaining: self.remaining(now),
            resets_at: at((now / self.length + 1) * self.length),
        }
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::parse("2026-07-10T20:00:00Z").unwrap() + Duration::from_millis(ms)
}

/// What it took.
#[derive(Debug)]
struct Played {
    took: u64,
    refused: u64,
    most_in_flight: usize,
}

/// Makes so many calls, at most `concurrency` at a time, each `latency` milliseconds long and counted in its middle.
fn play(mut windows: Vec<Window>, calls: u64, concurrency: usize, latency: u64) -> Played {
    let mut pacer = FoundPace.pacer(&ScopeKey::provider("acme"));
    // By when they are answered: as all take the same time, that is the order of their starts.
    let mut in_flight: VecDeque<(u64, u64, CallEnd, Vec<Counter>)> = VecDeque::new();
    let (mut now, mut passed, mut refused, mut most_in_flight) = (0, 0, 0, 0);
    loop {
        while in_flight.front().is_some_and(|(answered, ..)| *answered <= now) {
            let (_, call, end, counters) = in_flight.pop_front().unwrap();
            passed += u64::from(end == CallEnd::Passed);
            pacer.answered(call, end, &counters, at(now));
        }
        if passed == calls {
            return Played {
                took: now,
                refused,
                most_in_flight,
            };
        }
        let mut next = in_flight.front().map(|(answered, ..)| *answered);
        let under_way = in_flight
            .iter()
            .filter(|(_, _, end, _)| *end == CallEnd::Passed)
            .count();
        if in_flight.len() < concurrency && passed + u64::try_from(under_way).unwrap() < calls {
            let turn = pacer.turn(at(now));
            assert_eq!(turn == PacerTurn::Now, pacer.startable(at(now), 10) > 0, "{turn:?}");
            match turn {
                PacerTurn::Now => {
                    let call = pacer.started(at(now));
                    let arrives = now + latency / 2;
                    let passes = windows.iter().all(|window| window.remaining(arrives) > 0);
                    if passes {
                        for window in &mut windows {
                            *window.used.entry(arrives / window.length).or_default() += 1;
                        }
                    }
                    refused += u64::from(!passes);
                    let end = if passes {
                        CallEnd::Passed
                    } else {
                        CallEnd::Refused(None)
                    };
                    let counters = windows.iter().map(|window| window.counter(arrives)).collect();
                    in_flight.push_back((now + latency, call, end, counters));
                    most_in_flight = most_in_flight.max(in_flight.len());
                    continue;
                }
                PacerTurn::At(moment) | PacerTurn::Reset(moment) => {
                    assert!(moment > at(now), "a turn that has come is Now");
                    let moment = u64::try_from(moment.since(at(0)).as_millis()).unwrap();
                    next = Some(next.map_or(moment, |next| next.min(moment)));
                }
                PacerTurn::AfterEnd => assert!(!in_flight.is_empty(), "nothing is waited for"),
            }
        }
        now = next.expect("it stalls");
    }
}

#[test]
fn a_told_window_is_used_up_and_never_overdrawn() {
    for (concurrency, latency) in [(1, 0), (1, 40), (8, 40), (10, 300), (10, 900)] {
        let played = play(vec![Window::of(10, 1000)], 95, concurrency, latency);
        assert_eq!(played.refused, 0, "{concurrency} at a time, {latency} ms: {played:?}");
        // Five calls are left for the tenth window, and calls that take long are what takes the time.
        let concurrency = u64::try_from(concurrency).unwrap();
        let calls = (95 * latency).div_ceil(concurrency);
        let windows = 9000 + (5_u64.div_ceil(concurrency) + 1) * latency;
        assert!(
            played.took <= windows.max(calls + calls / 10),
            "{concurrency} at a time, {latency} ms: {played:?}"
        );
    }
}

#[test]
fn of_several_windows_each_is_kept_and_none_stalls_the_others() {
    let windows = || {
        vec![
            Window::of(10, 1000),
            Window::of(35, 10_000),
            Window::of(1_000_000, 86_400_000),
        ]
    };
    for (concurrency, latency) in [(1, 0), (8, 40), (10, 300)] {
        let played = play(windows(), 100, concurrency, latency);
        assert_eq!(played.refused, 0, "{concurrency} at a time, {latency} ms: {played:?}");
        // 35 in each ten seconds: the last 30 pass in the first three seconds after twenty.
        assert!(
            played.took <= 22_500 + 4 * latency,
            "{concurrency} at a time, {latency} ms: {played:?}"
        );
    }
}

#[test]
fn a_counter_that_is_far_from_spent_holds_nothing_back() {
    let played = play(vec![Window::of(100_000, 60_000)], 1000, 50, 100);
    assert_eq!((played.refused, played.most_in_flight), (0, 50));
    assert_eq!(played.took, 1000 / 50 * 100);
}

#[test]
fn refusals_that_a_spent_counter_explains_are_no_evidence_of_a_pace() {
    // Nothing is known when the first thirty start, and twenty of them are refused.
    let played = play(vec![Window::of(10, 1000)], 100, 30, 40);
    assert_eq!(played.refused, 20, "{played:?}");
    assert!(played.took <= 9000 + 2 * 40, "{played:?}");
}

#[test]
fn a_refusal_beside_a_counter_that_is_not_spent_is_one() {
    let mut pacer = FoundPace.pacer(&ScopeKey::provider("acme"));
    let counter = |remaining| Counter {
        limit: Some(10),
        remaining,
        resets_at: at(60_000),
    };
    for (end, remaining, knows) in [
        (CallEnd::Passed, 1, false),
        (CallEnd::Refused(None), 0, false),
        (CallEnd::Refused(None), 5, true),
    ] {
        let call = pacer.started(at(0));
        pacer.answered(call, end, &[counter(remaining)], at(0));
        assert_eq!(pacer.knows(), knows, "{end:?} with {remaining} left");
    }
}

#[test]
fn whatever_the_answer_is_its_counter_counts() {
    for end in [
        CallEnd::Passed,
        CallEnd::Failed,
        CallEnd::Refused(None),
        CallEnd::Refused(Some(at(500))),
    ] {
        let mut pacer = FoundPace.pacer(&ScopeKey::provider("acme"));
        let call = pacer.started(at(0));
        let spent = Counter {
            limit: None,
            remaining: 0,
            resets_at: at(1000),
        };
        pacer.answered(call, end, &[spent], at(0));
        assert_eq!(pacer.turn(at(999)), PacerTurn::Reset(at(1000)), "{end:?}");
        assert_eq!(pacer.startable(at(999), 10), 0);
        assert_eq!(pacer.turn(at(1000)), PacerTurn::Now, "{end:?}");
        assert_eq!((pacer.knows(), pacer.interval()), (false, None));
    }
}
