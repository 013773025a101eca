//! A store for the tests inside the crate, on a clock that they move.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjourn_core::Timestamp;
use adjourn_worker::VirtualClock;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use crate::{NewJob, Store};

pub(crate) fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let start = Timestamp::parse("2026-07-10T20:00:00Z").unwrap();
    let clock = Arc::new(VirtualClock::starting_at(start));
    let store = Store::open(directory.path().join("adjourn.db"), clock).unwrap();
    (directory, store)
}

pub(crate) fn jobs(count: usize) -> Vec<NewJob> {
    (0..count).map(|n| NewJob::new(&format!("{n}"), "acme", "{}")).collect()
}

/// Counts the statements that begin on both of the store's connections from now on.
pub(crate) fn count_statements(store: &Store) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = || {
        let count = Arc::clone(&count);
        Some(move |event: TraceEvent<'_>| {
            if let TraceEvent::Stmt(..) = event {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    store.writer().with_session(|session| {
        session
            .conn
            .trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, counter())
            .unwrap();
    });
    store.with_reader(|conn| {
        conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, counter()).unwrap();
    });
    count
}

/// The steps of a statement's plan.
pub(crate) fn plan(store: &Store, sql: &str) -> Vec<String> {
    store.with_reader(|conn| {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![rusqlite::types::Value::Integer(1); statement.parameter_count()];
        let steps = statement
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3))
            .unwrap();
        steps.map(Result::unwrap).collect()
    })
}
