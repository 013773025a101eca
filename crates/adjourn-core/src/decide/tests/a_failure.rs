//! Failed calls: backoff, attempts, a server's own wish.

use super::*;

fn failures(failures: u32) -> Facts {
    Facts {
        counters: Counters {
            failures,
            ..Counters::default()
        },
        ..Facts::first_delivery()
    }
}

#[test]
fn backs_off_by_the_count_of_failures_and_ends_at_max_attempts() {
    for (before, backoff) in [(0, 1), (1, 3), (2, 10), (3, 30)] {
        let wait = wait(failed(&failures(before), Fault::new("broke")));
        assert_eq!(
            (wait.until, wait.counter),
            (now() + s(backoff), Counter::Failure),
            "after {before}"
        );
        assert_eq!((wait.cause, wait.reason.as_str()), (Cause::Failed, "broke"));
    }
    let end = ending(failed(&failures(4), Fault::new("broke").status(502)));
    assert_eq!(
        (end.kind(), end.last_status()),
        (EndingKind::Exhausted(Cap::Attempts), Some(502))
    );
    assert!(
        end.why().contains("max_attempts") && end.why().contains("broke"),
        "{}",
        end.why()
    );
    assert!(
        !end.is_exhausted(),
        "attempts used up is failed: only a cap on waits is exhausted"
    );
    assert_eq!(end.word(), "failed");
}

#[test]
fn law_4_a_wait_spends_no_attempt() {
    let counters = Counters {
        deferrals: 20,
        hops: 90,
        ..Counters::default()
    };
    let refused_often = Facts {
        counters,
        first_deferred_at: Some(now() - HOUR),
        ..Facts::first_delivery()
    };
    assert_eq!(
        wait(failed(&refused_often, Fault::new("broke"))).until,
        wait(failed(&Facts::first_delivery(), Fault::new("broke"))).until,
        "the backoff of the first real failure is that of a job never refused"
    );
    let failed_often = Facts {
        counters: Counters {
            failures: 4,
            hops: 499,
            ..Counters::default()
        },
        ..refused_often
    };
    wait(refused(&failed_often, refusal().retry_at(now() + s(5))));
    let counters = Counters {
        deferrals: 20,
        failures: 4,
        ..Counters::default()
    };
    let end = ending(failed(
        &Facts {
            counters,
            ..Facts::first_delivery()
        },
        Fault::new("broke"),
    ));
    assert_eq!(
        end.kind(),
        EndingKind::Exhausted(Cap::Attempts),
        "a real failure after refusals still counts"
    );
}

#[test]
fn waits_at_least_as_long_as_a_server_error_asked() {
    let until = |fault| wait(failed(&Facts::first_delivery(), fault)).until;
    assert_eq!(until(Fault::new("503").retry_at(now() + s(120))), now() + s(120));
    assert_eq!(until(Fault::new("503").retry_at(now() + ms(10))), now() + s(1));
    assert_eq!(until(Fault::new("503").retry_at(Timestamp::EPOCH)), now() + s(1));
}

#[test]
fn of_many_jobs_at_one_moment_they_do_not_all_come_back_at_one() {
    let moment = now() + s(120);
    let until = |entropy| {
        let outcome = Outcome::Failed(Fault::new("503").retry_at(moment));
        let wait = wait(decide(
            &Policy::default(),
            &Facts::first_delivery(),
            &outcome,
            &Verdict::Default,
            now(),
            entropy,
        ));
        assert_eq!(
            wait.until - wait.jitter,
            moment,
            "the jitter that is told is the jitter that is in it"
        );
        wait.until
    };
    assert!(until(0) == moment && until(5_000) > moment && until(10_000) > until(5_000));
}

#[test]
fn is_bounded_by_the_first_deferral_too() {
    let fault = Fault::new("503").retry_at(now() + s(25 * 3600) + ms(1));
    assert_eq!(
        ending(failed(&deferred(1), fault)).kind(),
        EndingKind::Exhausted(Cap::DeferredTime)
    );
}

#[test]
fn without_a_backoff_comes_back_at_once() {
    let mut policy = Policy::default();
    policy.retry.backoff = vec![];
    let outcome = Outcome::Failed(Fault::new("broke"));
    assert_eq!(
        wait(decided(&policy, &Facts::first_delivery(), &outcome, &Verdict::Default)).until,
        now()
    );
}
