//! How fast to ask a provider that limits.
//!
//! A provider often says neither its limit nor how long to wait. A [`Strategy`] finds the pace from what its answers show. Strategies are
//! state machines without clock, socket or thread: the present moment is an argument, so the same code runs in a worker and in a
//! simulation of hours within milliseconds. One file for each strategy; its source stands in the file's header.

mod moment;
mod strategy;

pub use moment::Moment;
pub use strategy::{Answer, Counter, Ladder, Next, Outcome, Strategy, Ticket, Turn};
