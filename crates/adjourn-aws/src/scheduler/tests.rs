//! The scheduler port against a service that answers as each test says.

use super::*;
use crate::{Environment, Patience, clients::fakes, fixture};
use adjourn_worker::VirtualClock;
use aws_smithy_http_client::test_util::infallible_client_fn;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
};

const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";

/// What the service was asked: method, path with query, body.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A scheduler that answers from a list, and what it was asked.
async fn scheduler(answers: Vec<(u16, Value)>) -> (EventBridgeScheduler, Asked) {
    let asked = Asked::default();
    let (answers, noted) = (Mutex::new(VecDeque::from(answers)), Arc::clone(&asked));
    let http = infallible_client_fn(move |request: http::Request<SdkBody>| {
        let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap_or(Value::Null);
        noted
            .lock()
            .unwrap()
            .push((request.method().to_string(), request.uri().path().to_string(), body));
        let (status, body) = answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("one call more than was expected");
        let response = http::Response::builder().status(status);
        let response = match body.get("__type").and_then(Value::as_str) {
            Some(code) => response.header("x-amzn-errortype", code),
            None => response,
        };
        response.body(SdkBody::from(body.to_string())).unwrap()
    });
    let clients = fakes::clients(Patience::WORKER, http).await;
    let environment = Environment::new([("ADJOURN_QUEUE_URL", URL)]);
    let queue = QueueSettings::for_operator(&environment).unwrap();
    let settings = ScheduleSettings {
        group: "adjourn-jobs".to_string(),
        role_arn: "arn:aws:iam::111122223333:role/schedules".to_string(),
        dead_letter_arn: "arn:aws:sqs:eu-west-1:111122223333:schedules-dead".to_string(),
    };
    let clock = Arc::new(VirtualClock::starting_at(fixture::now()));
    (EventBridgeScheduler::new(&clients, settings, &queue, clock), asked)
}

fn at() -> Timestamp {
    Timestamp::parse("2026-07-10T21:00:00Z").unwrap()
}

fn due() -> Timestamp {
    at() + Duration::from_millis(61_500)
}

fn made() -> (u16, Value) {
    (
        200,
        json!({"ScheduleArn": "arn:aws:scheduler:eu-west-1:111122223333:schedule/adjourn-jobs/x"}),
    )
}

fn failed(status: u16, code: &str) -> (u16, Value) {
    (status, json!({"__type": code, "Message": "no"}))
}

/// An existing schedule with this Input.
fn stored(input: &str) -> (u16, Value) {
    (
        200,
        json!({"Name": "x", "Target": {"Arn": TARGET, "RoleArn": "r", "Input": input}}),
    )
}

fn input_due(due: Timestamp) -> String {
    let copy = fixture::scheduled(at(), due);
    let message = Outgoing::copy(
        &copy.original,
        &copy.envelope.identity,
        Some(copy.envelope.write()),
        QueueKind::Standard,
    );
    encode(message, URL, QueueKind::Standard).unwrap()
}

async fn one(scheduler: &EventBridgeScheduler) -> Result<Accepted, PortError> {
    scheduler
        .schedule(&[fixture::scheduled(at(), due())])
        .await
        .pop()
        .unwrap()
}

fn paths(asked: &Asked) -> Vec<String> {
    asked
        .lock()
        .unwrap()
        .iter()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_one_time_exact_deleted_afterwards_and_has_its_own_dead_letters() {
    let (scheduler, asked) = scheduler(vec![made()]).await;
    let accepted = one(&scheduler).await.unwrap();
    let name = fixture::identity().name();
    assert_eq!(
        accepted,
        Accepted {
            identity: fixture::identity(),
            name: name.clone()
        }
    );
    let asked = asked.lock().unwrap();
    let (method, path, body) = &asked[0];
    assert_eq!((method.as_str(), path), ("POST", &format!("/schedules/{name}")));
    let input = body["Target"]["Input"].as_str().unwrap();
    let expected = json!({
        "GroupName": "adjourn-jobs",
        "ClientToken": format!("{name}-{:x}", due().as_unix_ms()),
        "ScheduleExpression": "at(2026-07-10T21:00:00)",
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": TARGET,
            "RoleArn": "arn:aws:iam::111122223333:role/schedules",
            "Input": input,
            "RetryPolicy": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86_400},
            "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-1:111122223333:schedules-dead"},
        },
    });
    assert_eq!(body, &expected);
    let (url, message) = decode(input).unwrap();
    assert_eq!(
        (url.as_str(), message.body.as_str()),
        (URL, fixture::message().body.as_str())
    );
}

