//! The RATE_LIMITED event, as the integration's handler and the event sinks see it.

use std::collections::BTreeMap;

use adjourn_core::{Kind, Mechanism, Signal, Source, Timestamp};
use serde::Serialize;

use crate::{AttributeValue, Delivery, Message, Terms};

/// A body above this is left out of the copy for event sinks.
const MAX_SINK_BODY: usize = 64 * 1024;

/// One refusal of one job. Its JSON form is the outward contract.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimited {
    #[serde(rename = "type")]
    event_type: &'static str,
    version: u32,
    /// The moment that the provider named.
    pub retry_at: Option<Timestamp>,
    /// The wait that it named, from the receipt of its response.
    pub wait_ms: Option<u64>,
    /// Why, in words.
    pub reason: String,
    /// Which limit refused.
    pub kind: Kind,
    /// The provider.
    pub provider: String,
    /// The scope whose gate it closes.
    pub scope_key: String,
    /// The response's status.
    pub status: Option<u16>,
    /// What named the moment.
    pub source: Source,
    /// The job's name for life.
    pub deferral_id: String,
    /// The step that this refusal makes.
    pub sequence: u32,
    /// How often the job has been deferred, this time included.
    pub deferrals: u32,
    /// When it was first deferred; none when this is the first time.
    pub first_deferred_at: Option<Timestamp>,
    /// The message.
    pub message: EventMessage,
    /// How this delivery stands with its queue.
    pub delivery: Delivery,
}

/// The message of an event.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventMessage {
    /// The queue's id of it.
    pub id: String,
    /// Its body; left out of a sink's copy when it is over 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether the body was left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub body_omitted: bool,
    /// The customer's text attributes.
    pub attributes: BTreeMap<String, String>,
}

/// The copy of an event that sinks get, with what was decided.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The event.
    #[serde(flatten)]
    pub event: RateLimited,
    /// What became of the job.
    pub decision: NoticeDecision,
}

/// What became of a refused job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoticeDecision {
    /// `defer`, `retry`, `drop`, `exhaust`, `reject`, or another end's word.
    pub kind: &'static str,
    /// How the wait is held.
    pub mechanism: Mechanism,
    /// Until when.
    pub until: Option<Timestamp>,
}

impl RateLimited {
    pub(crate) fn new(
        signal: &Signal,
        message: &Message,
        terms: &Terms,
        step: &adjourn_core::Identity,
        deferrals: u32,
        first_deferred_at: Option<Timestamp>,
        delivery: Delivery,
    ) -> Self {
        let attributes = message
            .customer_attributes()
            .filter_map(|(name, attribute)| match &attribute.value {
                AttributeValue::Text(text) => Some((name.to_string(), text.clone())),
                AttributeValue::Bytes(_) => None,
            })
            .collect();
        Self {
            event_type: "RATE_LIMITED",
            version: 1,
            retry_at: signal.earliest_retry_at(),
            wait_ms: signal
                .wait()
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            reason: signal.why().to_string(),
            kind: signal.limit_kind(),
            provider: signal.provider().to_string(),
            scope_key: signal.closes().unwrap_or(&terms.scope).to_string(),
            status: signal.observation().status,
            source: signal.source(),
            deferral_id: step.id.to_string(),
            sequence: step.sequence,
            deferrals,
            first_deferred_at,
            message: EventMessage {
                id: message.id.clone(),
                body: Some(message.body.clone()),
                body_omitted: false,
                attributes,
            },
            delivery,
        }
    }

    pub(crate) fn decided(mut self, decision: NoticeDecision) -> Notice {
        if self
            .message
            .body
            .as_ref()
            .is_some_and(|body| body.len() > MAX_SINK_BODY)
        {
            self.message.body = None;
            self.message.body_omitted = true;
        }
        Notice { event: self, decision }
    }
}
