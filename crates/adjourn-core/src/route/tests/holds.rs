//! How far one hold reaches, and when it is none.

use super::*;

/// The road of a wait that only a hold can serve: no scheduler, no room for a copy.
fn held(reach: &Reach, wait: Duration, facts: &RouteFacts) -> Route {
    routed(
        &Reach {
            schedule: None,
            ..*reach
        },
        wait,
        &RouteFacts {
            has_room: false,
            ..*facts
        },
        Refused::NONE,
    )
}

#[test]
fn covers_what_the_queue_allows_less_the_time_since_receipt_the_visibility_and_five_minutes() {
    for (elapsed, visibility) in [(0, 90), (20, 90), (800, 900), (0, 43_000)] {
        let reach = Reach {
            visibility_timeout: s(visibility),
            ..sqs()
        };
        let facts = RouteFacts {
            received_at: now() - s(elapsed),
            ..message()
        };
        let most = 43_200_u64.saturating_sub(elapsed + visibility + 300);
        let case = format!("{elapsed} s since receipt, {visibility} s of visibility");
        if most > 0 {
            assert_eq!(held(&reach, s(most), &facts), hold(most), "{case}");
        }
        assert!(is_unholdable(&held(&reach, s(most) + ms(1), &facts)), "{case}");
    }
}

#[test]
fn runs_from_the_receipt_and_not_from_the_sending() {
    let thirteen_hours_old = RouteFacts {
        sent_at: now() - s(13 * 3600),
        ..message()
    };
    assert_eq!(held(&sqs(), s(3600), &thirteen_hours_old), hold(3600));
}

#[test]
fn rounds_up_to_whole_seconds() {
    assert_eq!(held(&sqs(), ms(1), &message()), hold(1));
    assert_eq!(held(&sqs(), ms(1001), &message()), hold(2));
    assert_eq!(held(&sqs(), s(2), &message()), hold(2));
}

#[test]
fn is_due_an_hour_before_the_queue_forgets_the_message() {
    let reach = Reach {
        retention: s(4 * 3600),
        ..sqs()
    };
    let facts = RouteFacts {
        sent_at: now() - s(3600),
        ..message()
    };
    assert_eq!(held(&reach, ms(7_199_999), &facts), hold(7200));
    assert!(
        is_unholdable(&held(&reach, s(7200), &facts)),
        "sent time + retention - 1 h is no longer before it"
    );
    let short = Reach {
        retention: s(60),
        ..sqs()
    };
    assert!(is_unholdable(&held(&short, s(1), &message())));
}

#[test]
fn leaves_receives_for_a_real_failure() {
    // The wake-up is one receive more; a crash after it another, and the one before the last is the crash's end.
    for (max, count, holds) in [
        (Some(5), 1, true),
        (Some(5), 2, true),
        (Some(5), 3, false),
        (Some(5), 4, false),
        (Some(5), 5, false),
        (Some(4), 1, true),
        (Some(4), 2, false),
        (Some(3), 1, false),
        (Some(1), 1, false),
        (Some(1000), 997, true),
        (Some(1000), 998, false),
        (None, 1, false),
        (Some(u32::MAX), u32::MAX, false),
    ] {
        let reach = Reach {
            max_receive_count: max,
            ..sqs()
        };
        let facts = RouteFacts {
            receive_count: count,
            ..message()
        };
        let road = held(&reach, s(60), &facts);
        assert_eq!(road == hold(60), holds, "receive {count} of {max:?}: {road:?}");
    }
}

#[test]
fn with_three_receives_ten_refusals_never_hold() {
    let reach = Reach {
        max_receive_count: Some(3),
        ..without_scheduler()
    };
    for refusal in 1..=10 {
        for receive_count in 1..=3 {
            let facts = RouteFacts {
                receive_count,
                ..message()
            };
            let road = routed(&reach, s(3600), &facts, Refused::NONE);
            assert_eq!(road, HOP, "refusal {refusal}, receive {receive_count}");
        }
    }
}

#[test]
fn is_none_where_its_wake_up_would_be_taken_for_a_second_start() {
    let unrepeatable = RouteFacts {
        repeatable: false,
        ..message()
    };
    assert!(is_unholdable(&held(&sqs(), s(60), &unrepeatable)));
    let recorded = RouteFacts {
        holds_are_recorded: true,
        ..unrepeatable
    };
    assert_eq!(held(&sqs(), s(60), &recorded), hold(60));
    let mut policy = Policy::default();
    policy.deferral.unsafe_redelivery = UnsafeRedelivery::Repeat;
    let facts = RouteFacts {
        has_room: false,
        ..unrepeatable
    };
    let plan = Plan::Wait { until: now() + s(60) };
    assert_eq!(route(&policy, &sqs(), plan, &facts, Refused::NONE, now()), hold(60));
}
