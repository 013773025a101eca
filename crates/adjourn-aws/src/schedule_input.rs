//! The `Input` of a schedule's universal target: `SendMessage`'s request as JSON, written by us and read strictly.
//!
//! The target is `arn:aws:scheduler:::aws-sdk:sqs:sendMessage`, and its Input is the API's JSON with the API's own names in
//! PascalCase (Scheduler User Guide, universal targets).

use std::collections::BTreeMap;

use adjourn_core::QueueKind;
use adjourn_worker::{Attribute, AttributeValue};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    outgoing::{MAX_DELAY_S, Outgoing},
};

/// `SendMessage`, as far as we use it. A field that is not ours makes an Input somebody else's.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendMessage {
    queue_url: String,
    message_body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "SystemAttributes::is_empty")]
    message_system_attributes: SystemAttributes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_group_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_deduplication_id: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemAttributes {
    #[serde(rename = "AWSTraceHeader", default, skip_serializing_if = "Option::is_none")]
    trace_header: Option<Value>,
}

impl SystemAttributes {
    fn is_empty(&self) -> bool {
        self.trace_header.is_none()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Value {
    data_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
}

impl Value {
    fn text(value: String) -> Self {
        Self {
            data_type: "String".to_string(),
            string_value: Some(value),
            binary_value: None,
        }
    }

    fn of(attribute: Attribute) -> Self {
        let (string_value, binary_value) = match attribute.value {
            AttributeValue::Text(text) => (Some(text), None),
            AttributeValue::Bytes(bytes) => (None, Some(BASE64_STANDARD.encode(bytes))),
        };
        Self {
            data_type: attribute.data_type,
            string_value,
            binary_value,
        }
    }

    fn read(self, name: &str) -> Result<Attribute, Failure> {
        let value = match (self.string_value, self.binary_value) {
            (Some(text), None) => AttributeValue::Text(text),
            (None, Some(base64)) => AttributeValue::Bytes(
                BASE64_STANDARD
                    .decode(base64)
                    .map_err(|error| Failure::local(format!("attribute {name}: BinaryValue is no base64: {error}")))?,
            ),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Failure::local(format!(
                    "attribute {name}: one of StringValue and BinaryValue is needed"
                )));
            }
        };
        Ok(Attribute {
            data_type: self.data_type,
            value,
        })
    }
}

/// The Input that sends `message` to the queue at `queue_url`, without a delay: the schedule has done the waiting.
pub(crate) fn encode(message: Outgoing, queue_url: &str, kind: QueueKind) -> Result<String, Failure> {
    let input = SendMessage {
        queue_url: queue_url.to_string(),
        message_body: message.body,
        // Absent, the queue's own delay would apply; a FIFO queue refuses it.
        delay_seconds: (kind == QueueKind::Standard).then_some(0),
        message_attributes: message
            .attributes
            .into_iter()
            .map(|(name, value)| (name, Value::of(value)))
            .collect(),
        message_system_attributes: SystemAttributes {
            trace_header: message.trace_header.map(Value::text),
        },
        message_group_id: message.group,
        message_deduplication_id: message.deduplication_id,
    };
    serde_json::to_string(&input).map_err(|error| Failure::local(error.to_string()))
}

