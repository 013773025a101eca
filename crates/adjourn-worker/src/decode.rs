//! From what a queue delivered to what a worker can decide about.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use adjourn_core::{DeferralId, Envelope, Facts, Reading};

use crate::{Delivery, Handler, Message, Terms, Undecodable, Worker};

/// A message with its envelope and its terms, or the reason why it is no job.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub(crate) message: Arc<Message>,
    pub(crate) envelope: Envelope,
    pub(crate) handed_on: bool,
    pub(crate) terms: Result<Arc<Terms>, Undecodable>,
}

impl Decoded {
    /// Reads and clamps the envelope, and asks the handler for the terms. A handler that panics over a message has said
    /// that it is no job.
    pub(crate) fn read<H: Handler>(worker: &Worker<H>, message: Arc<Message>) -> Self {
        let content = message.content();
        let first = || Envelope::first(DeferralId::new(&message.id), message.sent_at, content);
        let (envelope, handed_on) = match Envelope::read(message.envelope_text(), content, worker.inner.clock.now()) {
            Reading::Absent => (first(), false),
            Reading::Read { envelope, clamped } => {
                if clamped {
                    tracing::warn!(message_id = %message.id, "the envelope held values that cannot be; they were clamped");
                }
                (envelope, true)
            }
            Reading::Rejected(problem) => {
                tracing::warn!(message_id = %message.id, %problem, "the envelope is none of this message's; it is treated as absent");
                (first(), false)
            }
        };
        let terms = catch_unwind(AssertUnwindSafe(|| worker.inner.handler.terms(&message)))
            .unwrap_or_else(|_| Err(Undecodable::new("the handler panicked while it read the message")))
            .map(|terms| Arc::new(named_for_life(terms, &message, &envelope)));
        Self {
            message,
            envelope,
            handed_on,
            terms,
        }
    }

    /// What is known of the job when something is decided about it.
    ///
    /// A hold cannot write. Without a ledger its receives are the only trace that it left, so each counts as a deferral and
    /// the first receive as the first of them.
    pub(crate) fn facts<H>(&self, worker: &Worker<H>) -> Facts {
        let unexplained = if worker.inner.ledger.is_some() {
            0
        } else {
            self.message.receive_count.saturating_sub(1)
        };
        let first_held = (unexplained > 0).then_some(self.message.first_received_at);
        Facts {
            counters: self.envelope.counters,
            unexplained_receives: unexplained,
            first_deferred_at: self.envelope.first_deferred_at.or(first_held),
            unnamed_since: self.envelope.unnamed_since,
            deadline: self.terms.as_ref().ok().and_then(|terms| terms.deadline),
            found_turn: None,
        }
    }

    pub(crate) fn delivery(&self, max_receive_count: Option<u32>) -> Delivery {
        let receive_count = self.message.receive_count;
        Delivery {
            receive_count,
            max_receive_count,
            is_last_attempt: max_receive_count.is_some_and(|max| receive_count >= max),
        }
    }
}

/// A job without a name of its own goes by the id of its message, and a copy has another one: so it keeps the id of its
/// original message.
fn named_for_life(mut terms: Terms, message: &Message, envelope: &Envelope) -> Terms {
    let id = envelope.identity.id.as_str();
    if terms.job_id == message.id {
        id.clone_into(&mut terms.job_id);
    }
    if terms.run.as_deref() == Some(message.id.as_str()) {
        terms.run = Some(id.to_string());
    }
    terms
}
