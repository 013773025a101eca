//! What each rule does, by itself.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::Chance;

fn at(ms: u64) -> Moment {
    Moment::after(Duration::from_millis(ms))
}

fn answer(outcome: Outcome) -> Answer {
    Answer {
        outcome,
        ..Answer::default()
    }
}

fn evidence() -> Evidence {
    Evidence::new(Ladder::default())
}

#[test]
fn before_anything_has_passed_the_plain_ladder_is_climbed_and_then_all_is_deferred() {
    let mut evidence = evidence();
    let mut now = 0;
    for wait in [1, 3, 10, 30, 60, 180] {
        assert_eq!(evidence.turn(at(now)), Turn::Now);
        let ticket = evidence.started(Tries::default(), at(now));
        assert_eq!(evidence.turn(at(now)), Turn::AfterAnswer, "one question at a time");
        let next = evidence.answered(ticket, &answer(Outcome::Refused), at(now));
        assert_eq!(
            next,
            Next::Again {
                at: at(now),
                spent: false
            }
        );
        now += wait * 1000;
        assert_eq!(evidence.turn(at(now - 1)), Turn::At(at(now)));
    }
    let ticket = evidence.started(Tries::default(), at(now));
    evidence.answered(ticket, &answer(Outcome::Refused), at(now));
    assert_eq!(evidence.turn(at(now)), Turn::Defer);
}

#[test]
fn in_flight_grows_with_each_success_and_nothing_holds_back_what_is_never_refused() {
    let mut evidence = evidence();
    for _ in 0..20 {
        let ticket = evidence.started(Tries::default(), at(0));
        evidence.answered(ticket, &answer(Outcome::Passed), at(0));
    }
    for _ in 0..10 {
        assert_eq!(evidence.turn(at(0)), Turn::Now);
        evidence.started(Tries::default(), at(0));
    }
    assert_eq!(evidence.rate(), None);
}

#[test]
fn a_counter_is_spent_and_then_its_reset_is_waited_for() {
    let mut evidence = evidence();
    let counted = |outcome, remaining| Answer {
        outcome,
        retry_at: None,
        counter: Some(Counter {
            limit: Some(10),
            remaining,
            resets_at: at(60_000),
        }),
    };
    let ticket = evidence.started(Tries::default(), at(0));
    evidence.answered(ticket, &counted(Outcome::Passed, 1), at(10));
    assert_eq!(evidence.turn(at(10)), Turn::Now);
    let ticket = evidence.started(Tries::default(), at(10));
    assert_eq!(evidence.turn(at(10)), Turn::At(at(60_000)), "the last one is under way");
    let next = evidence.answered(ticket, &counted(Outcome::Refused, 0), at(20));
    assert_eq!(
        next,
        Next::Again {
            at: at(20),
            spent: false
        }
    );
    assert_eq!(evidence.turn(at(59_999)), Turn::At(at(60_000)));
    assert_eq!(evidence.turn(at(60_000)), Turn::Now);
}

#[test]
fn where_refusals_come_at_once_and_successes_take_long_calls_at_a_time_are_limited() {
    let mut evidence = evidence();
    // Two pass, each in two seconds; a third is refused within 50 ms.
    let first = evidence.started(Tries::default(), at(0));
    evidence.answered(first, &answer(Outcome::Passed), at(2000));
    let second = evidence.started(Tries::default(), at(2000));
    evidence.answered(second, &answer(Outcome::Passed), at(4000));
    let held: Vec<Ticket> = (0..2).map(|_| evidence.started(Tries::default(), at(5000))).collect();
    let third = evidence.started(Tries::default(), at(5000));
    let next = evidence.answered(third, &answer(Outcome::Refused), at(5050));
    assert_eq!(
        next,
        Next::Again {
            at: at(5050),
            spent: false
        }
    );
    assert_eq!(evidence.turn(at(6000)), Turn::AfterAnswer, "two at a time");
    evidence.answered(held[0], &answer(Outcome::Passed), at(7000));
    assert_eq!(evidence.turn(at(9000)), Turn::Now, "one has ended");
    assert_eq!(evidence.rate(), None, "no pace was made of it");
}

#[test]
fn a_refusal_by_chance_is_the_jobs_own_and_a_call_that_was_not_made_is_none() {
    let mut evidence = evidence();
    for _ in 0..30 {
        let ticket = evidence.started(Tries::default(), at(0));
        evidence.answered(ticket, &answer(Outcome::Passed), at(0));
    }
    let ticket = evidence.started(Tries { spent: 2, free: 5 }, at(0));
    let next = evidence.answered(ticket, &answer(Outcome::Refused), at(0));
    assert_eq!(
        next,
        Next::Again {
            at: at(400),
            spent: true
        }
    );
    let last = evidence.started(Tries { spent: 6, free: 0 }, at(0));
    assert_eq!(evidence.answered(last, &answer(Outcome::Refused), at(0)), Next::GiveUp);
    let unmade = evidence.started(Tries::default(), at(0));
    let in_flight = evidence.in_flight;
    evidence.unmade(unmade, at(0));
    assert_eq!(evidence.in_flight, in_flight - 1);
}

