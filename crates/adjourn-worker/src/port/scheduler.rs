//! The scheduler: one-time schedules that send a copy later.

use std::sync::Arc;

use adjourn_core::{Envelope, ScheduleReach, Timestamp};
use async_trait::async_trait;

use super::{Accepted, PortError};
use crate::{Message, Receipt};

/// Sends copies at a moment in the future.
#[async_trait]
pub trait Scheduler: Send + Sync + std::fmt::Debug + 'static {
    /// What it can do.
    fn reach(&self) -> ScheduleReach;

    /// Whether it can carry this message: its size, no binary attribute, no keyword of its own.
    fn carries(&self, message: &Message) -> bool;

    /// Makes one-time schedules; making the same one again is a success.
    async fn schedule(&self, copies: &[ScheduledCopy]) -> Vec<Result<Accepted, PortError>>;
}

/// A copy to be sent by a schedule.
#[derive(Clone, Debug)]
pub struct ScheduledCopy {
    /// What it is a copy of.
    pub original: Arc<Message>,
    /// The envelope that it carries.
    pub envelope: Envelope,
    /// When the schedule fires.
    pub at: Timestamp,
    /// The line for the job's history.
    pub receipt: Receipt,
}
