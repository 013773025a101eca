//! Lanes: paths with rates of their own.

use std::time::Duration;

use adjourn_http::{Rate, RateBudget, RateRule, Settings};

use crate::calls::{MS, S, Watch, headers, send, try_send};

/// How many calls of a path start now.
fn starts(budget: &RateBudget, path: &str) -> usize {
    (0..1000).take_while(|_| budget.check(path).is_ok()).count()
}

#[test]
fn a_fragment_matches_whole_segments_wherever_they_stand() {
    for (fragment, path, matches) in [
        ("/exports", "/v2/exports/orders.csv", true),
        ("/exports", "/v2/exports-archive", false),
        ("/exports", "/exports", true),
        ("/exports", "/exports/", true),
        ("/exports", "exports", true),
        ("exports/", "/v2/exports", true),
        ("/exports", "/v2/myexports", false),
        ("/exports", "/v2//exports", true),
        ("/exports", "/v2/orders?from=/exports", false),
        ("/exports", "/v2/exports?from=1", true),
        ("/exports", "/v2/orders#/exports", false),
        ("/exports", "/v2/Exports", false),
        ("/bulk/exports", "/v2/bulk/exports/7", true),
        ("/bulk/exports", "/v2/bulk/v1/exports", false),
        ("/bulk/exports", "/bulk/bulk/exports", true),
        ("/a/b", "/a/bc/a/b", true),
        ("/", "/anything", true),
        ("", "", true),
        ("/exports", "", false),
        ("/exports", "/", false),
    ] {
        let rule = RateRule::new(fragment, Rate::per_second(1));
        assert_eq!(rule.matches(path), matches, "{fragment} and {path}");
    }
}

#[test]
fn a_lane_has_its_rate_instead_of_the_budget_s_and_the_first_match_wins() {
    let budget = RateBudget::new(Rate::per_hour(10)).rules([
        RateRule::new("/exports/daily", Rate::per_hour(2)),
        RateRule::new("/exports", Rate::per_hour(3)),
        RateRule::new("/exports/weekly", Rate::per_hour(50)),
    ]);
    assert_eq!(starts(&budget, "/v2/exports/daily"), 2);
    assert_eq!(starts(&budget, "/v2/exports/weekly"), 3, "the rule before it has it");
    assert_eq!(starts(&budget, "/v2/orders"), 10, "and nothing of that is the budget's");
}

#[test]
fn clones_share_their_lanes() {
    let budget = RateBudget::new(Rate::per_hour(10)).rules([RateRule::new("/exports", Rate::per_hour(3))]);
    assert_eq!(starts(&budget.clone(), "/exports"), 3);
    assert_eq!(starts(&budget, "/exports"), 0);
}

