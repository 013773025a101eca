//! A store in a directory of its own, on a clock that the tests move.

use std::{path::PathBuf, sync::Arc, time::Duration};

use adjourn_core::{Fault, Kind, Signal, Timestamp};
use adjourn_local::{JobDetail, JobFilter, JobView, Lease, NewJob, State, Status, Store};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Settled, VirtualClock, Worker};
use tempfile::TempDir;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Place {
    directory: TempDir,
    pub(crate) clock: Arc<VirtualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let start = Timestamp::parse("2026-07-10T20:00:00Z").unwrap();
        Self {
            directory: tempfile::tempdir().unwrap(),
            clock: Arc::new(VirtualClock::starting_at(start)),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("adjourn.db")
    }

    /// A process's handle on the file; each has leases of its own.
    pub(crate) fn open(&self) -> Store {
        Store::open(self.path(), Arc::<VirtualClock>::clone(&self.clock)).unwrap()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

pub(crate) async fn advance(span: Duration) {
    tokio::time::advance(span).await;
}

/// A handler that does as the body says: `done`, `done:RESULT`, `refuse:SECONDS`, `fail`, `reject`, `drop`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Obedient;

impl Handler for Obedient {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        obey(job.body())
    }
}

pub(crate) fn obey(body: &str) -> Result<Done, Interrupt> {
    let (word, rest) = body.split_once(':').unwrap_or((body, ""));
    match word {
        "done" if rest.is_empty() => Ok(Done::new().status(200)),
        "done" => Ok(Done::new().status(200).result(rest.to_string())),
        // The moment is counted from the start of the test's clock, so that a repeated call is let through.
        "refuse" => Err(Interrupt::throttled(
            Signal::new("acme", Timestamp::EPOCH)
                .kind(Kind::Short)
                .status(429)
                .reason("burst")
                .retry_at(Timestamp::parse(rest).unwrap()),
        )),
        "fail" => Err(Interrupt::failed(Fault::new("connection reset"))),
        "reject" => Err(Interrupt::rejected(Fault::new("no such invoice").status(404))),
        other => panic!("a test's job says {other}"),
    }
}

pub(crate) fn job(id: &str, body: &str) -> NewJob {
    NewJob::new(id, "acme", body)
}

pub(crate) fn of_tenant(id: &str, tenant: &str) -> NewJob {
    NewJob {
        tenant: Some(tenant.to_string()),
        ..job(id, "done")
    }
}

pub(crate) fn worker(store: &Store) -> Worker<Obedient> {
    store.worker(Obedient).sinks(vec![]).build()
}

/// Takes what can be taken, and no more than one job.
pub(crate) async fn take_one(store: &Store) -> Lease {
    store.take(1).await.unwrap().leases.pop().expect("a job to take")
}

pub(crate) async fn ids(store: &Store, limit: usize) -> Vec<String> {
    let taken = store.take(limit).await.unwrap();
    taken.leases.iter().map(|lease| lease.message.id.clone()).collect()
}

/// Performs a taken job and makes its decision durable, without deleting its original.
pub(crate) async fn settle(store: &Store, lease: &Lease) -> Settled {
    let worker = worker(store);
    let performed = worker.perform(Arc::clone(&lease.message), lease.standing, None).await;
    worker.settle(vec![performed]).await.pop().unwrap()
}

pub(crate) async fn detail(store: &Store, id: &str) -> JobDetail {
    store.job(id).await.unwrap().expect("the job")
}

pub(crate) async fn state(store: &Store, id: &str) -> State {
    detail(store, id).await.job.state
}

pub(crate) async fn status(store: &Store) -> Status {
    store.status().await.unwrap()
}

pub(crate) async fn list(store: &Store, filter: JobFilter) -> Vec<JobView> {
    let mut rows = store.jobs(filter);
    let mut jobs = Vec::new();
    while let Some(row) = rows.recv().await {
        jobs.push(row.unwrap());
    }
    jobs
}
