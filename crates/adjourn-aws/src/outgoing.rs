//! A message on its way out: the one value from which a batch entry and a schedule's input are built.

use std::collections::BTreeMap;

use adjourn_core::{Identity, QueueKind};
use adjourn_worker::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message};
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry,
};
use aws_smithy_types::Blob;

use crate::failure::Failure;

/// The most attributes of a message (SQS DG, message quotas).
pub(crate) const MAX_ATTRIBUTES: usize = 10;
/// The longest `DelaySeconds` (SQS API, SendMessage).
pub(crate) const MAX_DELAY_S: u64 = 900;

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The body, at least one character.
    pub body: String,
    /// Its attributes, at most ten, none of them empty.
    pub attributes: BTreeMap<String, Attribute>,
    /// The message group: needed on a FIFO queue, the tenant on a standard one.
    pub group: Option<String>,
    /// The deduplication id, for a FIFO queue.
    pub deduplication_id: Option<String>,
    /// The trace header, a system attribute.
    pub trace_header: Option<String>,
}

impl Outgoing {
    /// A message with this body and nothing else.
    #[must_use]
    pub fn new(body: &str) -> Self {
        Self {
            body: body.to_string(),
            attributes: BTreeMap::new(),
            group: None,
            deduplication_id: None,
            trace_header: None,
        }
    }

    /// A faithful copy of `original`, with this envelope in the place of its own, as the step `identity`.
    pub(crate) fn copy(original: &Message, identity: &Identity, envelope: Option<String>, kind: QueueKind) -> Self {
        let mut attributes: BTreeMap<_, _> = original
            .customer_attributes()
            .map(|(name, attribute)| (name.to_string(), attribute.clone()))
            .collect();
        if let Some(envelope) = envelope {
            attributes.insert(ENVELOPE_ATTRIBUTE.to_string(), Attribute::text(&envelope));
        }
        Self {
            body: original.body.clone(),
            attributes,
            group: original.group.clone(),
            // The original's own id would be deduplicated against the original (SQS API, SendMessage: five minutes).
            deduplication_id: (kind == QueueKind::Fifo).then(|| identity.name()),
            trace_header: original.trace_header.clone(),
        }
    }

    /// The bytes that count towards a queue's limits: body, and names, types and values of its attributes.
    pub(crate) fn bytes(&self) -> usize {
        self.attributes
            .iter()
            .map(|(name, value)| name.len() + value.data_type.len() + value.len())
            .sum::<usize>()
            + self.body.len()
    }

    /// What a queue of this kind would refuse, said before any call.
    pub(crate) fn check(&self, kind: QueueKind, max_bytes: usize) -> Result<(), Failure> {
        let attributes = self.attributes.len();
        if self.body.is_empty() {
            return Err(Failure::local(
                "the body is empty; a queue takes at least one character",
            ));
        }
        if attributes > MAX_ATTRIBUTES {
            return Err(Failure::local(format!(
                "{attributes} attributes; a message has at most {MAX_ATTRIBUTES}"
            )));
        }
        let bytes = self.bytes();
        if bytes > max_bytes {
            return Err(Failure::local(format!(
                "{bytes} bytes with attributes; the queue takes at most {max_bytes}"
            )));
        }
        if kind == QueueKind::Fifo && (self.group.is_none() || self.deduplication_id.is_none()) {
            return Err(Failure::local(
                "a FIFO queue needs a message group and a deduplication id",
            ));
        }
        Ok(())
    }

    /// The entry `id` of a batch call. `DelaySeconds` is always there on a standard queue, also when it is 0, since the
    /// queue's own delay would apply otherwise; a FIFO queue refuses it.
    pub(crate) fn into_entry(
        self,
        id: usize,
        delay_seconds: i32,
        kind: QueueKind,
    ) -> Result<SendMessageBatchRequestEntry, Failure> {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(id.to_string())
            .message_body(self.body)
            .set_message_group_id(self.group);
        match kind {
            QueueKind::Standard => entry = entry.delay_seconds(delay_seconds),
            QueueKind::Fifo => entry = entry.set_message_deduplication_id(self.deduplication_id),
        }
        for (name, attribute) in self.attributes {
            entry = entry.message_attributes(name, value(attribute)?);
        }
        if let Some(header) = self.trace_header {
            let header = MessageSystemAttributeValue::builder()
                .data_type("String")
                .string_value(header)
                .build();
            let header = header.map_err(|error| Failure::local(error.to_string()))?;
            entry = entry.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, header);
        }
        entry.build().map_err(|error| Failure::local(error.to_string()))
    }
}

