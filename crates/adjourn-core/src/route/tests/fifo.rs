//! FIFO queues: a hold keeps the order; what one hold cannot cover ends, unless order is given up.

use super::*;

fn relaxed() -> Policy {
    let mut policy = Policy::default();
    policy.deferral.fifo = Fifo::Relaxed;
    policy
}

fn kept(wait: Duration, facts: &RouteFacts) -> Route {
    routed(&fifo_queue(), wait, facts, Refused::NONE)
}

fn loosened(wait: Duration, facts: &RouteFacts, refused: Refused) -> Route {
    route(
        &relaxed(),
        &fifo_queue(),
        Plan::Wait { until: now() + wait },
        facts,
        refused,
        now(),
    )
}

const MOST: u64 = 43_200 - 90 - 300;

#[test]
fn one_hold_covers_the_whole_wait_or_nothing_does() {
    for wait in [1, 30, 900, 901, 3600, MOST] {
        assert_eq!(kept(s(wait), &message()), hold(wait));
        assert_eq!(
            loosened(s(wait), &message(), Refused::NONE),
            hold(wait),
            "order is kept while it can be"
        );
    }
    for wait in [s(MOST) + ms(1), s(26 * 3600), s(30 * 86_400)] {
        let Route::DeadLetter { unholdable: Some(why) } = kept(wait, &message()) else {
            panic!("{wait:?} is held")
        };
        assert!(why.contains("FIFO") && why.contains("one hold"), "{why}");
    }
}

#[test]
fn the_last_receive_is_never_held() {
    for (count, held) in [(1, true), (3, true), (4, true), (5, false), (6, false)] {
        let facts = RouteFacts {
            receive_count: count,
            ..message()
        };
        assert_eq!(kept(s(30), &facts) == hold(30), held, "receive {count} of 5");
        if !held {
            let Route::DeadLetter { unholdable: Some(why) } = kept(s(30), &facts) else {
                panic!("not ended")
            };
            assert!(why.contains("last receive"), "{why}");
        }
    }
    let unbounded = Reach {
        max_receive_count: None,
        ..fifo_queue()
    };
    let facts = RouteFacts {
        receive_count: 70,
        ..message()
    };
    assert_eq!(routed(&unbounded, s(30), &facts, Refused::NONE), hold(30));
}

#[test]
fn a_job_whose_second_start_could_not_be_told_from_a_hold_ends_in_words_that_say_so() {
    let facts = RouteFacts {
        repeatable: false,
        ..message()
    };
    let Route::DeadLetter { unholdable: Some(why) } = kept(s(30), &facts) else {
        panic!("held")
    };
    assert!(why.contains("cannot be repeated"), "{why}");
    assert_eq!(
        kept(
            s(30),
            &RouteFacts {
                holds_are_recorded: true,
                ..facts
            }
        ),
        hold(30)
    );
}

#[test]
fn relaxed_is_a_schedule_on_the_first_full_minute_at_or_after_the_due_time() {
    for (due, fires) in [
        ("2026-07-11T20:59:00.001Z", "2026-07-11T21:00:00Z"),
        ("2026-07-11T21:00:00.000Z", "2026-07-11T21:00:00Z"),
        ("2026-07-11T21:00:00.001Z", "2026-07-11T21:01:00Z"),
    ] {
        let plan = Plan::Wait { until: at(due) };
        let road = route(&relaxed(), &fifo_queue(), plan, &message(), Refused::NONE, now());
        assert_eq!(road, schedule(fires), "{due}");
    }
}

#[test]
fn relaxed_names_no_minute_that_has_passed_before_the_schedule_is_made() {
    let last = RouteFacts {
        receive_count: 5,
        ..message()
    };
    // 20:13:47 now: a schedule for 20:14:00 would be refused as past by the time that it is made.
    assert_eq!(loosened(s(5), &last, Refused::NONE), schedule("2026-07-10T20:15:00Z"));
    assert_eq!(loosened(s(0), &last, Refused::NONE), schedule("2026-07-10T20:15:00Z"));
    assert_eq!(loosened(s(73), &last, Refused::NONE), schedule("2026-07-10T20:15:00Z"));
    assert_eq!(loosened(s(74), &last, Refused::NONE), schedule("2026-07-10T20:16:00Z"));
}

#[test]
fn relaxed_ends_where_no_schedule_can_be_made() {
    let wait = s(26 * 3600);
    for facts in [
        RouteFacts {
            schedulable: false,
            ..message()
        },
        RouteFacts {
            has_room: false,
            ..message()
        },
    ] {
        assert!(is_unholdable(&loosened(wait, &facts, Refused::NONE)));
    }
    let plan = Plan::Wait { until: now() + wait };
    let unscheduled = Reach {
        schedule: None,
        ..fifo_queue()
    };
    assert!(is_unholdable(&route(
        &relaxed(),
        &unscheduled,
        plan,
        &message(),
        Refused::NONE,
        now()
    )));
}

#[test]
fn each_refusal_leads_to_the_next_road_and_at_last_to_none() {
    let plan = |wait| Plan::Wait { until: now() + wait };
    let roads =
        |policy: &Policy, wait, facts: &RouteFacts| all_refused(policy, &fifo_queue(), plan(wait), facts, now());
    assert_eq!(roads(&Policy::default(), s(30), &message()), [hold(30), Route::Leave]);
    let due = schedule("2026-07-10T20:44:00Z");
    assert_eq!(roads(&relaxed(), s(1800), &message()), [hold(1800), due, Route::Leave]);
    let ended = roads(&Policy::default(), s(26 * 3600), &message());
    assert!(
        matches!(
            ended.as_slice(),
            [Route::DeadLetter { unholdable: Some(_) }, Route::Leave]
        ),
        "{ended:?}"
    );
}

#[test]
fn nothing_is_sent_with_a_delay() {
    // A FIFO queue takes no delay for a single message.
    for wait in [0, 1, 900, 901, 100_000] {
        for policy in [Policy::default(), relaxed()] {
            let plan = Plan::Wait { until: now() + s(wait) };
            for road in all_refused(&policy, &fifo_queue(), plan, &message(), now()) {
                assert!(!matches!(road, Route::Resend { .. }), "{wait}: {road:?}");
            }
        }
    }
}
