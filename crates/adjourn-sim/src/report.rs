//! What came of a simulated system.

use std::{collections::BTreeMap, fmt, time::Duration};

use adjourn_worker::fake::Calls;

/// What became of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It had its effect and is gone from the queue.
    Done,
    /// It ended, with this word on its dead letter; none where the queue itself gave it up.
    Ended(Option<String>),
    /// It is still in the queue or in a schedule.
    Waiting,
    /// It is nowhere.
    Lost,
}

/// What came of a run. Calls and their times are counted by the providers, fates by a census of queues and schedules.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How many jobs there were.
    pub jobs: usize,
    /// How many had their effect.
    pub done: usize,
    /// What became of each.
    pub fates: BTreeMap<String, Fate>,
    /// Refusals.
    pub refusals: usize,
    /// Calls of a job before the moment that its last answer named, where that answer had been recorded.
    pub early: usize,
    /// Such calls by another delivery of the job than the one that recorded the answer: the price of at-least-once where
    /// nothing tells a second delivery from the first.
    pub early_by_a_twin: usize,
    /// Such calls where nothing had recorded the answer: its process died first, or every port refused.
    pub excused: usize,
    /// Effects beyond the first of each job.
    pub duplicates: u32,
    /// Jobs with more than one dead letter.
    pub told_twice: usize,
    /// Moments at which a process had stopped and some job could be found nowhere.
    pub unseen: usize,
    /// Times that a process stopped.
    pub stops: usize,
    /// The most calls in flight at one provider.
    pub max_in_flight: u32,
    /// Billed calls of the queue.
    pub calls: Calls,
    /// From the start to the end of the last job.
    pub makespan: Duration,
    /// Whether the time ran out before everything had ended.
    pub timed_out: bool,
}

impl Report {
    /// How many jobs are nowhere.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.fates.values().filter(|fate| **fate == Fate::Lost).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} jobs, {} done, {} refusals, {} early ({} by a twin, {} excused), {} lost, {} duplicates, {} stops, {:?}",
            self.seed,
            self.jobs,
            self.done,
            self.refusals,
            self.early,
            self.early_by_a_twin,
            self.excused,
            self.lost(),
            self.duplicates,
            self.stops,
            self.makespan
        )
    }
}
