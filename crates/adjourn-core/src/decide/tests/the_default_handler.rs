//! The default handler as a table: every kind, time and status.

use super::*;

/// What a refusal comes to, where it comes to the same under every status.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Until(Duration),
    Probe,
    Ladder,
    Exhausted,
    Rejected,
}
use Expected::{Exhausted, Ladder, Probe, Rejected, Until};

#[test]
fn answers_every_kind_time_and_status() {
    let statuses = [Some(429), Some(403), Some(200), Some(503), None];
    let in_30_s = Some(now() + s(30));
    for kind in KINDS {
        for status in statuses {
            let other_status = status.is_some_and(|status| status != 429);
            let nameless = match kind {
                Kind::AccountDisabled => Rejected,
                Kind::Monthly => Exhausted,
                Kind::Daily => Probe,
                Kind::Short | Kind::Concurrency | Kind::Unknown if other_status => Probe,
                Kind::Short | Kind::Concurrency | Kind::Unknown => Ladder,
            };
            let named = |span| {
                if kind == Kind::AccountDisabled {
                    Rejected
                } else {
                    Until(span)
                }
            };
            let table = [
                (in_30_s, named(s(30))),
                (Some(now()), named(s(1))),
                (Some(now() - s(86_400)), named(s(1))),
                (None, nameless),
            ];
            for (retry_at, expected) in table {
                let mut signal = Signal::new("acme", now()).kind(kind).reason("why it was");
                if let Some(status) = status {
                    signal = signal.status(status);
                }
                if let Some(at) = retry_at {
                    signal = signal.retry_at(at);
                }
                let case = format!("{kind:?}, {status:?}, {retry_at:?}");
                let decision = refused(&Facts::first_delivery(), signal);
                match (expected, decision) {
                    (Until(span), Decision::Wait(wait)) => {
                        assert_eq!(wait.until, now() + span, "{case}");
                        assert_eq!(
                            (wait.cause, wait.counter),
                            (Cause::RefusedUntil, Counter::Deferral),
                            "{case}"
                        );
                        assert_eq!(
                            wait.anomaly.is_some(),
                            retry_at != in_30_s,
                            "0 or past is an anomaly: {case}"
                        );
                        assert_eq!(wait.reason, "why it was");
                    }
                    (Probe | Ladder, Decision::Wait(wait)) => {
                        let span = if matches!(expected, Probe) { HOUR } else { s(2) };
                        assert_eq!(wait.until, now() + span, "{case}");
                        assert_eq!(
                            (wait.cause, wait.counter),
                            (Cause::Refused, Counter::Deferral),
                            "{case}"
                        );
                        assert_eq!(wait.anomaly, None, "{case}");
                    }
                    (Exhausted, Decision::End(ending)) => {
                        assert_eq!(ending.kind(), EndingKind::Exhausted(Cap::MonthlyQuota), "{case}");
                        assert!(ending.is_exhausted() && ending.last_status() == status, "{case}");
                    }
                    (Rejected, Decision::End(ending)) => {
                        assert_eq!(ending.kind(), EndingKind::Rejected, "{case}");
                        assert!(ending.why().contains("account disabled"), "{}", ending.why());
                        assert!(ending.why().contains("why it was") && !ending.is_exhausted(), "{case}");
                    }
                    (_, other) => panic!("{case}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_hint_of_zero_still_waits_a_second_when_the_clock_stepped_back_since_the_response() {
    let seen = now() + ms(400);
    let signal = Signal::new("acme", seen).status(429).retry_at(seen);
    let wait = wait(refused(&Facts::first_delivery(), signal));
    assert!(wait.until >= now() + s(1), "{wait:?}");
    assert!(wait.anomaly.is_some());
}

#[test]
fn a_moment_that_passed_while_the_handler_ran_waits_a_second_and_is_no_anomaly_of_the_provider() {
    let signal = Signal::new("acme", now() - s(10)).status(429).retry_at(now() - s(5));
    let wait = wait(refused(&Facts::first_delivery(), signal));
    assert_eq!((wait.until, wait.anomaly), (now() + s(1), None));
}

#[test]
fn min_retry_after_is_a_floor_under_every_wait() {
    let mut policy = Policy::default();
    policy.deferral.min_retry_after = s(5);
    let first = Facts::first_delivery();
    let at = |span| refusal().retry_at(now() + span);
    let cases = [
        (at(s(2)), Verdict::Default, s(5)),
        (at(s(0)), Verdict::Default, s(5)),
        (at(s(7)), Verdict::Default, s(7)),
        (refusal(), Verdict::Default, s(5)),
        (at(s(2)), Verdict::Defer { until: now() + s(3) }, s(5)),
        (refusal(), Verdict::Defer { until: now() + s(3) }, s(5)),
        (at(s(2)), Verdict::Retry, s(5)),
        (refusal(), Verdict::Retry, s(5)),
    ];
    for (signal, verdict, span) in cases {
        let case = format!("{signal:?} {verdict:?}");
        let decision = decided(&policy, &first, &Outcome::Throttled(signal), &verdict);
        assert_eq!(wait(decision).until, now() + span, "{case}");
    }
}

#[test]
fn a_monthly_quota_may_be_probed() {
    let mut policy = Policy::default();
    policy.deferral.monthly = Monthly::Probe;
    let outcome = Outcome::Throttled(refusal().kind(Kind::Monthly));
    let decision = decided(&policy, &Facts::first_delivery(), &outcome, &Verdict::Default);
    assert_eq!(wait(decision).until, now() + HOUR);
}

#[test]
fn a_monthly_reset_that_was_named_is_waited_for_within_the_caps() {
    let soon = refusal().kind(Kind::Monthly).retry_at(now() + s(20 * 3600));
    assert_eq!(
        wait(refused(&Facts::first_delivery(), soon)).until,
        now() + s(20 * 3600)
    );
    let late = refusal().kind(Kind::Monthly).retry_at(now() + s(9 * 86_400));
    assert_eq!(
        ending(refused(&Facts::first_delivery(), late)).kind(),
        EndingKind::Exhausted(Cap::DeferredTime)
    );
}

#[test]
fn a_call_that_its_own_pace_held_comes_back_at_its_turn() {
    let turn = now() + s(40);
    let held = Signal::new("acme", now()).reason("paced").turn_at(turn);
    assert_eq!(wait(refused(&Facts::first_delivery(), held.clone())).until, turn);
    let both = held.retry_at(now() + s(30));
    let named = wait(refused(&Facts::first_delivery(), both)).until;
    assert_eq!(named, now() + s(30), "the provider's word goes first");
}
