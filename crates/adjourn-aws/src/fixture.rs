//! What the tests of this crate start from: one message with everything on it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjourn_core::{Content, DeferralId, Envelope, Identity, Mechanism, Timestamp};
use adjourn_worker::{
    Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message, POLICY_VERSION, Receipt, Transition,
    port::{Copy, ScheduledCopy},
};

pub(crate) const QUEUE_ARN: &str = "arn:aws:sqs:eu-west-1:111122223333:jobs";

pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

pub(crate) fn message() -> Message {
    let label = |data_type: &str, value| Attribute {
        data_type: data_type.to_string(),
        value,
    };
    Message {
        id: "m-1".to_string(),
        receipt: "handle-1".to_string(),
        queue: QUEUE_ARN.to_string(),
        body: "{\"n\":1,\"word\":\"naïve\"}".to_string(),
        attributes: BTreeMap::from([
            (
                "colour".to_string(),
                label("String.paint", AttributeValue::Text("red".to_string())),
            ),
            (
                "count".to_string(),
                label("Number", AttributeValue::Text("3".to_string())),
            ),
            (
                "blob".to_string(),
                label("Binary", AttributeValue::Bytes(vec![0, 255, 7])),
            ),
            ("empty".to_string(), Attribute::text("")),
            (ENVELOPE_ATTRIBUTE.to_string(), Attribute::text("an older one")),
        ]),
        group: Some("tenant-1".to_string()),
        deduplication_id: None,
        trace_header: Some("Root=1-abc".to_string()),
        sent_at: now() - Duration::from_secs(60),
        first_received_at: now() - Duration::from_secs(30),
        received_at: now(),
        receive_count: 1,
    }
}

/// The same, without what a scheduler cannot carry.
pub(crate) fn plain_message() -> Message {
    let mut message = message();
    message.attributes.remove("blob");
    message
}

pub(crate) fn identity() -> Identity {
    Identity::first(DeferralId::new("m-1")).next()
}

pub(crate) fn envelope(due: Timestamp) -> Envelope {
    let mut envelope = Envelope::first(
        DeferralId::new("m-1"),
        now() - Duration::from_secs(60),
        Content::of(QUEUE_ARN, Some("tenant-1"), message().body.as_bytes()),
    );
    envelope.identity = identity();
    envelope.due = due;
    envelope
}

pub(crate) fn receipt() -> Receipt {
    Receipt {
        at: now(),
        transition: Transition::Deferred,
        cause: "refused".to_string(),
        until: None,
        mechanism: Mechanism::Delay,
        sequence: 1,
        gate: None,
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: None,
    }
}

pub(crate) fn copies(count: usize, delay: Duration) -> Vec<Copy> {
    (0..count)
        .map(|n| {
            let mut envelope = envelope(now() + delay);
            envelope.identity = Identity::first(DeferralId::new(&format!("m-{n}"))).next();
            Copy {
                original: Arc::new(message()),
                envelope,
                delay,
                receipt: receipt(),
            }
        })
        .collect()
}

pub(crate) fn scheduled(at: Timestamp, due: Timestamp) -> ScheduledCopy {
    ScheduledCopy {
        original: Arc::new(plain_message()),
        envelope: envelope(due),
        at,
        receipt: receipt(),
    }
}
