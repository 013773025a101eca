//! The driver: it takes what a queue delivered and leaves nothing undecided.
//!
//! Who writes a worker by hand writes the same things each time, and one of them wrong: a refusal that spends an attempt, a
//! copy that is sent after its original was deleted, a batch that fails because of one record, a wait inside compute. A
//! [`Worker`] does them once. You bring a [`Handler`] that performs a job and says what came of it; the worker asks before a
//! job starts (is it due, is its scope open, is there time?), lets it run in a task of its own, decides what its outcome means,
//! makes that durable through its ports, and answers which messages may go.
//!
//! ```
//! # #[cfg(feature = "test-util")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use std::{sync::Arc, time::Duration};
//! use adjourn_core::{Signal, Timestamp};
//! use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Settlement, VirtualClock, Worker, fake::FakeQueue};
//!
//! struct Invoices(Arc<VirtualClock>);
//!
//! impl Handler for Invoices {
//!     async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
//!         match job.body() {
//!             "paid" => Ok(Done::new()),
//!             _ => Err(Interrupt::throttled(
//!                 Signal::new("acme", self.0.now()).reason("burst").retry_at(self.0.now() + Duration::from_secs(30)),
//!             )),
//!         }
//!     }
//! }
//!
//! let clock = Arc::new(VirtualClock::starting_at(Timestamp::EPOCH));
//! let queue = FakeQueue::standard("invoices", clock.clone());
//! queue.send_body("paid").unwrap();
//! queue.send_body("not now").unwrap();
//!
//! let worker = Worker::builder(Invoices(clock.clone()), Arc::new(queue.clone())).clock(clock.clone()).build();
//! let batch = queue.receive(10).await.unwrap();
//! let settled = worker.run_batch(batch, None).await;
//!
//! // Both originals may go: one is done, and of the other a copy is durable that the queue delivers in 30 s.
//! assert!(settled.iter().all(|one| matches!(one.settlement, Settlement::Delete(_))));
//! assert!(queue.next_receivable_at().unwrap() >= clock.now() + Duration::from_secs(30));
//! # }
//! # #[cfg(not(feature = "test-util"))]
//! # fn main() {}
//! ```
//!
//! The map: [`Message`] what a queue delivered · [`Handler`], [`RateLimitedHandler`] what a user writes · [`RateLimited`] the
//! event · [`InProcess`] a running job's time · [`port`] what the worker needs from the world · `decode`, `perform`, `settle`
//! the journey of one message · `batch` many of them · [`Gates`] what one refusal teaches the others · [`Settlement`],
//! [`Proof`] what becomes of an original · `fake` (feature `test-util`) the ports in memory, on a clock that tests move.
mod batch;
mod clock;
mod counter;
mod decode;
mod event;
#[cfg(feature = "test-util")]
pub mod fake;
mod gates;
mod handler;
mod in_process;
mod message;
mod noted;
mod perform;
pub mod port;
mod receipt;
mod settle;
mod settlement;
mod verdict;
mod worker;

#[cfg(feature = "test-util")]
pub use clock::VirtualClock;
pub use clock::{Clock, SystemClock};
pub use counter::Counter;
pub use event::{EventMessage, Notice, NoticeDecision, RateLimited};
pub use gates::Gates;
pub use handler::{Delivery, Done, Handler, Interrupt, Job, RateLimitedHandler, Terms, Undecodable};
pub use in_process::InProcess;
pub use message::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message};
pub use perform::Performed;
pub use receipt::{POLICY_VERSION, Receipt, Transition};
pub use settle::Settled;
pub use settlement::{Handoff, Proof, Settlement};
pub use worker::{Worker, WorkerBuilder};
