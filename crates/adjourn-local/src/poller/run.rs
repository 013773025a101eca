//! The loop: slots kept full, groups settled while the next jobs run, the file looked at no more than it has to be.

use std::{
    collections::{HashMap, HashSet},
    future::{Future, pending},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::{
    Handler, Performed, Worker,
    port::{Deletion, Queue},
};
use tokio::task::{Id, JoinError, JoinSet};

use super::{PollerOptions, Progress, held::Ahead, pace::Pace};
use crate::{Lease, RENEWAL, Status, Store, StoreError, Taken, lease::Token};

/// How often other processes' writes are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// The most groups that are settled at a time: a slow event sink must not keep others from the disk.
const SETTLING: usize = 4;
/// How long finished jobs wait for others that share their commit, while others run: on a fast disk a commit for every few
/// jobs costs more than the jobs. No more of them wait than may run, since a process that is killed makes their calls again.
const LINGER: Duration = Duration::from_millis(5);
/// After how long a file that is busy or full is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a settlement that the file did not take is tried again before its lease is left to run out.
const SETTLE_ATTEMPTS: u32 = 10;

/// What is done beside the jobs, each in a task of its own so that nothing waits for the disk.
enum Chore {
    Taken(Result<Taken, StoreError>),
    Looked(Result<i64, StoreError>),
    Renewed(Result<(), StoreError>),
    GivenBack(Vec<Token>, Result<(), StoreError>),
    Measured(Result<Status, StoreError>),
    Idle(Result<bool, StoreError>),
}

pub(super) struct Run<H> {
    worker: Worker<H>,
    store: Store,
    options: PollerOptions,
    /// Leases without a slot yet, and how many there should be.
    ahead: Ahead,
    ahead_target: usize,
    running: JoinSet<Performed>,
    leases: HashMap<Id, (Lease, Timestamp)>,
    finished: Vec<Performed>,
    settling: JoinSet<Vec<Token>>,
    chores: JoinSet<Chore>,
    /// Every lease that is to be renewed.
    tokens: HashSet<Token>,
    taking: bool,
    looking: bool,
    /// How long jobs take and how long taking takes: by Little's law, how far ahead to take.
    pace: Pace,
    /// When to take again; none until something happens.
    next: Option<Timestamp>,
    /// Scopes with ready jobs that may not start yet.
    held_back: Vec<ScopeKey>,
    version: Option<i64>,
    /// Whether something has changed since the watcher was told, or since the store was found busy.
    changed: bool,
    measuring: bool,
    idle_checked: bool,
    stopping: bool,
    pub(super) failure: Option<StoreError>,
}

impl<H: Handler> Run<H> {
    pub(super) fn new(worker: Worker<H>, store: Store, options: PollerOptions) -> Self {
        Self {
            worker,
            store,
            options,
            ahead: Ahead::default(),
            ahead_target: 0,
            running: JoinSet::new(),
            leases: HashMap::new(),
            finished: Vec::new(),
            settling: JoinSet::new(),
            chores: JoinSet::new(),
            tokens: HashSet::new(),
            taking: false,
            looking: false,
            pace: Pace::default(),
            next: Some(Timestamp::EPOCH),
            held_back: Vec::new(),
            version: None,
            changed: true,
            measuring: false,
            idle_checked: false,
            stopping: false,
            failure: None,
        }
    }

    fn now(&self) -> Timestamp {
        self.worker.clock().now()
    }

    pub(super) async fn until_stopped(&mut self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        let clock = self.worker.clone();
        let mut look = pin!(clock.clock().sleep(LOOK));
        let mut renewal = pin!(clock.clock().sleep(RENEWAL));
        let mut linger = pin!(None);
        let mut grace = None;
        let mut commits = self.store.commits();
        loop {
            if let Some(at) = self.store.soonest() {
                self.wake_at(at);
                self.idle_checked = false;
            }
            // One moment for the whole pass: what is not due in it is waited for below.
            let now = self.now();
            self.start(now);
            if self.finished.len() >= self.options.concurrency || self.running.is_empty() {
                self.settle();
            }
            if self.finished.is_empty() {
                linger.set(None);
            } else if linger.is_none() {
                linger.set(Some(clock.clock().sleep(LINGER)));
            }
            self.look_at_held_back(now);
            self.take(now);
            if self.is_at_rest() {
                if self.stopping {
                    return;
                }
                self.check_idle();
            }
            let wake = self.wake(now).map(|at| clock.clock().sleep(at.since(self.now())));
            let grace_ends = async {
                match grace.as_mut() {
                    Some(grace) => grace.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                Some(joined) = self.running.join_next_with_id() => {
                    self.performed(joined);
                    while let Some(joined) = self.running.try_join_next_with_id() {
                        self.performed(joined);
                    }
                }
                Some(joined) = self.settling.join_next() => self.settled(joined),
                Some(joined) = self.chores.join_next() => match joined {
                    Ok(chore) => self.done(chore),
                    Err(error) => self.broke_off(&error),
                },
                _ = commits.changed() => {}
                () = async { match wake { Some(wake) => wake.await, None => pending().await } } => self.changed = true,
                () = async { match linger.as_mut().as_pin_mut() { Some(linger) => linger.await, None => pending().await } } => {
                    linger.set(None);
                    self.settle();
                }
                () = &mut look => {
                    look.set(clock.clock().sleep(LOOK));
                    self.look();
                }
                () = &mut renewal => {
                    renewal.set(clock.clock().sleep(RENEWAL));
                    self.renew();
                }
                () = &mut shutdown, if !self.stopping => {
                    self.stop();
                    grace = Some(Box::pin(clock.clock().sleep(self.options.grace)));
                }
                () = grace_ends => {
                    grace = None;
                    self.break_off();
                }
            }
            if self.stopping && grace.is_none() && !self.running.is_empty() && self.failure.is_some() {
                grace = Some(Box::pin(clock.clock().sleep(self.options.grace)));
            }
        }
    }

    /// Fills the slots. Suspects wait until nothing else is under way: a job that kills its process takes nobody along.
    fn start(&mut self, now: Timestamp) {
        if self.stopping {
            return;
        }
        let slots = self.options.concurrency.saturating_sub(self.running.len());
        let (start, give_back) = self.ahead.startable(slots, self.worker.gates(), now);
        for lease in &give_back {
            let opens_at = self.worker.gates().opens_at(&lease.scope, now);
            self.wake_at(opens_at);
        }
        self.give_back(give_back, false);
        for lease in start {
            self.spawn(lease);
        }
        let nothing_else = self.running.is_empty() && self.finished.is_empty() && self.settling.is_empty();
        if nothing_else && self.ahead.has_suspects() {
            for lease in self.ahead.next_suspects(self.options.concurrency) {
                self.spawn(lease);
            }
        }
    }

    fn spawn(&mut self, lease: Lease) {
        let worker = self.worker.clone();
        let (message, standing) = (Arc::clone(&lease.message), lease.standing);
        let task = self
            .running
            .spawn(async move { worker.perform(message, standing, None).await });
        self.leases.insert(task.id(), (lease, self.worker.clock().now()));
    }

    fn performed(&mut self, joined: Result<(Id, Performed), JoinError>) {
        self.changed = true;
        match joined {
            Ok((id, performed)) => {
                if let Some((_, started_at)) = self.leases.remove(&id) {
                    self.pace.performed(self.now().since(started_at));
                }
                self.finished.push(performed);
            }
            Err(error) => {
                if let Some((lease, _)) = self.leases.remove(&error.id()) {
                    if !error.is_cancelled() {
                        tracing::error!(message_id = %lease.message.id, %error, "a job's task broke off; the job is given back");
                    }
                    self.give_back(vec![lease], true);
                }
            }
        }
    }

    /// Settles everything that has finished, as one group, while the next jobs run.
    fn settle(&mut self) {
        if self.finished.is_empty() || self.settling.len() >= SETTLING {
            return;
        }
        let group = std::mem::take(&mut self.finished);
        let (worker, store) = (self.worker.clone(), self.store.clone());
        self.settling.spawn(async move {
            let tokens = group
                .iter()
                .filter_map(|performed| Token::of(performed.message()).ok())
                .collect();
            let settled = worker.settle(group).await;
            let deletions = settled.into_iter().filter_map(|settled| settled.deletion).collect();
            delete(&worker, &store, deletions).await;
            tokens
        });
    }

    fn settled(&mut self, joined: Result<Vec<Token>, JoinError>) {
        self.changed = true;
        self.idle_checked = false;
        match joined {
            Ok(tokens) => {
                for token in tokens {
                    self.tokens.remove(&token);
                }
            }
            Err(error) => self.broke_off(&error),
        }
    }

    /// Takes as many as there are slots, and as far ahead as slots will be free by the time the next take is back.
    fn take(&mut self, now: Timestamp) {
        let due = self.next.is_some_and(|at| at <= now);
        if self.stopping || self.taking || !due || self.ahead.has_suspects() {
            return;
        }
        let wanted = (self.options.concurrency + self.ahead_target)
            .saturating_sub(self.running.len())
            .saturating_sub(self.ahead.len());
        if wanted == 0 || (self.running.len() >= self.options.concurrency && wanted < self.ahead_target / 2) {
            return;
        }
        self.taking = true;
        self.pace.take_began(now);
        self.next = None;
        self.idle_checked = false;
        let (store, worker, held) = (self.store.clone(), self.worker.clone(), self.ahead.by_scope().clone());
        self.chores.spawn(async move {
            let quota = move |scope: &ScopeKey, most: u32| {
                let held = held.get(scope).copied().unwrap_or(0);
                let startable = worker
                    .gates()
                    .startable(scope, worker.clock().now(), most.saturating_add(held));
                startable.saturating_sub(held)
            };
            Chore::Taken(store.take_within(wanted, quota).await)
        });
    }

    fn done(&mut self, chore: Chore) {
        match chore {
            Chore::Taken(taken) => self.taken(taken),
            Chore::Looked(version) => {
                self.looking = false;
                match version {
                    Ok(version) if self.version != Some(version) => {
                        // Another process has written: jobs, a cancellation, a gate.
                        self.version = Some(version);
                        self.changed = true;
                        self.idle_checked = false;
                        self.next = Some(self.now());
                    }
                    Ok(_) => {}
                    Err(error) => self.trouble(error),
                }
            }
            Chore::Renewed(Ok(())) => {}
            Chore::Renewed(Err(error)) => self.trouble(error),
            Chore::GivenBack(tokens, given) => {
                for token in tokens {
                    self.tokens.remove(&token);
                }
                if let Err(error) = given {
                    self.trouble(error);
                }
            }
            Chore::Measured(status) => {
                self.measuring = false;
                if let (Ok(status), Some(watcher)) = (status, &self.options.progress) {
                    watcher.send_replace(Progress::from(status));
                }
            }
            Chore::Idle(Ok(true)) => self.stopping |= self.is_at_rest(),
            Chore::Idle(Ok(false)) => {}
            Chore::Idle(Err(error)) => self.trouble(error),
        }
    }

    fn taken(&mut self, taken: Result<Taken, StoreError>) {
        self.taking = false;
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => return self.trouble(error),
        };
        let now = self.now();
        for (scope, until, reason) in &taken.closed {
            self.worker.gates().learn(scope, *until, now, reason);
        }
        self.changed |= !taken.leases.is_empty();
        self.ahead_target = self.pace.ahead(self.options.concurrency, now);
        if let Some(next) = taken.next {
            self.wake_at(next);
        }
        self.held_back = taken.held_back;
        self.tokens
            .extend(taken.leases.iter().filter_map(|lease| Token::of(&lease.message).ok()));
        if self.stopping {
            return self.give_back(taken.leases, false);
        }
        for lease in taken.leases {
            self.ahead.add(lease);
        }
    }

    fn give_back(&mut self, leases: Vec<Lease>, started: bool) {
        if leases.is_empty() {
            return;
        }
        let store = self.store.clone();
        self.chores.spawn(async move {
            let tokens = leases
                .iter()
                .filter_map(|lease| Token::of(&lease.message).ok())
                .collect();
            Chore::GivenBack(tokens, store.give_back(&leases, started).await)
        });
    }

    fn look(&mut self) {
        let stale = self.ahead.stale(self.now());
        if !stale.is_empty() {
            self.ahead_target = 0;
            self.give_back(stale, false);
        }
        if !self.looking && !self.stopping {
            self.looking = true;
            let store = self.store.clone();
            self.chores
                .spawn(async move { Chore::Looked(store.data_version().await) });
        }
        if self.changed && !self.measuring && self.options.progress.is_some() {
            self.changed = false;
            self.measuring = true;
            let store = self.store.clone();
            self.chores.spawn(async move { Chore::Measured(store.status().await) });
        }
    }

    fn renew(&mut self) {
        if self.tokens.is_empty() {
            return;
        }
        let (store, tokens) = (self.store.clone(), self.tokens.iter().copied().collect());
        self.chores
            .spawn(async move { Chore::Renewed(store.renew_tokens(tokens).await) });
    }

    /// Takes again once a scope that was held back may start more than is held of it already.
    fn look_at_held_back(&mut self, now: Timestamp) {
        if self.held_back.is_empty() {
            return;
        }
        let held = self.ahead.by_scope();
        let gates = self.worker.gates();
        let may_start = self.held_back.iter().any(|scope| {
            let held = held.get(scope).copied().unwrap_or(0);
            gates.startable(scope, now, held.saturating_add(1)) > held
        });
        if may_start {
            self.wake_at(now);
        }
    }

    /// When to look again, though nothing happens: something is due, or a gate of this process opens.
    fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let gates = self.worker.gates();
        let taking = self.next.filter(|_| !self.taking && !self.stopping);
        let opening = self.held_back.iter().map(|scope| gates.opens_at(scope, now));
        taking
            .into_iter()
            .chain(opening)
            .chain(self.ahead.opens_at(gates, now))
            .filter(|&at| at > now)
            .min()
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Whether nothing is under way in this process.
    fn is_at_rest(&self) -> bool {
        self.running.is_empty()
            && self.finished.is_empty()
            && self.settling.is_empty()
            && self.ahead.len() == 0
            && !self.taking
            && (!self.stopping || self.chores.is_empty())
    }

    fn check_idle(&mut self) {
        if !self.options.until_idle || self.idle_checked {
            return;
        }
        self.idle_checked = true;
        let store = self.store.clone();
        self.chores.spawn(async move { Chore::Idle(store.is_idle().await) });
    }

    /// No new start; what has not started is given back.
    fn stop(&mut self) {
        self.stopping = true;
        let leases = self.ahead.empty();
        self.give_back(leases, false);
    }

    /// The grace is over: what still runs is broken off. Its leases are given back as started once the tasks have ended.
    fn break_off(&mut self) {
        for (lease, _) in self.leases.values() {
            tracing::warn!(message_id = %lease.message.id, "still running at shutdown; it is broken off and given back");
        }
        self.running.abort_all();
    }

    fn trouble(&mut self, error: StoreError) {
        if error.is_transient() {
            tracing::warn!(%error, "the store did not answer; it is tried again");
            let again = self.now() + AGAIN;
            self.wake_at(again);
        } else if self.failure.is_none() {
            tracing::error!(%error, "the store cannot be used any longer");
            self.failure = Some(error);
            self.stop();
        }
    }

    fn broke_off(&mut self, error: &JoinError) {
        tracing::error!(%error, "a task of the poller broke off; its leases run out and its jobs come back");
        self.taking = false;
        self.looking = false;
        self.measuring = false;
        let again = self.now() + AGAIN;
        self.wake_at(again);
    }

    /// What was found since the last note stays readable after the end.
    pub(super) async fn note_last(&self) {
        self.worker.note_paces().await;
    }

    pub(super) async fn tell_last(&self) {
        if let Some(watcher) = &self.options.progress
            && let Ok(status) = self.store.status().await
        {
            watcher.send_replace(Progress::from(status));
        }
    }
}

/// Deletes what is settled. A file that is busy or full is tried again for a while: the leases go on being renewed, and a
/// call that was made is not made again for want of a note.
async fn delete<H: Handler>(worker: &Worker<H>, store: &Store, mut deletions: Vec<Deletion>) {
    for attempt in 1..=SETTLE_ATTEMPTS {
        if deletions.is_empty() {
            return;
        }
        let answers = store.delete(&deletions).await;
        let mut again = Vec::new();
        for (deletion, answer) in deletions.into_iter().zip(answers) {
            let Err(error) = answer else { continue };
            if error.is_transient() && attempt < SETTLE_ATTEMPTS {
                tracing::warn!(message_id = %deletion.original.id, %error, "a settlement was not written; it is tried again");
                again.push(deletion);
            } else {
                tracing::warn!(message_id = %deletion.original.id, %error, "a settlement was not written; the job may be done again");
            }
        }
        deletions = again;
        if !deletions.is_empty() {
            worker.clock().sleep(AGAIN).await;
        }
    }
}
