//! What spends the budget of a call's scope, and what gives it back: a scripted provider on the loopback, on a clock that moves when
//! nothing else can.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use adjourn_core::{RateLimitError, ScopeKey, Signal};
use adjourn_worker::Clock;
use async_trait::async_trait;
use http::{HeaderValue, StatusCode, header};
use secrecy::SecretString;

use super::{
    loopback::Act,
    waited_tests::{S, Scene, ample, done, hint},
    *,
};
use crate::{Allowance, InFlight, TokenError, budget::PauseBounds};

const ONE_AN_HOUR: &str = "rate = { requests = 1, per_ms = 3600000 }";

/// Tokens that come after these waits, and then at once; or else not.
#[derive(Debug)]
struct Slowly(Mutex<Vec<Result<Duration, RateLimitError>>>);

impl Slowly {
    fn after(waits: Vec<Result<Duration, RateLimitError>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(waits)))
    }
}

#[async_trait]
impl TokenSource for Slowly {
    async fn token(&self, _: Duration) -> Result<Token, TokenError> {
        let next = {
            let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if waits.is_empty() {
                Ok(Duration::ZERO)
            } else {
                waits.remove(0)
            }
        };
        tokio::time::sleep(next.map_err(TokenError::Refused)?).await;
        Ok(Token::new(SecretString::from("t"), None))
    }

    async fn renewed(&self, _: &Token, within: Duration) -> Result<Token, TokenError> {
        self.token(within).await
    }
}

impl Scene {
    fn with_tokens(mut self, source: Arc<Slowly>) -> Self {
        self.requester = self.requester.tokens("acme", source);
        self
    }

