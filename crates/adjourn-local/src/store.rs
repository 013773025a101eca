//! The store: one file that several processes use at once.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::{Clock, Handler, Worker, WorkerBuilder};
use rusqlite::Connection;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::{
    CancelReport, GateView, JobDetail, JobFilter, JobView, Lease, NewJob, Redrive, RedriveReport, Selection, Sent,
    Status, StoreError, Taken, cancel, connection, gates,
    lease::{self, Token},
    redrive, send, take, view,
    writer::{Access, Session, Writer},
};

/// How many lines of a listing are read ahead of who prints them.
const LISTED_AHEAD: usize = 256;

/// A store of jobs in one SQLite file. Cheap to clone; it is also the queue, the scheduler, the gate store and the ledger
/// of a worker.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: Writer,
    reader: Mutex<Connection>,
    /// Tells this store's leases from those of every other process.
    owner: i64,
    /// Tells each take of this store from every other.
    serial: AtomicI64,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the file at `path`, makes it if there is none, and brings an older one to the current schema.
    ///
    /// # Errors
    /// When the directory does not exist, the file cannot be written, is locked, damaged, of a newer version, or none of
    /// this program's. The error names the file and says what to do.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::open_file(path.as_ref(), clock, true)
    }

    /// Opens the file at `path`, which has to exist.
    ///
    /// # Errors
    /// As [`Store::open`], and when there is no such file.
    pub fn open_existing(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::open_file(path.as_ref(), clock, false)
    }

    fn open_file(path: &Path, clock: Arc<dyn Clock>, create: bool) -> Result<Self, StoreError> {
        let open = || Ok((connection::open(path, create)?, connection::open_reader(path)?));
        let (conn, reader) = open().map_err(|error: StoreError| error.of(path))?;
        let (_, random) = Uuid::now_v7().as_u64_pair();
        Ok(Self {
            inner: Arc::new(Inner {
                path: path.to_path_buf(),
                clock,
                writer: Writer::new(conn, path),
                reader: Mutex::new(reader),
                owner: i64::from_ne_bytes(random.to_ne_bytes()),
                serial: AtomicI64::new(0),
            }),
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A worker of `handler` whose ports are all this store. Give [`Poller`](crate::Poller) what it builds.
    pub fn worker<H: Handler>(&self, handler: H) -> WorkerBuilder<H> {
        let store = Arc::new(self.clone());
        Worker::builder(handler, Arc::<Self>::clone(&store) as Arc<_>)
            .scheduler(Arc::<Self>::clone(&store) as Arc<_>)
            .gate_store(Arc::<Self>::clone(&store) as Arc<_>)
            .ledger(store as Arc<_>)
            .clock(Arc::clone(&self.inner.clock))
    }

    /// Sends jobs, all in one transaction; the answers are in their order. With `revise`, a higher revision takes the place
    /// of the waiting job of its id.
    ///
    /// # Errors
    /// When nothing was sent: the file's trouble, or a job that no store takes (no id, too large).
    pub async fn send(&self, jobs: Vec<NewJob>, revise: bool) -> Result<Vec<Sent>, StoreError> {
        self.write(move |session, now| send::send(session, &jobs, revise, now))
            .await
    }

    /// Counts by state, the next due time, the closed gates and the found paces.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn status(&self) -> Result<Status, StoreError> {
        self.read(view::status).await
    }

    /// The closed gates, the first to open first, and then the open ones that keep to a pace that was found.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn gates(&self) -> Result<Vec<GateView>, StoreError> {
        self.read(gates::list).await
    }

    /// The jobs that `filter` asks for, one by one; dropping the receiver ends the listing.
    ///
    /// An error comes as the last element.
    #[must_use]
    pub fn jobs(&self, filter: JobFilter) -> mpsc::Receiver<Result<JobView, StoreError>> {
        let (sender, receiver) = mpsc::channel(LISTED_AHEAD);
        let (path, now) = (self.inner.path.clone(), self.now());
        tokio::task::spawn_blocking(move || {
            // A connection of its own: a slow reader must not keep others from the shared one.
            let listed = connection::open_reader(&path).and_then(|conn| {
                view::jobs(&conn, &filter, now, |job| match sender.blocking_send(Ok(job)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                })
            });
            if let Err(error) = listed {
                // Nobody may be listening any more.
                let _ = sender.blocking_send(Err(error.of(&path)));
            }
        });
        receiver
    }

    /// A job by its caller's name, with its history and its result.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn job(&self, id: &str) -> Result<Option<JobDetail>, StoreError> {
        let id = id.to_string();
        self.read(move |conn, now| view::job(conn, &id, now)).await
    }

    /// Cancels jobs: what has not started will not.
    ///
    /// # Errors
    /// When nothing was cancelled.
    pub async fn cancel(&self, selection: Selection) -> Result<CancelReport, StoreError> {
        self.write(move |session, now| cancel::cancel(session, &selection, now))
            .await
    }

    /// Brings ended jobs back in a new epoch, on a slope.
    ///
    /// # Errors
    /// When nothing was brought back.
    pub async fn redrive(&self, which: Redrive) -> Result<RedriveReport, StoreError> {
        self.write(move |session, now| redrive::redrive(session, &which, now))
            .await
    }

    /// Takes up to `limit` jobs, in fair turns between scopes and tenants; none of a scope whose gate is closed.
    ///
    /// # Errors
    /// When nothing was taken.
    pub async fn take(&self, limit: usize) -> Result<Taken, StoreError> {
        self.take_within(limit, |_, most| most).await
    }

    /// Takes up to `limit` jobs, and of each scope no more than `quota` says, which is asked for at most its second
    /// argument.
    ///
    /// # Errors
    /// When nothing was taken.
    pub async fn take_within(
        &self,
        limit: usize,
        quota: impl FnMut(&ScopeKey, u32) -> u32 + Send + 'static,
    ) -> Result<Taken, StoreError> {
        let holder = (self.inner.owner, self.inner.serial.fetch_add(1, Ordering::Relaxed));
        self.write(move |session, now| take::take(session, limit, Box::new(quota), holder, now))
            .await
    }

    /// Renews leases for another [`LEASE`](crate::LEASE), all in one statement. A lease that was lost stays lost.
    ///
    /// # Errors
    /// When none was renewed.
    pub async fn renew(&self, leases: &[Lease]) -> Result<(), StoreError> {
        let tokens = leases
            .iter()
            .map(|lease| Token::of(&lease.message))
            .collect::<Result<Vec<_>, _>>()?;
        self.renew_tokens(tokens).await
    }

    pub(crate) async fn renew_tokens(&self, tokens: Vec<Token>) -> Result<(), StoreError> {
        self.write(move |session, now| lease::renew(session, &tokens, now))
            .await
    }

    /// Gives leases of jobs back that were not started, as if they had not been taken.
    ///
    /// # Errors
    /// When none was given back: they run out by themselves.
    pub async fn release(&self, leases: &[Lease]) -> Result<(), StoreError> {
        self.give_back(leases, false).await
    }

    /// Gives leases back; `started` says that their calls may have been made.
    pub(crate) async fn give_back(&self, leases: &[Lease], started: bool) -> Result<(), StoreError> {
        let mut given = Vec::with_capacity(leases.len());
        for lease in leases {
            given.push((Token::of(&lease.message)?, lease.ready_since, started));
        }
        self.write(move |session, now| lease::release(session, &given, now))
            .await
    }

    /// Whether no job is ready, running or waiting.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn is_idle(&self) -> Result<bool, StoreError> {
        self.read(|conn, _| view::is_idle(conn)).await
    }

    /// Changes when another connection has written to the file.
    pub(crate) async fn data_version(&self) -> Result<i64, StoreError> {
        self.inner
            .writer
            .call(Access::Reads, |session| gates::data_version(&session.conn))
            .await
    }

    /// Changes each time that this process has made something takeable.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.inner.writer.commits()
    }

    /// The earliest moment that this process's commits have made something takeable for, since the last call.
    pub(crate) fn soonest(&self) -> Option<Timestamp> {
        self.inner.writer.soonest()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// A write, grouped with whatever else is pending. The moment is read when its turn has come.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&mut Session, Timestamp) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let clock = Arc::clone(&self.inner.clock);
        self.inner
            .writer
            .call(Access::Writes, move |session| work(session, clock.now()))
            .await
    }

    /// A read, beside the writer.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection, Timestamp) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let now = self.now();
        let read = tokio::task::spawn_blocking(move || {
            let reader = inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
            work(&reader, now).map_err(|error| error.of(&inner.path))
        });
        read.await
            .unwrap_or_else(|_| Err(StoreError::internal("a reader broke off").of(&self.inner.path)))
    }

    /// For tests that look at the read connection.
    #[cfg(test)]
    pub(crate) fn with_reader<T>(&self, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(&mut self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For tests that look at or hurt the write connection.
    #[cfg(test)]
    pub(crate) fn writer(&self) -> &Writer {
        &self.inner.writer
    }
}
