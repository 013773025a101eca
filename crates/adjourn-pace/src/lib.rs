//! How fast to ask a provider that limits.
//!
//! A provider often says neither its limit nor how long to wait. A [`Strategy`] finds the pace from what its answers show. Strategies are
//! state machines without clock, socket or thread: the present moment is an argument, so the same code runs in a worker and in a
//! simulation of hours within milliseconds. One file for each strategy; its source stands in the file's header.

mod aimd;
mod chance;
mod evidence;
mod fixed;
mod gcra;
mod independent;
mod moment;
mod spacing_gate;
mod starts;
mod strategy;

pub use aimd::{Aimd, Throttle};
pub use chance::Chance;
pub use evidence::Evidence;
pub use fixed::Fixed;
pub use gcra::{Gcra, Quota, Taken};
pub use independent::{FullJitter, Independent};
pub use moment::Moment;
pub use spacing_gate::SpacingGate;
pub use strategy::{Answer, Counter, Ladder, Next, Outcome, PLAIN_LADDER, Strategy, Ticket, Tries, Turn};
