//! Finding the pace of a scope whose rate nobody configured.

use std::{fmt::Debug, time::Duration};

use adjourn_core::{ScopeKey, Timestamp};

use crate::Counter;

/// Makes a pacer for each scope that has no configured rate.
pub trait FindPace: Send + Sync + Debug + 'static {
    /// A pacer that knows nothing yet.
    fn pacer(&self, scope: &ScopeKey) -> Box<dyn Pacer>;
}

/// Finds one scope's pace from what its calls come to. It is asked before each start and told of each start and each end.
pub trait Pacer: Send + Debug {
    /// Whether a call may start now.
    fn turn(&mut self, now: Timestamp) -> PacerTurn;

    /// How many calls may start now, at most `most`.
    fn startable(&self, now: Timestamp, most: u32) -> u32;

    /// A call starts. Returns the number by which its end is told.
    fn started(&mut self, now: Timestamp) -> u64;

    /// A call that started was not made.
    fn unmade(&mut self, call: u64, now: Timestamp);

    /// A call ended, and its answer, of whatever kind, told these counters, where the provider has any.
    fn answered(&mut self, call: u64, end: CallEnd, counters: &[Counter], now: Timestamp);

    /// The time between two calls, where the pacer holds to a pace.
    fn interval(&self) -> Option<Duration>;

    /// Whether something has passed, so that what is refused without a time waits for its turn rather than on the ladder.
    fn knows(&self) -> bool;
}

/// Whether a call may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacerTurn {
    /// One may start now.
    Now,
    /// Not before that moment.
    At(Timestamp),
    /// Not before that moment, at which a counter of the provider's own starts anew: nothing is left of it.
    Reset(Timestamp),
    /// Not before one in flight ends.
    AfterEnd,
}

/// What a call came to, as far as it concerns the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The limit let it pass.
    Passed,
    /// The limit refused it, until that moment if one was named.
    Refused(Option<Timestamp>),
    /// It failed: that says nothing of the limit.
    Failed,
}
