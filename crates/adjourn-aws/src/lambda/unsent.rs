//! Schedules that could not send: their Inputs come back through a dead-letter queue of their own and are sent again.
//!
//! EventBridge Scheduler puts the Input into the body of the dead letter, and why it gave up into message attributes
//! (Scheduler User Guide, configuring a dead-letter queue).

use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;

use crate::{Outgoing, SqsQueue, schedule_input::decode};

/// Sends what these records hold to `queue` at `queue_url`, and answers for each record whether it may go. One that is no
/// Input of ours stays for a person.
pub(crate) async fn send_again(queue: &SqsQueue, queue_url: &str, records: &[SqsMessage]) -> Vec<bool> {
    let mut may_go = vec![false; records.len()];
    let (mut places, mut messages) = (Vec::new(), Vec::new());
    for (place, record) in records.iter().enumerate() {
        let id = record.message_id.as_deref().unwrap_or_default();
        match read(record, queue_url) {
            Ok(message) => {
                tracing::warn!(
                    message_id = id,
                    code = why(record, "ERROR_CODE"),
                    reason = why(record, "ERROR_MESSAGE"),
                    "a schedule could not send its job; it is sent now"
                );
                places.push(place);
                messages.push((message, Duration::ZERO));
            }
            Err(words) => {
                tracing::error!(
                    message_id = id,
                    reason = words,
                    "a dead letter of the schedules is not ours and stays"
                );
            }
        }
    }
    for (place, result) in places.into_iter().zip(queue.send(messages).await) {
        match (may_go.get_mut(place), result) {
            (Some(place), Ok(_)) => *place = true,
            (_, Ok(_)) => {}
            (_, Err(error)) => {
                tracing::warn!(%error, "a schedule's job could not be sent again; its dead letter stays")
            }
        }
    }
    may_go
}

fn read(record: &SqsMessage, queue_url: &str) -> Result<Outgoing, String> {
    let (url, message) = decode(record.body.as_deref().unwrap_or_default()).map_err(|failure| failure.to_string())?;
    if url != queue_url {
        return Err(format!("it is for {url}, and this worker's queue is {queue_url}"));
    }
    Ok(message)
}

fn why<'a>(record: &'a SqsMessage, attribute: &str) -> &'a str {
    let value = record.message_attributes.get(attribute);
    value
        .and_then(|value| value.string_value.as_deref())
        .unwrap_or("not said")
}
