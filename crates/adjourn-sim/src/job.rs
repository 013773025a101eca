//! A simulated job: the JSON body of its message.

use std::time::Duration;

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::{Attribute, Message, Terms, Undecodable, fake::Outgoing};
use serde::{Deserialize, Serialize};

/// A job of a simulated system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimJob {
    /// The caller's name for it.
    pub id: String,
    /// The provider that it calls.
    pub provider: String,
    /// What its handler does.
    #[serde(default)]
    pub act: Act,
    /// Whether its call may be made twice.
    #[serde(default = "yes")]
    pub repeatable: bool,
    /// Not before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// After this moment it is useless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// How long its call may take.
    #[serde(default = "thirty_seconds")]
    pub timeout_ms: u64,
    /// The message group that its message has.
    #[serde(skip)]
    pub group: Option<String>,
    /// How many attributes its message has already.
    #[serde(skip)]
    pub attributes: usize,
}

/// What a job's handler does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// It calls its provider.
    #[default]
    Call,
    /// It panics.
    Panic,
    /// It never comes back.
    Hang,
    /// It kills its process.
    Kill,
}

fn yes() -> bool {
    true
}

fn thirty_seconds() -> u64 {
    30_000
}

impl SimJob {
    /// A repeatable job that calls `provider`.
    #[must_use]
    pub fn new(id: &str, provider: &str) -> Self {
        Self {
            id: id.to_string(),
            provider: provider.to_string(),
            act: Act::Call,
            repeatable: true,
            not_before: None,
            deadline: None,
            timeout_ms: thirty_seconds(),
            group: None,
            attributes: 0,
        }
    }

    /// What its handler does.
    #[must_use]
    pub fn act(mut self, act: Act) -> Self {
        self.act = act;
        self
    }

    /// Its call may not be made twice.
    #[must_use]
    pub fn unrepeatable(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// The message group that its message has.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_string());
        self
    }

    /// How many attributes its message has already; ten leave no room for the envelope.
    #[must_use]
    pub fn attributes(mut self, count: usize) -> Self {
        self.attributes = count;
        self
    }

    pub(crate) fn outgoing(&self, fifo: bool) -> Outgoing {
        let attributes = (0..self.attributes).map(|n| (format!("a{n}"), Attribute::text("v")));
        Outgoing {
            body: serde_json::to_string(self).unwrap_or_default(),
            attributes: attributes.collect(),
            group: self.group.clone().or_else(|| fifo.then(|| self.id.clone())),
            deduplication_id: fifo.then(|| self.id.clone()),
            ..Outgoing::default()
        }
    }

    pub(crate) fn read(message: &Message) -> Result<Self, Undecodable> {
        serde_json::from_str(&message.body).map_err(|error| Undecodable::new(&format!("no simulated job: {error}")))
    }

    pub(crate) fn terms(&self, message: &Message) -> Terms {
        Terms {
            job_id: self.id.clone(),
            provider: self.provider.clone(),
            scope: ScopeKey::provider(&self.provider),
            not_before: self.not_before,
            deadline: self.deadline,
            repeatable: self.repeatable,
            timeout: Duration::from_millis(self.timeout_ms),
            ..Terms::of(message)
        }
    }
}
