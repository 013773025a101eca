//! The throttle: what refusals make of the rate, and how it comes back.

use std::time::Duration;

use adjourn_http::{Rate, RateBudget, Throttle, WaitReason};
use http::HeaderMap;

use crate::calls::{MS, S, call, headers, refused, send};

/// The rate in calls a second.
fn per_second(budget: &RateBudget) -> f64 {
    let rate = budget.effective_rate().unwrap();
    f64::from(rate.requests()) / rate.period().as_secs_f64()
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.001
}

#[tokio::test(start_paused = true)]
async fn one_refusal_halves_the_rate_at_once_without_any_retry() {
    let budget = RateBudget::new(Rate::per_second(100));
    refused(&budget, &[]).await;
    assert!(near(per_second(&budget), 50.0));
    let wait = budget.check("/").unwrap_err();
    assert_eq!(
        (wait.reason, wait.retry_after),
        (WaitReason::Throttled, 20 * MS),
        "what was saved up is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_lowers_the_rate_as_a_refusal_does() {
    let budget = RateBudget::new(Rate::per_second(100));
    send(&budget, "/")
        .await
        .answered(200, &headers(&[("RateLimit", "\"d\";r=0;t=1")]));
    assert!(near(per_second(&budget), 50.0));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_calls_that_were_sent_before_the_rate_fell_are_one_refusal() {
    let budget = RateBudget::new(Rate::per_second(100));
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(send(&budget, "/").await);
    }
    tokio::time::advance(100 * MS).await;
    for call in &calls {
        call.answered(429, &HeaderMap::new());
    }
    assert!(near(per_second(&budget), 50.0));
    refused(&budget, &[]).await;
    assert!(near(per_second(&budget), 25.0), "one that was sent afterwards is news");
}

#[tokio::test(start_paused = true)]
async fn the_rate_stays_at_a_tenth_and_comes_back_in_bounded_time() {
    let budget = RateBudget::new(Rate::per_second(100));
    for _ in 0..100 {
        refused(&budget, &[]).await;
    }
    assert!(near(per_second(&budget), 10.0), "{}", per_second(&budget));
    let watch = crate::calls::Watch::start();
    while per_second(&budget) < 100.0 && watch.read() < 60 * S {
        call(&budget).await;
    }
    assert!(
        watch.read() <= 10 * S,
        "nine tenths at a tenth a second: {:?}",
        watch.read()
    );
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(100)));
    // And what can be saved up is what it was.
    tokio::time::advance(2 * S).await;
    assert_eq!((0..200).filter(|_| budget.check("/").is_ok()).count(), 100);
}

#[tokio::test(start_paused = true)]
async fn answers_of_500_and_more_bring_nothing_back() {
    let budget = RateBudget::new(Rate::per_second(100));
    refused(&budget, &[]).await;
    for _ in 0..20 {
        tokio::time::advance(S).await;
        send(&budget, "/").await.answered(500, &HeaderMap::new());
        send(&budget, "/").await.unanswered();
    }
    assert!(near(per_second(&budget), 50.0));
    tokio::time::advance(S).await;
    send(&budget, "/").await.answered(404, &HeaderMap::new());
    assert!(per_second(&budget) > 50.0, "a 404 is an answer");
}

#[tokio::test(start_paused = true)]
async fn without_the_throttle_a_refusal_changes_no_rate_and_its_moment_still_holds() {
    let budget = RateBudget::new(Rate::per_second(100)).throttle(None);
    let feedback = refused(&budget, &[("Retry-After", "5")]).await;
    assert!(feedback.refused);
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(100)));
    assert!(budget.pause_remaining().unwrap() >= 5 * S);
    let again = RateBudget::new(Rate::per_second(100))
        .throttle(None)
        .throttle(Some(Throttle::default()));
    refused(&again, &[]).await;
    assert!(near(per_second(&again), 50.0));
}

#[tokio::test(start_paused = true)]
async fn a_lane_s_refusal_lowers_the_lane_s_rate() {
    let shared = RateBudget::new(Rate::per_second(10));
    let budget =
        RateBudget::new(Rate::per_second(100)).rules([adjourn_http::RateRule::shared("/exports", shared.clone())]);
    send(&budget, "/exports").await.answered(429, &HeaderMap::new());
    assert!(near(per_second(&shared), 5.0));
    assert!(near(per_second(&budget), 100.0));
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_is_set_is_throttled_like_a_configured_one() {
    let budget = RateBudget::new(Rate::per_second(100));
    budget.set_rate(Rate::per_second(40));
    refused(&budget, &[]).await;
    assert!(near(per_second(&budget), 20.0));
    assert!(budget.check("/").unwrap_err().retry_after <= 50 * MS + Duration::from_micros(1));
}

/// A budget of ten a second that a refusal has brought down to five, with nothing saved up.
async fn halved() -> RateBudget {
    let budget = RateBudget::new(Rate::per_second(10));
    refused(&budget, &[]).await;
    assert!(near(per_second(&budget), 5.0));
    budget
}

async fn costing(budget: &RateBudget, points: u32) {
    drop(budget.turn_costing("/", points, None).await.unwrap().sent().unwrap());
}

#[tokio::test(start_paused = true)]
async fn points_are_paced_by_the_lowered_rate_however_many_a_call_costs() {
    for points in 1..=10_u32 {
        let budget = halved().await;
        let watch = crate::calls::Watch::start();
        for call in 1..=5 {
            costing(&budget, points).await;
            assert_eq!(watch.read(), call * points * 200 * MS, "call {call} of {points} points");
        }
        costing(&budget, 1).await;
        assert_eq!(watch.read(), (5 * points + 1) * 200 * MS, "nothing is owed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dear_call_starts_at_once_after_an_idle_time_that_earns_it() {
    let budget = halved().await;
    tokio::time::advance(2 * S - MS).await;
    let watch = crate::calls::Watch::start();
    let error = budget.turn_costing("/", 10, Some(MS)).await.unwrap_err();
    assert_eq!((error.reason, error.retry_after), (WaitReason::Throttled, MS));
    costing(&budget, 10).await;
    assert_eq!(watch.read(), MS);
    tokio::time::advance(10 * S).await;
    let turn = budget.turn_costing("/", 10, Some(MS)).await.unwrap();
    drop(turn);
    drop(budget.turn_costing("/", 10, Some(MS)).await.unwrap().sent().unwrap());
    let error = budget.check("/").unwrap_err();
    assert_eq!(error.retry_after, 200 * MS, "a turn that was given back spends nothing");
}

#[tokio::test(start_paused = true)]
async fn calls_of_all_costs_wait_in_order_and_know_how_long() {
    let budget = halved().await;
    let watch = crate::calls::Watch::start();
    let tasks: Vec<_> = [3_u32, 10, 1, 7]
        .into_iter()
        .map(|points| {
            let budget = budget.clone();
            tokio::spawn(async move {
                costing(&budget, points).await;
                watch.read()
            })
        })
        .collect();
    crate::calls::settle().await;
    let error = budget.turn_costing("/", 9, Some(6 * S)).await.unwrap_err();
    assert_eq!(error.retry_after, 6 * S, "thirty points from now");
    let mut moments = Vec::new();
    for task in tasks {
        moments.push(task.await.unwrap());
    }
    assert_eq!(moments, [600 * MS, 2600 * MS, 2800 * MS, 4200 * MS]);
}
