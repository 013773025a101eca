//! What the worker needs from the world, as traits: one file for each port.
//!
//! Every call takes a whole group, answers one entry for each request in their order, and never panics. A port says what
//! it accepted; only the worker turns that into the proof with which an original may be deleted.

mod error;
mod gates;
mod ledger;
mod pacer;
mod queue;
mod scheduler;
mod sink;

pub use error::PortError;
pub use gates::{Closing, FoundPaceNote, GateStore};
pub use ledger::Ledger;
pub use pacer::{CallEnd, FindPace, Pacer, PacerTurn};
pub use queue::{Accepted, Copy, DeadLetter, Deletion, Hold, Queue};
pub use scheduler::{ScheduledCopy, Scheduler};
pub use sink::{EventSink, LogSink};
