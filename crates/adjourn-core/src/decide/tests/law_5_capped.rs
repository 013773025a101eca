//! Every cap at its edge: allowed, and one more not.

use super::*;

#[test]
fn the_31st_deferral_is_exhausted() {
    let signal = || refusal().retry_at(now() + s(30));
    assert_eq!(
        wait(refused(&deferred(29), signal())).until,
        now() + s(30),
        "the 30th is allowed"
    );
    let end = ending(refused(&deferred(30), signal()));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::Deferrals));
    assert!(
        end.why().contains("deferral cap") && end.is_exhausted(),
        "{}",
        end.why()
    );
    assert_eq!((end.word(), end.last_status()), ("exhausted", Some(429)));
}

#[test]
fn receives_that_nothing_explains_count_as_deferrals() {
    let facts = Facts {
        unexplained_receives: 10,
        ..deferred(20)
    };
    let end = ending(refused(&facts, refusal().retry_at(now() + s(30))));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::Deferrals));
    let facts = Facts {
        unexplained_receives: 9,
        ..deferred(20)
    };
    wait(refused(&facts, refusal().retry_at(now() + s(30))));
}

#[test]
fn exactly_26_hours_are_allowed_and_a_millisecond_more_is_not() {
    let cap = s(26 * 3600);
    let end_of = |decision| ending(decision).kind();
    let first = Facts::first_delivery();
    assert_eq!(
        wait(refused(&first, refusal().retry_at(now() + cap))).until,
        now() + cap
    );
    let past = EndingKind::Exhausted(Cap::DeferredTime);
    assert_eq!(end_of(refused(&first, refusal().retry_at(now() + cap + ms(1)))), past);

    let earlier = deferred(1);
    let left = cap - HOUR;
    assert_eq!(
        wait(refused(&earlier, refusal().retry_at(now() + left))).until,
        now() + left
    );
    assert_eq!(
        end_of(refused(&earlier, refusal().retry_at(now() + left + ms(1)))),
        past
    );
}

#[test]
fn jitter_never_pushes_an_allowed_wait_past_a_cap() {
    let most = 10_000;
    let throttled = |facts: &Facts, span| {
        let outcome = Outcome::Throttled(refusal().retry_at(now() + span));
        wait(decide(
            &Policy::default(),
            facts,
            &outcome,
            &Verdict::Default,
            now(),
            most,
        ))
    };
    let cap = s(26 * 3600);
    assert_eq!(throttled(&Facts::first_delivery(), cap).until, now() + cap);
    assert_eq!(throttled(&Facts::first_delivery(), cap - s(7)).until, now() + cap);
    let deadline = Facts {
        deadline: Some(now() + s(102)),
        ..Facts::first_delivery()
    };
    let near = throttled(&deadline, s(100));
    assert_eq!((near.until, near.jitter), (now() + s(102), s(2)));
    let failure = decide(
        &Policy::default(),
        &Facts {
            deadline: Some(now() + ms(1100)),
            ..Facts::first_delivery()
        },
        &Outcome::Failed(Fault::new("broke")),
        &Verdict::Default,
        now(),
        most,
    );
    assert_eq!(
        wait(failure).until,
        now() + ms(1100),
        "1 s of backoff fits, its jitter of 250 ms does not"
    );
}

#[test]
fn a_moment_past_a_cap_ends_the_job_at_once_in_words() {
    let end = ending(refused(
        &Facts::first_delivery(),
        refusal().retry_at(now() + s(37 * 3600)),
    ));
    assert!(
        end.why().contains("max_deferred_ms") && end.why().contains("burst"),
        "{}",
        end.why()
    );
    let end = ending(refused(&Facts::first_delivery(), refusal().retry_at(Timestamp::MAX)));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::DeferredTime));
}

#[test]
fn a_deadline_that_cannot_be_reached_ends_the_job_at_once() {
    let facts = Facts {
        deadline: Some(now() + s(30)),
        ..Facts::first_delivery()
    };
    assert_eq!(
        wait(refused(&facts, refusal().retry_at(now() + s(30)))).until,
        now() + s(30)
    );
    let cases = [
        refused(&facts, refusal().retry_at(now() + ms(30_001))),
        refused(&facts, refusal().kind(Kind::Daily)),
        answered(&facts, refusal(), Verdict::Defer { until: now() + s(31) }),
        answered(&facts, refusal().retry_at(now() + s(31)), Verdict::Retry),
        failed(&facts, Fault::new("broke").retry_at(now() + s(31))),
        hop(
            &Policy::default(),
            &facts,
            now() + s(31),
            Cause::GateClosed,
            "closed",
            now(),
        ),
    ];
    for decision in cases {
        let end = ending(decision);
        assert_eq!(end.kind(), EndingKind::Deadline);
        assert!(end.why().contains("deadline"), "{}", end.why());
    }
}

#[test]
fn caps_are_configurable() {
    let mut policy = Policy::default();
    policy.deferral.max_deferrals = 1;
    policy.deferral.max_deferred = s(60);
    let outcome = |span| Outcome::Throttled(refusal().retry_at(now() + span));
    let first = Facts::first_delivery();
    wait(decided(&policy, &first, &outcome(s(60)), &Verdict::Default));
    let end = ending(decided(&policy, &first, &outcome(s(61)), &Verdict::Default));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::DeferredTime));
    let second = Facts {
        first_deferred_at: None,
        ..deferred(1)
    };
    let end = ending(decided(&policy, &second, &outcome(s(1)), &Verdict::Default));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::Deferrals));
}

#[test]
fn the_501st_hop_ends_the_job() {
    let hopped = |hops| {
        let counters = Counters {
            hops,
            ..Counters::default()
        };
        let facts = Facts {
            counters,
            ..Facts::first_delivery()
        };
        hop(
            &Policy::default(),
            &facts,
            now() + s(5),
            Cause::GateClosed,
            "acme is closed",
            now(),
        )
    };
    let wait = wait(hopped(499));
    assert_eq!(
        (wait.until, wait.counter, wait.cause),
        (now() + s(5), Counter::Hop, Cause::GateClosed)
    );
    assert_eq!((wait.reason.as_str(), wait.jitter), ("acme is closed", Duration::ZERO));
    let end = ending(hopped(500));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::Hops));
    assert!(
        end.why().contains("max_hops") && end.why().contains("acme is closed"),
        "{}",
        end.why()
    );
}
