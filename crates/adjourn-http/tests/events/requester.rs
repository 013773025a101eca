//! A refusal is told once, and a wait for a moment that the provider named only at TRACE.

use std::sync::Arc;

use adjourn_core::{RateLimitError, Timestamp};
use adjourn_http::{Allowance, Answer, ContractReader, Credentials, HttpJob, Requester, Settings};
use adjourn_worker::{Clock, VirtualClock};

use crate::{
    logged::Logged,
    loopback::{Act, Loopback},
};

fn hint(seconds: u64) -> Act {
    Act::status(429, &format!("retry-after: {seconds}\r\n"), "")
}

/// A requester of a provider that plays the acts.
async fn playing(acts: Vec<Act>) -> Requester {
    let server = Loopback::playing(acts).await;
    let settings = Settings::parse(&format!("[providers.acme]\nbase_url = \"{}\"", server.url)).unwrap();
    let clock = VirtualClock::starting_at(Timestamp::parse("2026-07-10T20:13:47Z").unwrap());
    let reader = Arc::new(ContractReader::of(&settings));
    Requester::new(settings, Credentials::default(), reader, Arc::new(move || clock.now())).unwrap()
}

async fn call(requester: &Requester) -> Result<Answer, RateLimitError> {
    let job = HttpJob::parse(r#"{"provider":"acme","method":"GET","path":"/orders"}"#).unwrap();
    Allowance::front_end().scope(requester.call(&job, "order-7")).await
}

fn levels(logged: &Logged) -> Vec<String> {
    let events = logged.take();
    let levels = events.iter().map(|event| event["level"].as_str().unwrap().to_string());
    levels.collect()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once_by_its_budget_and_a_wait_for_a_named_moment_only_at_trace() {
    let logged = Logged::listen();
    let requester = playing(vec![hint(1), hint(1), hint(60)]).await;
    logged.take();
    let refused = call(&requester).await.unwrap_err();
    assert_eq!(refused.wait().unwrap().as_secs(), 60);
    assert_eq!(
        levels(&logged),
        ["INFO", "TRACE", "INFO", "TRACE", "INFO"],
        "three refusals, two waits"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_whoever_gets_the_refusal_tells_it() {
    let logged = Logged::listen();
    let requester = playing(vec![hint(1), hint(60)]).await.pacing(None);
    logged.take();
    assert!(call(&requester).await.is_err());
    assert_eq!(levels(&logged), ["TRACE"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_named_moment_says_pushback_and_how_long() {
    let logged = Logged::listen();
    for asks in [hint(4), Act::status(503, "retry-after: 4\r\n", "")] {
        let requester = playing(vec![asks, Act::status(200, "", "")]).await;
        logged.take();
        call(&requester).await.unwrap();
        let events = logged.take();
        let waits: Vec<_> = events.iter().map(|event| &event["fields"]).collect();
        let waits: Vec<_> = waits.iter().filter(|fields| fields["reason"] == "pushback").collect();
        let [wait] = waits[..] else {
            panic!("one wait: {events:?}")
        };
        assert_eq!(wait["provider"], "acme");
        let span = wait["wait_ms"].as_u64().unwrap();
        assert!((4000..=4400).contains(&span), "{span}");
        assert!(!wait["said"].as_str().unwrap().is_empty());
    }
    let requester = playing(vec![Act::status(429, "", ""), Act::status(200, "", "")]).await;
    logged.take();
    call(&requester).await.unwrap();
    let events = logged.take();
    assert!(
        events.iter().all(|event| event["fields"]["reason"] != "pushback"),
        "nobody named a moment: {events:?}"
    );
}
