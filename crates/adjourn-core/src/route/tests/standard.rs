//! Standard queues: delay, schedule, hold, chain, in this order.

use super::*;
use crate::Fallback;

fn hops_first() -> Policy {
    let mut policy = Policy::default();
    policy.deferral.fallback = Fallback::Hops;
    policy
}

#[test]
fn each_tier_begins_where_the_one_before_it_ends() {
    let table = [
        (ms(0), resend(0, 0)),
        (ms(1), resend(0, 1)),
        (ms(999), resend(0, 999)),
        (s(1), resend(1, 0)),
        (ms(30_250), resend(30, 250)),
        (ms(899_999), resend(899, 999)),
        (s(900), resend(900, 0)),
        // 20:28:47.001: the last full minute at least a minute before it.
        (ms(900_001), schedule("2026-07-10T20:27:00Z")),
        (s(901), schedule("2026-07-10T20:27:00Z")),
        (s(43_200), schedule("2026-07-11T08:12:00Z")),
        (s(26 * 3600), schedule("2026-07-11T22:12:00Z")),
        (s(30 * 86_400), schedule("2026-08-09T20:12:00Z")),
    ];
    for (wait, expected) in table {
        assert_eq!(routed(&sqs(), wait, &message(), Refused::NONE), expected, "{wait:?}");
    }
}

#[test]
fn a_moment_in_the_past_is_a_resend_without_a_delay() {
    let plan = Plan::Wait { until: now() - s(60) };
    assert_eq!(
        route(&Policy::default(), &sqs(), plan, &message(), Refused::NONE, now()),
        resend(0, 0)
    );
}

#[test]
fn a_schedule_fires_on_a_full_minute_at_least_a_minute_before_the_due_time() {
    for (due, fires) in [
        ("2026-07-10T21:00:00.000Z", "2026-07-10T20:59:00Z"),
        ("2026-07-10T21:00:00.001Z", "2026-07-10T20:59:00Z"),
        ("2026-07-10T21:00:59.999Z", "2026-07-10T20:59:00Z"),
        ("2026-07-10T21:01:00.000Z", "2026-07-10T21:00:00Z"),
    ] {
        let plan = Plan::Wait { until: at(due) };
        let road = route(&Policy::default(), &sqs(), plan, &message(), Refused::NONE, now());
        assert_eq!(road, schedule(fires), "{due}");
    }
}

#[test]
fn a_long_wait_is_one_schedule_and_one_delay() {
    let until = now() + ms(5 * 3600 * 1000 + 250);
    let plan = Plan::Wait { until };
    let Route::Schedule { at } = route(&Policy::default(), &sqs(), plan, &message(), Refused::NONE, now()) else {
        panic!("five hours are a schedule")
    };
    for late in [0, 31, 59] {
        let Route::Resend {
            delay,
            rest: Some(rest),
        } = route(
            &Policy::default(),
            &sqs(),
            plan,
            &message(),
            Refused::NONE,
            at + s(late),
        )
        else {
            panic!("what is left is a delay")
        };
        assert_eq!(at + s(late) + delay + rest, until);
    }
}

#[test]
fn without_a_schedule_one_hold_or_a_chain_serves_a_long_wait() {
    let hours = s(3 * 3600);
    let table = [
        // Why there is none: none configured, refused by its port, not carried by it.
        (without_scheduler(), message(), Refused::NONE),
        (sqs(), message(), refusing(&[schedule("2026-07-10T23:12:00Z")])),
        (
            sqs(),
            RouteFacts {
                schedulable: false,
                ..message()
            },
            Refused::NONE,
        ),
    ];
    for (reach, facts, refused) in table {
        assert_eq!(routed(&reach, hours, &facts, refused), hold(3 * 3600));
        let plan = Plan::Wait { until: now() + hours };
        assert_eq!(route(&hops_first(), &reach, plan, &facts, refused, now()), HOP);
        let thirty_days = routed(&reach, s(30 * 86_400), &facts, refused);
        assert_eq!(
            thirty_days, HOP,
            "no hold covers thirty days, and a hold does the whole wait or none"
        );
        let without_holds = refused.with(&hold(3 * 3600));
        assert_eq!(routed(&reach, hours, &facts, without_holds), HOP);
        let without_chain = refused.with(&HOP);
        assert_eq!(
            route(&hops_first(), &reach, plan, &facts, without_chain, now()),
            hold(3 * 3600)
        );
    }
}

#[test]
fn a_failed_resend_tries_a_hold_before_it_leaves_the_original() {
    let refused = refusing(&[resend(30, 0)]);
    assert_eq!(routed(&sqs(), s(30), &message(), refused), hold(30));
    let last = RouteFacts {
        receive_count: 5,
        ..message()
    };
    assert_eq!(routed(&sqs(), s(30), &last, refused), Route::Leave);
    assert_eq!(routed(&sqs(), s(30), &message(), refused.with(&hold(30))), Route::Leave);
}

