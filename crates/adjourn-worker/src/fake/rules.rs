//! What SQS refuses of a message that is sent to it (SQS API, SendMessage; DG, message quotas and message metadata).

use std::{collections::BTreeMap, time::Duration};

use adjourn_core::QueueKind;

use crate::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message, port::PortError};

/// The most bytes of a message, and of a batch of messages.
pub(crate) const MAX_BYTES: usize = 1_048_576;
/// The most messages of a batch call.
pub(crate) const MAX_ENTRIES: usize = 10;
const MAX_DELAY: Duration = Duration::from_secs(900);
const MAX_ATTRIBUTES: usize = 10;
const MAX_NAME: usize = 256;
const MAX_ID: usize = 128;

/// A message on its way to a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The body.
    pub body: String,
    /// The message attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// The message group.
    pub group: Option<String>,
    /// The deduplication id, on FIFO queues only.
    pub deduplication_id: Option<String>,
    /// The one system attribute that may be sent; it counts towards no limit.
    pub trace_header: Option<String>,
    /// `DelaySeconds`; the fake takes a span so that a fraction can be refused.
    pub delay: Duration,
}

impl Outgoing {
    /// A message that is nothing but its body.
    #[must_use]
    pub fn body(body: &str) -> Self {
        Self {
            body: body.to_string(),
            ..Self::default()
        }
    }

    /// What a copy of `original` with this envelope is: the customer's message and our one attribute.
    pub(crate) fn copy_of(original: &Message, envelope: &str) -> Self {
        let mut attributes: BTreeMap<String, Attribute> = original
            .customer_attributes()
            .map(|(name, attribute)| (name.to_string(), attribute.clone()))
            .collect();
        attributes.insert(ENVELOPE_ATTRIBUTE.to_string(), Attribute::text(envelope));
        Self {
            body: original.body.clone(),
            attributes,
            group: original.group.clone(),
            deduplication_id: None,
            trace_header: original.trace_header.clone(),
            delay: Duration::ZERO,
        }
    }

    /// The bytes that count towards the limits.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let attributes: usize = self
            .attributes
            .iter()
            .map(|(name, attribute)| name.len() + attribute.data_type.len() + attribute.len())
            .sum();
        self.body.len() + attributes
    }

    /// Refuses what SQS refuses.
    pub(crate) fn check(&self, kind: QueueKind, max_bytes: usize) -> Result<(), PortError> {
        self.check_body(max_bytes)?;
        if self.attributes.len() > MAX_ATTRIBUTES {
            return refuse(format!(
                "MessageAttributes: {} of them, at most {MAX_ATTRIBUTES} are allowed",
                self.attributes.len()
            ));
        }
        for (name, attribute) in &self.attributes {
            check_name(name)?;
            check_attribute(name, attribute)?;
        }
        for (field, id) in [
            ("MessageGroupId", &self.group),
            ("MessageDeduplicationId", &self.deduplication_id),
        ] {
            if let Some(id) = id {
                check_id(field, id)?;
            }
        }
        match kind {
            QueueKind::Standard => self.check_standard(),
            QueueKind::Fifo => self.check_fifo(),
        }
    }

    fn check_body(&self, max_bytes: usize) -> Result<(), PortError> {
        if self.body.is_empty() {
            return refuse("MessageBody: empty, at least 1 character is needed".to_string());
        }
        if let Some(odd) = self.body.chars().find(|&c| !is_allowed(c)) {
            return refuse(format!("MessageBody: holds {:?}, which SQS does not take", odd));
        }
        if self.bytes() > max_bytes {
            return refuse(format!(
                "message: {} bytes with its attributes, at most {max_bytes} are allowed",
                self.bytes()
            ));
        }
        Ok(())
    }

    fn check_standard(&self) -> Result<(), PortError> {
        if self.deduplication_id.is_some() {
            return refuse("MessageDeduplicationId: only FIFO queues take one".to_string());
        }
        if self.delay > MAX_DELAY || self.delay.subsec_nanos() > 0 {
            return refuse(format!(
                "DelaySeconds: {} s, whole seconds from 0 to 900 are allowed",
                self.delay.as_secs_f64()
            ));
        }
        Ok(())
    }

    fn check_fifo(&self) -> Result<(), PortError> {
        if !self.delay.is_zero() {
            return refuse("DelaySeconds: a FIFO queue takes none for a message".to_string());
        }
        if self.group.is_none() || self.deduplication_id.is_none() {
            return refuse("MessageGroupId and MessageDeduplicationId: a FIFO queue needs both".to_string());
        }
        Ok(())
    }
}

fn refuse(words: String) -> Result<(), PortError> {
    Err(PortError::refused(words))
}

/// `#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF`.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

fn check_name(name: &str) -> Result<(), PortError> {
    let lower = name.to_ascii_lowercase();
    let spelled = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let dotted = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    let reserved = lower.starts_with("aws.") || lower.starts_with("amazon.");
    if name.is_empty() || name.len() > MAX_NAME || !spelled || dotted || reserved {
        return refuse(format!(
            "MessageAttributes: the name {name:?} is not 1 to {MAX_NAME} of A-Z a-z 0-9 _ - . without a leading, trailing or doubled period and without the prefix AWS. or Amazon."
        ));
    }
    Ok(())
}

