//! The one writer of a process: everything that is pending goes into one transaction, and is answered once that is durable.
//!
//! A commit with synchronous=FULL costs a flush of the disk, whatever is in it. So requests that arrive while one commits
//! wait for it and then share the next. Each has a savepoint of its own: one that fails undoes nothing of its neighbours.
//! The work runs on tokio's blocking threads, which also keeps a paused clock from running ahead of it.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use adjourn_core::Timestamp;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::{StoreError, gates::ClosedGates};

/// The write connection with what is remembered between transactions.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) conn: Connection,
    pub(crate) closed: ClosedGates,
    /// Whose turn it was last: the scope, and the tenant of each scope.
    pub(crate) last_scope: String,
    pub(crate) last_tenant: HashMap<String, String>,
    /// The earliest moment at which something can be taken because of this group; none while nothing changed.
    soonest: Option<Timestamp>,
}

impl Session {
    /// Tells pollers, after the commit, that a job can be taken from `at` on.
    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.soonest = Some(self.soonest.map_or(at, |soonest| soonest.min(at)));
    }
}

/// Whether a request changes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    Writes,
}

/// Takes requests from any task and carries them out in groups.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    queue: Mutex<Queue>,
    session: Mutex<Session>,
    /// The earliest of the moments that were told since a poller last looked.
    soonest: AtomicI64,
    commits: watch::Sender<u64>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Box<dyn Request>>,
    draining: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} waiting", self.waiting.len())
    }
}

trait Request: Send {
    fn access(&self) -> Access;
    /// Does the work; whether its changes stay.
    fn carry_out(&mut self, session: &mut Session) -> bool;
    /// Answers, with what happened to the transaction.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>, path: &Path);
}

struct Call<F, T> {
    access: Access,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Request for Call<F, T>
where
    F: FnOnce(&mut Session) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn access(&self) -> Access {
        self.access
    }

    fn carry_out(&mut self, session: &mut Session) -> bool {
        let Some(work) = self.work.take() else { return false };
        let outcome = work(session);
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>, path: &Path) {
        let outcome = match (self.outcome, committed) {
            // What it was refused for itself is the better answer.
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => Err(StoreError::internal("a request was not carried out")),
        };
        // Nobody may be waiting any more; the work is done all the same.
        let _ = self.reply.send(outcome.map_err(|error| error.of(path)));
    }
}

impl Writer {
    pub(crate) fn new(conn: Connection, path: &Path) -> Self {
        let session = Session {
            conn,
            closed: ClosedGates::default(),
            last_scope: String::new(),
            last_tenant: HashMap::new(),
            soonest: None,
        };
        Self {
            shared: Arc::new(Shared {
                path: path.to_path_buf(),
                queue: Mutex::new(Queue::default()),
                session: Mutex::new(session),
                soonest: AtomicI64::new(i64::MAX),
                commits: watch::Sender::new(0),
            }),
        }
    }

    /// Carries out `work` in a group with whatever else is pending; answers when the group is durable.
    pub(crate) async fn call<T, F>(&self, access: Access, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&mut Session) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Call {
            access,
            work: Some(work),
            outcome: None,
            reply,
        };
        let idle = {
            let mut queue = lock(&self.shared.queue);
            queue.waiting.push(Box::new(call));
            !std::mem::replace(&mut queue.draining, true)
        };
        if idle {
            let shared = Arc::clone(&self.shared);
            tokio::task::spawn_blocking(move || drain(&shared));
        }
        answer
            .await
            .unwrap_or_else(|_| Err(StoreError::internal("the writer broke off").of(&self.shared.path)))
    }

    /// Changes each time that a commit of this process makes something takeable.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.shared.commits.subscribe()
    }

    /// The earliest moment at which something can be taken, as far as commits of this process told since the last call.
    pub(crate) fn soonest(&self) -> Option<Timestamp> {
        let at = self.shared.soonest.swap(i64::MAX, Ordering::AcqRel);
        (at < i64::MAX).then(|| Timestamp::from_unix_ms(at))
    }

    /// For tests that look at or hurt the connection.
    #[cfg(test)]
    pub(crate) fn with_session<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        act(&mut lock(&self.shared.session))
    }
}

/// A panic in a request leaves the transaction to be rolled back by the next group, so a poisoned lock is usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works until nothing is pending.
fn drain(shared: &Shared) {
    /// Lets the next request start a new drain, should this one panic.
    struct Idle<'a>(&'a Shared, bool);
    impl Drop for Idle<'_> {
        fn drop(&mut self) {
            if !self.1 {
                let mut queue = lock(&self.0.queue);
                queue.draining = false;
                queue.waiting.clear();
            }
        }
    }
    let mut idle = Idle(shared, false);
    let mut session = lock(&shared.session);
    loop {
        let group = {
            let mut queue = lock(&shared.queue);
            if queue.waiting.is_empty() {
                queue.draining = false;
                idle.1 = true;
                return;
            }
            std::mem::take(&mut queue.waiting)
        };
        carry_out(shared, &mut session, group);
    }
}

fn carry_out(shared: &Shared, session: &mut Session, mut group: Vec<Box<dyn Request>>) {
    session.soonest = None;
    let committed = if group.iter().all(|request| request.access() == Access::Reads) {
        for request in &mut group {
            request.carry_out(session);
        }
        Ok(())
    } else {
        transact(session, &mut group)
    };
    if committed.is_err() {
        session.closed.forget();
    }
    // Before the answers: who hears that its job is durable may look for it at once.
    if let Some(at) = session.soonest.take().filter(|_| committed.is_ok()) {
        shared.soonest.fetch_min(at.as_unix_ms(), Ordering::AcqRel);
        shared.commits.send_modify(|commits| *commits = commits.wrapping_add(1));
    }
    for request in group {
        let committed = committed.as_ref().map(|()| ()).map_err(StoreError::again);
        request.answer(committed, &shared.path);
    }
}

fn transact(session: &mut Session, group: &mut [Box<dyn Request>]) -> Result<(), StoreError> {
    if !session.conn.is_autocommit() {
        run(&session.conn, "ROLLBACK")?;
    }
    run(&session.conn, "BEGIN IMMEDIATE")?;
    let alone = group.len() == 1;
    for request in group {
        if alone {
            if !request.carry_out(session) {
                session.closed.forget();
                if !session.conn.is_autocommit() {
                    run(&session.conn, "ROLLBACK")?;
                }
                return Ok(());
            }
            break;
        }
        run(&session.conn, "SAVEPOINT request")?;
        let stays = request.carry_out(session);
        if session.conn.is_autocommit() {
            // A full disk or a failing one ends the whole transaction, neighbours included.
            return Err(StoreError::internal(
                "gave up a whole transaction because one of its requests met a failing disk; nothing of it was written",
            ));
        }
        if !stays {
            session.closed.forget();
            run(&session.conn, "ROLLBACK TO request")?;
        }
        run(&session.conn, "RELEASE request")?;
    }
    let committed = run(&session.conn, "COMMIT");
    if committed.is_err() && !session.conn.is_autocommit() {
        run(&session.conn, "ROLLBACK")?;
    }
    committed
}

fn run(conn: &Connection, statement: &str) -> Result<(), StoreError> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}
