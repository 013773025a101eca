//! How long a call may wait in process before the refusal is handed to whoever called.

mod allowance;
mod ladder;
mod pause;
mod told;
mod turn;

pub use allowance::Allowance;
pub use ladder::WaitPolicy;

pub(crate) use ladder::{Setback, Waits};
pub(crate) use pause::{Pause, entropy};
pub(crate) use told::{told_failure, told_refusal};
pub(crate) use turn::{TooLate, in_time, patience, refused, turn};
