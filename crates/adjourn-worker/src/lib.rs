//! The driver: it takes what a queue delivered and leaves nothing undecided.
mod batch;
mod clock;
mod decode;
mod event;
#[cfg(feature = "test-util")]
pub mod fake;
mod gates;
mod handler;
mod message;
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
pub use event::{EventMessage, Notice, NoticeDecision, RateLimited};
pub use gates::Gates;
pub use handler::{Delivery, Done, Handler, Interrupt, Job, RateLimitedHandler, Terms, Undecodable};
pub use message::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message};
pub use perform::Performed;
pub use receipt::{POLICY_VERSION, Receipt, Transition};
pub use settle::Settled;
pub use settlement::{Handoff, Proof, Settlement};
pub use worker::{Worker, WorkerBuilder};
