//! The queue port against a service that answers as each test says.

use super::*;
use crate::{Environment, Patience, clients::fakes, fixture};
use adjourn_core::{Ending, EndingKind};
use adjourn_worker::{AttributeValue, ENVELOPE_ATTRIBUTE};
use aws_smithy_http_client::test_util::infallible_client_fn;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::sync::Mutex;

const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";
const DEAD: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs-dead";

/// What the service was asked: operation and body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A queue whose service is `answer`, and what it was asked.
async fn queue(
    settings: &[(&str, &str)],
    answer: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static,
) -> (SqsQueue, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let http = infallible_client_fn(move |request: http::Request<SdkBody>| {
        let target = request.headers()["x-amz-target"]
            .to_str()
            .unwrap()
            .trim_start_matches("AmazonSQS.")
            .to_string();
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let (status, reply) = answer(&target, &body);
        noted.lock().unwrap().push((target, body));
        http::Response::builder()
            .status(status)
            .body(SdkBody::from(reply.to_string()))
            .unwrap()
    });
    let clients = fakes::clients(Patience::WORKER, http).await;
    let settings = [("ADJOURN_QUEUE_URL", URL)].iter().chain(settings).copied();
    (
        SqsQueue::new(
            &clients,
            QueueSettings::for_operator(&Environment::new(settings)).unwrap(),
        ),
        asked,
    )
}

fn entries(body: &Value) -> Vec<Value> {
    body["Entries"].as_array().unwrap().clone()
}

/// Does everything that it is asked.
fn obliging(operation: &str, body: &Value) -> (u16, Value) {
    let done: Vec<_> = entries(body)
        .iter()
        .map(|entry| match operation {
            "SendMessageBatch" => {
                json!({"Id": entry["Id"], "MessageId": format!("sent-{}", entry["Id"]), "MD5OfMessageBody": ""})
            }
            _ => json!({"Id": entry["Id"]}),
        })
        .collect();
    (200, json!({"Successful": done, "Failed": []}))
}

fn holds(receipts: &[&str], visibility: Duration) -> Vec<Hold> {
    let hold = |receipt: &&str| {
        let mut original = fixture::message();
        original.receipt = (*receipt).to_string();
        let envelope = fixture::envelope(fixture::now());
        let until = fixture::now() + visibility;
        Hold {
            original: Arc::new(original),
            envelope,
            visibility,
            until,
            receipt: fixture::receipt(),
        }
    };
    receipts.iter().map(hold).collect()
}

fn letter(attributes: usize) -> DeadLetter {
    let mut original = fixture::message();
    original.attributes.clear();
    for n in 0..attributes {
        original
            .attributes
            .insert(format!("a{n}"), adjourn_worker::Attribute::text("v"));
    }
    let mut envelope = fixture::envelope(fixture::now());
    envelope.end = Some("exhausted".to_string());
    let ending = Ending::new(EndingKind::Rejected, "no");
    DeadLetter {
        original: Arc::new(original),
        envelope,
        ending,
        receipt: fixture::receipt(),
    }
}

#[tokio::test]
async fn a_full_batch_of_deferrals_costs_one_call() {
    let (queue, asked) = queue(&[], obliging).await;
    let copies = fixture::copies(10, Duration::from_secs(30));
    let results = queue.resend(&copies).await;
    for (copy, result) in copies.iter().zip(results) {
        assert_eq!(result.unwrap().identity, copy.envelope.identity);
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    let entry = &entries(&asked[0].1)[0];
    assert_eq!(
        (entry["DelaySeconds"].as_i64(), entry["MessageGroupId"].as_str()),
        (Some(30), Some("tenant-1"))
    );
    assert_eq!(entry["MessageAttributes"]["blob"]["BinaryValue"], "AP8H");
    assert_eq!(
        entry["MessageSystemAttributes"]["AWSTraceHeader"]["StringValue"],
        "Root=1-abc"
    );
    let envelope = entry["MessageAttributes"][ENVELOPE_ATTRIBUTE]["StringValue"]
        .as_str()
        .unwrap();
    assert_eq!(envelope, copies[0].envelope.write());
}

#[tokio::test]
async fn copies_are_split_by_ten_and_by_bytes() {
    let (queue, asked) = queue(&[], obliging).await;
    let mut copies = fixture::copies(20, Duration::ZERO);
    for copy in &mut copies[12..] {
        let body = "x".repeat(300_000);
        copy.original = Arc::new(adjourn_worker::Message {
            body,
            ..fixture::message()
        });
    }
    let results = queue.resend(&copies).await;
    assert!(results.iter().all(Result::is_ok));
    let mut sizes: Vec<_> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| entries(body).len())
        .collect();
    sizes.sort_unstable();
    // Ten, then two small ones with three of 300,000 bytes, then three, and two are left: four would be over 1 MiB.
    assert_eq!(sizes, [2, 3, 5, 10]);
}