/// Calls one after the other, each as soon as it may start and answered 10 ms later as `passes` says of its number and its job's tries. What
/// is refused is called again when the strategy says so, before anything newer. Returns when the last of `jobs` came to its end.
fn play(evidence: &mut Evidence, jobs: u32, mut passes: impl FnMut(u64, u32) -> bool) -> Duration {
    let mut waiting: BTreeMap<(Moment, u32), Tries> = (0..jobs).map(|job| ((at(0), job), Tries::default())).collect();
    let (mut now, mut calls) = (at(0), 0);
    while let Some((&(due, job), &tries)) = waiting.first_key_value() {
        match evidence.turn(now) {
            Turn::Now if due <= now => {}
            Turn::Now => now = due,
            Turn::At(turn) => now = turn,
            Turn::AfterAnswer | Turn::Defer => panic!("nothing is under way at {now:?}"),
        }
        if due > now || evidence.turn(now) != Turn::Now {
            continue;
        }
        calls += 1;
        assert!(calls < 100_000, "no end, {} left", waiting.len());
        let ticket = evidence.started(tries, now);
        waiting.remove(&(due, job));
        now += Duration::from_millis(10);
        let outcome = if passes(calls, job) {
            Outcome::Passed
        } else {
            Outcome::Refused
        };
        if let Next::Again { at, spent } = evidence.answered(ticket, &answer(outcome), now) {
            let tries = Tries {
                spent: tries.spent + u32::from(spent),
                free: tries.free + u32::from(!spent),
            };
            waiting.insert((at.max(now), job), tries);
        }
    }
    now.since(at(0))
}

#[test]
fn refusals_by_chance_slow_nothing_down_for_long() {
    for one_of in [5, 7, 10, 20] {
        for seed in 1..=10 {
            let mut chance = Chance::of(seed);
            let took = play(&mut evidence(), 1000, |_, _| !chance.bits().is_multiple_of(one_of));
            // A thousand calls of 10 ms one after the other, and what is refused is called once or twice more.
            assert!(took < Duration::from_secs(60), "one of {one_of}, seed {seed}: {took:?}");
        }
    }
}

#[test]
fn a_job_that_is_always_refused_is_given_up_and_stops_no_other() {
    for bad in [0, 1, 2, 50, 199] {
        let mut refused = 0;
        let mut others = 0;
        play(&mut evidence(), 200, |_, job| {
            refused += u32::from(job == bad);
            others += u32::from(job != bad);
            job != bad
        });
        assert_eq!(others, 199, "job {bad}: each of the others once");
        assert!(refused <= 20, "job {bad} was called {refused} times");
    }
}

proptest! {
    /// Whatever is answered: a turn that is named lies ahead, a wait for an answer has one under way, and numbers stay numbers.
    #[test]
    fn no_answers_bring_it_to_a_standstill(
        answers in prop::collection::vec((0..10_u8, 0..3_u64, 1..2_000_u64, any::<bool>(), 0..7_u32), 1..300),
    ) {
        let mut evidence = evidence();
        let (mut now, mut flying) = (0_u64, std::collections::VecDeque::new());
        for (kind, hint, latency, starts_more, free) in answers {
            match evidence.turn(at(now)) {
                Turn::Now => flying.push_back(evidence.started(Tries { spent: 0, free }, at(now))),
                Turn::At(turn) => {
                    prop_assert!(turn > at(now), "{turn:?} at {now}");
                    prop_assert!(turn < at(now) + Duration::from_secs(100 * 86_400), "{turn:?}");
                    if flying.is_empty() {
                        now = turn.as_nanos().div_ceil(1_000_000);
                        continue;
                    }
                }
                Turn::AfterAnswer => prop_assert!(!flying.is_empty()),
                Turn::Defer => prop_assert!(evidence.passed == 0),
            }
            if starts_more && flying.len() < 20 {
                continue;
            }
            now += latency;
            if let Some(ticket) = flying.pop_front() {
                let outcome = match kind {
                    0..=4 => Outcome::Passed,
                    5..=7 => Outcome::Refused,
                    8 => Outcome::Failed,
                    _ => {
                        evidence.unmade(ticket, at(now));
                        continue;
                    }
                };
                let retry_at = (hint > 0 && outcome == Outcome::Refused).then(|| at(now + hint * 30_000));
                let next = evidence.answered(ticket, &Answer { outcome, retry_at, counter: None }, at(now));
                prop_assert_eq!(next == Next::Settled, outcome == Outcome::Passed);
            }
            prop_assert!(evidence.rate().is_none_or(|rate| rate.is_finite() && rate >= 0.0), "{:?}", evidence.rate());
        }
    }
}
