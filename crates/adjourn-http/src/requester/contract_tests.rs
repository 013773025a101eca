//! What answers mean under a provider's contract.

use std::time::Duration;

use adjourn_core::{Kind, ScopeKey};

use super::{
    loopback::{Act, Loopback},
    *,
};
use crate::ContractReader;

const NOW: &str = "2026-07-10T20:13:47Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn outcome(settings: &str, answer: Act) -> Outcome {
    perform(settings, answer).await.outcome
}

async fn perform(settings: &str, answer: Act) -> Answer {
    let server = Loopback::playing(vec![answer]).await;
    let text = format!("[providers.acme]\nbase_url = \"{}\"\n{settings}", server.url);
    let settings = Settings::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let reader = Arc::new(ContractReader::of(&settings));
    let requester = Requester::new(settings, Credentials::default(), reader, Arc::new(|| at(NOW))).unwrap();
    let job =
        HttpJob::parse(r#"{"provider":"acme","method":"POST","path":"/exports","scope":{"entity":"7"}}"#).unwrap();
    requester.perform(&job, "m-1", at(NOW) + Duration::from_secs(900)).await
}

fn throttled(outcome: Outcome) -> adjourn_core::Signal {
    match outcome {
        Outcome::Throttled(signal) => signal,
        Outcome::Done | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Rejected(_) => panic!("{outcome:?}"),
    }
}

fn rejected(outcome: Outcome) -> String {
    match outcome {
        Outcome::Rejected(fault) => fault.why().to_string(),
        Outcome::Done | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Throttled(_) => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn a_contract_of_the_catalogue_reads_the_answer() {
    let body = r#"{"errorType":"RATE_LIMIT","policyName":"SECONDLY"}"#;
    let signal = throttled(outcome("contract = \"hubspot\"", Act::status(429, "", body)).await);
    assert_eq!((signal.limit_kind(), signal.why()), (Kind::Short, "secondly"));
    assert_eq!(signal.earliest_retry_at(), Some(at("2026-07-10T20:13:48Z")));
}

#[tokio::test]
async fn a_403_and_a_200_may_be_limits_and_a_200_may_be_a_refusal_for_good() {
    let body = r#"{"message":"API rate limit exceeded for user ID 1."}"#;
    assert!(matches!(
        outcome("contract = \"github\"", Act::status(403, "", body)).await,
        Outcome::Throttled(_)
    ));
    let body = r#"{"errors":[{"extensions":{"code":"THROTTLED"}}]}"#;
    assert!(matches!(
        outcome("contract = \"shopify\"", Act::status(200, "", body)).await,
        Outcome::Throttled(_)
    ));
    assert_eq!(
        outcome("", Act::status(200, "", body)).await,
        Outcome::Done,
        "without a contract a 200 is done"
    );
    let body = r#"{"errors":[{"extensions":{"code":"MAX_COST_EXCEEDED"}}]}"#;
    let words = rejected(outcome("contract = \"shopify\"", Act::status(200, "", body)).await);
    assert!(
        words.starts_with("refused: acme answered 200 OK and did nothing"),
        "{words}"
    );
}

#[tokio::test]
async fn a_batch_that_was_partly_done_is_not_repeated_whole() {
    let body = r#"{"responses":[{"id":"1","status":200},{"id":"2","status":429,"headers":{"Retry-After":"10"}}]}"#;
    let words = rejected(outcome("contract = \"microsoft-graph\"", Act::status(200, "", body)).await);
    assert!(
        words.starts_with("partly done: acme carried out a part of it"),
        "{words}"
    );
}

#[tokio::test]
async fn where_no_wait_helps_the_job_ends_with_that_reason() {
    let body = r#"{"error":{"code":"insufficient_quota"}}"#;
    for settings in ["contract = \"openai\"", ""] {
        let words = rejected(outcome(settings, Act::status(429, "", body)).await);
        assert!(words.starts_with("account disabled, no wait helps"), "{words}");
    }
}

#[tokio::test]
async fn the_documented_pause_is_a_floor_under_what_is_told() {
    let contract = "contract = { min_retry_after_ms = 30000 }";
    for (header, expected) in [
        ("retry-after: 5\r\n", 30_000),
        ("retry-after: 50\r\n", 50_000),
        ("", 30_000),
    ] {
        let signal = throttled(outcome(contract, Act::status(429, header, "")).await);
        assert_eq!(signal.wait().map(|wait| wait.as_millis()), Some(expected), "{header:?}");
    }
}

#[tokio::test]
async fn a_refusal_closes_what_it_concerns() {
    let rule =
        |scope: &str| format!("[[providers.acme.contract.classify]]\nstatus = 429\nkind = \"short\"\nscope = {scope}");
    let signal = throttled(outcome(&rule("\"endpoint\""), Act::status(429, "", "")).await);
    assert_eq!(
        signal.closes(),
        Some(&ScopeKey::scoped("acme", "function", "POST /exports"))
    );
    let signal = throttled(outcome(&rule("[\"account\", \"global\"]"), Act::status(429, "", "")).await);
    assert_eq!(
        (signal.closes(), signal.closes_too()),
        (None, &[ScopeKey::provider("acme")][..])
    );
}

#[tokio::test]
async fn a_success_tells_what_remains_and_advises_the_next_call() {
    let headers = "x-ratelimit-limit: 100\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 20\r\n";
    let answer = perform("", Act::status(200, headers, "")).await;
    assert_eq!(answer.outcome, Outcome::Done);
    let [limit] = answer.limits.try_into().unwrap();
    assert_eq!((limit.limit, limit.remaining), (Some(100), Some(0)));
    assert_eq!(answer.not_before, Some(at("2026-07-10T20:14:07Z")));
}
