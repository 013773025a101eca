//! Sending jobs beside a plain loop of INSERTs with as many commits, under the same settings of the file.

use std::{path::Path, sync::Arc, time::Duration};

use adjourn_local::Store;
use adjourn_worker::SystemClock;
use rusqlite::Connection;

use crate::{
    Failure, children, jobs,
    pairs::{Stopwatch, alternate},
    table::{Bound, Table, rate},
};

/// Jobs of one commit, commits of one run, and the bound. In the largest nothing is left of what a commit costs: there it
/// is one row with two indexes beside one with one.
const SIZES: [(u32, u32, Bound); 4] = [
    (1, 200, Bound::AtLeast(0.5)),
    (10, 100, Bound::AtLeast(0.5)),
    (100, 40, Bound::AtLeast(0.5)),
    (1000, 8, Bound::Reported),
];
const PAIRS: u32 = 8;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    for (size, commits, bound) in SIZES {
        let compared = alternate(PAIRS, async |ours| {
            let directory = children::directory()?;
            let path = directory.path().join("jobs.db");
            if ours {
                send(&path, size, commits).await
            } else {
                insert(&path, size, commits)
            }
        })
        .await?;
        let jobs = size * commits;
        let (ours, other) = (rate(jobs, compared.ours), rate(jobs, compared.other));
        let what = format!("enqueue, {size} a commit, beside plain INSERTs");
        table.add(&what, ours, other, 1.0 / compared.ratio, bound);
    }
    Ok(())
}

async fn send(path: &Path, size: u32, commits: u32) -> Result<Duration, Failure> {
    let store = Store::open(path, Arc::new(SystemClock))?;
    let batches: Vec<_> = (0..commits)
        .map(|commit| jobs::new_jobs(commit * size..(commit + 1) * size))
        .collect();
    let watch = Stopwatch::start();
    for batch in batches {
        store.send(batch, false).await?;
    }
    Ok(watch.read())
}

/// A file for plain statements, set as the store sets its own.
pub(crate) fn plain(path: &Path) -> Result<Connection, Failure> {
    let conn = Connection::open(path)?;
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    conn.execute_batch(
        "CREATE TABLE plain (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, taken INTEGER NOT NULL, body TEXT NOT NULL)",
    )?;
    Ok(conn)
}

/// Inserts these lines in one transaction.
pub(crate) fn insert_all(conn: &mut Connection, lines: &[(String, String)]) -> Result<(), Failure> {
    let transaction = conn.transaction()?;
    {
        let mut statement = transaction.prepare_cached("INSERT INTO plain (id, taken, body) VALUES (?1, 0, ?2)")?;
        for (id, body) in lines {
            statement.execute([id, body])?;
        }
    }
    Ok(transaction.commit()?)
}

fn insert(path: &Path, size: u32, commits: u32) -> Result<Duration, Failure> {
    let mut conn = plain(path)?;
    let batches: Vec<Vec<(String, String)>> = (0..commits)
        .map(|commit| lines(commit * size..(commit + 1) * size))
        .collect();
    let watch = Stopwatch::start();
    for batch in &batches {
        insert_all(&mut conn, batch)?;
    }
    Ok(watch.read())
}

/// The jobs of these numbers as id and body.
pub(crate) fn lines(numbers: std::ops::Range<u32>) -> Vec<(String, String)> {
    numbers.map(|number| (jobs::id(number), jobs::line(number))).collect()
}
