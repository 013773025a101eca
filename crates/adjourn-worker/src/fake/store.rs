//! What one SQS queue does on its own, as a function of the moment: delays, visibility, receives, redrive, retention,
//! deduplication and the order of groups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use adjourn_core::{QueueKind, Timestamp};

use super::rules::Outgoing;
use crate::{Message, port::PortError};

/// How long a FIFO queue remembers a deduplication id (SQS API, SendMessage).
const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(300);

/// A message as the queue keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The message; its receipt is that of the newest receive.
    pub message: Message,
    /// Not delivered before this moment: the end of its delay or of its visibility timeout.
    pub visible_at: Timestamp,
    /// When the newest receive was, for a message that has not become visible since.
    pub in_flight_since: Option<Timestamp>,
}

/// What a queue forgot or gave up on its own.
#[derive(Debug, Default)]
pub(crate) struct Departed {
    /// Lost at the end of the retention.
    pub(crate) expired: Vec<Message>,
    /// Past the last permitted receive: to the dead-letter queue.
    pub(crate) redriven: Vec<Message>,
}

/// The state of one queue.
#[derive(Debug)]
pub(crate) struct Store {
    kind: QueueKind,
    name: String,
    messages: BTreeMap<u64, Stored>,
    sent: u64,
    receives: u64,
    accepted_ids: HashMap<String, (Timestamp, String)>,
}