#[test]
fn a_message_without_room_for_the_envelope_is_held_or_ends_unholdable() {
    let full = RouteFacts {
        has_room: false,
        ..message()
    };
    for wait in [s(30), s(3600)] {
        assert_eq!(routed(&sqs(), wait, &full, Refused::NONE), hold(wait.as_secs()));
    }
    for (reach, wait, facts) in [
        (sqs(), s(13 * 3600), full),
        (
            sqs(),
            s(30),
            RouteFacts {
                receive_count: 4,
                ..full
            },
        ),
        (
            Reach {
                max_receive_count: None,
                ..sqs()
            },
            s(30),
            full,
        ),
    ] {
        let road = routed(&reach, wait, &facts, Refused::NONE);
        assert!(is_unholdable(&road), "{wait:?}: {road:?}");
        let Route::DeadLetter { unholdable: Some(why) } = &road else {
            panic!("{road:?}")
        };
        assert!(why.contains("envelope"), "{why}");
        assert_eq!(routed(&reach, wait, &facts, refusing(&[road])), Route::Leave);
    }
    assert_eq!(
        routed(&sqs(), s(30), &full, refusing(&[hold(30)])),
        Route::Leave,
        "a port failed, not the job"
    );
}

#[test]
fn what_is_given_back_is_sent_again_at_once() {
    let give_back = |reach: &Reach, facts: &RouteFacts, refused| {
        route(&Policy::default(), reach, Plan::GiveBack, facts, refused, now())
    };
    assert_eq!(give_back(&sqs(), &message(), Refused::NONE), resend(0, 0));
    assert_eq!(
        give_back(
            &sqs(),
            &RouteFacts {
                has_room: false,
                ..message()
            },
            Refused::NONE
        ),
        Route::Leave
    );
    assert_eq!(give_back(&sqs(), &message(), refusing(&[resend(0, 0)])), Route::Leave);
    assert_eq!(
        give_back(&fifo_queue(), &message(), Refused::NONE),
        Route::Leave,
        "kept, in its order"
    );
}

#[test]
fn an_end_is_a_dead_letter() {
    for reach in [sqs(), fifo_queue()] {
        for facts in [
            message(),
            RouteFacts {
                has_room: false,
                receive_count: 9,
                ..message()
            },
        ] {
            let roads = all_refused(&Policy::default(), &reach, Plan::End, &facts, now());
            assert_eq!(roads, [Route::DeadLetter { unholdable: None }, Route::Leave]);
        }
    }
}

#[test]
fn each_refusal_leads_to_the_next_road_and_at_last_to_none() {
    let roads = |policy: &Policy, reach: &Reach, wait, facts: &RouteFacts| {
        all_refused(policy, reach, Plan::Wait { until: now() + wait }, facts, now())
    };
    let default = Policy::default();
    let long = s(3 * 3600);
    let fires = schedule("2026-07-10T23:12:00Z");
    assert_eq!(
        roads(&default, &sqs(), s(30), &message()),
        [resend(30, 0), hold(30), Route::Leave]
    );
    assert_eq!(
        roads(&default, &sqs(), long, &message()),
        [fires.clone(), hold(10_800), HOP, Route::Leave]
    );
    assert_eq!(
        roads(&hops_first(), &sqs(), long, &message()),
        [fires.clone(), HOP, hold(10_800), Route::Leave]
    );
    let last = RouteFacts {
        receive_count: 5,
        ..message()
    };
    assert_eq!(roads(&default, &sqs(), long, &last), [fires, HOP, Route::Leave]);
    let full = RouteFacts {
        has_room: false,
        ..message()
    };
    assert_eq!(roads(&default, &sqs(), long, &full), [hold(10_800), Route::Leave]);
}

#[test]
fn a_queue_of_finer_delays_leaves_no_rest() {
    let embedded = Reach {
        delay_step: ms(1),
        max_delay: s(366 * 86_400),
        schedule: None,
        max_receive_count: None,
        ..sqs()
    };
    let road = routed(&embedded, ms(30_250), &message(), Refused::NONE);
    assert_eq!(
        road,
        Route::Resend {
            delay: ms(30_250),
            rest: Some(Duration::ZERO)
        }
    );
    let road = routed(&embedded, s(30 * 86_400), &message(), Refused::NONE);
    assert_eq!(
        road,
        Route::Resend {
            delay: s(30 * 86_400),
            rest: Some(Duration::ZERO)
        }
    );
}

#[test]
fn each_road_has_its_word() {
    for (road, word) in [
        (resend(1, 0), "delay"),
        (schedule("2026-07-10T23:12:00Z"), "schedule"),
        (hold(1), "visibility"),
        (Route::DeadLetter { unholdable: None }, "none"),
        (Route::Leave, "none"),
    ] {
        assert_eq!(road.mechanism().as_str(), word);
    }
}
