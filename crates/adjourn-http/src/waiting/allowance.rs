//! How long whoever calls may be kept waiting, carried along with its task.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjourn_core::Timestamp;

use super::WaitPolicy;
use crate::Now;

tokio::task_local! {
    static CURRENT: Allowance;
}

/// How long a caller that says nothing may be kept waiting.
const UNSET: Duration = Duration::from_secs(300);
/// How long a person in front of a page waits.
const FRONT_END: Duration = Duration::from_secs(10);

/// How long the calls of one task may wait in process, in all, and by when the task has to be over.
///
/// The caller owns it, since nobody else knows who waits: a worker nobody, and it can put the job off; a front end a person;
/// a script as long as it likes. Who sets none has five minutes for each call. Time that two calls of a task wait side by
/// side counts once.
///
/// ```
/// use std::time::Duration;
/// use adjourn_http::Allowance;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// Allowance::front_end()
///     .scope(async {
///         assert_eq!(Allowance::current().cap(), Duration::from_secs(10));
///         // A spawned task has lost it, unless it is carried there.
///         tokio::spawn(Allowance::carry(async {
///             assert_eq!(Allowance::current().cap(), Duration::from_secs(10));
///         }))
///         .await
///     })
///     .await
///     .unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Allowance {
    outermost: Arc<Level>,
    /// From there to the innermost task: a nested one can only shorten. Mostly there is none.
    nested: Vec<Arc<Level>>,
}

#[derive(Debug)]
struct Level {
    cap: Duration,
    deadline: Option<Timestamp>,
    slept: Mutex<Slept>,
}

/// How long at least one call of a task was asleep.
#[derive(Debug, Default)]
struct Slept {
    before: Duration,
    sleepers: usize,
    since: Timestamp,
}

impl Slept {
    fn by(&self, now: Timestamp) -> Duration {
        let running = if self.sleepers > 0 {
            now.since(self.since)
        } else {
            Duration::ZERO
        };
        self.before.saturating_add(running)
    }

    fn start(&mut self, now: Timestamp) {
        if self.sleepers == 0 {
            self.since = now;
        }
        self.sleepers = self.sleepers.saturating_add(1);
    }

    fn end(&mut self, now: Timestamp) {
        let slept = self.by(now);
        self.sleepers = self.sleepers.saturating_sub(1);
        (self.before, self.since) = (slept, now);
    }
}

impl Allowance {
    /// Waits of so long in all.
    #[must_use]
    pub fn of(cap: Duration) -> Self {
        Self::level(cap, None)
    }

    /// A worker's: it does not wait, since it can put the job off.
    #[must_use]
    pub fn worker() -> Self {
        Self::of(Duration::ZERO)
    }

    /// Of a program that answers a person: ten seconds.
    #[must_use]
    pub fn front_end() -> Self {
        Self::of(FRONT_END)
    }

    /// It has to be over by `deadline`: what a call itself may take is kept free before it.
    #[must_use]
    pub fn until(self, deadline: Timestamp) -> Self {
        self.and(&Self::level(Duration::MAX, Some(deadline)))
    }

    /// The same for a call whose policy waits for nothing.
    pub(crate) fn under(self, policy: &WaitPolicy) -> Self {
        if policy.backoff.is_empty() {
            self.and(&Self::of(Duration::ZERO))
        } else {
            self
        }
    }

    /// The allowance of this task: what [`Allowance::scope`] set around it, inside a worker's handler (with the feature
    /// `handler`) also the worker's; five minutes where nobody set any.
    #[must_use]
    pub fn current() -> Self {
        Self::set().unwrap_or_else(|| Self::of(UNSET))
    }

