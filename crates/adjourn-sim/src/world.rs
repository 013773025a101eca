//! A queue, its stores, some providers and some workers, run to their end in virtual time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjourn_core::{Mechanism, Policy, QueueKind, ScopeKey, Timestamp};
use adjourn_worker::{
    Clock, Message, Settlement, VirtualClock, Worker,
    fake::{
        FakeGateStore, FakeLedger, FakeQueue, FakeScheduler, Faults, Process, QueueSettings, RecordingSink,
        ScheduleSettings,
    },
    port::Queue,
};
use tokio::task::JoinSet;

use crate::{CallRecord, Fate, Provider, Report, SimJob, handler::SimHandler};

/// Where every simulated system begins: 2026-07-10T20:00:00Z, and a few seconds so that no minute is full.
const START: Timestamp = Timestamp::from_unix_ms(1_783_713_613_000);

/// How often a poller tries to delete what is settled, a second apart; then it leaves it to come back.
const DELETION_ATTEMPTS: u32 = 5;

/// Who deletes what is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Settle {
    /// An event source mapping, by the batch's answer.
    #[default]
    BySource,
    /// The poller, by the queue's port.
    ByPoller,
}

/// A system to be simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Chooses what is left to chance.
    pub seed: u64,
    /// The queue.
    pub queue: QueueSettings,
    /// The scheduler; none where there is none.
    pub scheduler: Option<ScheduleSettings>,
    /// Whether closed gates are shared.
    pub gate_store: bool,
    /// Whether there is a ledger.
    pub ledger: bool,
    /// Who deletes what is settled.
    pub settle: Settle,
    /// How many workers poll.
    pub workers: usize,
    /// How many jobs of a batch run at a time.
    pub concurrency: usize,
    /// How long an invocation may take; none on a machine of one's own.
    pub invocation: Option<Duration>,
    /// How long a stopped process takes to come back.
    pub restart_after: Duration,
    /// After so long the run is broken off.
    pub time_limit: Duration,
    /// Caps and tiers.
    pub policy: Policy,
    /// The providers.
    pub providers: Vec<Provider>,
    /// The jobs.
    pub jobs: Vec<SimJob>,
}

impl Setup {
    /// One worker on a standard queue, with a scheduler and without stores, and nothing to do.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let scheduler = ScheduleSettings {
            seed,
            ..ScheduleSettings::default()
        };
        Self {
            seed,
            queue: QueueSettings::default(),
            scheduler: Some(scheduler),
            gate_store: false,
            ledger: false,
            settle: Settle::BySource,
            workers: 1,
            concurrency: 10,
            invocation: None,
            restart_after: Duration::from_secs(1),
            time_limit: Duration::from_secs(4 * 86_400),
            policy: Policy::default(),
            providers: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// With this provider too.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// With these jobs too.
    #[must_use]
    pub fn jobs(mut self, jobs: impl IntoIterator<Item = SimJob>) -> Self {
        self.jobs.extend(jobs);
        self
    }
}

/// A running system. It lives in a paused tokio runtime.
#[derive(Clone, Debug)]
pub struct World {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    setup: Setup,
    faults: Faults,
    clock: Arc<dyn Clock>,
    queue: FakeQueue,
    scheduler: Option<FakeScheduler>,
    gates: FakeGateStore,
    ledger: FakeLedger,
    sink: RecordingSink,
    providers: BTreeMap<String, Provider>,
    /// The deferral id of each job.
    keys: BTreeMap<String, String>,
    stops: Mutex<Stops>,
    /// The processes that run now, one for each worker.
    processes: Mutex<Vec<Process>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stops {
    count: usize,
    unseen: usize,
}

/// Runs a system to its end in a runtime of its own.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "a thread that cannot have a timer cannot simulate anything"
)]
pub fn simulate(setup: &Setup, faults: &Faults) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime with nothing but a timer");
    runtime.block_on(async { World::new(setup, faults).run().await })
}