/// Reads an Input that [`encode`] may have written: the queue that it names, and the message.
pub(crate) fn decode(input: &str) -> Result<(String, Outgoing), Failure> {
    let input: SendMessage = serde_json::from_str(input)
        .map_err(|error| Failure::local(format!("not a SendMessage request of ours: {error}")))?;
    if input.delay_seconds.is_some_and(|seconds| seconds > MAX_DELAY_S) {
        return Err(Failure::local(format!("DelaySeconds is above {MAX_DELAY_S}")));
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in input.message_attributes {
        let attribute = value.read(&name)?;
        attributes.insert(name, attribute);
    }
    let trace_header = match input
        .message_system_attributes
        .trace_header
        .map(|value| value.read("AWSTraceHeader"))
    {
        Some(Ok(Attribute {
            value: AttributeValue::Text(text),
            ..
        })) => Some(text),
        Some(Ok(_)) => return Err(Failure::local("AWSTraceHeader is not a String")),
        Some(Err(failure)) => return Err(failure),
        None => None,
    };
    let message = Outgoing {
        body: input.message_body,
        attributes,
        group: input.message_group_id,
        deduplication_id: input.message_deduplication_id,
        trace_header,
    };
    Ok((input.queue_url, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use proptest::prelude::*;

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";

    fn copy(kind: QueueKind) -> Outgoing {
        Outgoing::copy(
            &fixture::plain_message(),
            &fixture::identity(),
            Some("{\"v\":1}".to_string()),
            kind,
        )
    }

    #[test]
    fn an_input_is_the_api_s_json_in_pascal_case() {
        let input: serde_json::Value =
            serde_json::from_str(&encode(copy(QueueKind::Standard), URL, QueueKind::Standard).unwrap()).unwrap();
        let expected = serde_json::json!({
            "QueueUrl": URL,
            "MessageBody": "{\"n\":1,\"word\":\"naïve\"}",
            "DelaySeconds": 0,
            "MessageAttributes": {
                "adjourn": {"DataType": "String", "StringValue": "{\"v\":1}"},
                "colour": {"DataType": "String.paint", "StringValue": "red"},
                "count": {"DataType": "Number", "StringValue": "3"},
            },
            "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-abc"}},
            "MessageGroupId": "tenant-1",
        });
        assert_eq!(input, expected);
    }

    #[test]
    fn a_fifo_input_has_a_deduplication_id_and_never_a_delay() {
        let input: serde_json::Value =
            serde_json::from_str(&encode(copy(QueueKind::Fifo), URL, QueueKind::Fifo).unwrap()).unwrap();
        assert_eq!(input.get("DelaySeconds"), None);
        assert_eq!(input["MessageDeduplicationId"], fixture::identity().name());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut message = copy(QueueKind::Standard);
        message.attributes.insert(
            "blob".to_string(),
            Attribute {
                data_type: "Binary.png".to_string(),
                value: AttributeValue::Bytes(vec![0, 159, 255]),
            },
        );
        let input = encode(message.clone(), URL, QueueKind::Standard).unwrap();
        assert_eq!(decode(&input).unwrap(), (URL.to_string(), message));
    }

    #[test]
    fn anything_else_is_not_ours() {
        let refused = [
            ("", "not a SendMessage"),
            ("{}", "missing field `QueueUrl`"),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","queueUrl":"v"}"#,
                "unknown field `queueUrl`",
            ),
            (r#"{"QueueUrl":"u","MessageBody":7}"#, "expected a string"),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":901}"#,
                "DelaySeconds is above 900",
            ),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":-1}"#,
                "not a SendMessage",
            ),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","MessageAttributes":{"a":{"DataType":"String"}}}"#,
                "one of StringValue and BinaryValue",
            ),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"*"}}}"#,
                "no base64",
            ),
            (
                r#"{"QueueUrl":"u","MessageBody":"b","MessageSystemAttributes":{"Other":{"DataType":"String","StringValue":"x"}}}"#,
                "unknown field `Other`",
            ),
        ];
        for (input, words) in refused {
            let error = decode(input).unwrap_err().to_string();
            assert!(error.contains(words), "{input}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_body_and_group_round_trip(body in ".{0,80}", group in proptest::option::of(".{1,20}")) {
            let mut message = Outgoing::new(&body);
            message.group = group;
            let input = encode(message.clone(), URL, QueueKind::Standard).unwrap();
            prop_assert_eq!(decode(&input).unwrap().1, message);
        }

        #[test]
        fn any_input_is_answered_without_a_panic(input in ".{0,200}") {
            let _ = decode(&input);
        }
    }
}