impl Store {
    pub(crate) fn new(kind: QueueKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_string(),
            messages: BTreeMap::new(),
            sent: 0,
            receives: 0,
            accepted_ids: HashMap::new(),
        }
    }

    /// Takes a message that was checked, and answers its id. A deduplication id that is remembered is accepted and the
    /// message is never delivered.
    pub(crate) fn accept(&mut self, outgoing: Outgoing, now: Timestamp) -> String {
        let id = format!("{}-{}", self.name, self.sent + 1);
        if let Some(dedup) = &outgoing.deduplication_id {
            self.accepted_ids
                .retain(|_, (at, _)| now.since(*at) < DEDUPLICATION_WINDOW);
            if let Some((_, first)) = self.accepted_ids.get(dedup) {
                return first.clone();
            }
            self.accepted_ids.insert(dedup.clone(), (now, id.clone()));
        }
        let visible_at = now + outgoing.delay;
        let message = Message {
            id: id.clone(),
            receipt: String::new(),
            queue: self.name.clone(),
            body: outgoing.body,
            attributes: outgoing.attributes,
            group: outgoing.group,
            deduplication_id: outgoing.deduplication_id,
            trace_header: outgoing.trace_header,
            sent_at: now,
            first_received_at: now,
            received_at: now,
            receive_count: 0,
        };
        self.put(message, visible_at);
        id
    }

    /// Takes what another queue gave up. A standard queue keeps the time of the original sending, a FIFO queue does not.
    pub(crate) fn take_over(&mut self, mut message: Message, now: Timestamp) {
        if self.kind == QueueKind::Fifo {
            message.sent_at = now;
        }
        message.receipt.clear();
        self.put(message, now);
    }

    fn put(&mut self, message: Message, visible_at: Timestamp) {
        self.sent += 1;
        let stored = Stored {
            message,
            visible_at,
            in_flight_since: None,
        };
        self.messages.insert(self.sent, stored);
    }

    /// A second delivery of a message, as a standard queue may make on its own.
    pub(crate) fn repeat(&mut self, id: &str) -> bool {
        let Some(again) = self.messages.values().find(|stored| stored.message.id == id).cloned() else {
            return false;
        };
        self.sent += 1;
        self.messages.insert(self.sent, again);
        true
    }

    /// What the passing of time does: visibility timeouts end, old messages are forgotten.
    fn settle(&mut self, now: Timestamp, retention: Duration, departed: &mut Departed) {
        let over: Vec<u64> = self
            .messages
            .iter()
            .filter(|(_, stored)| stored.message.sent_at + retention <= now)
            .map(|(&place, _)| place)
            .collect();
        for place in over {
            departed
                .expired
                .extend(self.messages.remove(&place).map(|stored| stored.message));
        }
        for stored in self.messages.values_mut() {
            if stored.visible_at <= now {
                stored.in_flight_since = None;
            }
        }
    }

    pub(crate) fn receive(
        &mut self,
        most: usize,
        now: Timestamp,
        rules: &super::QueueSettings,
        departed: &mut Departed,
    ) -> Result<Vec<Message>, PortError> {
        self.settle(now, rules.retention, departed);
        let mut in_flight = self.in_flight();
        if self.kind == QueueKind::Standard && in_flight >= rules.in_flight_limit {
            return Err(PortError::throttled(format!(
                "OverLimit: {in_flight} messages are in flight, {} are allowed",
                rules.in_flight_limit
            )));
        }
        let mut blocked: BTreeSet<String> = self
            .messages
            .values()
            .filter(|stored| self.kind == QueueKind::Fifo && stored.in_flight_since.is_some())
            .filter_map(|stored| stored.message.group.clone())
            .collect();
        let mut taken = Vec::new();
        let mut given_up = Vec::new();
        for (&place, stored) in &mut self.messages {
            if taken.len() >= most.min(10) || in_flight >= rules.in_flight_limit {
                break;
            }
            if self.kind == QueueKind::Fifo && stored.message.group.as_ref().is_some_and(|of| blocked.contains(of)) {
                continue;
            }
            if stored.visible_at > now {
                // A message of a group that cannot be delivered yet holds back those behind it.
                blocked.extend(stored.message.group.clone());
                continue;
            }
            let last = rules
                .max_receive_count
                .is_some_and(|max| stored.message.receive_count >= max);
            if last && rules.dead_letters {
                given_up.push(place);
                continue;
            }
            self.receives += 1;
            in_flight += 1;
            let message = &mut stored.message;
            if message.receive_count == 0 {
                message.first_received_at = now;
            }
            message.receive_count += 1;
            message.received_at = now;
            message.receipt = format!("{}/{}", message.id, self.receives);
            stored.visible_at = now + rules.visibility_timeout;
            stored.in_flight_since = Some(now);
            taken.push(message.clone());
        }
        for place in given_up {
            departed
                .redriven
                .extend(self.messages.remove(&place).map(|stored| stored.message));
        }
        Ok(taken)
    }

    /// Deletes what a receipt stands for. One that a newer receive has replaced is accepted and deletes nothing; on a FIFO
    /// queue one whose visibility timeout has ended is refused.
    pub(crate) fn delete(&mut self, receipt: &str, now: Timestamp) -> Result<(), PortError> {
        let Some(place) = self.place_of(receipt) else {
            return Ok(());
        };
        let expired = self.messages.get(&place).is_some_and(|stored| stored.visible_at <= now);
        if self.kind == QueueKind::Fifo && expired {
            return Err(PortError::refused("ReceiptHandleIsInvalid: it has expired"));
        }
        self.messages.remove(&place);
        Ok(())
    }

    pub(crate) fn change_visibility(
        &mut self,
        receipt: &str,
        visibility: Duration,
        now: Timestamp,
        longest: Duration,
    ) -> Result<String, PortError> {
        if visibility > longest || visibility.subsec_nanos() > 0 {
            return Err(PortError::refused(format!(
                "VisibilityTimeout: {} s, whole seconds from 0 to {} are allowed",
                visibility.as_secs_f64(),
                longest.as_secs()
            )));
        }
        let found = self.place_of(receipt).and_then(|place| self.messages.get_mut(&place));
        let Some((stored, since)) = found
            .filter(|stored| stored.visible_at > now)
            .and_then(|stored| stored.in_flight_since.map(|since| (stored, since)))
        else {
            return Err(PortError::refused(
                "MessageNotInflight: this receipt hides no message any more",
            ));
        };
        if now + visibility > since + longest {
            return Err(PortError::refused(format!(
                "VisibilityTimeout: it would end more than {} s after the receive",
                longest.as_secs()
            )));
        }
        stored.visible_at = now + visibility;
        Ok(stored.message.id.clone())
    }

    /// Whether this receipt is the newest of its message and still hides it: the lease of a queue with transactions.
    pub(crate) fn is_leased(&self, receipt: &str, now: Timestamp) -> bool {
        self.place_of(receipt)
            .and_then(|place| self.messages.get(&place))
            .is_some_and(|stored| stored.visible_at > now)
    }

    fn place_of(&self, receipt: &str) -> Option<u64> {
        self.messages
            .iter()
            .find(|(_, stored)| !receipt.is_empty() && stored.message.receipt == receipt)
            .map(|(&place, _)| place)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.messages
            .values()
            .filter(|stored| stored.in_flight_since.is_some())
            .count()
    }

    pub(crate) fn stored(&self) -> Vec<Stored> {
        self.messages.values().cloned().collect()
    }

    /// The next moment at which something can be received; none in an empty queue.
    pub(crate) fn next_receivable_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.kind {
            QueueKind::Standard => self.messages.values().map(|stored| stored.visible_at).min(),
            QueueKind::Fifo => {
                let mut groups: BTreeMap<Option<&str>, Timestamp> = BTreeMap::new();
                for stored in self.messages.values() {
                    let in_flight = stored.in_flight_since.is_some() && stored.visible_at > now;
                    let opens = groups
                        .entry(stored.message.group.as_deref())
                        .or_insert(stored.visible_at);
                    if in_flight {
                        *opens = (*opens).max(stored.visible_at);
                    }
                }
                groups.into_values().min()
            }
        }
    }
}
