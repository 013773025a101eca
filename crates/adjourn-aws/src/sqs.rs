//! The queue port on SQS.

#[cfg(test)]
mod tests;

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
