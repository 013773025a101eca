//! The one writer of a process: everything that is pending goes into one transaction, and is answered once that is durable.
//!
//! A commit with synchronous=FULL costs a flush of the disk, whatever is in it. So requests that arrive while one commits
//! wait for it and then share the next. Each has a savepoint of its own: one that fails undoes nothing of its neighbours.
//! The work runs on tokio's blocking threads, which also keeps a paused clock from running ahead of it.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
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
        // A mistake of ours in one request must not take the writer along: it is undone like any other failure.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(session))).unwrap_or_else(|_| {
            Err(StoreError::internal(
                "was not changed: a request broke off, a mistake of this program",
            ))
        });
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

/// Nothing is left half changed under these locks, so a poisoned one is as good as another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works until nothing is pending.
fn drain(shared: &Shared) {
    let mut session = lock(&shared.session);
    loop {
        let group = {
            let mut queue = lock(&shared.queue);
            if queue.waiting.is_empty() {
                queue.draining = false;
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
        let committed = match &committed {
            Ok(()) => Ok(()),
            Err(error) => Err(error.again()),
        };
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

#[cfg(test)]
mod tests {
    use std::{future::Future, time::Duration};

    use super::*;
    use crate::fixture::{count_statements, jobs, store};

    fn insert(session: &Session, id: &str) -> Result<(), StoreError> {
        session.conn.execute(
            "INSERT INTO jobs (id, state, due, scope_key, tenant, provider, deferral_id, created_at, updated_at)
             VALUES (?1, 0, 1, 'acme', '', 'acme', 'a', 1, 1)",
            [id],
        )?;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_pending_together_is_one_transaction_and_a_failure_undoes_only_itself() {
        let (_directory, store) = store();
        let statements = count_statements(&store);
        let writer = store.writer().clone();
        let call = |id: &'static str, fails: bool| {
            writer.call(Access::Writes, move |session| {
                insert(session, id)?;
                if fails {
                    insert(session, "not-kept")?;
                    return Err(StoreError::refused("it was asked to fail"));
                }
                Ok(())
            })
        };
        let mut together = std::pin::pin!(async { tokio::join!(call("a", false), call("b", true), call("c", false)) });
        {
            // While the session is taken nothing is carried out, so all three are pending when it is given back.
            let _session = lock(&writer.shared.session);
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(together.as_mut().poll(&mut context).is_pending());
            assert_eq!(lock(&writer.shared.queue).waiting.len(), 3);
        }
        let (a, b, c) = together.await;
        a.unwrap();
        assert_eq!(b.unwrap_err().to_string(), "it was asked to fail");
        c.unwrap();
        let ids: Vec<String> = store.with_reader(|conn| {
            let mut statement = conn.prepare("SELECT id FROM jobs ORDER BY id").unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        });
        assert_eq!(ids, ["a", "c"]);
        // BEGIN, COMMIT, two for each savepoint, four inserts, one ROLLBACK TO, and the look at the ids.
        assert_eq!(statements.load(Ordering::Relaxed), 2 + 6 + 4 + 1 + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_breaks_off_one_request_and_not_the_writer() {
        let (_directory, store) = store();
        let broken = store
            .writer()
            .call(Access::Writes, |session| -> Result<(), StoreError> {
                insert(session, "not-kept")?;
                panic!("a mistake of ours")
            })
            .await;
        assert!(broken.unwrap_err().to_string().contains("a request broke off"));
        store.send(jobs(1), false).await.unwrap();
        assert_eq!(store.status().await.unwrap().ready, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_disk_is_said_and_what_is_there_stays() {
        let (_directory, store) = store();
        store.send(jobs(10), false).await.unwrap();
        store.writer().with_session(|session| {
            let pages: i64 = session
                .conn
                .query_row("PRAGMA page_count", [], |row| row.get(0))
                .unwrap();
            session
                .conn
                .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
                .unwrap();
        });
        let error = store.send(jobs(20_000), false).await.unwrap_err();
        assert!(error.is_full() && error.is_transient(), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "{} could not grow: the disk is full; free some space and try again, nothing of this step was written",
                store.path().display()
            )
        );
        assert_eq!(store.status().await.unwrap().ready, 10);
        store.take(1).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_may_not_be_written_says_what_to_grant() {
        let (_directory, store) = store();
        store.writer().with_session(|session| {
            session.conn.pragma_update(None, "query_only", true).unwrap();
        });
        let error = store.send(jobs(1), false).await.unwrap_err();
        assert!(error.is_read_only() && !error.is_transient(), "{error:?}");
        assert!(error.to_string().contains("give this user write permission"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_another_process_keeps_locked_is_said_to_be_and_comes_back() {
        let (_directory, store) = store();
        store.writer().with_session(|session| {
            session.conn.busy_timeout(Duration::from_millis(1)).unwrap();
        });
        let other = Connection::open(store.path()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = store.send(jobs(1), false).await.unwrap_err();
        assert!(error.is_locked() && error.is_transient(), "{error:?}");
        assert!(error.to_string().contains("is locked: another process"), "{error}");
        assert_eq!(store.status().await.unwrap().ready, 0, "reading goes on");
        other.execute_batch("COMMIT").unwrap();
        store.send(jobs(1), false).await.unwrap();
    }
}
