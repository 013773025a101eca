//! Each wait is an event that says why.

use std::time::Duration;

use adjourn_http::{Feedback, InFlight, Rate, RateBudget};
use http::{HeaderMap, HeaderValue, header::RETRY_AFTER};

use crate::logged::Logged;

const S: Duration = Duration::from_secs(1);

/// Reason and milliseconds of each wait since it was last asked.
fn waits(logged: &Logged) -> Vec<(String, Option<u64>)> {
    let mut events = logged.take();
    events.retain(|event| event["fields"]["message"] == "a call waits for its turn");
    events
        .iter()
        .map(|event| {
            assert_eq!(event["fields"]["provider"], "acme");
            let reason = event["fields"]["reason"].as_str().unwrap().to_string();
            (reason, event["fields"]["wait_ms"].as_u64())
        })
        .collect()
}

fn wait(reason: &str, ms: u64) -> (String, Option<u64>) {
    (reason.to_string(), Some(ms))
}

async fn send(budget: &RateBudget) -> InFlight {
    budget.turn("/", None).await.unwrap().sent().unwrap()
}

/// A call that is refused, with or without a time.
async fn refused(budget: &RateBudget, retry_after: Option<&'static str>) -> Feedback {
    let mut headers = HeaderMap::new();
    headers.extend(retry_after.map(|value| (RETRY_AFTER, HeaderValue::from_static(value))));
    send(budget).await.answered(429, &headers)
}

#[tokio::test(start_paused = true)]
async fn each_wait_is_an_event_with_its_reason() {
    let logged = Logged::listen();
    let budget = RateBudget::new(Rate::new(1, S)).contract("acme", None).max_in_flight(1);

    drop(send(&budget).await);
    assert_eq!(waits(&logged), [], "the first does not wait");
    let second = send(&budget).await;
    assert_eq!(waits(&logged), [wait("paced", 1000)]);

    tokio::time::advance(5 * S).await;
    let (third, ()) = tokio::join!(biased; send(&budget), async { drop(second) });
    drop(third);
    assert_eq!(waits(&logged), [("in_flight".to_string(), None)]);

    let told = refused(&budget, Some("30")).await.retry_after.unwrap();
    assert_eq!(waits(&logged), [wait("paced", 1000)], "the refused call itself");
    budget.pushback(told, None).await.unwrap();
    drop(send(&budget).await);
    let pushed_back = u64::try_from(told.as_millis()).unwrap();
    assert_eq!(waits(&logged)[0], wait("pushback", pushed_back));

    refused(&budget, None).await;
    waits(&logged);
    drop(send(&budget).await);
    assert_eq!(waits(&logged), [wait("throttled", 4000)], "a quarter of the rate");

    refused(&budget, Some("30")).await;
    waits(&logged);
    drop(send(&budget).await);
    let (reason, ms) = waits(&logged).pop().unwrap();
    assert_eq!(reason, "paused");
    assert!(Duration::from_millis(ms.unwrap()) >= 30 * S, "{ms:?}");
}
