//! The queue port on SQS.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Identity, QueueKind, Reach};
use adjourn_worker::port::{Accepted, Copy, DeadLetter, Deletion, Hold, PortError, Queue};
use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    types::{
        BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
        QueueAttributeName, SendMessageBatchRequestEntry,
    },
};

use crate::{
    Clients,
    calls::{Answer, bounded, split},
    failure::Failure,
    outgoing::{MAX_DELAY_S, Outgoing, delay_seconds},
    settings::QueueSettings,
};

/// The longest visibility timeout, counted from the receive (SQS API, ChangeMessageVisibility).
const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);
/// How many batch calls run side by side on a standard queue. On a FIFO queue it is one, since order is by arrival.
const CALLS_AT_A_TIME: usize = 8;
/// What a change of visibility or a deletion answers once the delivery is not ours any more (facts of the SQS API: the
/// code comes with and without the prefix, depending on the protocol).
const NOT_OURS: &[&str] = &[
    "MessageNotInflight",
    "AWS.SimpleQueueService.MessageNotInflight",
    "ReceiptHandleIsInvalid",
    "InvalidReceiptHandle",
];

/// A queue on SQS with its dead-letter queue.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    settings: QueueSettings,
}

/// How many messages a queue has, each number approximate (SQS API, GetQueueAttributes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Can be received.
    pub visible: u64,
    /// Received and neither deleted nor visible again: running, or waiting by a visibility timeout.
    pub in_flight: u64,
    /// Waiting by a delay.
    pub delayed: u64,
}

/// The counts of a queue and of its dead-letter queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// The queue's.
    pub queue: QueueCounts,
    /// The dead-letter queue's, where there is one.
    pub dead_letters: Option<QueueCounts>,
}

impl SqsQueue {
    /// The queue that `settings` name, reached by `clients`.
    #[must_use]
    pub fn new(clients: &Clients, settings: QueueSettings) -> Self {
        Self {
            inner: Arc::new(Inner {
                client: clients.sqs.clone(),
                settings,
            }),
        }
    }

    /// Sends messages that are no copies, each with its delay, and answers their ids in the same order.
    pub async fn send(&self, messages: Vec<(Outgoing, Duration)>) -> Vec<Result<String, PortError>> {
        let url = self.inner.settings.url.clone();
        ported(self.send_to(&url, messages).await)
    }

    /// How many messages wait in the queue and in its dead-letter queue.
    ///
    /// # Errors
    /// When one of them cannot be asked.
    pub async fn counts(&self) -> Result<Counts, PortError> {
        let settings = &self.inner.settings;
        let queue = self.count(&settings.url).await?;
        let dead_letters = match &settings.dead_letter_url {
            Some(url) => Some(self.count(url).await?),
            None => None,
        };
        Ok(Counts { queue, dead_letters })
    }

    async fn count(&self, url: &str) -> Result<QueueCounts, Failure> {
        use QueueAttributeName as Name;
        let names = [
            Name::ApproximateNumberOfMessages,
            Name::ApproximateNumberOfMessagesNotVisible,
            Name::ApproximateNumberOfMessagesDelayed,
        ];
        let request = self
            .inner
            .client
            .get_queue_attributes()
            .queue_url(url)
            .set_attribute_names(Some(names.to_vec()));
        let answer = request
            .send()
            .await
            .map_err(|error| Failure::of_call("GetQueueAttributes", error))?;
        let number = |name: &Name| {
            let text = answer.attributes().and_then(|attributes| attributes.get(name));
            text.and_then(|text| text.parse().ok()).ok_or_else(|| {
                Failure::unaccounted(format!("GetQueueAttributes: {name} is {text:?}, a number was expected"))
            })
        };
        let [visible, in_flight, delayed] = &names;
        Ok(QueueCounts {
            visible: number(visible)?,
            in_flight: number(in_flight)?,
            delayed: number(delayed)?,
        })
    }