#[tokio::test]
async fn a_listed_failure_is_an_error_for_its_own_copy_alone() {
    let (queue, _) = queue(&[], |_, body| {
        let id = |at: usize| entries(body)[at]["Id"].clone();
        let done = json!({"Id": id(0), "MessageId": "sent", "MD5OfMessageBody": ""});
        let refused = json!({"Id": id(1), "SenderFault": true, "Code": "InvalidMessageContents", "Message": "odd"});
        let passing = json!({"Id": id(2), "SenderFault": false, "Code": "InternalError"});
        // The fourth is not named, and an entry that nobody asked is.
        let stray = json!({"Id": "77", "MessageId": "stray", "MD5OfMessageBody": ""});
        (200, json!({"Successful": [done, stray], "Failed": [refused, passing]}))
    })
    .await;
    let results = queue.resend(&fixture::copies(4, Duration::ZERO)).await;
    assert_eq!(results[0].as_ref().unwrap().name, "sent");
    let transient: Vec<_> = results[1..]
        .iter()
        .map(|result| result.as_ref().unwrap_err().is_transient())
        .collect();
    assert_eq!(transient, [false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_as_a_whole_fails_each_copy_of_it_and_no_other() {
    let (queue, _) = queue(&[], |operation, body| {
        let poisoned = entries(body).iter().any(|entry| {
            let envelope = entry["MessageAttributes"][ENVELOPE_ATTRIBUTE]["StringValue"]
                .as_str()
                .unwrap();
            envelope.contains("\"m-12\"")
        });
        if poisoned {
            (503, json!({}))
        } else {
            obliging(operation, body)
        }
    })
    .await;
    let results = queue.resend(&fixture::copies(25, Duration::ZERO)).await;
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), (10..20).contains(&at), "{at}");
    }
}

#[tokio::test]
async fn a_delay_or_a_size_that_sqs_refuses_is_refused_before_any_call() {
    let (queue, asked) = queue(&[("ADJOURN_MAX_MESSAGE_BYTES", "1024")], obliging).await;
    let mut copies = fixture::copies(3, Duration::from_secs(901));
    copies[1].delay = Duration::from_secs(900);
    let mut large = fixture::message();
    large.body = "x".repeat(1000);
    (copies[2].delay, copies[2].original) = (Duration::ZERO, Arc::new(large));
    let results = queue.resend(&copies).await;
    assert_eq!(
        results.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert!(
        results
            .iter()
            .flat_map(|result| result.as_ref().err())
            .all(|error| !error.is_transient())
    );
    assert_eq!(entries(&asked.lock().unwrap()[0].1).len(), 1);
}

#[tokio::test]
async fn a_fifo_copy_has_no_delay_and_a_deduplication_id_of_its_step() {
    let url = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs.fifo";
    let (queue, asked) = queue(&[("ADJOURN_QUEUE_URL", url)], obliging).await;
    assert_eq!(queue.reach().kind, QueueKind::Fifo);
    let copies = fixture::copies(1, Duration::ZERO);
    assert!(queue.resend(&copies).await[0].is_ok());
    let entry = entries(&asked.lock().unwrap()[0].1).remove(0);
    assert_eq!(entry.get("DelaySeconds"), None);
    assert_eq!(entry["MessageDeduplicationId"], copies[0].envelope.identity.name());
}

#[tokio::test]
async fn a_hold_that_is_somebody_else_s_by_now_is_refused() {
    let (queue, asked) = queue(&[], |_, body| {
        let failed: Vec<_> = entries(body)
            .iter()
            .filter_map(|entry| {
                let code = match entry["ReceiptHandle"].as_str().unwrap() {
                    "late" => "AWS.SimpleQueueService.MessageNotInflight",
                    "old" => "ReceiptHandleIsInvalid",
                    _ => return None,
                };
                Some(json!({"Id": entry["Id"], "SenderFault": false, "Code": code}))
            })
            .collect();
        (200, json!({"Successful": [{"Id": "0"}], "Failed": failed}))
    })
    .await;
    let mut asked_for = holds(&["good", "late", "old", ""], Duration::from_secs(3600));
    asked_for.extend(holds(&["good"], Duration::from_secs(43_201)));
    let results = queue.hold(&asked_for).await;
    assert_eq!(results[0].as_ref().unwrap().identity, fixture::identity());
    for (result, words) in results[1..]
        .iter()
        .zip(["somebody else's", "somebody else's", "no receipt", "43200"])
    {
        let error = result.as_ref().unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains(words), "{error}");
    }
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].0.as_str()), (1, "ChangeMessageVisibilityBatch"));
    assert_eq!(entries(&asked[0].1)[0]["VisibilityTimeout"], 3600);
}

