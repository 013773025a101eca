//! Refusals that name no time: rungs, and how long they may go on.

use super::*;

#[test]
fn climbs_by_consecutive_refusals_and_stays_on_its_last_rung() {
    for (refusals, rung) in [(0, 2), (1, 5), (2, 15), (3, 60), (4, 180), (5, 600), (6, 600), (7, 600)] {
        let facts = unnamed(refusals, now() - s(10));
        assert_eq!(
            wait(refused(&facts, refusal())).until,
            now() + s(rung),
            "after {refusals}"
        );
    }
}

#[test]
fn gives_way_to_the_next_turn_of_a_pace_that_is_being_found() {
    let found = |turn| Facts {
        found_turn: Some(turn),
        ..unnamed(4, now() - s(10))
    };
    assert_eq!(wait(refused(&found(now() + ms(250)), refusal())).until, now() + ms(250));
    assert_eq!(
        wait(refused(&found(now() - s(9)), refusal())).until,
        now(),
        "a turn that has come"
    );
    let named = refusal().retry_at(now() + s(30));
    assert_eq!(
        wait(refused(&found(now() + ms(250)), named)).until,
        now() + s(30),
        "a moment that was named comes first"
    );
}

#[test]
fn starts_again_after_a_refusal_that_named_its_time() {
    assert_eq!(wait(refused(&deferred(7), refusal())).until, now() + s(2));
}

#[test]
fn climbs_on_a_queue_that_can_only_hold_though_a_hold_cannot_write() {
    let first = now() - s(22);
    let facts = Facts {
        unexplained_receives: 3,
        first_deferred_at: Some(first),
        ..Facts::first_delivery()
    };
    assert_eq!(wait(refused(&facts, refusal())).until, now() + s(60));
    let facts = Facts {
        first_deferred_at: Some(now() - HOUR),
        ..facts
    };
    assert_eq!(
        ending(refused(&facts, refusal())).kind(),
        EndingKind::Exhausted(Cap::UnknownTime)
    );
}

#[test]
fn ends_where_the_next_try_would_pass_unknown_max() {
    let edge = unnamed(5, now() - s(3000));
    assert_eq!(
        wait(refused(&edge, refusal())).until,
        now() + s(600),
        "3,600 s in all are allowed"
    );
    let past = unnamed(5, now() - ms(3_000_001));
    let end = ending(refused(&past, refusal()));
    assert_eq!(
        (end.kind(), end.last_status()),
        (EndingKind::Exhausted(Cap::UnknownTime), Some(429))
    );
    assert!(end.why().contains("unknown_max_ms"), "{}", end.why());
}

#[test]
fn takes_at_most_half_of_what_a_deadline_leaves() {
    let since = now() - s(10);
    let with_deadline = |left| Facts {
        deadline: Some(since + left),
        ..unnamed(1, since)
    };
    assert_eq!(
        wait(refused(&with_deadline(s(30)), refusal())).until,
        now() + s(5),
        "10 + 5 s of 30"
    );
    let end = ending(refused(&with_deadline(ms(29_999)), refusal()));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::UnknownTime));
}

#[test]
fn jitter_does_not_carry_it_past_unknown_max() {
    let edge = unnamed(5, now() - s(3000));
    let decision = decide(
        &Policy::default(),
        &edge,
        &Outcome::Throttled(refusal()),
        &Verdict::Default,
        now(),
        10_000,
    );
    assert_eq!(wait(decision).until, now() + s(600));
}

#[test]
fn a_probe_is_no_rung_and_goes_on_past_unknown_max() {
    let facts = unnamed(4, now() - s(4 * 3600));
    assert_eq!(wait(refused(&facts, refusal().kind(Kind::Daily))).until, now() + HOUR);
    assert_eq!(
        wait(refused(&facts, Signal::new("acme", now()).status(403))).until,
        now() + HOUR
    );
}
