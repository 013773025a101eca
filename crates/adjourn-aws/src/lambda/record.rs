//! One record of an SQS event as a message.

use std::{error::Error, fmt};

use adjourn_core::Timestamp;
use adjourn_worker::{Attribute, AttributeValue, Message};
use aws_lambda_events::event::sqs::{SqsMessage, SqsMessageAttribute};

/// A record that lacks what only SQS can have put there. It fails the invocation: nothing could be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoRecord {
    message_id: Option<String>,
    field: &'static str,
    found: Option<String>,
    allowed: &'static str,
}

impl fmt::Display for NoRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.message_id.as_deref().unwrap_or("without an id");
        let found = self.found.as_deref().unwrap_or("nothing");
        write!(
            f,
            "SQS record {id}: {} is {found:?}; {} is needed",
            self.field, self.allowed
        )
    }
}

impl Error for NoRecord {}

/// The message id of a record.
pub(crate) fn id_of(record: &SqsMessage) -> Result<&str, NoRecord> {
    match record.message_id.as_deref() {
        Some(id) if !id.is_empty() => Ok(id),
        found => Err(NoRecord {
            message_id: None,
            field: "messageId",
            found: found.map(str::to_string),
            allowed: "the message's id",
        }),
    }
}

/// The ARN of a record's queue.
pub(crate) fn queue_of(record: &SqsMessage) -> Result<&str, NoRecord> {
    match record.event_source_arn.as_deref() {
        Some(arn) if !arn.is_empty() => Ok(arn),
        found => Err(NoRecord {
            message_id: record.message_id.clone(),
            field: "eventSourceARN",
            found: found.map(str::to_string),
            allowed: "the queue's ARN",
        }),
    }
}

/// The message of a record. A body or a receipt handle may be absent: such a message ends alone.
pub(crate) fn message_of(record: SqsMessage, received_at: Timestamp) -> Result<Message, NoRecord> {
    let id = id_of(&record)?.to_string();
    let queue = queue_of(&record)?.to_string();
    let system = record.attributes;
    let number = |field: &'static str, allowed: &'static str| {
        let found = system.get(field);
        found.and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| NoRecord {
            message_id: Some(id.clone()),
            field,
            found: found.cloned(),
            allowed,
        })
    };
    let moment = |field| {
        let ms = number(field, "epoch milliseconds")?;
        Ok(Timestamp::from_unix_ms(i64::try_from(ms).unwrap_or(i64::MAX)))
    };
    let receive_count = number("ApproximateReceiveCount", "a count")?;
    let message = Message {
        sent_at: moment("SentTimestamp")?,
        first_received_at: moment("ApproximateFirstReceiveTimestamp")?,
        received_at,
        receive_count: u32::try_from(receive_count).unwrap_or(u32::MAX),
        queue,
        receipt: record.receipt_handle.unwrap_or_default(),
        body: record.body.unwrap_or_default(),
        attributes: record
            .message_attributes
            .into_iter()
            .map(|(name, value)| (name, attribute(value)))
            .collect(),
        group: system.get("MessageGroupId").cloned(),
        deduplication_id: system.get("MessageDeduplicationId").cloned(),
        trace_header: system.get("AWSTraceHeader").cloned(),
        id,
    };
    Ok(message)
}

fn attribute(value: SqsMessageAttribute) -> Attribute {
    let binary = value
        .data_type
        .as_deref()
        .is_some_and(|data_type| data_type.split('.').next() == Some("Binary"));
    let (fallback, content) = match (value.binary_value, value.string_value) {
        (Some(bytes), _) if binary => ("Binary", AttributeValue::Bytes(bytes.0)),
        (_, Some(text)) => ("String", AttributeValue::Text(text)),
        (Some(bytes), None) => ("Binary", AttributeValue::Bytes(bytes.0)),
        (None, None) => ("String", AttributeValue::Text(String::new())),
    };
    Attribute {
        data_type: value.data_type.unwrap_or_else(|| fallback.to_string()),
        value: content,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::{Value, json};

    /// A record as SQS writes it.
    pub(crate) fn record(id: &str, body: &str) -> Value {
        json!({
            "messageId": id,
            "receiptHandle": format!("handle-{id}"),
            "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1783714367000",
                "ApproximateFirstReceiveTimestamp": "1783714368000",
                "SenderId": "AIDA",
                "MessageGroupId": "tenant-1",
                "AWSTraceHeader": "Root=1-abc",
            },
            "messageAttributes": {
                "colour": {"stringValue": "red", "stringListValues": [], "binaryListValues": [], "dataType": "String.paint"},
                "count": {"stringValue": "3", "dataType": "Number"},
                "blob": {"binaryValue": "AP8H", "dataType": "Binary.png"},
            },
            "md5OfBody": "x",
            "eventSource": "aws:sqs",
            "eventSourceARN": fixture::QUEUE_ARN,
            "awsRegion": "eu-west-1",
        })
    }

    fn read(value: Value) -> Result<Message, NoRecord> {
        message_of(serde_json::from_value(value).unwrap(), fixture::now())
    }

    #[test]
    fn a_record_becomes_a_message_with_everything_on_it() {
        let message = read(record("m-1", "{\"n\":1}")).unwrap();
        assert_eq!((message.id.as_str(), message.receipt.as_str()), ("m-1", "handle-m-1"));
        assert_eq!(
            (message.queue.as_str(), message.body.as_str()),
            (fixture::QUEUE_ARN, "{\"n\":1}")
        );
        assert_eq!(message.sent_at, Timestamp::from_unix_ms(1_783_714_367_000));
        assert_eq!(message.first_received_at, Timestamp::from_unix_ms(1_783_714_368_000));
        assert_eq!((message.received_at, message.receive_count), (fixture::now(), 1));
        assert_eq!(message.group.as_deref(), Some("tenant-1"));
        assert_eq!(message.trace_header.as_deref(), Some("Root=1-abc"));
        assert_eq!(message.attributes["blob"].data_type, "Binary.png");
        assert_eq!(message.attributes["blob"].value, AttributeValue::Bytes(vec![0, 255, 7]));
        assert_eq!(message.attributes["colour"].data_type, "String.paint");
        assert_eq!(message.attributes["count"].value, AttributeValue::Text("3".to_string()));
    }

    #[test]
    fn a_message_without_body_or_receipt_is_still_a_message() {
        let mut bare = record("m-1", "");
        bare["body"] = Value::Null;
        bare["receiptHandle"] = Value::Null;
        bare["messageAttributes"] = Value::Null;
        let message = read(bare).unwrap();
        assert_eq!((message.body.as_str(), message.receipt.as_str()), ("", ""));
        assert!(message.attributes.is_empty());
    }

    #[test]
    fn what_only_sqs_can_say_is_missed_by_name() {
        let table = [
            ("/messageId", Value::Null, "messageId"),
            ("/messageId", json!(""), "messageId"),
            ("/eventSourceARN", Value::Null, "eventSourceARN"),
            ("/attributes", Value::Null, "ApproximateReceiveCount"),
            (
                "/attributes/ApproximateReceiveCount",
                json!("many"),
                "ApproximateReceiveCount",
            ),
            ("/attributes/SentTimestamp", json!("-1"), "SentTimestamp"),
            (
                "/attributes/ApproximateFirstReceiveTimestamp",
                json!(""),
                "ApproximateFirstReceiveTimestamp",
            ),
        ];
        for (pointer, value, field) in table {
            let mut broken = record("m-1", "{}");
            *broken.pointer_mut(pointer).unwrap() = value;
            let error = read(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{pointer}: {error}");
        }
    }
}
