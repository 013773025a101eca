//! What the integration answers to RATE_LIMITED, and what becomes of it.

use std::{sync::Arc, time::Duration};

use adjourn_core::Verdict;
use adjourn_worker::{RateLimited, RateLimitedHandler, Settlement};
use serde_json::{Value, json};

use crate::stage::{Answering, Stage, job};

const LIMIT: Duration = Duration::from_secs(2);

fn answering(
    stage: &Stage,
    verdict: impl Fn(&RateLimited) -> Verdict + Send + Sync + 'static,
) -> adjourn_worker::Worker<crate::stage::Scripted> {
    stage
        .builder()
        .scheduler(Arc::new(stage.scheduler.clone()))
        .rate_limited(Answering(verdict), LIMIT)
        .build()
}

#[tokio::test(start_paused = true)]
async fn the_event_is_the_documented_json() {
    let stage = Stage::standard();
    let id = stage.send(&job("a", &["refuse 5000"]));
    stage.turn(&stage.worker()).await;
    let notices = stage.sink.notices();
    assert_eq!(notices.len(), 1, "one event for one refusal");
    let mut event: Value = serde_json::to_value(&notices[0]).unwrap();
    let until = event["decision"]["until"].take();
    assert!(until.as_str().unwrap() >= "2026-07-10T12:00:05.000Z");
    assert_eq!(
        event,
        json!({
            "type": "RATE_LIMITED", "version": 1, "retryAt": "2026-07-10T12:00:05.000Z", "waitMs": 5000,
            "reason": "burst", "kind": "short", "provider": "acme", "scopeKey": "acme:entity:1", "status": 429,
            "source": "classify", "deferralId": id, "sequence": 1, "deferrals": 1, "firstDeferredAt": null,
            "message": {"id": id, "body": job("a", &["refuse 5000"]).to_string(), "attributes": {}},
            "delivery": {"receiveCount": 1, "maxReceiveCount": 5, "isLastAttempt": false},
            "decision": {"kind": "defer", "mechanism": "delay", "until": null},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_verdict_may_defer_longer_and_never_shorter() {
    for (asked_s, least_s) in [(600, 600), (1, 60)] {
        let stage = Stage::standard();
        let until = stage.now() + Duration::from_secs(asked_s);
        let worker = answering(&stage, move |_| Verdict::Defer { until });
        stage.send(&job("a", &["refuse 60000"]));
        stage.turn(&worker).await;
        let waits = stage.envelope().due.since(stage.now());
        assert!(waits >= Duration::from_secs(least_s), "{waits:?}");
        assert!(waits <= Duration::from_secs(least_s) * 11 / 10, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_past_a_cap_is_exhausted_like_any_other() {
    let stage = Stage::standard();
    let until = stage.now() + Duration::from_secs(27 * 3600);
    let worker = answering(&stage, move |_| Verdict::Defer { until });
    stage.send(&job("a", &["refuse 60000"]));
    stage.turn(&worker).await;
    assert_eq!(stage.dead_letter().end.as_deref(), Some("exhausted"));
}

#[tokio::test(start_paused = true)]
async fn drop_dead_letter_and_retry_do_as_they_say() {
    let stage = Stage::standard();
    let worker = answering(&stage, |event| match event.message.body.as_deref() {
        Some(body) if body.contains("dropped") => Verdict::Drop {
            reason: "not wanted".to_string(),
        },
        Some(body) if body.contains("buried") => Verdict::DeadLetter {
            reason: "no quota left".to_string(),
        },
        _ => Verdict::Retry,
    });
    for (name, scope) in [("dropped", "1"), ("buried", "2"), ("retried", "3")] {
        stage.send(&json!({"name": name, "scope": scope, "answers": ["refuse 5000"]}));
    }
    let settled = stage.turn(&worker).await;
    assert!(matches!(&settled[0].settlement, Settlement::Delete(proof) if proof.drop_reason() == Some("not wanted")));
    let letter = stage.dead_letter();
    assert_eq!(
        (letter.end.as_deref(), letter.reason.as_str()),
        (Some("rejected"), "no quota left")
    );
    let retried = stage.envelope();
    assert_eq!((retried.counters.failures, retried.counters.deferrals), (1, 0));
    assert!(
        retried.due >= stage.now() + Duration::from_secs(5),
        "not before the provider's moment"
    );
}

struct Broken(&'static str);

impl RateLimitedHandler for Broken {
    async fn rate_limited(&self, _event: &RateLimited) -> Verdict {
        match self.0 {
            "panics" => panic!("as it says"),
            _ => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_or_hangs_has_said_default() {
    for broken in ["panics", "hangs"] {
        let stage = Stage::standard();
        let worker = stage.builder().rate_limited(Broken(broken), LIMIT).build();
        stage.send(&job("a", &["refuse 60000"]));
        let asked_at = stage.now();
        stage.turn(&worker).await;
        let envelope = stage.envelope();
        assert_eq!(envelope.counters.deferrals, 1, "{broken}");
        assert!(envelope.due >= asked_at + Duration::from_secs(60), "{broken}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_never_sees_a_body_over_64_kib() {
    let stage = Stage::standard();
    let mut large = job("a", &["refuse 5000"]);
    large["padding"] = json!("x".repeat(70_000));
    stage.send(&large);
    stage.turn(&stage.worker()).await;
    let event = serde_json::to_value(&stage.sink.notices()[0]).unwrap();
    assert_eq!(
        (&event["message"]["body"], &event["message"]["bodyOmitted"]),
        (&Value::Null, &json!(true))
    );
    assert!(
        stage.queue.messages()[0].body.len() > 70_000,
        "the message itself is whole"
    );
}