#[tokio::test(start_paused = true)]
async fn a_conflict_with_our_own_step_is_a_success() {
    for existing in [due(), due() + Duration::from_secs(60)] {
        let (scheduler, asked) = scheduler(vec![failed(409, "ConflictException"), stored(&input_due(existing))]).await;
        assert_eq!(one(&scheduler).await.unwrap().name, fixture::identity().name());
        assert_eq!(asked.lock().unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_one_of_ours_is_replaced_and_only_then_deleted() {
    let earlier = input_due(due() - Duration::from_secs(60));
    let answers = vec![
        failed(409, "ConflictException"),
        stored(&earlier),
        made(),
        (200, json!({})),
    ];
    let (scheduler, asked) = scheduler(answers).await;
    let name = fixture::identity().name();
    let revised = format!("{name}-{:x}", due().as_unix_ms());
    assert_eq!(one(&scheduler).await.unwrap().name, revised);
    let expected = [
        format!("POST /schedules/{name}"),
        format!("GET /schedules/{name}"),
        format!("POST /schedules/{revised}"),
        format!("DELETE /schedules/{name}"),
    ];
    assert_eq!(paths(&asked), expected);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_deleted_does_not_undo_the_later_one() {
    let earlier = input_due(due() - Duration::from_secs(60));
    let answers = vec![
        failed(409, "ConflictException"),
        stored(&earlier),
        made(),
        failed(403, "AccessDeniedException"),
    ];
    assert!(one(&scheduler(answers).await.0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_being_deleted_is_asked_again_a_few_times() {
    let gone = || {
        [
            failed(409, "ConflictException"),
            failed(404, "ResourceNotFoundException"),
        ]
    };
    let (free_at_last, _) = scheduler(gone().into_iter().chain([made()]).collect()).await;
    assert!(one(&free_at_last).await.is_ok());

    let (never_free, asked) = scheduler((0..3).flat_map(|_| gone()).collect()).await;
    let error = one(&never_free).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("being deleted"),
        "{error}"
    );
    assert_eq!(asked.lock().unwrap().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn somebody_else_s_schedule_is_left_alone() {
    let mut other = fixture::scheduled(at(), due());
    other.envelope.identity = other.envelope.identity.next();
    let envelope = Some(other.envelope.write());
    let message = Outgoing::copy(&other.original, &other.envelope.identity, envelope, QueueKind::Standard);
    let another_step = encode(message, URL, QueueKind::Standard).unwrap();
    for input in [
        another_step.as_str(),
        "{\"QueueUrl\":\"u\",\"MessageBody\":\"b\"}",
        "not JSON",
    ] {
        let (scheduler, asked) = scheduler(vec![failed(409, "ConflictException"), stored(input)]).await;
        let error = one(&scheduler).await.unwrap_err();
        assert!(
            !error.is_transient() && error.to_string().contains("not this step's"),
            "{error}"
        );
        assert_eq!(asked.lock().unwrap().len(), 2, "nothing is deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_service_says_becomes_what_the_port_says() {
    let table = [
        ("ServiceQuotaExceededException", 402, 1, false, false),
        ("ValidationException", 400, 1, false, false),
        ("ResourceNotFoundException", 404, 1, false, false),
        ("ThrottlingException", 429, 2, true, true),
        ("InternalServerException", 500, 2, false, true),
    ];
    for (code, status, tries, throttled, transient) in table {
        let (scheduler, asked) = scheduler(vec![failed(status, code); tries]).await;
        let error = one(&scheduler).await.unwrap_err();
        assert_eq!(
            (error.is_throttled(), error.is_transient()),
            (throttled, transient),
            "{code}: {error}"
        );
        assert_eq!(asked.lock().unwrap().len(), tries, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_moment_that_the_service_would_take_wrongly_is_refused_before_any_call() {
    let (scheduler, asked) = scheduler(vec![]).await;
    let now = fixture::now();
    for at in [
        now - MINUTE,
        now,
        now + Duration::from_secs(59),
        at() + Duration::from_millis(1),
    ] {
        let result = scheduler
            .schedule(&[fixture::scheduled(at, due())])
            .await
            .pop()
            .unwrap();
        assert!(!result.unwrap_err().is_transient(), "{at}");
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_what_comes_out_as_it_went_in_is_carried() {
    let (scheduler, _) = scheduler(vec![]).await;
    assert!(scheduler.carries(&fixture::plain_message()));
    assert!(!scheduler.carries(&fixture::message()), "a binary attribute");
    let with_body = |body: String| Message {
        body,
        ..fixture::plain_message()
    };
    assert!(!scheduler.carries(&with_body("<aws.scheduler.execution-id>".to_string())));
    assert!(scheduler.carries(&with_body("x".repeat(250_000))));
    assert!(!scheduler.carries(&with_body("x".repeat(262_144))));
    assert!(
        !scheduler.carries(&with_body("\"".repeat(140_000))),
        "it doubles when it is escaped"
    );
}

#[tokio::test(start_paused = true)]
async fn many_schedules_are_answered_in_their_order() {
    let http = infallible_client_fn(|request: http::Request<SdkBody>| {
        // Every third is refused.
        let refused = request.uri().path().bytes().map(u32::from).sum::<u32>() % 3 == 0;
        let response = http::Response::builder().status(if refused { 400 } else { 200 });
        response
            .header("x-amzn-errortype", "ValidationException")
            .body(SdkBody::from("{}"))
            .unwrap()
    });
    let clients = fakes::clients(Patience::WORKER, http).await;
    let (template, _) = scheduler(vec![]).await;
    let environment = Environment::new([("ADJOURN_QUEUE_URL", URL)]);
    let queue = QueueSettings::for_operator(&environment).unwrap();
    let clock = Arc::new(VirtualClock::starting_at(fixture::now()));
    let scheduler = EventBridgeScheduler::new(&clients, template.inner.settings.clone(), &queue, clock);
    let copies: Vec<_> = (0..40)
        .map(|n| {
            let mut copy = fixture::scheduled(at(), due());
            copy.envelope.identity = Identity::first(adjourn_core::DeferralId::new(&format!("m-{n}")));
            copy
        })
        .collect();
    let results = scheduler.schedule(&copies).await;
    let mut seen = BTreeMap::from([(true, 0), (false, 0)]);
    for (copy, result) in copies.iter().zip(results) {
        let name = copy.envelope.identity.name();
        let refused = format!("/schedules/{name}").bytes().map(u32::from).sum::<u32>() % 3 == 0;
        assert_eq!(result.is_err(), refused, "{name}");
        *seen.entry(refused).or_default() += 1;
    }
    assert!(seen[&true] > 0 && seen[&false] > 0);
}