    /// Runs `future` under this allowance and whatever stands around it, here and where it is run: nested, it can only become
    /// shorter.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        let whole = match Self::set() {
            Some(around) => around.and(&self),
            None => self,
        };
        whole.around(future)
    }

    /// The future with this task's allowance, for a task of its own: `tokio::spawn(Allowance::carry(future))`. Where it is run under
    /// another one, it has both.
    pub fn carry<F: Future>(future: F) -> impl Future<Output = F::Output> {
        let carried = Self::set();
        async move {
            match carried {
                Some(carried) => carried.around(future).await,
                None => future.await,
            }
        }
    }

    /// What stands around the future is known once it runs, and not when it is made.
    async fn around<F: Future>(self, future: F) -> F::Output {
        let whole = match Self::set() {
            Some(around) => around.and(&self),
            None => self,
        };
        CURRENT.scope(whole, future).await
    }

    /// How long its calls may wait in all.
    #[must_use]
    pub fn cap(&self) -> Duration {
        self.levels().map(|level| level.cap).min().unwrap_or(UNSET)
    }

    /// By when it has to be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.levels().filter_map(|level| level.deadline).min()
    }

    /// What one wait may take now, before a call that may take `timeout`: the cap less what was slept, and of the time that
    /// the deadline leaves as much as keeps the call's own time free, or half of it where that is less.
    pub(crate) fn budget(&self, now: Timestamp, timeout: Duration) -> Duration {
        self.budget_of_at_least(Duration::ZERO, now, timeout)
    }

    /// The same, where so much passes for no wait whatever the cap says. The deadline says more than the caller's patience, and holds.
    pub(crate) fn budget_of_at_least(&self, least: Duration, now: Timestamp, timeout: Duration) -> Duration {
        let capped = self.levels().map(|level| level.left(now)).min();
        let capped = capped.unwrap_or(UNSET).max(least);
        match self.deadline() {
            Some(deadline) => capped.min(before(deadline.since(now), timeout)),
            None => capped,
        }
    }

    /// Counts the time until the guard is dropped as slept.
    pub(crate) fn asleep(&self, now: &Now) -> Asleep {
        let started_at = now();
        for level in self.levels() {
            level.slept().start(started_at);
        }
        Asleep {
            allowance: self.clone(),
            now: Arc::clone(now),
        }
    }

    fn level(cap: Duration, deadline: Option<Timestamp>) -> Self {
        let level = Level {
            cap,
            deadline,
            slept: Mutex::default(),
        };
        Self {
            outermost: Arc::new(level),
            nested: Vec::new(),
        }
    }

    /// Both; what is in both already counts once.
    fn and(mut self, inner: &Self) -> Self {
        for level in inner.levels() {
            if !self.levels().any(|own| Arc::ptr_eq(own, level)) {
                self.nested.push(Arc::clone(level));
            }
        }
        self
    }

    fn levels(&self) -> impl Iterator<Item = &Arc<Level>> {
        std::iter::once(&self.outermost).chain(&self.nested)
    }

    fn set() -> Option<Self> {
        let own = CURRENT.try_with(Clone::clone).ok();
        #[cfg(feature = "handler")]
        let own = match (Self::of_job(), own) {
            (Some(job), Some(own)) => Some(job.and(&own)),
            (job, own) => job.or(own),
        };
        own
    }

    /// The worker's, in a job's own task. What its calls sleep is counted for the whole job.
    #[cfg(feature = "handler")]
    fn of_job() -> Option<Self> {
        let job = adjourn_worker::InProcess::current()?;
        let outermost = job.kept(|| Level {
            cap: job.cap(),
            deadline: Some(job.must_end_by()),
            slept: Mutex::default(),
        });
        let nested = Vec::new();
        Some(Self { outermost, nested })
    }
}

impl Level {
    fn slept(&self) -> std::sync::MutexGuard<'_, Slept> {
        self.slept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self, now: Timestamp) -> Duration {
        self.cap.saturating_sub(self.slept().by(now))
    }
}

/// What of the time that is left may be waited before a call that may take `timeout`.
fn before(left: Duration, timeout: Duration) -> Duration {
    left.saturating_sub(timeout.min(left / 2))
}

/// A call that is asleep.
pub(crate) struct Asleep {
    allowance: Allowance,
    now: Now,
}

impl Drop for Asleep {
    fn drop(&mut self) {
        let ended_at = (self.now)();
        for level in self.allowance.levels() {
            level.slept().end(ended_at);
        }
    }
}

#[cfg(test)]
mod tests;
