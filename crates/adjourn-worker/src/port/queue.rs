//! The queue: where messages come from, go back to and end.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Ending, Envelope, Identity, Reach, Timestamp};
use async_trait::async_trait;

use super::PortError;
use crate::{Done, Message, Proof, Receipt};

/// A queue that delivers messages, delays copies, hides originals and keeps dead letters.
///
/// The original of a copy is deleted by a later [`Queue::delete`], or by whatever reads the batch's response, and never
/// before the copy is durable. A queue that can do both in one transaction may; then the deletion finds nothing left.
#[async_trait]
pub trait Queue: Send + Sync + std::fmt::Debug + 'static {
    /// What this queue can do; its `schedule` is filled in by the scheduler.
    fn reach(&self) -> Reach;

    /// The most bytes of a message, attributes included.
    fn max_message_bytes(&self) -> usize;

    /// Sends copies, each with its delay.
    async fn resend(&self, copies: &[Copy]) -> Vec<Result<Accepted, PortError>>;

    /// Keeps originals invisible.
    async fn hold(&self, holds: &[Hold]) -> Vec<Result<Accepted, PortError>>;

    /// Sends copies to the dead-letter queue.
    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<Accepted, PortError>>;

    /// Deletes originals, each with the proof that it may go.
    async fn delete(&self, deletions: &[Deletion]) -> Vec<Result<(), PortError>>;
}

/// A copy to be sent.
#[derive(Clone, Debug)]
pub struct Copy {
    /// What it is a copy of.
    pub original: Arc<Message>,
    /// The envelope that it carries.
    pub envelope: Envelope,
    /// The queue's delay.
    pub delay: Duration,
    /// The line for the job's history.
    pub receipt: Receipt,
}

/// An original to be hidden.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The original.
    pub original: Arc<Message>,
    /// The envelope that its next step would carry if a hold could write.
    pub envelope: Envelope,
    /// Whole seconds of visibility timeout, from now on.
    pub visibility: Duration,
    /// The moment that these seconds cover.
    pub until: Timestamp,
    /// The line for the job's history.
    pub receipt: Receipt,
}

/// A copy for the dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// What it is a copy of.
    pub original: Arc<Message>,
    /// The envelope, with the end in it.
    pub envelope: Envelope,
    /// How the job ended.
    pub ending: Ending,
    /// The line for the job's history.
    pub receipt: Receipt,
}

/// An original to be deleted.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// The original.
    pub original: Arc<Message>,
    /// Why it may go.
    pub proof: Proof,
    /// What the job brought, when it is done.
    pub done: Option<Done>,
    /// The line for the job's history; none where the hand-off has already written it.
    pub receipt: Option<Receipt>,
}

/// What a port says that it took over: the step, and the name under which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The step that is durable now.
    pub identity: Identity,
    /// The port's own name for it: a message id, a schedule's name.
    pub name: String,
}
