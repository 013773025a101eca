//! What the integration's handler may answer, and what it comes to.

use super::*;

#[test]
fn defer_later_than_the_signal_is_taken() {
    let decision = answered(
        &Facts::first_delivery(),
        refusal().retry_at(now() + s(30)),
        Verdict::Defer { until: now() + s(90) },
    );
    let wait = wait(decision);
    assert_eq!(
        (wait.until, wait.cause, wait.counter),
        (now() + s(90), Cause::Verdict, Counter::Deferral)
    );
    assert_eq!(wait.anomaly, None);
}

#[test]
fn defer_earlier_than_the_signal_is_corrected_and_told() {
    for until in [Timestamp::EPOCH, now(), now() + ms(29_999)] {
        let decision = answered(
            &Facts::first_delivery(),
            refusal().retry_at(now() + s(30)),
            Verdict::Defer { until },
        );
        let wait = wait(decision);
        assert_eq!(wait.until, now() + s(30));
        assert!(wait.anomaly.is_some());
    }
}

#[test]
fn defer_to_the_past_of_a_refusal_without_a_time_waits_a_second() {
    let decision = answered(
        &Facts::first_delivery(),
        refusal(),
        Verdict::Defer { until: now() - s(60) },
    );
    let wait = wait(decision);
    assert_eq!(wait.until, now() + s(1));
    assert!(wait.anomaly.is_some());
}

#[test]
fn defer_past_a_cap_is_exhausted_like_any_other() {
    let far = Verdict::Defer {
        until: now() + s(26 * 3600) + ms(1),
    };
    let end = ending(answered(&Facts::first_delivery(), refusal(), far));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::DeferredTime));
    let end = ending(answered(
        &deferred(30),
        refusal(),
        Verdict::Defer { until: now() + s(5) },
    ));
    assert_eq!(end.kind(), EndingKind::Exhausted(Cap::Deferrals));
}

#[test]
fn retry_counts_as_a_failure_at_the_later_of_backoff_and_signal() {
    let cases = [(Some(ms(500)), s(1)), (Some(s(30)), s(30)), (None, s(1))];
    for (named, span) in cases {
        let signal = named.map_or_else(refusal, |named| refusal().retry_at(now() + named));
        let wait = wait(answered(&Facts::first_delivery(), signal, Verdict::Retry));
        assert_eq!(wait.until, now() + span, "{named:?}");
        assert_eq!((wait.counter, wait.cause), (Counter::Failure, Cause::Failed));
    }
    let counters = Counters {
        failures: 4,
        ..Counters::default()
    };
    let end = ending(answered(
        &Facts {
            counters,
            ..Facts::first_delivery()
        },
        refusal(),
        Verdict::Retry,
    ));
    assert_eq!(
        (end.kind(), end.last_status()),
        (EndingKind::Exhausted(Cap::Attempts), Some(429))
    );
}

#[test]
fn drop_ends_without_a_dead_letter() {
    let reason = "a newer sync runs".to_string();
    let decision = answered(
        &Facts::first_delivery(),
        refusal(),
        Verdict::Drop { reason: reason.clone() },
    );
    assert_eq!(decision, Decision::Drop { reason });
}

#[test]
fn dead_letter_is_a_failed_job_with_the_handlers_reason() {
    let verdict = Verdict::DeadLetter {
        reason: "the customer left".to_string(),
    };
    let end = ending(answered(&deferred(2), refusal(), verdict));
    assert_eq!(
        (end.kind(), end.why(), end.last_status()),
        (EndingKind::Rejected, "the customer left", Some(429))
    );
    assert!(!end.is_exhausted());
}

#[test]
fn is_heard_whatever_the_kind() {
    for kind in KINDS {
        let verdict = Verdict::Defer { until: now() + s(40) };
        let decision = answered(&Facts::first_delivery(), refusal().kind(kind), verdict);
        assert_eq!(wait(decision).until, now() + s(40), "{kind:?}");
    }
}

#[test]
fn is_not_asked_where_nothing_was_refused() {
    let loud = Verdict::Drop {
        reason: "loud".to_string(),
    };
    let first = Facts::first_delivery();
    let policy = Policy::default();
    assert_eq!(decided(&policy, &first, &Outcome::Done, &loud), Decision::Complete);
    let fault = || Fault::new("broke").status(500);
    wait(decided(&policy, &first, &Outcome::Failed(fault()), &loud));
    let end = ending(decided(&policy, &first, &Outcome::Unknown(fault()), &loud));
    assert_eq!(
        (end.kind(), end.why(), end.last_status()),
        (EndingKind::Unknown, "broke", Some(500))
    );
    let end = ending(decided(&policy, &first, &Outcome::Rejected(fault()), &loud));
    assert_eq!(
        (end.kind(), end.why(), end.last_status()),
        (EndingKind::Rejected, "broke", Some(500))
    );
}
