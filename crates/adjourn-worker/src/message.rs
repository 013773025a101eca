//! A message as a queue delivered it: the customer's, byte for byte.

use std::collections::BTreeMap;

use adjourn_core::{Content, MAX_ENVELOPE_BYTES, Timestamp};

/// The one attribute that is ours.
pub const ENVELOPE_ATTRIBUTE: &str = "adjourn";

/// The most attributes that a message may have (SQS DG, message quotas).
const MAX_ATTRIBUTES: usize = 10;

/// A message with everything that has to survive a hand-off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue's own id of this message.
    pub id: String,
    /// What settles this delivery: a receipt handle, a lease's token.
    pub receipt: String,
    /// The queue it came from, as the envelope's hash knows it.
    pub queue: String,
    /// The body.
    pub body: String,
    /// Every attribute, ours included.
    pub attributes: BTreeMap<String, Attribute>,
    /// The message group, which on a standard queue names the tenant.
    pub group: Option<String>,
    /// The deduplication id of a FIFO message.
    pub deduplication_id: Option<String>,
    /// The trace header, a system attribute.
    pub trace_header: Option<String>,
    /// When it was sent, by the queue's clock.
    pub sent_at: Timestamp,
    /// When it was first received, by the queue's clock.
    pub first_received_at: Timestamp,
    /// When this delivery was received, by ours.
    pub received_at: Timestamp,
    /// How often it was received, this time included.
    pub receive_count: u32,
}

/// An attribute with its type, which may carry a custom label (`Number.int`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// `String`, `Number` or `Binary`, with an optional label after a point.
    pub data_type: String,
    /// Its value.
    pub value: AttributeValue,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Of a `String` or a `Number`.
    Text(String),
    /// Of a `Binary`.
    Bytes(Vec<u8>),
}

impl Attribute {
    /// A `String` attribute.
    #[must_use]
    pub fn text(value: &str) -> Self {
        Self {
            data_type: "String".to_string(),
            value: AttributeValue::Text(value.to_string()),
        }
    }

    /// The bytes of its value.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether its value is empty, which SQS refuses to take back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Message {
    /// What an envelope of this message is bound to.
    #[must_use]
    pub fn content(&self) -> Content {
        Content::of(&self.queue, self.group.as_deref(), self.body.as_bytes())
    }

    /// The text of our attribute.
    #[must_use]
    pub fn envelope_text(&self) -> Option<&str> {
        match &self.attributes.get(ENVELOPE_ATTRIBUTE)?.value {
            AttributeValue::Text(text) => Some(text),
            AttributeValue::Bytes(_) => Some(""),
        }
    }

    /// The customer's attributes that a queue takes back: all but ours, and none that is empty (SQS refuses those).
    pub fn customer_attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.attributes
            .iter()
            .filter(|(name, attribute)| name.as_str() != ENVELOPE_ATTRIBUTE && !attribute.is_empty())
            .map(|(name, attribute)| (name.as_str(), attribute))
    }

    /// The bytes that count towards a queue's limits: body, and names, types and values of the customer's attributes.
    #[must_use]
    pub fn customer_bytes(&self) -> usize {
        self.customer_attributes()
            .map(|(name, attribute)| name.len() + attribute.data_type.len() + attribute.len())
            .sum::<usize>()
            + self.body.len()
    }

    /// Whether a copy can carry the envelope beside what the customer put on it, in a queue of `max_bytes` a message.
    #[must_use]
    pub fn has_room(&self, max_bytes: usize) -> bool {
        let ours = ENVELOPE_ATTRIBUTE.len() + "String".len() + MAX_ENVELOPE_BYTES;
        self.customer_attributes().count() < MAX_ATTRIBUTES && self.customer_bytes() + ours <= max_bytes
    }

    /// Whether an attribute is binary, or the body or an attribute holds a keyword that EventBridge Scheduler replaces
    /// (Scheduler UG, context attributes).
    #[must_use]
    pub fn upsets_a_scheduler(&self) -> bool {
        const KEYWORD: &str = "<aws.scheduler.";
        let odd = |text: &str| text.contains(KEYWORD);
        odd(&self.body)
            || self.group.as_deref().is_some_and(odd)
            || self.customer_attributes().any(|(name, attribute)| {
                odd(name)
                    || match &attribute.value {
                        AttributeValue::Text(text) => odd(text),
                        AttributeValue::Bytes(_) => true,
                    }
            })
    }
}
