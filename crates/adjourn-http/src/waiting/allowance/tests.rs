//! The budget's arithmetic, and what nesting and spawning do to it.

use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;

use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

/// A clock that the test sets.
fn clock() -> (Arc<AtomicI64>, Now) {
    let ms = Arc::new(AtomicI64::new(1_783_714_427_000));
    let read = Arc::clone(&ms);
    (
        ms,
        Arc::new(move || Timestamp::from_unix_ms(read.load(Ordering::Relaxed))),
    )
}

#[test]
fn half_of_a_short_time_is_left_for_a_call_that_may_take_longer() {
    let (_, now) = clock();
    let allowance = Allowance::of(S(300)).until(now() + S(29));
    assert_eq!(allowance.budget(now(), S(30)), Duration::from_millis(14_500));
    assert_eq!(allowance.budget(now(), S(5)), S(24));
    let over = Allowance::of(S(300)).until(now());
    assert_eq!(over.budget(now(), S(30)), Duration::ZERO);
    assert_eq!(Allowance::of(S(3)).budget(now(), S(30)), S(3));
}

#[test]
fn what_passes_for_no_wait_is_more_than_a_cap_and_never_more_than_a_deadline_leaves() {
    let (_, now) = clock();
    let second = |allowance: Allowance| allowance.budget_of_at_least(S(1), now(), S(30));
    assert_eq!(second(Allowance::worker()), S(1));
    assert_eq!(second(Allowance::of(S(3))), S(3));
    let tenth = Duration::from_millis(100);
    assert_eq!(second(Allowance::worker().until(now() + tenth)), tenth / 2);
    assert_eq!(second(Allowance::worker().until(now())), Duration::ZERO);
}

#[test]
fn what_was_slept_is_taken_off_the_cap_and_side_by_side_it_counts_once() {
    let (ms, now) = clock();
    let allowance = Allowance::of(S(10));
    let first = allowance.asleep(&now);
    ms.fetch_add(2000, Ordering::Relaxed);
    let second = allowance.asleep(&now);
    ms.fetch_add(2000, Ordering::Relaxed);
    assert_eq!(allowance.budget(now(), S(30)), S(6), "one that still sleeps counts");
    drop(first);
    ms.fetch_add(1000, Ordering::Relaxed);
    drop(second);
    ms.fetch_add(60_000, Ordering::Relaxed);
    assert_eq!(allowance.budget(now(), S(30)), S(5), "time awake is not slept");
    ms.fetch_add(-60_000, Ordering::Relaxed);
    drop(allowance.asleep(&now));
    assert_eq!(
        allowance.budget(now(), S(30)),
        S(5),
        "a clock that steps back gives nothing and takes nothing"
    );
}

#[tokio::test]
async fn nesting_only_shortens_and_what_the_inner_sleeps_the_outer_has_slept() {
    let (ms, now) = clock();
    let deadline = now() + S(100);
    let outer = Allowance::of(S(10));
    outer
        .clone()
        .scope(async {
            Allowance::of(S(60))
                .until(deadline)
                .scope(async {
                    let inner = Allowance::current();
                    assert_eq!((inner.cap(), inner.deadline()), (S(10), Some(deadline)));
                    let asleep = inner.asleep(&now);
                    ms.fetch_add(4000, Ordering::Relaxed);
                    drop(asleep);
                    Allowance::of(S(60))
                        .until(deadline + S(100))
                        .scope(async { assert_eq!(Allowance::current().deadline(), Some(deadline)) })
                        .await;
                })
                .await;
            assert_eq!(Allowance::current().deadline(), None);
        })
        .await;
    assert_eq!(outer.budget(now(), S(1)), S(6));
}

#[tokio::test]
async fn a_spawned_task_has_what_is_carried_to_it_and_otherwise_five_minutes() {
    let (carried, lost) = Allowance::worker()
        .scope(async {
            let carried = tokio::spawn(Allowance::carry(async { Allowance::current().cap() }));
            let lost = tokio::spawn(async { Allowance::current().cap() });
            (carried.await.unwrap(), lost.await.unwrap())
        })
        .await;
    assert_eq!((carried, lost), (Duration::ZERO, S(300)));
    let nobody = Allowance::carry(async { Allowance::current().cap() }).await;
    assert_eq!((nobody, Allowance::front_end().cap()), (S(300), S(10)));
}

/// The cap that a future finds.
async fn cap() -> Duration {
    Allowance::current().cap()
}

#[tokio::test]
async fn what_stands_around_a_future_counts_where_it_is_run_and_where_it_was_made() {
    let (one, three_hundred) = (Allowance::of(S(1)), Allowance::of(S(300)));
    assert_eq!(one.clone().scope(three_hundred.clone().scope(cap())).await, S(1));
    assert_eq!(three_hundred.clone().scope(one.clone().scope(cap())).await, S(1));
    let three_deep = three_hundred.clone().scope(Allowance::of(S(100)).scope(cap()));
    assert_eq!(one.clone().scope(three_deep).await, S(1));

    // Made under one of them, run under the other, by a task of its own or not.
    for (made, run) in [(&one, &three_hundred), (&three_hundred, &one)] {
        let make = async || (Allowance::carry(cap()), three_hundred.clone().scope(cap()));
        let (carried, scoped) = made.clone().scope(make()).await;
        assert_eq!(run.clone().scope(carried).await, S(1));
        assert_eq!(run.clone().scope(scoped).await, S(1));
        let spawned = made.clone().scope(async {
            let spawned = tokio::spawn(three_hundred.clone().scope(cap()));
            spawned.await.unwrap()
        });
        assert_eq!(spawned.await, made.cap());
    }
    assert_eq!(one.scope(Allowance::carry(cap())).await, S(1));
}

#[tokio::test]
async fn an_allowance_that_stands_around_twice_counts_its_sleep_once() {
    let (ms, now) = clock();
    let allowance = Allowance::of(S(10)).until(now() + S(100));
    let inner = allowance.clone().scope(allowance.clone().scope(Allowance::carry(async {
        let current = Allowance::current();
        assert_eq!(current.levels().count(), 2, "the cap's and the deadline's");
        let asleep = current.asleep(&now);
        ms.fetch_add(4000, Ordering::Relaxed);
        drop(asleep);
    })));
    inner.await;
    assert_eq!(allowance.budget(now(), S(1)), S(6));
}

proptest! {
    #[test]
    fn the_budget_is_within_every_bound(cap in 0u64..1000, left in 0u64..1000, timeout in 0u64..1000) {
        let (_, now) = clock();
        let budget = Allowance::of(S(cap)).until(now() + S(left)).budget(now(), S(timeout));
        prop_assert!(budget <= S(cap) && budget <= S(left));
        let spare = S(left) - budget;
        prop_assert!(spare >= S(timeout).min(S(left) / 2), "the call has its time, or half of what there is");
        // Whoever has a cap and any time left has a budget.
        prop_assert!(cap == 0 || left == 0 || !budget.is_zero());
    }
}