    async fn send_to(&self, url: &str, messages: Vec<(Outgoing, Duration)>) -> Vec<Result<String, Failure>> {
        let QueueSettings {
            kind,
            max_message_bytes,
            ..
        } = self.inner.settings;
        let requests = messages
            .into_iter()
            .map(|(message, delay)| {
                message.check(kind, max_message_bytes)?;
                Ok((message.bytes(), (message, delay_seconds(delay, kind)?)))
            })
            .collect();
        let (client, url) = (self.inner.client.clone(), url.to_string());
        self.in_batches("SendMessageBatch", requests, max_message_bytes, move |batch| {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let entries: Result<Vec<SendMessageBatchRequestEntry>, Failure> = batch
                    .into_iter()
                    .enumerate()
                    .map(|(id, (message, delay))| message.into_entry(id, delay, kind))
                    .collect();
                let call = client.send_message_batch().queue_url(url).set_entries(Some(entries?));
                let output = call
                    .send()
                    .await
                    .map_err(|error| Failure::of_call("SendMessageBatch", error))?;
                let mut answer = Answer::default();
                for entry in output.successful() {
                    answer.done(entry.id(), entry.message_id());
                }
                note_failed(&mut answer, "SendMessageBatch", output.failed());
                Ok(answer)
            }
        })
        .await
    }

    /// Carries out requests that passed our own checks, in batches, and answers one result for each request.
    async fn in_batches<T, F>(
        &self,
        operation: &'static str,
        requests: Vec<Result<(usize, T), Failure>>,
        max_bytes: usize,
        call: impl Fn(Vec<T>) -> F,
    ) -> Vec<Result<String, Failure>>
    where
        T: Send + 'static,
        F: Future<Output = Result<Answer, Failure>> + Send + 'static,
    {
        let mut results = Vec::with_capacity(requests.len());
        let (mut places, mut sizes, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
        for (place, request) in requests.into_iter().enumerate() {
            match request {
                Ok((size, payload)) => {
                    places.push(place);
                    sizes.push(size);
                    payloads.push(payload);
                    results.push(Err(Failure::unaccounted(format!(
                        "{operation}: the call was broken off"
                    ))));
                }
                Err(failure) => results.push(Err(failure)),
            }
        }
        let mut payloads = payloads.into_iter();
        let mut counts = Vec::new();
        let mut batches = Vec::new();
        for range in split(&sizes, max_bytes) {
            counts.push(range.len());
            batches.push(call(payloads.by_ref().take(range.len()).collect()));
        }
        let at_a_time = if self.inner.settings.kind == QueueKind::Fifo {
            1
        } else {
            CALLS_AT_A_TIME
        };
        let mut places = places.into_iter();
        for (count, answer) in counts.into_iter().zip(bounded(at_a_time, batches).await) {
            let answers = match answer {
                Some(Ok(answer)) => answer.account(operation, count),
                Some(Err(failure)) => vec![Err(failure); count],
                None => vec![Err(Failure::unaccounted(format!("{operation}: the call was broken off"))); count],
            };
            for (place, answer) in places.by_ref().take(count).zip(answers) {
                if let Some(result) = results.get_mut(place) {
                    *result = answer;
                }
            }
        }
        results
    }
}

fn note_failed(answer: &mut Answer, operation: &'static str, failed: &[BatchResultErrorEntry]) {
    for entry in failed {
        let failure = Failure::of_entry(operation, entry.code(), entry.message(), entry.sender_fault());
        answer.failed(entry.id(), failure);
    }
}

fn ported<T>(results: Vec<Result<T, Failure>>) -> Vec<Result<T, PortError>> {
    results
        .into_iter()
        .map(|result| result.map_err(PortError::from))
        .collect()
}

/// The step of each request beside the name under which it was taken over.
fn accepted<'a>(
    identities: impl Iterator<Item = &'a Identity>,
    results: Vec<Result<String, Failure>>,
) -> Vec<Result<Accepted, PortError>> {
    identities
        .zip(results)
        .map(|(identity, result)| {
            Ok(Accepted {
                identity: identity.clone(),
                name: result?,
            })
        })
        .collect()
}

/// A refusal because of the receipt handle means that somebody else has the message by now.
fn owned(result: Result<String, Failure>) -> Result<String, Failure> {
    result.map_err(|failure| {
        if failure.has_code(NOT_OURS) {
            failure.refused_because("this delivery has ended and the message is somebody else's now")
        } else {
            failure
        }
    })
}

fn handle(receipt: &str) -> Result<String, Failure> {
    if receipt.is_empty() {
        return Err(Failure::local("the delivery has no receipt handle"));
    }
    Ok(receipt.to_string())
}

fn visibility_seconds(visibility: Duration) -> Result<i32, Failure> {
    let whole = visibility.subsec_nanos() == 0 && visibility <= MAX_VISIBILITY;
    i32::try_from(visibility.as_secs())
        .ok()
        .filter(|_| whole)
        .ok_or_else(|| {
            let most = MAX_VISIBILITY.as_secs();
            Failure::local(format!(
                "a visibility timeout of {visibility:?}; whole seconds from 0 to {most} are allowed"
            ))
        })
}

#[async_trait]
impl Queue for SqsQueue {
    fn reach(&self) -> Reach {
        let settings = &self.inner.settings;
        Reach {
            kind: settings.kind,
            max_delay: Duration::from_secs(MAX_DELAY_S),
            delay_step: Duration::from_secs(1),
            schedule: None,
            max_visibility: MAX_VISIBILITY,
            visibility_timeout: settings.visibility_timeout,
            retention: settings.retention,
            max_receive_count: settings.max_receive_count,
        }
    }

