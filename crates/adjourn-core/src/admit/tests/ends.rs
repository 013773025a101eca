//! What ends before a call, and what nobody waits for any more.

use super::*;
use crate::EndingKind;

#[test]
fn a_wake_up_that_nobody_waits_for_is_discarded_before_anything_else() {
    let scope = scope();
    for why in [Discarded::Stale, Discarded::Cancelled, Discarded::Ended] {
        let gate = Passage::Closed {
            until: now() + s(30),
            reason: "burst".to_string(),
        };
        let facts = AdmissionFacts {
            standing: Standing::Over(why),
            receive_count: 9,
            repeatable: false,
            deadline: Some(now() - s(1)),
            gate: &gate,
            time_left: false,
            ..fresh(&scope)
        };
        assert_eq!(
            admitted(&facts),
            Admission::Discard(why),
            "cancel wins over every wake-up"
        );
    }
}

#[test]
fn a_deadline_that_has_passed_ends_the_job_unsent() {
    let scope = scope();
    let end = ending(admitted(&AdmissionFacts {
        deadline: Some(now() - ms(1)),
        ..fresh(&scope)
    }));
    assert_eq!(end.kind(), EndingKind::Deadline);
    assert!(
        end.why().contains("2026-07-10T20:13:46.999Z") && end.why().contains("not sent"),
        "{}",
        end.why()
    );
    let at_it = AdmissionFacts {
        deadline: Some(now()),
        ..fresh(&scope)
    };
    assert_eq!(admitted(&at_it), AT_ONCE, "useless after its deadline, not at it");
}

#[test]
fn a_deadline_before_the_jobs_own_moment_cannot_be_reached() {
    let scope = scope();
    let facts = AdmissionFacts {
        not_before: Some(now() + s(60)),
        deadline: Some(now() + s(59)),
        ..fresh(&scope)
    };
    let end = ending(admitted(&facts));
    assert_eq!(end.kind(), EndingKind::Deadline);
    let same = AdmissionFacts {
        deadline: Some(now() + s(60)),
        ..facts
    };
    assert_eq!(park(admitted(&same)).1, Cause::NotBefore);
}

#[test]
fn a_message_that_kills_its_process_ends_at_one_receive_less_than_the_queue_permits() {
    let scope = scope();
    let received = |count, max| {
        admitted(&AdmissionFacts {
            receive_count: count,
            max_receive_count: max,
            ..fresh(&scope)
        })
    };
    for (count, max, crashed) in [
        (1, Some(5), false),
        (3, Some(5), false),
        (4, Some(5), true),
        (5, Some(5), true),
        (9, Some(5), true),
        (2, Some(3), true),
        (1, Some(2), false),
        (2, Some(2), true),
        (1, Some(1), false),
        (1, Some(0), false),
        (400, None, false),
    ] {
        let admission = received(count, max);
        if !crashed {
            assert_eq!(admission, AT_ONCE, "{count} of {max:?}");
            continue;
        }
        let end = ending(admission);
        assert_eq!(end.kind(), EndingKind::Crashed, "{count} of {max:?}");
        assert!(end.why().contains(&format!("{count} times")), "{}", end.why());
    }
}

#[test]
fn receives_that_a_store_or_a_fifo_hold_explains_are_no_crash() {
    let scope = scope();
    let at = |standing, queue| {
        admitted(&AdmissionFacts {
            standing,
            queue,
            receive_count: 4,
            ..fresh(&scope)
        })
    };
    assert_eq!(at(Standing::Current, QueueKind::Standard), AT_ONCE);
    assert_eq!(at(Standing::Current, QueueKind::Fifo), AT_ONCE);
    assert_eq!(at(Standing::Unrecorded, QueueKind::Fifo), AT_ONCE);
    for queue in [QueueKind::Standard, QueueKind::Fifo] {
        assert_eq!(ending(at(Standing::Started, queue)).kind(), EndingKind::Crashed);
    }
}

#[test]
fn a_job_that_cannot_be_repeated_and_was_started_before_is_unknown() {
    let scope = scope();
    let mut repeat = Policy::default();
    repeat.deferral.unsafe_redelivery = UnsafeRedelivery::Repeat;
    let table = [
        // (what the store says, receives) -> unknown by default, unknown with unsafe_redelivery = "repeat"
        (Standing::Unrecorded, 1, false, false),
        (Standing::Unrecorded, 2, true, false),
        (Standing::Current, 1, false, false),
        (Standing::Current, 3, false, false),
        (Standing::Started, 1, true, true),
        (Standing::Started, 2, true, true),
    ];
    for (standing, receive_count, by_default, with_repeat) in table {
        for (policy, unknown) in [(Policy::default(), by_default), (repeat.clone(), with_repeat)] {
            let facts = AdmissionFacts {
                standing,
                receive_count,
                repeatable: false,
                ..fresh(&scope)
            };
            let admission = admit(&policy, &facts);
            let case = format!(
                "{standing:?}, {receive_count} receives, {:?}",
                policy.deferral.unsafe_redelivery
            );
            if unknown {
                assert_eq!(ending(admission).kind(), EndingKind::Unknown, "{case}");
            } else {
                assert_eq!(admission, AT_ONCE, "{case}");
            }
            let repeatable = AdmissionFacts {
                repeatable: true,
                ..facts
            };
            assert_eq!(admit(&policy, &repeatable), AT_ONCE, "repeatable: {case}");
        }
    }
}