fn value(attribute: Attribute) -> Result<MessageAttributeValue, Failure> {
    let value = MessageAttributeValue::builder().data_type(attribute.data_type);
    let value = match attribute.value {
        AttributeValue::Text(text) => value.string_value(text),
        AttributeValue::Bytes(bytes) => value.binary_value(Blob::new(bytes)),
    };
    value.build().map_err(|error| Failure::local(error.to_string()))
}

/// A delay in `DelaySeconds`' unit and range.
pub(crate) fn delay_seconds(delay: std::time::Duration, kind: QueueKind) -> Result<i32, Failure> {
    if kind == QueueKind::Fifo && !delay.is_zero() {
        return Err(Failure::local(format!(
            "a FIFO queue delays no single message, and {delay:?} was asked"
        )));
    }
    let whole = delay.subsec_nanos() == 0 && delay.as_secs() <= MAX_DELAY_S;
    i32::try_from(delay.as_secs()).ok().filter(|_| whole).ok_or_else(|| {
        Failure::local(format!(
            "a delay of {delay:?}; whole seconds from 0 to {MAX_DELAY_S} are allowed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::time::Duration;

    #[test]
    fn a_copy_keeps_what_the_customer_put_on_it() {
        let original = fixture::message();
        let identity = fixture::identity();
        let copy = Outgoing::copy(&original, &identity, Some("{}".to_string()), QueueKind::Standard);
        assert_eq!(copy.body, original.body);
        assert_eq!(copy.attributes["colour"].data_type, "String.paint");
        assert_eq!(copy.attributes["blob"].value, AttributeValue::Bytes(vec![0, 255, 7]));
        assert_eq!(
            copy.attributes[ENVELOPE_ATTRIBUTE],
            Attribute::text("{}"),
            "ours is replaced"
        );
        assert!(!copy.attributes.contains_key("empty"), "SQS refuses an empty value");
        assert_eq!(
            (copy.group.as_deref(), &copy.deduplication_id),
            (Some("tenant-1"), &None)
        );
        assert_eq!(copy.bytes(), original.customer_bytes() + "adjournString{}".len());

        let entry = Outgoing::copy(&original, &identity, None, QueueKind::Standard)
            .into_entry(3, 0, QueueKind::Standard)
            .unwrap();
        assert_eq!((entry.id(), entry.delay_seconds), ("3", Some(0)), "0 is sent too");
        let header = &entry.message_system_attributes().unwrap()[&MessageSystemAttributeNameForSends::AwsTraceHeader];
        assert_eq!(header.string_value(), Some("Root=1-abc"));
        assert_eq!(
            entry.message_attributes().unwrap()["blob"]
                .binary_value()
                .unwrap()
                .as_ref(),
            [0, 255, 7]
        );
    }

    #[test]
    fn a_fifo_copy_has_an_id_of_its_own_and_no_delay() {
        let copy = Outgoing::copy(&fixture::message(), &fixture::identity(), None, QueueKind::Fifo);
        let entry = copy.into_entry(0, 0, QueueKind::Fifo).unwrap();
        assert_eq!(
            entry.message_deduplication_id(),
            Some(fixture::identity().name().as_str())
        );
        assert_eq!(entry.delay_seconds, None);
    }

    #[test]
    fn a_delay_outside_of_what_a_queue_takes_is_refused_here() {
        let s = Duration::from_secs;
        assert_eq!(delay_seconds(s(900), QueueKind::Standard).unwrap(), 900);
        assert_eq!(delay_seconds(s(0), QueueKind::Fifo).unwrap(), 0);
        for (delay, kind) in [
            (s(901), QueueKind::Standard),
            (Duration::from_millis(1500), QueueKind::Standard),
            (Duration::MAX, QueueKind::Standard),
            (s(1), QueueKind::Fifo),
        ] {
            assert!(delay_seconds(delay, kind).is_err(), "{delay:?} on {kind:?}");
        }
    }

    #[test]
    fn what_a_queue_would_refuse_is_named() {
        let mut many = Outgoing::new("x");
        for n in 0..11 {
            many.attributes.insert(format!("a{n}"), Attribute::text("v"));
        }
        let refusals = [
            (Outgoing::new(""), QueueKind::Standard, 100, "body is empty"),
            (many, QueueKind::Standard, 1000, "11 attributes"),
            (Outgoing::new("12345"), QueueKind::Standard, 4, "5 bytes"),
            (Outgoing::new("x"), QueueKind::Fifo, 100, "message group"),
        ];
        for (message, kind, max, words) in refusals {
            let error = message.check(kind, max).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
