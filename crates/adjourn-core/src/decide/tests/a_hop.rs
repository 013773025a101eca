//! Hand-offs without a call.

use super::*;

fn hopped(facts: &Facts, until: Timestamp, cause: Cause) -> Decision {
    hop(&Policy::default(), facts, until, cause, "why", now())
}

#[test]
fn is_bounded_by_the_first_deferral_like_any_wait() {
    let facts = deferred(3);
    let edge = now() + s(25 * 3600);
    for cause in [Cause::GateClosed, Cause::NotDue, Cause::ScopeFull] {
        assert_eq!(wait(hopped(&facts, edge, cause)).until, edge);
        let end = ending(hopped(&facts, edge + ms(1), cause));
        assert_eq!(end.kind(), EndingKind::Exhausted(Cap::DeferredTime), "{cause:?}");
    }
}

#[test]
fn to_the_jobs_own_moment_may_be_longer_than_any_cap() {
    let in_a_month = now() + s(30 * 86_400);
    assert_eq!(
        wait(hopped(&Facts::first_delivery(), in_a_month, Cause::NotBefore)).until,
        in_a_month
    );
}

#[test]
fn adds_the_clock_skew_without_passing_the_cap_by_it() {
    let mut policy = Policy::default();
    policy.deferral.clock_skew = s(2);
    let edge = now() + s(25 * 3600) + s(2);
    for cause in [Cause::NotDue, Cause::GateClosed] {
        let decision = hop(&policy, &deferred(3), edge, cause, "why", now());
        assert_eq!(wait(decision).until, edge, "due at the cap, plus the skew: {cause:?}");
        let end = ending(hop(&policy, &deferred(3), edge + ms(1), cause, "why", now()));
        assert_eq!(end.kind(), EndingKind::Exhausted(Cap::DeferredTime));
    }
}

#[test]
fn for_want_of_time_puts_nothing_off_and_passes_no_cap() {
    let facts = Facts {
        first_deferred_at: Some(now() - s(26 * 3600 + 2)),
        ..deferred(3)
    };
    let wait = wait(hopped(&facts, now(), Cause::OutOfTime));
    assert_eq!((wait.until, wait.counter), (now(), Counter::Hop));
}

#[test]
fn is_never_into_the_past_and_never_past_a_deadline_that_way() {
    assert_eq!(
        wait(hopped(&Facts::first_delivery(), Timestamp::EPOCH, Cause::NotDue)).until,
        now()
    );
    let facts = Facts {
        deadline: Some(now() - ms(1)),
        ..Facts::first_delivery()
    };
    assert_eq!(
        ending(hopped(&facts, Timestamp::EPOCH, Cause::OutOfTime)).kind(),
        EndingKind::Deadline
    );
}
