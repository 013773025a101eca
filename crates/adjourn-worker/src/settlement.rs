//! What becomes of an original: deleted with a proof, or kept.

use adjourn_core::{Discarded, Identity};

use crate::port::Accepted;

/// The proof that a copy of a step is durable. Made only from a port's answer that names that very step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    accepted: Accepted,
}

impl Handoff {
    /// The proof, if `accepted` names the step that was to be handed on.
    pub(crate) fn proven(expected: &Identity, accepted: Accepted) -> Option<Self> {
        (accepted.identity == *expected).then_some(Self { accepted })
    }

    /// The step that is durable.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.accepted.identity
    }

    /// The port's own name for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.accepted.name
    }
}

/// Why an original may be deleted. Nothing outside this crate can make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    because: Because,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Because {
    Completed,
    Dropped(String),
    Discarded(Discarded),
    Handoff(Handoff),
}

impl Proof {
    pub(crate) fn completed() -> Self {
        Self {
            because: Because::Completed,
        }
    }

    pub(crate) fn dropped(reason: String) -> Self {
        Self {
            because: Because::Dropped(reason),
        }
    }

    pub(crate) fn discarded(why: Discarded) -> Self {
        Self {
            because: Because::Discarded(why),
        }
    }

    pub(crate) fn handoff(handoff: Handoff) -> Self {
        Self {
            because: Because::Handoff(handoff),
        }
    }

    /// Whether the job is done.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.because == Because::Completed
    }

    /// Why the integration dropped the job, if it did.
    #[must_use]
    pub fn drop_reason(&self) -> Option<&str> {
        match &self.because {
            Because::Dropped(reason) => Some(reason),
            Because::Completed | Because::Discarded(_) | Because::Handoff(_) => None,
        }
    }

    /// Why the wake-up was discarded, if it was.
    #[must_use]
    pub fn discard_reason(&self) -> Option<Discarded> {
        match &self.because {
            Because::Discarded(why) => Some(*why),
            Because::Completed | Because::Dropped(_) | Because::Handoff(_) => None,
        }
    }

    /// The durable copy, if the job was handed on.
    #[must_use]
    pub fn as_handoff(&self) -> Option<&Handoff> {
        match &self.because {
            Because::Handoff(handoff) => Some(handoff),
            Because::Completed | Because::Dropped(_) | Because::Discarded(_) => None,
        }
    }
}

/// What becomes of an original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It may be deleted.
    Delete(Proof),
    /// It stays in its queue.
    Keep,
}
