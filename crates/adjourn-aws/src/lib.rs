//! adjourn on AWS.
//!
//! A worker's waits have to be held outside of compute: here by an SQS queue's delays and visibility timeouts and by
//! one-time schedules of EventBridge Scheduler. This crate carries out what `adjourn-core` decided, through the ports of
//! `adjourn-worker`, and says honestly what the services took over and what they refused.
//!
//! ```no_run
//! use std::sync::Arc;
//! use adjourn_aws::{Clients, Environment, EventBridgeScheduler, Patience, Settings, SqsQueue};
//! use adjourn_worker::SystemClock;
//!
//! # async fn start() -> Result<(), adjourn_aws::Mistakes> {
//! let environment = Environment::of_process();
//! let settings = Settings::read(&environment)?;
//! let clients = Clients::connect(&environment, &settings.queue, Patience::WORKER).await?;
//! let queue = SqsQueue::new(&clients, settings.queue.clone());
//! let scheduler = settings.schedules.clone().map(|schedules| {
//!     EventBridgeScheduler::new(&clients, schedules, &settings.queue, Arc::new(SystemClock))
//! });
//! # drop((queue, scheduler));
//! # Ok(())
//! # }
//! ```
//!
//! The map: `settings` what the environment says · `clients` the SDK with its limits · `sqs` the queue port · `scheduler` the
//! scheduler port, with `schedule_input` for what a schedule sends · `outgoing` one message on its way out · `calls` batches
//! and their accounts · `failure` what an SDK's error means · `lambda` the entry point of a function (feature `lambda`).

mod calls;
mod clients;
mod failure;
#[cfg(test)]
mod fixture;
#[cfg(feature = "lambda")]
pub mod lambda;
mod outgoing;
mod schedule_input;
mod scheduler;
mod settings;
mod sqs;

pub use clients::{Clients, Patience};
pub use outgoing::Outgoing;
pub use scheduler::EventBridgeScheduler;
pub use settings::{Environment, Mistake, Mistakes, QueueSettings, ScheduleSettings, Settings};
pub use sqs::{Counts, QueueCounts, SqsQueue};
