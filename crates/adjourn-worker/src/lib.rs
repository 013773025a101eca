//! The driver: it takes what a queue delivered and leaves nothing undecided.
mod clock;
mod event;
mod handler;
mod message;
pub mod port;
mod receipt;
mod settlement;

#[cfg(feature = "test-util")]
pub use clock::VirtualClock;
pub use clock::{Clock, SystemClock};
pub use event::{EventMessage, Notice, NoticeDecision, RateLimited};
pub use handler::{Delivery, Done, Handler, Interrupt, Job, RateLimitedHandler, Terms, Undecodable};
pub use message::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message};
pub use receipt::{POLICY_VERSION, Receipt, Transition};
pub use settlement::{Handoff, Proof, Settlement};
