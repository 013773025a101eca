//! What every strategy is asked and told.

use std::{fmt::Debug, time::Duration};

use crate::Moment;

/// Finds the pace of one scope. It holds no clock and does no I/O: whoever drives it asks before each start, tells it of each start and of
/// each answer, and passes the present moment in, which never steps back.
///
/// The driver's part: keep the refused calls that wait, start them when they are due and before newer work, and never start one
/// before the moment that its own refusal named. The strategy's part: when the next call of the scope may start, and what becomes of a
/// refused one.
pub trait Strategy: Debug + Send {
    /// Its name, as `adjourn simulate --strategy` takes it.
    fn name(&self) -> &'static str;

    /// Whether a call of this scope may start now.
    fn turn(&mut self, now: Moment) -> Turn;

    /// A call starts, of a job that was called before as often as `tries` says.
    fn started(&mut self, tries: Tries, now: Moment) -> Ticket;

    /// A call that started made no request after all: its turn is given back.
    fn unmade(&mut self, ticket: Ticket, now: Moment);

    /// A call was answered. Says what becomes of its job.
    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next;

    /// Calls a second, where the strategy holds to a pace; none while nothing holds it back.
    fn rate(&self) -> Option<f64>;
}

/// Whether a call may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One may start now.
    Now,
    /// Not before that moment; ask again then, or after an answer.
    At(Moment),
    /// Not before one of the calls in flight is answered.
    AfterAnswer,
    /// Nothing passes and nothing tells when: whatever waits is deferred rather than kept waiting.
    Defer,
}

/// A call that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// When it started.
    pub sent_at: Moment,
    /// Which start of the scope it was, from 1.
    pub number: u64,
    /// The earlier calls of its job.
    pub tries: Tries,
}

impl Ticket {
    /// Which of its job's own calls it is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.tries.spent.saturating_add(1)
    }
}

/// How often a job has been called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tries {
    /// Calls that count for the job.
    pub spent: u32,
    /// Calls that met a closed limit and spent nothing that the job has.
    pub free: u32,
}

/// How a call was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it came to.
    pub outcome: Outcome,
    /// The moment before which the provider wants this job not repeated, where it named one. In a refusal, a failure or a success.
    pub retry_at: Option<Moment>,
    /// What the provider's counter says, where there is one.
    pub counter: Option<Counter>,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out (or refused for reasons of its own, such as a 404): the limit let it pass.
    #[default]
    Passed,
    /// The provider's limit refused it.
    Refused,
    /// 5xx or no answer: it says nothing about the limit.
    Failed,
}

/// A limit's own count, as `X-RateLimit-Remaining` and its kin tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Calls of a whole window, where it says so.
    pub limit: Option<u64>,
    /// Calls that are left of the window.
    pub remaining: u64,
    /// When the window ends.
    pub resets_at: Moment,
}

/// What becomes of a job whose call was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has its answer.
    Settled,
    /// Call again as soon as the strategy gives it a turn.
    Again {
        /// Not before this moment.
        at: Moment,
        /// Whether it was a call of the job's own: one that met a closed limit spends nothing that the job has.
        spent: bool,
    },
    /// No more calls: whoever can defer it defers it.
    GiveUp,
}

/// How often, and after what, a refused call is repeated by those strategies that count for each job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    rungs: Vec<Duration>,
    attempts: u32,
}

impl Ladder {
    /// Waits of these lengths between at most `attempts` calls; the last length goes on.
    #[must_use]
    pub fn new(rungs: Vec<Duration>, attempts: u32) -> Self {
        Self { rungs, attempts }
    }

    /// The waits of [`PLAIN_LADDER`] between at most `attempts` calls.
    #[must_use]
    pub fn plain(attempts: u32) -> Self {
        Self::new(PLAIN_LADDER.to_vec(), attempts)
    }

    /// How many calls a job has.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The wait after this many calls; none after the last.
    #[must_use]
    pub fn after(&self, attempt: u32) -> Option<Duration> {
        (attempt < self.attempts).then(|| self.rung(attempt))
    }

    /// The wait after this many calls, however many there may be.
    #[must_use]
    pub fn rung(&self, attempt: u32) -> Duration {
        let place = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let rung = self.rungs.get(place).or(self.rungs.last());
        rung.copied().unwrap_or_default()
    }
}

/// The plain ladder: what is waited for where nobody names a time and no pace is known.
pub const PLAIN_LADDER: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(180),
];

impl Default for Ladder {
    /// [`PLAIN_LADDER`] between seven calls.
    fn default() -> Self {
        Self::plain(7)
    }
}
