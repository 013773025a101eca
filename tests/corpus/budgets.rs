//! Limiters and their mathematics, herds, throttles: rate budgets.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_http::{Budgets, ContractReader, InFlight, Rate, RateBudget, ReadResponse, Response, Settings, WaitReason};
use adjourn_worker::{Clock, VirtualClock};
use http::{HeaderMap, HeaderValue, StatusCode};

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn retry_after(seconds: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static(seconds));
    headers
}

fn clock() -> VirtualClock {
    VirtualClock::starting_at(Timestamp::EPOCH)
}

fn since_start(clock: &VirtualClock) -> Duration {
    clock.now().since(Timestamp::EPOCH)
}

async fn send(budget: &RateBudget) -> InFlight {
    budget.turn("/", None).await.unwrap().sent().unwrap()
}

/// Calls a second.
fn per_second(budget: &RateBudget) -> f64 {
    let rate = budget.effective_rate().unwrap();
    f64::from(rate.requests()) / rate.period().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn bug_036_twenty_refused_calls_come_back_after_the_named_moment_and_not_together() {
    let (budget, clock) = (RateBudget::new(Rate::per_second(50)), clock());
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(send(&budget).await);
    }
    let again = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for call in calls {
        let (budget, again) = (budget.clone(), again.clone());
        tasks.push(tokio::spawn(async move {
            let wait = call.answered(429, &retry_after("30")).retry_after.unwrap();
            drop(call);
            budget.pushback(wait, None).await.unwrap();
            let _call = send(&budget).await;
            again.lock().unwrap().push(since_start(&clock));
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let again = again.lock().unwrap().clone();
    assert!(again.iter().all(|at| *at >= 30 * S), "never early: {again:?}");
    let different: BTreeSet<Duration> = again.iter().copied().collect();
    assert_eq!(different.len(), 20, "one by one: {again:?}");
    let band = *different.last().unwrap() - *different.first().unwrap();
    assert!(band > 200 * MS, "all of them within {band:?}");
}

#[tokio::test(start_paused = true)]
async fn bug_037_a_second_refusal_is_handled_like_the_first_by_whoever_met_it() {
    let settings = Settings::parse("[providers.acme]\nbase_url = \"https://acme.example\"")
        .unwrap_or_else(|error| panic!("{error}"));
    let (budgets, clock) = (Budgets::of(&settings), clock());
    let scope = ScopeKey::scoped("acme", "entity", "7");
    // Two workers of one process; each asks for the scope's budget by itself.
    let worker = |refusals: u32| {
        let (budgets, scope) = (budgets.clone(), scope.clone());
        async move {
            let mut moments = Vec::new();
            for _ in 0..refusals {
                let call = send(&budgets.budget(&scope)).await;
                moments.push(since_start(&clock));
                call.answered(429, &retry_after("90"));
            }
            moments.push({
                let _call = send(&budgets.budget(&scope)).await;
                since_start(&clock)
            });
            moments
        }
    };
    let (one, other) = tokio::join!(worker(2), worker(0));
    assert!(one[1] >= 90 * S && one[1] <= 99 * S + MS, "{one:?}");
    let second = one[2] - one[1];
    assert!(
        second >= 90 * S && second <= 99 * S + MS,
        "the second is like the first: {one:?}"
    );
    assert!(other[0] >= 90 * S, "and the other worker keeps it, too: {other:?}");
}

/// How a budget hears of a refusal.
type Way = fn(&InFlight, &ContractReader);

#[tokio::test(start_paused = true)]
async fn bug_038_every_way_in_has_the_same_jitter() {
    let reader = ContractReader::default();
    let settings = Settings::parse("[providers.acme]\nbase_url = \"https://acme.example\"")
        .unwrap_or_else(|error| panic!("{error}"));
    let ways: [(&str, Way); 2] = [
        ("headers alone", |call, _| {
            call.answered(429, &retry_after("60"));
        }),
        ("a response that was read already", |call, reader| {
            let headers = retry_after("60");
            let response = Response {
                status: StatusCode::TOO_MANY_REQUESTS,
                headers: &headers,
                body: b"",
                received_at: Timestamp::EPOCH,
            };
            let reading = reader.read("acme", &response);
            call.heard(429, &reading, Timestamp::EPOCH);
        }),
    ];
    for (way, answer) in ways {
        for of_scope in [false, true] {
            let mut pauses = Vec::new();
            for _ in 0..64 {
                let budget = if of_scope {
                    Budgets::of(&settings).budget(&ScopeKey::provider("acme"))
                } else {
                    RateBudget::new(Rate::per_second(5))
                };
                let call = send(&budget).await;
                answer(&call, &reader);
                let waiting = budget.check("/").unwrap_err().retry_after;
                assert_eq!(
                    budget.pause_remaining(),
                    Some(waiting),
                    "who asks and who waits see one moment"
                );
                pauses.push(waiting);
            }
            pauses.sort_unstable();
            let (first, last) = (pauses[0], pauses[63]);
            assert!(first >= 60 * S && last <= 66 * S + MS, "{way}: {first:?} to {last:?}");
            // Of 64 draws over six seconds the quarters at both ends are met, but for one time in a hundred million.
            assert!(
                first < 60 * S + 1500 * MS && last > 66 * S - 1500 * MS,
                "{way}: {first:?} to {last:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bug_119_what_costs_more_than_the_burst_is_a_permanent_error_at_once() {
    let budget = RateBudget::new(Rate::per_second(300));
    let error = budget.turn_costing("/", 301, None).await.unwrap_err();
    assert_eq!((error.reason, error.is_retryable()), (WaitReason::TooDear, false));
    assert_eq!(budget.waiting(), 0, "it does not wait for ever");
    let call = budget.turn_costing("/", 300, None).await.unwrap().sent().unwrap();
    assert_eq!(budget.in_flight(), 1);
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn bug_120_after_a_burst_of_ten_the_next_waits_one_interval_and_not_ten() {
    let (budget, clock) = (RateBudget::new(Rate::per_second(10)), clock());
    for _ in 0..10 {
        drop(send(&budget).await);
    }
    assert_eq!(since_start(&clock), Duration::ZERO);
    assert_eq!(budget.check("/").unwrap_err().retry_after, 100 * MS);
    drop(send(&budget).await);
    assert_eq!(since_start(&clock), 100 * MS);
}

#[tokio::test(start_paused = true)]
async fn bug_121_all_five_of_a_day_are_usable() {
    let (budget, clock) = (RateBudget::new(Rate::new(5, Duration::from_secs(86_400))), clock());
    for _ in 0..5 {
        drop(send(&budget).await);
    }
    assert_eq!(since_start(&clock), Duration::ZERO);
    assert_eq!(
        budget.check("/").unwrap_err().retry_after,
        Duration::from_secs(86_400 / 5)
    );
}

#[tokio::test(start_paused = true)]
async fn bug_123_concurrency_is_held_and_released_and_no_rate() {
    // No rate is known; two may be in flight.
    let (budget, clock) = (RateBudget::unknown().max_in_flight(2), clock());
    for _ in 0..100 {
        let (_one, _two) = (send(&budget).await, send(&budget).await);
        assert_eq!(budget.in_flight(), 2);
        let third = budget.turn("/", Some(MS)).await.unwrap_err();
        assert_eq!(third.reason, WaitReason::InFlight);
    }
    assert_eq!(since_start(&clock), 100 * MS, "only who finds no place waits");
    assert_eq!(budget.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn bug_125_after_a_bad_spell_rate_and_burst_come_back_in_bounded_time() {
    let (budget, start) = (RateBudget::new(Rate::per_second(50)), clock());
    for _ in 0..100 {
        send(&budget).await.answered(429, &HeaderMap::new());
    }
    assert!((per_second(&budget) - 5.0).abs() < 0.01, "{}", per_second(&budget));
    let (bad, mut back) = (since_start(&start), None);
    for _ in 0..10_000 {
        send(&budget).await.answered(200, &HeaderMap::new());
        if budget.effective_rate() == Some(Rate::per_second(50)) {
            back.get_or_insert(since_start(&start) - bad);
        }
    }
    assert!(back.is_some_and(|back| back <= 10 * S), "{back:?}");
    tokio::time::advance(2 * S).await;
    assert_eq!(
        (0..100).filter(|_| budget.check("/").is_ok()).count(),
        50,
        "and so does the burst"
    );
}

#[tokio::test(start_paused = true)]
async fn bug_126_one_refusal_lowers_the_rate_at_once_and_the_retry_waits_at_the_new_one() {
    let (budget, clock) = (RateBudget::new(Rate::per_second(10)), clock());
    send(&budget).await.answered(429, &HeaderMap::new());
    assert!((per_second(&budget) - 5.0).abs() < 0.001);
    drop(send(&budget).await);
    assert_eq!(
        since_start(&clock),
        200 * MS,
        "the interval of five a second, and nothing saved up"
    );
}

#[tokio::test(start_paused = true)]
async fn bug_127_the_budget_learns_from_every_response_also_where_nothing_is_retried() {
    let budget = RateBudget::new(Rate::per_second(10));
    for expected in [5.0, 2.5, 1.25, 1.0, 1.0] {
        // One attempt, and whatever it was answered is the end of it.
        let call = budget.turn("/", None).await.unwrap().sent().unwrap();
        call.answered(429, &HeaderMap::new());
        drop(call);
        assert!(
            (per_second(&budget) - expected).abs() < 0.001,
            "{} for {expected}",
            per_second(&budget)
        );
    }
}