#[tokio::test]
async fn a_dead_letter_carries_its_end_where_there_is_room_and_goes_without_it_where_not() {
    let (queue, asked) = queue(&[("ADJOURN_DLQ_URL", DEAD)], obliging).await;
    assert!(
        queue
            .dead_letter(&[letter(9), letter(10)])
            .await
            .iter()
            .all(Result::is_ok)
    );
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].1["QueueUrl"], DEAD);
    let sent = entries(&asked[0].1);
    let envelope = sent[0]["MessageAttributes"][ENVELOPE_ATTRIBUTE]["StringValue"]
        .as_str()
        .unwrap();
    assert!(envelope.contains("\"end\":\"exhausted\""), "{envelope}");
    let attributes = sent[1]["MessageAttributes"].as_object().unwrap();
    assert_eq!(
        (attributes.len(), attributes.contains_key(ENVELOPE_ATTRIBUTE)),
        (10, false)
    );
}

#[tokio::test]
async fn without_a_dead_letter_queue_a_dead_letter_is_refused() {
    let (queue, asked) = queue(&[], obliging).await;
    let error = queue.dead_letter(&[letter(0)]).await.remove(0).unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("ADJOURN_DLQ_URL"));
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_not_an_acceptance() {
    let (queue, _) = queue(&[], |_, _| (200, json!("no object"))).await;
    let error = queue
        .resend(&fixture::copies(1, Duration::ZERO))
        .await
        .remove(0)
        .unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn an_unknown_queue_is_refused_and_a_throttled_call_is_throttled() {
    let refusals = [
        ("QueueDoesNotExist", false),
        ("RequestThrottled", true),
        ("AccessDeniedException", false),
    ];
    for (code, throttled) in refusals {
        let (queue, _) = queue(&[], move |_, _| {
            (400, json!({"__type": format!("com.amazonaws.sqs#{code}")}))
        })
        .await;
        let error = queue
            .resend(&fixture::copies(1, Duration::ZERO))
            .await
            .remove(0)
            .unwrap_err();
        assert_eq!(
            (error.is_throttled(), error.is_transient()),
            (throttled, throttled),
            "{code}: {error}"
        );
    }
}

#[tokio::test]
async fn a_caller_sends_and_counts() {
    let (queue, asked) = queue(&[("ADJOURN_DLQ_URL", DEAD)], |operation, body| match operation {
        "GetQueueAttributes" => {
            let visible = if body["QueueUrl"] == DEAD { "7" } else { "3" };
            let attributes = json!({
                "ApproximateNumberOfMessages": visible,
                "ApproximateNumberOfMessagesNotVisible": "2",
                "ApproximateNumberOfMessagesDelayed": "1",
            });
            (200, json!({"Attributes": attributes}))
        }
        _ => obliging(operation, body),
    })
    .await;
    let mut message = Outgoing::new("{}");
    message.attributes.insert(
        "n".to_string(),
        adjourn_worker::Attribute {
            data_type: "Number".to_string(),
            value: AttributeValue::Text("1".to_string()),
        },
    );
    let sent = queue
        .send(vec![
            (message, Duration::from_secs(5)),
            (Outgoing::new(""), Duration::ZERO),
        ])
        .await;
    assert!(sent[0].is_ok() && sent[1].is_err());
    assert_eq!(entries(&asked.lock().unwrap()[0].1)[0]["DelaySeconds"], 5);
    let counts = queue.counts().await.unwrap();
    assert_eq!(
        counts.queue,
        QueueCounts {
            visible: 3,
            in_flight: 2,
            delayed: 1
        }
    );
    assert_eq!(counts.dead_letters.unwrap().visible, 7);
}