fn check_attribute(name: &str, attribute: &Attribute) -> Result<(), PortError> {
    let base = attribute
        .data_type
        .split_once('.')
        .map_or(attribute.data_type.as_str(), |(base, _)| base);
    let fits = match &attribute.value {
        AttributeValue::Text(_) => matches!(base, "String" | "Number"),
        AttributeValue::Bytes(_) => base == "Binary",
    };
    if !fits || attribute.data_type.len() > MAX_NAME {
        return refuse(format!(
            "MessageAttributes: {name:?} has the type {:?}, which is not String, Number or Binary for its value",
            attribute.data_type
        ));
    }
    if attribute.is_empty() {
        return refuse(format!("MessageAttributes: {name:?} is empty, a value is needed"));
    }
    match &attribute.value {
        AttributeValue::Text(text) if !text.chars().all(is_allowed) => refuse(format!(
            "MessageAttributes: {name:?} holds a character that SQS does not take"
        )),
        AttributeValue::Text(_) | AttributeValue::Bytes(_) => Ok(()),
    }
}

fn check_id(field: &str, id: &str) -> Result<(), PortError> {
    if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(|b| b.is_ascii_graphic()) {
        return refuse(format!(
            "{field}: {id:?} is not 1 to {MAX_ID} letters, digits and punctuation"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, attribute: Attribute) -> Outgoing {
        let mut message = Outgoing::body("{}");
        message.attributes.insert(name.to_string(), attribute);
        message
    }

    fn refused(message: &Outgoing, kind: QueueKind) -> String {
        message.check(kind, MAX_BYTES).unwrap_err().to_string()
    }

    #[test]
    fn names_of_attributes_follow_the_documented_rules() {
        for name in [
            ".a",
            "a.",
            "a..b",
            "AWS.x",
            "amazon.x",
            "a b",
            "ü",
            "",
            &"n".repeat(257),
        ] {
            assert!(
                refused(&with(name, Attribute::text("v")), QueueKind::Standard).contains("the name"),
                "{name:?}"
            );
        }
        for name in ["a", "A-b_c.d", "awsx", &"n".repeat(256)] {
            with(name, Attribute::text("v"))
                .check(QueueKind::Standard, MAX_BYTES)
                .unwrap();
        }
    }

    #[test]
    fn an_empty_value_and_a_wrong_type_are_refused() {
        assert!(refused(&with("a", Attribute::text("")), QueueKind::Standard).contains("empty"));
        let odd = Attribute {
            data_type: "Binary.x".to_string(),
            value: AttributeValue::Text("v".to_string()),
        };
        assert!(refused(&with("a", odd), QueueKind::Standard).contains("the type"));
        let labelled = Attribute {
            data_type: "Number.int".to_string(),
            value: AttributeValue::Text("7".to_string()),
        };
        with("a", labelled).check(QueueKind::Standard, MAX_BYTES).unwrap();
    }

    #[test]
    fn ten_attributes_are_taken_and_eleven_are_not() {
        let mut message = Outgoing::body("{}");
        for n in 0..10 {
            message.attributes.insert(format!("a{n}"), Attribute::text("v"));
        }
        message.check(QueueKind::Standard, MAX_BYTES).unwrap();
        message.attributes.insert("a10".to_string(), Attribute::text("v"));
        assert!(refused(&message, QueueKind::Standard).contains("11 of them"));
    }

    #[test]
    fn a_delay_is_whole_seconds_up_to_900() {
        let mut message = Outgoing::body("{}");
        for ok in [0, 1, 900] {
            message.delay = Duration::from_secs(ok);
            message.check(QueueKind::Standard, MAX_BYTES).unwrap();
        }
        for odd in [Duration::from_secs(901), Duration::from_millis(1500)] {
            message.delay = odd;
            assert!(refused(&message, QueueKind::Standard).contains("DelaySeconds"));
        }
    }

    #[test]
    fn a_fifo_queue_wants_a_group_and_a_deduplication_id_and_no_delay() {
        let mut message = Outgoing::body("{}");
        assert!(refused(&message, QueueKind::Fifo).contains("needs both"));
        message.group = Some("g".to_string());
        message.deduplication_id = Some("d".to_string());
        message.check(QueueKind::Fifo, MAX_BYTES).unwrap();
        assert!(refused(&message, QueueKind::Standard).contains("only FIFO"));
        message.delay = Duration::from_secs(1);
        assert!(refused(&message, QueueKind::Fifo).contains("takes none"));
    }

    #[test]
    fn a_body_of_control_characters_is_refused() {
        for odd in ["", "a\u{0}", "\u{b}", "\u{FFFE}"] {
            assert!(
                refused(&Outgoing::body(odd), QueueKind::Standard).contains("MessageBody"),
                "{odd:?}"
            );
        }
        Outgoing::body("\t\n\r \u{1F600}")
            .check(QueueKind::Standard, MAX_BYTES)
            .unwrap();
    }
}
