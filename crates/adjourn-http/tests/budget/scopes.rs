//! One budget for each scope of each provider.

use std::time::Duration;

use adjourn_core::ScopeKey;
use adjourn_http::{Budgets, Rate, RateBudget, Settings};
use http::HeaderMap;

use crate::calls::{S, headers, send};

const SETTINGS: &str = r#"
    [providers.acme]
    base_url = "https://api.acme.example"
    rate = { requests = 5, per_ms = 1000 }
    max_in_flight = 2
    [providers.plain]
    base_url = "https://plain.example"
    contract = { max_concurrency = 3 }
"#;

fn budgets() -> Budgets {
    Budgets::of(&Settings::parse(SETTINGS).unwrap_or_else(|error| panic!("{error}")))
}

fn tenant(id: &str) -> ScopeKey {
    ScopeKey::scoped("acme", "entity", id)
}

fn starts(budgets: &Budgets, scope: &ScopeKey) -> usize {
    (0..100).take_while(|_| budgets.check(scope, "/").is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn each_scope_has_the_rate_of_its_provider_for_itself() {
    let budgets = budgets();
    for scope in [
        tenant("1"),
        tenant("2"),
        ScopeKey::provider("acme"),
        ScopeKey::app("acme"),
    ] {
        assert_eq!(starts(&budgets, &scope), 5, "{scope:?}");
        assert_eq!(starts(&budgets.clone(), &scope), 0, "clones share them");
    }
    assert_eq!(budgets.scopes(), 4);
    assert_eq!(
        starts(&budgets, &ScopeKey::provider("stranger")),
        100,
        "nobody limits it"
    );
    assert_eq!(budgets.budget(&tenant("3")).effective_rate(), Some(Rate::per_second(5)));
}

#[tokio::test(start_paused = true)]
async fn places_in_flight_are_the_settings_or_else_the_contract_s() {
    let budgets = budgets();
    for (scope, most) in [(tenant("1"), 2), (ScopeKey::provider("plain"), 3)] {
        let budget = budgets.budget(&scope);
        let mut held = Vec::new();
        for _ in 0..most {
            held.push(send(&budget, "/").await);
        }
        assert!(
            budgets
                .budget(&scope)
                .turn("/", Some(Duration::from_nanos(1)))
                .await
                .is_err()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn idle_scopes_are_forgotten_and_those_that_know_something_are_not() {
    let budgets = budgets();
    assert!(budgets.check(&tenant("idle"), "/").is_ok());
    let in_flight = send(&budgets.budget(&tenant("in flight")), "/").await;
    let paused = budgets.budget(&tenant("paused"));
    send(&paused, "/")
        .await
        .answered(503, &headers(&[("Retry-After", "60")]));
    let throttled = budgets.budget(&tenant("throttled"));
    send(&throttled, "/").await.answered(429, &HeaderMap::new());
    let held = budgets.budget(&tenant("held"));
    drop((paused, throttled));
    assert_eq!(budgets.scopes(), 5);
    budgets.forget_idle();
    assert_eq!(
        budgets.scopes(),
        5,
        "even the idle one: its start is not saved up again yet"
    );
    tokio::time::advance(2 * S).await;
    budgets.forget_idle();
    assert_eq!(budgets.scopes(), 4);
    assert_eq!(starts(&budgets, &tenant("paused")), 0, "what it knows still holds");
    drop((in_flight, held));
    tokio::time::advance(100 * S).await;
    budgets.forget_idle();
    assert_eq!(
        budgets.scopes(),
        1,
        "a lowered rate is known until answers have brought it back"
    );
}

#[tokio::test(start_paused = true)]
async fn scopes_that_come_and_go_do_not_pile_up() {
    let budgets = budgets();
    let mut most = 0;
    for number in 0..50_000 {
        assert!(budgets.check(&tenant(&number.to_string()), "/").is_ok());
        if number % 500 == 0 {
            tokio::time::advance(S).await;
            most = most.max(budgets.scopes());
        }
    }
    assert!(
        most < 12_000,
        "{most} of 50,000 scopes were remembered, of which 500 were in use"
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_like_another_for_whatever_scope() {
    let one = RateBudget::new(Rate::per_hour(2));
    let budgets = Budgets::like(&one);
    assert_eq!(starts(&budgets, &tenant("1")), 2);
    assert_eq!(starts(&budgets, &ScopeKey::provider("other")), 2);
    assert!(one.check("/").is_ok());
}

#[test]
fn threads_that_ask_for_a_new_scope_at_once_get_the_same_budget() {
    let budgets = Budgets::like(&RateBudget::new(Rate::per_hour(1)));
    for round in 0..200 {
        let scope = tenant(&round.to_string());
        let started: usize = std::thread::scope(|threads| {
            let asked: Vec<_> = (0..3)
                .map(|_| threads.spawn(|| usize::from(budgets.check(&scope, "/").is_ok())))
                .collect();
            asked.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(started, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_is_limited_by_a_rate_of_its_own_and_not_by_the_api_s() {
    let settings = |rate: &str| {
        let text = format!(
            r#"
            [providers.acme]
            base_url = "https://api.acme.example"
            rate = {{ requests = 1, per_ms = 3600000 }}
            lanes = [{{ path = "/token", rate = {{ requests = 1, per_ms = 3600000 }} }}]
            max_in_flight = 1
            credential = {{ oauth2 = {{ token_url = "https://login.acme.example/token", client_id = "us", client_secret = {{ env = "S" }}{rate} }} }}
            "#
        );
        Budgets::of(&Settings::parse(&text).unwrap_or_else(|error| panic!("{error}")))
    };
    let token = ScopeKey::from("acme:token".to_string());
    let free = settings("");
    assert_eq!(starts(&free, &tenant("1")), 1);
    assert_eq!((0..50).filter(|_| free.check(&token, "/token").is_ok()).count(), 50);
    let budget = free.budget(&token);
    let held = (send(&budget, "/token").await, send(&budget, "/token").await);
    assert_eq!((budget.in_flight(), budget.effective_rate()), (2, None));
    // What it answers holds its calls, and none of the API's.
    held.0.answered(429, &headers(&[("Retry-After", "60")]));
    assert!(
        free.check(&token, "/token")
            .is_err_and(|error| error.status == Some(429))
    );
    assert!(free.check(&tenant("2"), "/").is_ok());

    let limited = settings(", rate = { requests = 3, per_ms = 60000 }");
    assert_eq!(starts(&limited, &token), 3);
    assert_eq!(starts(&limited, &tenant("1")), 1);
}
