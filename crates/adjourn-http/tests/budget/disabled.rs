//! The scope in which no budget holds.

use std::time::Duration;

use adjourn_http::{Rate, RateBudget, RateRule, policy_disabled};

use crate::calls::{S, Watch, headers, refused, send};

#[tokio::test(start_paused = true)]
async fn where_policy_is_disabled_no_budget_paces_throttles_caps_or_pauses_and_nothing_is_spent_or_learnt() {
    let shared = RateBudget::new(Rate::per_hour(1)).max_in_flight(1);
    let budget = RateBudget::new(Rate::per_hour(3))
        .max_in_flight(1)
        .rules([RateRule::shared("/exports", shared.clone())]);
    let _held = send(&budget, "/").await;
    let watch = Watch::start();
    policy_disabled(async {
        let mut calls = Vec::new();
        for path in ["/", "/exports"].repeat(20) {
            assert!(budget.check(path).is_ok());
            let in_flight = budget.turn(path, Some(Duration::ZERO)).await.unwrap().sent().unwrap();
            let feedback = in_flight.answered(429, &headers(&[("Retry-After", "60")]));
            assert_eq!(feedback, adjourn_http::Feedback::default());
            calls.push(in_flight);
        }
        budget.pushback(60 * S, None).await.unwrap();
    })
    .await;
    assert_eq!(watch.read(), Duration::ZERO);
    assert_eq!((budget.in_flight(), budget.pause_remaining()), (1, None));
    assert_eq!(budget.effective_rate(), Some(Rate::per_hour(3)));
    assert_eq!((0..9).filter(|_| budget.check("/").is_ok()).count(), 2);
    assert_eq!((0..9).filter(|_| shared.check("/").is_ok()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_paused_budget_lets_a_call_out_that_must_go() {
    let budget = RateBudget::new(Rate::per_second(1));
    refused(&budget, &[("Retry-After", "3600")]).await;
    assert!(budget.turn("/", Some(S)).await.is_err());
    policy_disabled(async { budget.turn("/", Some(S)).await.unwrap().sent().map(drop) })
        .await
        .unwrap();
    assert!(
        budget.turn("/", Some(S)).await.is_err(),
        "and for the others it holds on"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_spawned_out_of_the_scope_is_under_policy_again() {
    let budget = RateBudget::new(Rate::per_hour(1));
    assert!(budget.check("/").is_ok());
    let inside = budget.clone();
    let (here, spawned) = policy_disabled(async {
        let elsewhere = inside.clone();
        let spawned = tokio::spawn(async move { elsewhere.check("/").is_ok() });
        (inside.check("/").is_ok(), spawned.await.unwrap())
    })
    .await;
    assert_eq!((here, spawned), (true, false));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_began_since_the_turn_stops_no_call_that_must_go() {
    let budget = RateBudget::new(Rate::per_hour(3)).max_in_flight(3);
    let (within, without) = (
        budget.turn("/", None).await.unwrap(),
        budget.turn("/", None).await.unwrap(),
    );
    refused(&budget, &[("Retry-After", "3600")]).await;
    assert_eq!(without.sent().unwrap_err().status, Some(429));
    let in_flight = policy_disabled(async { within.sent() }).await.unwrap();
    assert_eq!(budget.in_flight(), 1, "its turn was taken under policy and counts");
    drop(in_flight);
    assert_eq!(budget.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_beside_the_scope_in_one_task_stay_under_policy() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)), Watch::start());
    assert!(budget.check("/").is_ok());
    let inside = policy_disabled(async {
        for _ in 0..5 {
            drop(send(&budget, "/").await);
            tokio::task::yield_now().await;
        }
        watch.read()
    });
    let beside = async {
        drop(send(&budget, "/").await);
        watch.read()
    };
    assert_eq!(tokio::join!(inside, beside), (Duration::ZERO, S));
}
