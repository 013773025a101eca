//! The worker: a handler, its ports and its policy, put together.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Policy, Reach, Standing, Timestamp};

use crate::{
    Clock, Gates, Handler, Message, Performed, RateLimitedHandler, Settled, SystemClock,
    port::{EventSink, FindPace, GateStore, Ledger, LogSink, Queue, Scheduler},
    verdict::{Answers, Unanswered},
};

/// A handler with everything that it takes to run its jobs. Cheap to clone.
#[derive(Debug)]
pub struct Worker<H> {
    pub(crate) inner: Arc<Inner<H>>,
}

impl<H> Clone for Worker<H> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

pub(crate) struct Inner<H> {
    pub(crate) handler: H,
    pub(crate) answers: Arc<dyn Answers>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) scheduler: Option<Arc<dyn Scheduler>>,
    pub(crate) gate_store: Option<Arc<dyn GateStore>>,
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) concurrency: usize,
    pub(crate) verdict_limit: Duration,
    pub(crate) gates: Gates,
}

impl<H> std::fmt::Debug for Inner<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("queue", &self.queue)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Puts a worker together.
#[derive(Debug)]
pub struct WorkerBuilder<H> {
    inner: Inner<H>,
}

impl<H: Handler> WorkerBuilder<H> {
    /// Long waits become one-time schedules.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler>) -> Self {
        self.inner.scheduler = Some(scheduler);
        self
    }

    /// Closed gates are shared with other workers.
    #[must_use]
    pub fn gate_store(mut self, store: Arc<dyn GateStore>) -> Self {
        self.inner.gate_store = Some(store);
        self
    }

    /// A store of jobs remembers what was started, superseded and cancelled.
    #[must_use]
    pub fn ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.inner.ledger = Some(ledger);
        self
    }

    /// Finds the pace of scopes whose rate nobody configured; without it such a scope is called as fast as its jobs come.
    #[must_use]
    pub fn find_pace(mut self, finder: Arc<dyn FindPace>) -> Self {
        self.inner.gates = Gates::finding(finder);
        self
    }

    /// Who is told of each refusal once its wait is durable; the log when nobody is named.
    #[must_use]
    pub fn sinks(mut self, sinks: Vec<Arc<dyn EventSink>>) -> Self {
        self.inner.sinks = sinks;
        self
    }

    /// The integration's answer to the RATE_LIMITED event, and how long it may take.
    #[must_use]
    pub fn rate_limited(mut self, handler: impl RateLimitedHandler, limit: Duration) -> Self {
        self.inner.answers = Arc::new(crate::verdict::Answered(Arc::new(handler)));
        self.inner.verdict_limit = limit;
        self
    }

    /// Caps and tiers.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.inner.policy = policy;
        self
    }

    /// The clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.inner.clock = clock;
        self
    }

    /// How many jobs of a batch run at a time; at least one.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.inner.concurrency = jobs.max(1);
        self
    }

    /// The worker.
    #[must_use]
    pub fn build(mut self) -> Worker<H> {
        if let Some(finder) = self.inner.handler.find_pace().filter(|_| !self.inner.gates.finds()) {
            self.inner.gates = Gates::finding(finder);
        }
        Worker {
            inner: Arc::new(self.inner),
        }
    }
}

impl<H: Handler> Worker<H> {
    /// A worker of `handler` on `queue`, with the default policy, the system's clock and 10 jobs at a time.
    pub fn builder(handler: H, queue: Arc<dyn Queue>) -> WorkerBuilder<H> {
        WorkerBuilder {
            inner: Inner {
                handler,
                answers: Arc::new(Unanswered),
                queue,
                scheduler: None,
                gate_store: None,
                ledger: None,
                sinks: vec![Arc::new(LogSink)],
                policy: Policy::default(),
                clock: Arc::new(SystemClock),
                concurrency: 10,
                verdict_limit: Duration::from_secs(2),
                gates: Gates::default(),
            },
        }
    }

    /// The gates of this process.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.inner.gates
    }

    /// The worker's clock.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// What the queue and its scheduler can do together.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach {
            schedule: self.inner.scheduler.as_ref().map(|scheduler| scheduler.reach()),
            ..self.inner.queue.reach()
        }
    }

    /// Runs a batch to its settlements, in the order of the messages. `ends_at` is when the invocation ends.
    ///
    /// Nothing is deleted here but what has to be gone before a message that was received more than once may run: the
    /// caller deletes, or answers which messages stay.
    pub async fn run_batch(&self, messages: Vec<Message>, ends_at: Option<Timestamp>) -> Vec<Settled> {
        crate::batch::run(self, messages, ends_at).await
    }

    /// Runs one job up to its decision: admission, the call, its outcome. Writes nothing but a mark before the call.
    pub async fn perform(&self, message: Arc<Message>, standing: Standing, ends_at: Option<Timestamp>) -> Performed {
        crate::perform::perform(self, message, standing, ends_at).await
    }

    /// Writes down in the gate store what is new of the paces that were found, for who looks. [`settle`](Self::settle) does so
    /// by itself, once a second at most; who ends a worker asks for the last word.
    pub async fn note_paces(&self) {
        crate::settle::note_paces(self, true).await;
    }

    /// Makes decisions durable, whole groups at a time, tells the event sinks, and writes down what is new of the found paces.
    pub async fn settle(&self, performed: Vec<Performed>) -> Vec<Settled> {
        crate::settle::settle(self, performed).await
    }
}
