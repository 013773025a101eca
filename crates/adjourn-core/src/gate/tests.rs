//! Given these starts, ends and refusals: expect this passage.

use proptest::{option, prelude::*};
use std::vec::Vec;

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

#[test]
fn a_pace_finer_than_a_millisecond_is_kept() {
    for (requests, seconds) in [(600, 10), (3000, 4), (3, 100), (7, 60)] {
        let mut gate = Gate::new(Some(Pace::new(requests, Duration::from_secs(1))), None);
        let burst = gate.startable(at(0), u32::MAX);
        assert_eq!(burst, requests);
        (0..burst).for_each(|_| gate.start(at(0)));
        let mut started = 0_u32;
        for ms in 1..=seconds * 1000 {
            let n = gate.startable(at(ms), u32::MAX);
            (0..n).for_each(|_| gate.start(at(ms)));
            started += n;
        }
        assert_eq!(
            started,
            requests * u32::try_from(seconds).unwrap(),
            "{requests} a second, {seconds} s"
        );
    }
}

#[test]
fn turns_given_back_leave_no_trace() {
    let mut gate = Gate::new(Some(Pace::new(600, Duration::from_secs(1))), None);
    for _ in 0..5000 {
        gate.start(at(0));
        gate.give_back();
    }
    assert_eq!(gate.startable(at(0), u32::MAX), 600);
}

#[test]
fn a_clock_that_steps_back_an_hour_does_not_stop_a_scope_for_an_hour() {
    let hour = 3_600_000;
    let mut gate = Gate::new(Some(Pace::new(10, Duration::from_secs(1))), None);
    (0..10).for_each(|_| gate.start(at(hour)));
    assert_eq!(gate.startable(at(0), 50), 1, "one call, and from there on its pace");
    gate.start(at(0));
    assert_eq!(gate.opens_at(at(0)), at(100));
    gate.start(at(100));
    assert_eq!(gate.opens_at(at(100)), at(200));
    assert_eq!(gate.startable(at(1100), 50), 10);
}

#[test]
fn a_new_limit_holds_from_the_next_start_on() {
    let mut gate = Gate::new(Some(Pace::new(1, Duration::from_secs(3600))), None);
    gate.start(at(0));
    assert_eq!(gate.startable(at(0), 5), 0);
    gate.limit(Some(Pace::new(10, Duration::from_secs(1))), Some(3));
    assert_eq!(gate.startable(at(100), 5), 1);
    gate.limit(None, Some(3));
    assert_eq!(gate.startable(at(100), 5), 2, "one of three is in flight");
    gate.limit(None, None);
    assert_eq!(gate.startable(at(100), 5), 5);
}

#[test]
fn a_gate_is_not_forgotten_while_it_knows_something() {
    let mut gate = Gate::new(Some(Pace::new(10, Duration::from_secs(1))), None);
    assert!(gate.is_idle(at(0)));
    gate.start(at(0));
    assert!(!gate.is_idle(at(5000)), "a call is in flight");
    gate.end();
    assert!(!gate.is_idle(at(50)), "its turn is not saved up again");
    assert!(gate.is_idle(at(100)));
    gate.close(at(2000), at(1000), "burst");
    assert!(!gate.is_idle(at(2000)), "it reopens");
    assert!(gate.is_idle(at(602_000)));
}

#[test]
fn a_moment_at_the_end_of_time_closes_and_does_not_overflow() {
    let mut gate = Gate::new(Some(Pace::new(u32::MAX, Duration::MAX)), Some(u32::MAX));
    gate.start(Timestamp::MAX);
    gate.refuse(Timestamp::MAX, at(0), &"é".repeat(4000));
    assert_eq!(gate.startable(at(0), 10), 0);
    assert_eq!(
        (gate.turn(at(0)), gate.turn(Timestamp::MAX)),
        (Timestamp::MAX, Timestamp::MAX)
    );
    assert!(gate.closed(at(0)).is_some_and(|(_, why)| why.len() <= 200));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(u16),
    Starts(u8),
    Success,
    End,
    Refusal(u16),
    Learnt(u16),
    StepBack(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<u16>().prop_map(|ms| Event::Pass(ms % 3000)),
        4 => (0u8..20).prop_map(Event::Starts),
        3 => Just(Event::Success),
        1 => Just(Event::End),
        1 => any::<u16>().prop_map(|ms| Event::Refusal(ms % 9000)),
        1 => any::<u16>().prop_map(|ms| Event::Learnt(ms % 9000)),
        1 => any::<u16>().prop_map(|ms| Event::StepBack(ms % 500)),
    ]
}

proptest! {
    #[test]
    fn law_6_one_refusal_teaches_all(
        events in proptest::collection::vec(event(), 1..80), rate in option::of((1u32..2000, 1u64..5000)), most in option::of(1u32..20),
    ) {
        let pace = rate.map(|(requests, ms)| Pace::new(requests, Duration::from_millis(ms)));
        let mut gate = Gate::new(pace, most);
        let (mut now, mut closed_until, mut in_flight) = (at(0), Timestamp::EPOCH, 0_u32);
        for event in events {
            match event {
                Event::Pass(ms) => now = now + Duration::from_millis(u64::from(ms)),
                Event::StepBack(ms) => now = now - Duration::from_millis(u64::from(ms)),
                Event::Starts(n) => {
                    let startable = gate.startable(now, u32::from(n));
                    prop_assert!(startable <= u32::from(n));
                    for _ in 0..startable {
                        prop_assert_eq!(gate.check(now), Passage::Open, "what may start passes");
                        gate.start(now);
                        in_flight += 1;
                    }
                    prop_assert!(startable == 0 || now >= closed_until, "started before the reopening");
                    prop_assert!(startable == u32::from(n) || gate.check(now) != Passage::Open);
                    prop_assert!(startable == 0 || most.is_none_or(|most| in_flight <= most));
                }
                Event::Success if in_flight > 0 => {
                    gate.succeed(now);
                    in_flight -= 1;
                }
                Event::End if in_flight > 0 => {
                    gate.end();
                    in_flight -= 1;
                }
                Event::Success | Event::End => {}
                Event::Refusal(ms) | Event::Learnt(ms) => {
                    let until = now + Duration::from_millis(u64::from(ms));
                    prop_assert_eq!(gate.close(until, now, "burst"), until > closed_until);
                    closed_until = closed_until.max(until);
                }
            }
            if now < closed_until {
                let closed = gate.closed(now);
                prop_assert_eq!(closed.map(|(until, _)| until), Some(closed_until));
                prop_assert!(gate.opens_at(now) >= closed_until && gate.turn(now) >= closed_until);
            }
        }
    }

    #[test]
    fn a_pace_is_never_passed(requests in 1u32..500, period_ms in 1u64..5000, steps in proptest::collection::vec((0u64..200, 0u32..100), 1..60)) {
        let pace = Pace::new(requests, Duration::from_millis(period_ms));
        let mut gate = Gate::new(Some(pace), None);
        let (mut now, mut starts) = (at(0), Vec::new());
        for (ms, wanted) in steps {
            now = now + Duration::from_millis(ms);
            for _ in 0..gate.startable(now, wanted) {
                gate.start(now);
                gate.end();
                starts.push(now);
            }
        }
        for (i, first) in starts.iter().enumerate() {
            let since = starts.last().unwrap().since(*first);
            let count = u128::try_from(starts.len() - i).unwrap();
            let earned = since.as_nanos() / pace.interval.as_nanos().max(1);
            prop_assert!(count <= u128::from(pace.burst) + earned, "{count} in {since:?}");
        }
    }
}