    fn max_message_bytes(&self) -> usize {
        self.inner.settings.max_message_bytes
    }

    async fn resend(&self, copies: &[Copy]) -> Vec<Result<Accepted, PortError>> {
        let settings = &self.inner.settings;
        let messages = copies
            .iter()
            .map(|copy| {
                let envelope = &copy.envelope;
                let sent = Outgoing::copy(
                    &copy.original,
                    &envelope.identity,
                    Some(envelope.write()),
                    settings.kind,
                );
                (sent, copy.delay)
            })
            .collect();
        let results = self.send_to(&settings.url, messages).await;
        accepted(copies.iter().map(|copy| &copy.envelope.identity), results)
    }

    async fn hold(&self, holds: &[Hold]) -> Vec<Result<Accepted, PortError>> {
        const OPERATION: &str = "ChangeMessageVisibilityBatch";
        let requests = holds
            .iter()
            .map(|hold| {
                Ok((
                    0,
                    (handle(&hold.original.receipt)?, visibility_seconds(hold.visibility)?),
                ))
            })
            .collect();
        let (client, url) = (self.inner.client.clone(), self.inner.settings.url.clone());
        let call = move |batch: Vec<(String, i32)>| {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let entries: Result<Vec<_>, _> = batch
                    .into_iter()
                    .enumerate()
                    .map(|(id, (handle, seconds))| {
                        ChangeMessageVisibilityBatchRequestEntry::builder()
                            .id(id.to_string())
                            .receipt_handle(handle)
                            .visibility_timeout(seconds)
                            .build()
                            .map_err(|error| Failure::local(error.to_string()))
                    })
                    .collect();
                let call = client
                    .change_message_visibility_batch()
                    .queue_url(url)
                    .set_entries(Some(entries?));
                let output = call.send().await.map_err(|error| Failure::of_call(OPERATION, error))?;
                let mut answer = Answer::default();
                for entry in output.successful() {
                    answer.done(entry.id(), "");
                }
                note_failed(&mut answer, OPERATION, output.failed());
                Ok(answer)
            }
        };
        let results = self.in_batches(OPERATION, requests, usize::MAX, call).await;
        let named = results
            .into_iter()
            .zip(holds)
            .map(|(result, hold)| owned(result).map(|_| hold.original.id.clone()));
        accepted(holds.iter().map(|hold| &hold.envelope.identity), named.collect())
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<Accepted, PortError>> {
        let settings = &self.inner.settings;
        let Some(url) = &settings.dead_letter_url else {
            let none = || PortError::from(Failure::local("no dead-letter queue is configured (ADJOURN_DLQ_URL)"));
            return letters.iter().map(|_| Err(none())).collect();
        };
        let messages = letters
            .iter()
            .map(|letter| {
                let identity = &letter.envelope.identity;
                let copy = |envelope| Outgoing::copy(&letter.original, identity, envelope, settings.kind);
                let whole = copy(Some(letter.envelope.write()));
                // Better a dead letter without its story than none.
                let fits = whole.check(settings.kind, settings.max_message_bytes).is_ok();
                (if fits { whole } else { copy(None) }, Duration::ZERO)
            })
            .collect();
        let results = self.send_to(url, messages).await;
        accepted(letters.iter().map(|letter| &letter.envelope.identity), results)
    }

    async fn delete(&self, deletions: &[Deletion]) -> Vec<Result<(), PortError>> {
        const OPERATION: &str = "DeleteMessageBatch";
        let requests = deletions
            .iter()
            .map(|deletion| Ok((0, handle(&deletion.original.receipt)?)))
            .collect();
        let (client, url) = (self.inner.client.clone(), self.inner.settings.url.clone());
        let call = move |batch: Vec<String>| {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let entries: Result<Vec<_>, _> = batch
                    .into_iter()
                    .enumerate()
                    .map(|(id, handle)| {
                        DeleteMessageBatchRequestEntry::builder()
                            .id(id.to_string())
                            .receipt_handle(handle)
                            .build()
                            .map_err(|error| Failure::local(error.to_string()))
                    })
                    .collect();
                let call = client.delete_message_batch().queue_url(url).set_entries(Some(entries?));
                let output = call.send().await.map_err(|error| Failure::of_call(OPERATION, error))?;
                let mut answer = Answer::default();
                for entry in output.successful() {
                    answer.done(entry.id(), "");
                }
                note_failed(&mut answer, OPERATION, output.failed());
                Ok(answer)
            }
        };
        let results = self.in_batches(OPERATION, requests, usize::MAX, call).await;
        ported(results.into_iter().map(|result| owned(result).map(drop)).collect())
    }
}

#[cfg(test)]
mod tests {
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
}