    fn budget(&self) -> crate::RateBudget {
        let budgets = self.requester.budgets.as_ref().unwrap();
        budgets.budget(&ScopeKey::provider("acme"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gets_no_token_spends_nothing() {
    let refusal = RateLimitError::from(Signal::new("acme", Timestamp::EPOCH).status(429));
    let scene = Scene::playing(vec![done()], ONE_AN_HOUR).await;
    let scene = scene.with_tokens(Slowly::after(vec![Err(refusal)]));
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert_eq!((refused.unwrap_err().status(), calls), (Some(429), 0));
    let (answer, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_token_comes_after_its_deadline_spends_nothing() {
    let scene = Scene::playing(vec![done()], ONE_AN_HOUR).await;
    let scene = scene.with_tokens(Slowly::after(vec![Ok(S(5))]));
    let deadline = scene.clock.now() + S(3);
    let (refused, calls, _) = scene.call(ample().until(deadline), "GET").await;
    assert!(refused.unwrap_err().reason().contains("deadline"));
    assert_eq!(calls, 0);
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_not_sent_spends_nothing() {
    let settings = format!("{ONE_AN_HOUR}\nidempotency_header = \"X-Key\"");
    let scene = Scene::playing(vec![done()], &settings).await;
    let text = r#"{"provider":"acme","method":"GET","path":"/a","headers":{"X-Key":"mine"}}"#;
    let job = HttpJob::parse(text).unwrap();
    let answer = Allowance::worker().scope(scene.requester.call(&job, "1")).await;
    assert!(matches!(answer.unwrap().outcome, Outcome::Rejected(_)));
    let past = scene.clock.now();
    let (refused, calls, _) = scene.call(ample().until(past), "GET").await;
    assert!(refused.is_err() && calls == 0);
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_begins_while_a_token_is_waited_for_holds_the_call() {
    let scene = Scene::playing(vec![hint(60), done()], "").await;
    let scene = Arc::new(scene.with_tokens(Slowly::after(vec![Ok(S(5))])));
    let slow = Arc::clone(&scene);
    let slow = tokio::spawn(async move { slow.call(Allowance::worker(), "GET").await.0 });
    tokio::time::sleep(S(1)).await;
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert_eq!((refused.unwrap_err().status(), calls), (Some(429), 1));
    let refused = slow.await.unwrap().unwrap_err();
    assert_eq!((refused.status(), scene.server.asked().len()), (Some(429), 1));
    assert!(refused.reason().contains("paused"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn no_place_in_flight_is_held_while_a_token_is_waited_for() {
    let scene = Scene::playing(vec![done()], "max_in_flight = 1").await;
    let scene = Arc::new(scene.with_tokens(Slowly::after(vec![Ok(S(20))])));
    let slow = Arc::clone(&scene);
    let slow = tokio::spawn(async move { slow.call(Allowance::worker(), "GET").await.0 });
    tokio::time::sleep(S(1)).await;
    assert_eq!(scene.budget().in_flight(), 0);
    let (answer, calls, took) = scene.call(Allowance::worker(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 1));
    assert!(took < S(1), "{took:?}");
    assert_eq!(slow.await.unwrap().unwrap().outcome, Outcome::Done);
    assert_eq!(scene.budget().in_flight(), 0);
}

fn moved(to: &str) -> Act {
    Act::status(307, &format!("location: {to}\r\n"), "")
}

#[tokio::test(start_paused = true)]
async fn each_hop_of_a_redirect_takes_a_turn_of_its_own() {
    let three = "rate = { requests = 3, per_ms = 3600000 }";
    let scene = Scene::playing(vec![moved("/a"), moved("/b"), done()], three).await;
    let (answer, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 3));
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert!(refused.is_err() && calls == 0);
}

#[tokio::test(start_paused = true)]
async fn a_hop_without_a_turn_in_time_is_the_caller_s_and_says_what_was_done_before_it() {
    for method in ["GET", "POST"] {
        let scene = Scene::playing(vec![moved("/a"), done()], ONE_AN_HOUR).await;
        let (refused, calls, took) = scene.call(ample(), method).await;
        let refused = refused.unwrap_err();
        assert_eq!(calls, 1);
        assert!(took < S(1), "{took:?}");
        assert!(
            refused
                .reason()
                .ends_with("the request before it was answered 307 Temporary Redirect"),
            "{refused}"
        );
        assert_eq!(refused.scope_key(), Some(&ScopeKey::provider("acme")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hop_waits_for_its_turn_as_long_as_the_caller_may_and_that_is_no_time_of_the_provider_s() {
    let settings = "rate = { requests = 1, per_ms = 60000 }\ntimeout_ms = 10000";
    let scene = Scene::playing(vec![moved("/a"), done()], settings).await;
    let (answer, calls, took) = scene.call(ample(), "POST").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 2));
    assert!(took >= S(60) && took < S(61), "{took:?}");
    let lines: Vec<_> = scene
        .server
        .asked()
        .iter()
        .map(|asked| asked.request_line().to_string())
        .collect();
    assert_eq!(lines, ["POST /orders HTTP/1.1", "POST /a HTTP/1.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_hop_is_paced_by_the_lane_of_its_own_path_below_the_base() {
    let lane = "rate = { requests = 9, per_ms = 1000 }\nlanes = [{ path = \"/slow\", rate = { requests = 1, per_ms = 3600000 } }]";
    let scene = Scene::playing(vec![moved("/slow/1"), done(), moved("/slow/2"), done()], lane).await;
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 2);
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert!(refused.is_err());
    assert_eq!(calls, 1, "the first request has the budget's own rate");
}

#[tokio::test(start_paused = true)]
async fn one_place_in_flight_is_enough_for_a_redirect_and_what_it_says_is_heard() {
    let spent = "location: /a\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 40\r\n";
    let scene = Scene::playing(vec![Act::status(307, spent, ""), done()], "max_in_flight = 1").await;
    let (refused, calls, _) = scene.call(Allowance::front_end(), "GET").await;
    assert_eq!((refused.unwrap_err().status(), calls), (Some(307), 1));
    let scene = Scene::playing(vec![moved("/a"), done()], "max_in_flight = 1").await;
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 2);
    assert_eq!(scene.budget().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_fresh_token_takes_a_turn_of_its_own() {
    let unauthorized = || Act::status(401, "", "");
    let two = "rate = { requests = 2, per_ms = 3600000 }";
    let scene = Scene::playing(vec![unauthorized(), done()], two)
        .await
        .with_tokens(Slowly::after(Vec::new()));
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 2);
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert!(refused.is_err() && calls == 0);

    let scene = Scene::playing(vec![unauthorized(), done()], ONE_AN_HOUR).await;
    let scene = scene.with_tokens(Slowly::after(Vec::new()));
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!(calls, 1);
    assert!(refused.reason().ends_with("answered 401 Unauthorized"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_was_cut_to_what_one_call_can_wait_is_not_prolonged_by_one_that_it_covers() {
    for _ in 0..20 {
        let budget = crate::RateBudget::unknown();
        let first = budget.turn("/", None).await.unwrap().sent().unwrap();
        let second = budget.turn("/", None).await.unwrap().sent().unwrap();
        let asks = |in_flight: &InFlight, seconds: &'static str, room| {
            let headers = http::HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(seconds))]);
            let response = Response {
                status: StatusCode::TOO_MANY_REQUESTS,
                headers: &headers,
                body: b"",
                received_at: Timestamp::EPOCH,
            };
            let reading = crate::read::read("acme", None, None, &response);
            let bounds = || PauseBounds {
                least: Duration::ZERO,
                room,
            };
            let feedback = in_flight.heard_within(429, &reading, Timestamp::EPOCH, bounds);
            feedback.retry_after.unwrap()
        };
        let cut = asks(&first, "100", S(100));
        assert!(cut >= S(100) && cut < S(100) + Duration::from_millis(1), "{cut:?}");
        assert_eq!(asks(&second, "100", S(300)), cut);
        let longer = asks(&second, "200", S(300));
        assert!(longer >= S(200) && longer <= S(221), "{longer:?}");
        assert_eq!(asks(&first, "100", S(100)), longer, "a pause is not shortened");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_in_points_is_spent_by_what_the_contract_says_and_set_right_by_the_response() {
    let cost = |told: &str| {
        format!(
            "rate = {{ {told} = 10, per_ms = 3600000 }}\n[[providers.acme.contract.costs]]\npoints = 5\nheader = \"X-Cost\"\nfield = \"/cost\""
        )
    };
    for (settings, headers, body, expected) in [
        (cost("points"), "x-cost: 5\r\n", "", 2),
        (cost("points"), "", "", 2),
        // Of ten points two are spent by each, and five must be left for another one.
        (cost("points"), "x-cost: 2\r\n", "", 3),
        (cost("points"), "", r#"{"cost":2}"#, 3),
        (cost("points"), "x-cost: 10\r\n", "", 1),
        (cost("requests"), "x-cost: 10\r\n", "", 10),
    ] {
        let scene = Scene::playing(vec![Act::status(200, headers, body)], &settings).await;
        for _ in 0..expected {
            let (answer, calls, _) = scene.call(Allowance::worker(), "GET").await;
            assert_eq!((answer.map(|answer| answer.outcome), calls), (Ok(Outcome::Done), 1));
        }
        let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
        assert!(refused.is_err() && calls == 0, "{settings} {headers} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_much_waits_for_its_points_and_a_hop_costs_by_its_own_path() {
    let settings = "rate = { points = 60, per_ms = 60000 }\n[[providers.acme.contract.operations]]\nname = \"search\"\npath = \"/search\"\n[[providers.acme.contract.costs]]\noperation = \"search\"\npoints = 50";
    let scene = Scene::playing(vec![moved("/search"), done(), moved("/search"), done()], settings).await;
    let (answer, calls, took) = scene.call(ample(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 2));
    assert!(took < S(1), "{took:?}");
    let (answer, calls, took) = scene.call(ample(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 2));
    assert!(
        took >= S(42) && took < S(43),
        "52 of 60 were spent, 50 are needed: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_least_wait_after_a_refusal_holds_for_everybody_that_its_pause_holds() {
    for settings in [
        "[deferral]\nmin_retry_after_ms = 20000",
        "[providers.acme.contract]\nmin_retry_after_ms = 20000",
    ] {
        for seconds in [0, 2] {
            let scene = Scene::playing(vec![hint(seconds), done()], settings).await;
            assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
            tokio::time::advance(S(18)).await;
            let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
            assert_eq!(
                (refused.unwrap_err().status(), calls),
                (Some(429), 0),
                "{settings}, {seconds} s"
            );
            tokio::time::advance(S(4)).await;
            assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
        }
        // It is no floor for what is no refusal.
        let spent = Act::status(200, "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 2\r\n", "");
        let scene = Scene::playing(vec![spent, done()], settings).await;
        assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
        assert_eq!(scene.call(Allowance::front_end(), "GET").await.1, 1);
    }
}