impl World {
    /// Builds the system and sends its jobs.
    #[must_use]
    pub fn new(setup: &Setup, faults: &Faults) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(START));
        let ledger = FakeLedger::default();
        let settings = setup.queue.clone();
        let queue = if setup.ledger {
            FakeQueue::with_ledger("jobs", Arc::clone(&clock), settings, ledger.clone())
        } else {
            FakeQueue::new("jobs", Arc::clone(&clock), settings)
        };
        let scheduler = setup.scheduler.map(|settings| FakeScheduler::new(&queue, settings));
        let fifo = setup.queue.kind == QueueKind::Fifo;
        let keys = setup
            .jobs
            .iter()
            .map(|job| {
                let id = queue.send(job.outgoing(fifo)).unwrap_or_default();
                (job.id.clone(), id)
            })
            .collect();
        let inner = Inner {
            providers: setup
                .providers
                .iter()
                .map(|provider| (provider.name().to_string(), provider.anew()))
                .collect(),
            setup: setup.clone(),
            faults: faults.clone(),
            clock,
            queue,
            scheduler,
            gates: FakeGateStore::default(),
            ledger,
            sink: RecordingSink::default(),
            keys,
            stops: Mutex::default(),
            processes: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &FakeQueue {
        &self.inner.queue
    }

    /// The scheduler.
    #[must_use]
    pub fn scheduler(&self) -> Option<&FakeScheduler> {
        self.inner.scheduler.as_ref()
    }

    /// The ledger, which is asked only where the setup has one.
    #[must_use]
    pub fn ledger(&self) -> &FakeLedger {
        &self.inner.ledger
    }

    /// What the event sink was told.
    #[must_use]
    pub fn sink(&self) -> &RecordingSink {
        &self.inner.sink
    }

    /// A provider.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.inner.providers.get(name)
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The deferral id of a job.
    #[must_use]
    pub fn key(&self, job: &str) -> Option<&str> {
        self.inner.keys.get(job).map(String::as_str)
    }

    /// A worker of one process of this system.
    fn worker(&self, process: &Process) -> Worker<SimHandler> {
        let inner = &self.inner;
        let handler = SimHandler {
            providers: inner.providers.clone(),
            process: process.clone(),
            clock: Arc::clone(&inner.clock),
        };
        let mut builder = Worker::builder(handler, Arc::new(inner.queue.used_by(process)))
            .clock(Arc::clone(&inner.clock))
            .policy(inner.setup.policy.clone())
            .concurrency(inner.setup.concurrency)
            .sinks(vec![Arc::new(inner.sink.used_by(process))]);
        if let Some(scheduler) = &inner.scheduler {
            builder = builder.scheduler(Arc::new(scheduler.used_by(process)));
        }
        if inner.setup.gate_store {
            builder = builder.gate_store(Arc::new(inner.gates.used_by(process)));
        }
        if inner.setup.ledger {
            builder = builder.ledger(Arc::new(inner.ledger.used_by(process)));
        }
        builder.build()
    }

    /// Runs until nothing is queued and nothing is scheduled, or the time is up.
    pub async fn run(&self) -> Report {
        let mut tasks = JoinSet::new();
        if let Some(scheduler) = self.inner.scheduler.clone() {
            tasks.spawn(async move { scheduler.run().await });
        }
        for _ in 0..self.inner.setup.workers {
            let world = self.clone();
            tasks.spawn(async move { world.live().await });
        }
        let timed_out = self.until_quiet().await;
        tasks.shutdown().await;
        self.report(timed_out)
    }

    async fn until_quiet(&self) -> bool {
        let inner = &self.inner;
        let limit = START + inner.setup.time_limit;
        loop {
            let changed = inner.queue.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let scheduled = inner
                .scheduler
                .as_ref()
                .and_then(FakeScheduler::next_firing_at)
                .is_some();
            if inner.queue.stored().is_empty() && !scheduled {
                return false;
            }
            let left = limit.since(inner.clock.now());
            if left.is_zero() {
                return true;
            }
            tokio::select! {
                () = changed => {}
                () = inner.clock.sleep(left) => {}
            }
        }
    }

    /// One worker's place: a process that polls, and another one when it has stopped.
    async fn live(&self) {
        loop {
            let process = self.inner.faults.process();
            self.processes().push(process.clone());
            let worker = self.worker(&process);
            tokio::select! {
                () = process.stopped() => {}
                () = self.poll(&worker, &process) => {}
            }
            drop(worker);
            self.note_stop();
            self.inner.clock.sleep(self.inner.setup.restart_after).await;
        }
    }

    fn processes(&self) -> MutexGuard<'_, Vec<Process>> {
        self.inner.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills every worker's process where it stands. New ones come after [`Setup::restart_after`].
    pub fn kill_all(&self) {
        for process in self.processes().drain(..) {
            process.stop();
        }
    }

    /// The system's faults, whose outages can be begun and mended while it runs.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// Law 2 at its hardest moment: a process has just stopped, and every job can still be found.
    fn note_stop(&self) {
        let unseen = self.census().values().any(|fate| *fate == Fate::Lost);
        let mut stops = self.inner.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.count = stops.count.saturating_add(1);
        stops.unseen = stops.unseen.saturating_add(usize::from(unseen));
    }

    async fn poll(&self, worker: &Worker<SimHandler>, process: &Process) {
        let inner = &self.inner;
        let queue = inner.queue.used_by(process);
        loop {
            let changed = queue.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match queue.receive(10).await {
                Ok(batch) if batch.is_empty() => {
                    let wait = queue.next_receivable_at().map(|at| at.since(inner.clock.now()));
                    // What is due and cannot be received yet waits for another message: asked again in a while.
                    let wait = wait.map(|wait| if wait.is_zero() { Duration::from_secs(1) } else { wait });
                    match wait {
                        None => changed.await,
                        Some(wait) => tokio::select! {
                            () = changed => {}
                            () = inner.clock.sleep(wait) => {}
                        },
                    }
                }
                Ok(batch) => self.invoke(worker, &queue, batch).await,
                Err(_) => inner.clock.sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn invoke(&self, worker: &Worker<SimHandler>, queue: &FakeQueue, batch: Vec<Message>) {
        let ends_at = self.inner.setup.invocation.map(|span| self.inner.clock.now() + span);
        let settled = worker.run_batch(batch.clone(), ends_at).await;
        match self.inner.setup.settle {
            Settle::BySource => {
                let failures: Vec<String> = settled
                    .iter()
                    .filter(|one| one.settlement == Settlement::Keep)
                    .map(|one| one.message.id.clone())
                    .collect();
                // A lost answer leaves the batch to its visibility timeout, as it does in an account.
                let _ = queue.respond(&batch, &failures).await;
            }
            Settle::ByPoller => {
                let mut left: Vec<_> = settled.into_iter().filter_map(|one| one.deletion).collect();
                for _ in 0..DELETION_ATTEMPTS {
                    let answers = queue.delete(&left).await;
                    let failed = left.into_iter().zip(answers).filter(|(_, answer)| answer.is_err());
                    left = failed.map(|(deletion, _)| deletion).collect();
                    if left.is_empty() {
                        break;
                    }
                    self.inner.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Where every job is, found by looking into every place where one can be.
    #[must_use]
    pub fn census(&self) -> BTreeMap<String, Fate> {
        let inner = &self.inner;
        let mut found: BTreeMap<String, Fate> = BTreeMap::new();
        let effects = inner.setup.jobs.iter().filter(|job| self.effects(job) > 0);
        found.extend(effects.map(|job| (job.id.clone(), Fate::Done)));
        for letter in inner.queue.dead_letters() {
            found.extend(name_in(&letter.body).map(|name| (name, Fate::Ended(end_of(&letter)))));
        }
        if let Some(scheduler) = &inner.scheduler {
            let undelivered = scheduler.undelivered().into_iter();
            found.extend(undelivered.filter_map(|outgoing| Some((name_in(&outgoing.body)?, Fate::Ended(None)))));
            let scheduled = scheduler.scheduled().into_iter();
            found.extend(scheduled.filter_map(|outgoing| Some((name_in(&outgoing.body)?, Fate::Waiting))));
        }
        let queued = inner.queue.messages().into_iter();
        found.extend(queued.filter_map(|message| Some((name_in(&message.body)?, Fate::Waiting))));
        let jobs = inner.setup.jobs.iter();
        jobs.map(|job| (job.id.clone(), found.remove(&job.id).unwrap_or(Fate::Lost)))
            .collect()
    }

    fn effects(&self, job: &SimJob) -> u32 {
        let provider = self.inner.providers.get(&job.provider);
        provider.map_or(0, |provider| provider.effects(&job.id))
    }

    fn report(&self, timed_out: bool) -> Report {
        let inner = &self.inner;
        let books: Vec<(&str, crate::Books)> = inner
            .providers
            .iter()
            .map(|(name, provider)| (name.as_str(), provider.books()))
            .collect();
        let fates = self.census();
        let (mut early, mut early_by_a_twin, mut excused) = (0_usize, 0_usize, 0_usize);
        for (name, books) in &books {
            for (index, call) in books.calls.iter().enumerate() {
                let before = books.calls.iter().take(index).rev().find(|other| other.key == call.key);
                let Some(before) = before.filter(|_| call.early_by.is_some()) else {
                    continue;
                };
                let sum = if !self.was_recorded(name, before, call.at) {
                    &mut excused
                } else if call.sequence <= before.sequence && !self.was_held(before) {
                    &mut early_by_a_twin
                } else {
                    &mut early
                };
                *sum = sum.saturating_add(1);
            }
        }
        let mut letters: Vec<String> = inner
            .queue
            .dead_letters()
            .iter()
            .filter_map(|letter| name_in(&letter.body))
            .collect();
        letters.sort_unstable();
        let told_twice = letters.chunk_by(|one, other| one == other);
        let told_twice = told_twice.filter(|letters| letters.len() > 1).count();
        let stops = *inner.stops.lock().unwrap_or_else(PoisonError::into_inner);
        Report {
            seed: inner.setup.seed,
            jobs: inner.setup.jobs.len(),
            done: fates.values().filter(|fate| **fate == Fate::Done).count(),
            fates,
            refusals: books.iter().map(|(_, books)| books.refusals()).sum(),
            early,
            early_by_a_twin,
            excused,
            duplicates: books.iter().map(|(_, books)| books.duplicates()).sum(),
            told_twice,
            unseen: stops.unseen,
            stops: stops.count,
            max_in_flight: books.iter().map(|(_, books)| books.max_in_flight).max().unwrap_or(0),
            calls: inner.queue.calls(),
            makespan: inner.clock.now().since(START),
            timed_out,
        }
    }

    /// Whether the answer of a call was recorded by hiding the very message that made it, which then keeps its step.
    fn was_held(&self, answer: &CallRecord) -> bool {
        let key = self.key(&answer.key).unwrap_or_default();
        let mut steps = self.inner.queue.steps().into_iter().filter(|step| {
            step.identity.id.as_str() == key
                && step.identity.sequence == answer.sequence.saturating_add(1)
                && step.at >= answer.at
        });
        steps.next().is_some_and(|step| step.mechanism == Mechanism::Visibility)
    }

    /// Whether an answer left a trace that outlives a process before `until`: an accepted step of its job, or a closed
    /// gate in the shared store.
    fn was_recorded(&self, provider: &str, answer: &CallRecord, until: Timestamp) -> bool {
        let key = self.key(&answer.key).unwrap_or_default();
        let step = self.inner.queue.steps().iter().any(|step| {
            step.identity.id.as_str() == key && step.at >= answer.at && step.at < until && Some(step.due) >= answer.told
        });
        let scope = ScopeKey::provider(provider);
        let gate = self.inner.gates.closings().iter().any(|closing| {
            closing.scope == scope && Some(closing.until) >= answer.told && closing.observation.observed_at < until
        });
        step || gate
    }
}

/// The simulated job that a body names.
fn name_in(body: &str) -> Option<String> {
    serde_json::from_str::<SimJob>(body).ok().map(|job| job.id)
}

/// The end that a dead letter's envelope names. Its hash is of the queue that the job came from, not of this one.
fn end_of(letter: &Message) -> Option<String> {
    let envelope: serde_json::Value = serde_json::from_str(letter.envelope_text()?).ok()?;
    Some(envelope.get("end")?.as_str()?.to_string())
}
