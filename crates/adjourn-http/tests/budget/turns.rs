//! Turns: when calls start, in which order, and what becomes of a turn that nobody uses.

use std::{future::Future, pin::pin, task::Poll, time::Duration};

use adjourn_http::{Rate, RateBudget, WaitReason};

use crate::calls::{MS, S, Watch, call, crowd, refused, send, settle, try_send};

/// Polls a future once.
async fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    let mut future = Some(future);
    std::future::poll_fn(move |cx| {
        let polled = future.as_mut().map(|future| future.as_mut().poll(cx));
        Poll::Ready(polled.unwrap_or(Poll::Pending))
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn the_burst_goes_at_once_and_each_further_call_one_interval_later() {
    let (budget, watch) = (RateBudget::new(Rate::per_second(10)), Watch::start());
    let log = crowd(&budget, 15, watch).await;
    let expected: Vec<Duration> = (0..15).map(|n: u32| 100 * MS * n.saturating_sub(9)).collect();
    assert_eq!(log.moments(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_idle_budget_lets_twice_its_rate_pass_in_the_first_period_as_documented() {
    let (budget, watch) = (RateBudget::new(Rate::per_second(10)), Watch::start());
    let log = crowd(&budget, 40, watch).await;
    let first = log.moments().iter().filter(|at| **at <= S).count();
    assert_eq!(first, 20, "ten that were saved up and ten that came back");
    let second = log.moments().iter().filter(|at| **at > S && **at <= 2 * S).count();
    assert_eq!(second, 10);
}

#[tokio::test(start_paused = true)]
async fn calls_start_in_order_of_arrival() {
    let (budget, watch) = (RateBudget::new(Rate::per_second(100)).max_in_flight(7), Watch::start());
    let log = crowd(&budget, 300, watch).await;
    assert_eq!(log.order(), (0..300).collect::<Vec<usize>>());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_later_does_not_overtake_who_waits() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    call(&budget).await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move {
            let in_flight = send(&budget, "/").await;
            drop(in_flight);
            watch.read()
        }
    });
    settle().await;
    assert_eq!(budget.waiting(), 1);
    // At the very moment of the other's turn.
    tokio::time::advance(S).await;
    assert!(budget.check("/").is_err(), "the start is the other's");
    assert_eq!(waiting.await.unwrap(), S);
    call(&budget).await;
    assert_eq!(watch.read(), 2 * S);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_gives_up_its_turn_to_the_next() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    call(&budget).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let budget = budget.clone();
        tasks.push(tokio::spawn(async move {
            call(&budget).await;
            watch.read()
        }));
        settle().await;
    }
    let last = tasks.pop().unwrap();
    for task in tasks {
        task.abort();
    }
    assert_eq!(last.await.unwrap(), S, "the turn of the first of those that waited");
    assert_eq!(budget.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_in_the_queue_leaves_nothing_spent_when_it_is_cancelled() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    call(&budget).await;
    {
        let mut waiting = pin!(budget.turn("/", None));
        assert!(poll_once(waiting.as_mut()).await.is_pending());
        tokio::time::advance(500 * MS).await;
        assert!(poll_once(waiting.as_mut()).await.is_pending());
    }
    call(&budget).await;
    assert_eq!(watch.read(), S, "as if nobody had waited");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_came_and_is_dropped_unsent_gives_its_start_and_its_place_back() {
    let (budget, watch) = (RateBudget::new(Rate::new(2, 10 * S)).max_in_flight(2), Watch::start());
    for _ in 0..50 {
        let turn = budget.turn("/", None).await.unwrap();
        assert_eq!(budget.in_flight(), 1);
        drop(turn);
        assert_eq!(budget.in_flight(), 0);
    }
    call(&budget).await;
    call(&budget).await;
    assert_eq!(watch.read(), Duration::ZERO, "both starts were still there");
}

#[tokio::test(start_paused = true)]
async fn a_turn_dropped_while_others_wait_is_the_next_ones() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, 10 * S)), Watch::start());
    let held = budget.turn("/", None).await.unwrap();
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move {
            call(&budget).await;
            watch.read()
        }
    });
    settle().await;
    tokio::time::advance(S).await;
    drop(held);
    assert_eq!(waiting.await.unwrap(), S);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_comes_at_or_after_its_deadline_does_not_queue() {
    let budget = RateBudget::new(Rate::new(1, S));
    call(&budget).await;
    let watch = Watch::start();
    for within in [Duration::ZERO, MS, 999 * MS, S] {
        let error = try_send(&budget, "/", Some(within)).await.unwrap_err();
        assert_eq!(error.reason, WaitReason::Paced);
        assert!(error.is_retryable());
        if !within.is_zero() {
            assert_eq!(error.retry_after, S, "{within:?}");
        }
    }
    assert_eq!(
        (watch.read(), budget.waiting()),
        (Duration::ZERO, 0),
        "it failed at once"
    );
    drop(try_send(&budget, "/", Some(S + MS)).await.unwrap());
    assert_eq!(watch.read(), S, "and spent nothing");
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_counted_into_the_moment_of_a_turn() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    let crowd = tokio::spawn({
        let budget = budget.clone();
        async move { crowd(&budget, 6, watch).await }
    });
    settle().await;
    settle().await;
    assert_eq!(budget.waiting(), 5);
    let error = try_send(&budget, "/", Some(6 * S)).await.unwrap_err();
    assert_eq!(error.retry_after, 6 * S);
    drop(try_send(&budget, "/", Some(6 * S + MS)).await.unwrap());
    assert_eq!((watch.read(), crowd.await.unwrap().count()), (6 * S, 6));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_call_that_nobody_polls() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    call(&budget).await;
    // The first in the queue is asked once and then forgotten, alive.
    let mut forgotten = pin!(budget.turn("/", None));
    assert!(poll_once(forgotten.as_mut()).await.is_pending());
    call(&budget).await;
    assert!(watch.read() >= 2 * S, "its turn is kept for it");
    assert!(watch.read() <= 4 * S, "and the next ones come: {:?}", watch.read());
    assert!(poll_once(forgotten.as_mut()).await.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_begins_between_turn_and_send_stops_the_call() {
    let budget = RateBudget::new(Rate::per_second(10));
    let turn = budget.turn("/", None).await.unwrap();
    refused(&budget, &[("Retry-After", "30")]).await;
    let error = turn.sent().unwrap_err();
    assert_eq!((error.reason, error.status), (WaitReason::Paused, Some(429)));
    assert!(error.retry_after >= 30 * S && error.retry_after <= 33 * S, "{error:?}");
    assert_eq!(budget.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_applies_to_the_next_start_and_to_those_who_wait() {
    let (budget, watch) = (RateBudget::new(Rate::per_hour(1)), Watch::start());
    call(&budget).await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { crowd(&budget, 5, watch).await.moments() }
    });
    settle().await;
    tokio::time::advance(S).await;
    budget.set_rate(Rate::new(1, 2 * S));
    assert_eq!(budget.effective_rate(), Some(Rate::new(1, 2 * S)));
    let moments = waiting.await.unwrap();
    // Of the hour's one start all but a second's worth was spent, and so it is of the new one.
    assert!(moments[0] > S && moments[0] <= 3 * S, "{moments:?}");
    for pair in moments.windows(2) {
        assert_eq!(pair[1] - pair[0], 2 * S);
    }
    budget.set_rate(Rate::per_hour(1));
    assert!(
        budget.check("/").unwrap_err().retry_after > 1000 * S,
        "and a lower one, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_backlog_drains_at_the_rate() {
    for (rate, calls) in [
        (Rate::per_second(50), 1000_usize),
        (Rate::per_minute(10), 120),
        (Rate::new(1, 700 * MS), 60),
        (Rate::per_second(7), 300),
    ] {
        let (budget, watch) = (RateBudget::new(rate), Watch::start());
        let log = crowd(&budget, calls, watch).await;
        let at_the_rate = rate.interval() * u32::try_from(calls).unwrap();
        let took = log.moments().into_iter().max().unwrap();
        assert!(took <= at_the_rate.mul_f64(1.2), "{rate}: {took:?} for {at_the_rate:?}");
        let burst = rate.interval() * rate.requests();
        assert!(
            took + burst + MS >= at_the_rate,
            "{rate}: {took:?} is faster than the rate"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_more_than_the_whole_budget_fails_for_good_and_cheaper_ones_go_on() {
    let budget = RateBudget::new(Rate::per_minute(300));
    let error = budget.turn_costing("/", 301, None).await.unwrap_err();
    assert_eq!((error.reason, error.is_retryable()), (WaitReason::TooDear, false));
    drop(budget.turn_costing("/", 300, None).await.unwrap().sent().unwrap());
    assert_eq!(budget.check("/").unwrap_err().retry_after, 200 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_lowered_rate_makes_a_dear_call_wait_and_not_fail() {
    let (budget, watch) = (RateBudget::new(Rate::per_second(10)), Watch::start());
    refused(&budget, &[]).await;
    drop(budget.turn_costing("/", 10, None).await.unwrap().sent().unwrap());
    assert!(watch.read() >= S, "{:?}", watch.read());
}

#[tokio::test(start_paused = true)]
async fn what_a_call_cost_in_truth_is_set_right() {
    let budget = RateBudget::new(Rate::per_second(10));
    let in_flight = budget.turn_costing("/", 4, None).await.unwrap().sent().unwrap();
    in_flight.cost_was(9);
    assert!(budget.check("/").is_ok(), "one is left");
    assert_eq!(budget.check("/").unwrap_err().retry_after, 100 * MS);
    tokio::time::advance(S).await;
    let in_flight = budget.turn_costing("/", 10, None).await.unwrap().sent().unwrap();
    in_flight.cost_was(7);
    let left = (0..10).filter(|_| budget.check("/").is_ok()).count();
    assert_eq!(left, 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_cost_is_set_right_once_and_the_last_word_counts() {
    for (told, left) in [
        (vec![10, 10, 10], 50),
        (vec![60, 60], 0),
        (vec![30, 10], 50),
        (vec![10, 30], 30),
        (vec![0, 60, 59, 0], 60),
    ] {
        let budget = RateBudget::new(Rate::per_minute(60));
        let in_flight = budget.turn_costing("/", 60, None).await.unwrap().sent().unwrap();
        for points in &told {
            in_flight.cost_was(*points);
        }
        assert_eq!((0..61).filter(|_| budget.check("/").is_ok()).count(), left, "{told:?}");
    }
}

#[test]
fn a_budget_is_shared_between_threads() {
    let budget = RateBudget::new(Rate::per_hour(500));
    let started: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let budget = budget.clone();
                scope.spawn(move || (0..400).filter(|_| budget.check("/").is_ok()).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // One comes back each 7.2 seconds.
    assert!((500..=510).contains(&started), "{started}");
}