#[test]
fn a_lane_may_be_out_of_a_budget_that_others_share() {
    let exports = RateBudget::new(Rate::per_hour(4));
    let one = RateBudget::new(Rate::per_hour(10)).rules([RateRule::shared("/exports", exports.clone())]);
    let other = RateBudget::new(Rate::per_hour(10)).rules([RateRule::shared("/dumps", exports.clone())]);
    assert!(one.check("/exports").is_ok());
    assert!(other.check("/dumps").is_ok());
    assert!(exports.check("/").is_ok());
    assert_eq!(starts(&one, "/exports"), 1);
    assert_eq!((starts(&one, "/orders"), starts(&other, "/orders")), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_slow_lane_holds_no_other_call_up() {
    let budget = RateBudget::new(Rate::per_second(100)).rules([RateRule::new("/exports", Rate::new(1, 60 * S))]);
    drop(send(&budget, "/exports").await);
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { drop(send(&budget, "/exports").await) }
    });
    let watch = Watch::start();
    for _ in 0..100 {
        drop(send(&budget, "/orders").await);
    }
    assert_eq!(watch.read(), Duration::ZERO);
    waiting.await.unwrap();
    assert_eq!(watch.read(), 60 * S);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_the_whole_budget_and_places_in_flight_are_the_whole_s() {
    let shared = RateBudget::new(Rate::per_second(10));
    let budget = RateBudget::new(Rate::per_second(10)).max_in_flight(1).rules([
        RateRule::new("/exports", Rate::per_second(10)),
        RateRule::shared("/dumps", shared.clone()),
    ]);
    let export = send(&budget, "/exports").await;
    assert_eq!(budget.in_flight(), 1);
    assert!(
        try_send(&budget, "/orders", Some(MS)).await.is_err(),
        "the one place is taken"
    );
    export.answered(429, &headers(&[("Retry-After", "20")]));
    drop(export);
    for path in ["/orders", "/exports", "/dumps"] {
        let error = budget.check(path).unwrap_err();
        assert_eq!(error.status, Some(429), "{path}");
    }
    assert!(
        shared.check("/").is_ok(),
        "the shared budget's limit was not the one that was met"
    );

    tokio::time::advance(30 * S).await;
    send(&budget, "/dumps")
        .await
        .answered(429, &headers(&[("Retry-After", "20")]));
    assert_eq!(shared.check("/").unwrap_err().status, Some(429), "now it was");
}

#[tokio::test(start_paused = true)]
async fn the_settings_name_lanes() {
    let settings = Settings::parse(
        r#"
        [providers.acme]
        base_url = "https://api.acme.example"
        rate = { requests = 5, per_ms = 3600000 }
        lanes = [
            { path = "/exports", rate = { requests = 2, per_ms = 3600000 } },
            { path = "/bulk/imports", rate = { requests = 1, per_ms = 3600000 } },
        ]
        "#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let acme = settings.provider("acme").unwrap();
    assert_eq!(acme.rate(), Some(Rate::per_hour(5)));
    let budgets = adjourn_http::Budgets::of(&settings);
    for tenant in ["1", "2"] {
        let budget = budgets.budget(&adjourn_core::ScopeKey::scoped("acme", "entity", tenant));
        assert_eq!(
            starts(&budget, "/v2/exports/orders.csv"),
            2,
            "each scope has lanes of its own"
        );
        assert_eq!(starts(&budget, "/bulk/imports"), 1);
        assert_eq!(starts(&budget, "/orders"), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_fails_at_once_who_waits_in_another_lane_and_has_less_time() {
    let shared = RateBudget::new(Rate::new(1, 10 * S));
    let budget = RateBudget::new(Rate::per_second(10)).rules([
        RateRule::new("/exports", Rate::new(1, 10 * S)),
        RateRule::shared("/dumps", shared.clone()),
    ]);
    let watch = Watch::start();
    let mut waiting = Vec::new();
    for path in ["/exports", "/dumps"] {
        drop(send(&budget, path).await);
        let budget = budget.clone();
        waiting.push(tokio::spawn(async move {
            let sent = try_send(&budget, path, Some(30 * S)).await;
            (sent.map(drop), watch.read())
        }));
        crate::calls::settle().await;
    }
    send(&budget, "/orders")
        .await
        .answered(503, &headers(&[("Retry-After", "60")]));
    for task in waiting {
        let (sent, at) = task.await.unwrap();
        assert_eq!((sent.unwrap_err().status, at), (Some(503), Duration::ZERO));
    }
    assert!(
        shared.check("/").is_err_and(|error| error.status.is_none()),
        "its own rate is spent, and it is not paused"
    );
}

#[tokio::test(start_paused = true)]
async fn lanes_of_the_settings_are_of_the_whole_path_whoever_names_it() {
    let lanes = |base: &str, fragment: &str, path: &str| {
        let text = format!(
            r#"
            [providers.acme]
            base_url = "https://api.acme.example{base}"
            rate = {{ requests = 50, per_ms = 3600000 }}
            lanes = [{{ path = "{fragment}", rate = {{ requests = 2, per_ms = 3600000 }} }}]
            "#
        );
        let settings = Settings::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let budgets = adjourn_http::Budgets::of(&settings);
        starts(&budgets.budget(&adjourn_core::ScopeKey::provider("acme")), path) == 2
    };
    for base in ["/v2", "/v2/", "/rest/v2"] {
        for (fragment, path, matches) in [
            ("/v2/exports", "/exports", true),
            ("/v2/exports", "/exports/orders.csv", true),
            ("/v2/exports", "/exports?from=1", true),
            ("/v2/exports", "/exports-archive", false),
            ("/v2/exports", "/orders/exports", false),
            ("/v2/exports", "/orders?to=/exports", false),
            ("/v2/exports/daily", "/exports/daily/7", true),
            ("/v2/exports/daily", "/exports", false),
            ("/2/exports", "/exports", false),
            ("/exports", "/exports", true),
            ("/exports", "/orders/exports/7", true),
            ("/v2", "/orders", true),
            ("/v", "/orders", false),
            // As who sees the request itself names it.
            ("/v2/exports", "/v2/exports/orders.csv", true),
            ("/exports", "/v2/exports", true),
        ] {
            assert_eq!(lanes(base, fragment, path), matches, "{fragment}, {base} and {path}");
        }
    }
    assert!(lanes("/rest/v2", "/rest/v2/exports", "/exports"));
    assert!(!lanes("/rest/v2", "/rest/exports", "/exports"));
    assert!(!lanes("", "/v2/exports", "/exports"));
}
