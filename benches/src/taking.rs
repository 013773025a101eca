//! Taking jobs and settling them as done beside a plain loop that marks, deletes, and commits as often.

use std::{path::Path, sync::Arc, time::Duration};

use adjourn_local::Store;
use adjourn_worker::{Done, Handler, Interrupt, Job, SystemClock, port::Queue as _};
use rusqlite::{Connection, params};

use crate::{
    Failure, children,
    enqueue::{insert_all, lines, plain},
    jobs,
    pairs::{Stopwatch, alternate},
    table::{Bound, Table, rate},
};

/// Jobs of one batch, and batches of one run.
const SIZES: [(u32, u32); 3] = [(1, 200), (10, 100), (50, 40)];
const PAIRS: u32 = 8;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    for (size, batches) in SIZES {
        let compared = alternate(PAIRS, async |ours| {
            let directory = children::directory()?;
            let path = directory.path().join("jobs.db");
            if ours {
                take(&path, size, batches).await
            } else {
                select(&path, size, batches)
            }
        })
        .await?;
        let jobs = size * batches;
        let (ours, other) = (rate(jobs, compared.ours), rate(jobs, compared.other));
        let what = format!("take and settle, {size} a batch, beside SELECT and DELETE");
        table.add(&what, ours, other, 1.0 / compared.ratio, Bound::Reported);
    }
    Ok(())
}

/// Has its effect at once.
struct Nothing;

impl Handler for Nothing {
    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        Ok(Done::new())
    }
}

async fn take(path: &Path, size: u32, batches: u32) -> Result<Duration, Failure> {
    let store = Store::open(path, Arc::new(SystemClock))?;
    store.send(jobs::new_jobs(0..size * batches), false).await?;
    let worker = store.worker(Nothing).build();
    let mut took = Duration::ZERO;
    for _ in 0..batches {
        let watch = Stopwatch::start();
        let taken = store.take(usize::try_from(size)?).await?;
        took += watch.read();
        // What is between the two is the worker's time and not the store's.
        let mut performed = Vec::with_capacity(taken.leases.len());
        for lease in taken.leases {
            performed.push(worker.perform(lease.message, lease.standing, None).await);
        }
        let watch = Stopwatch::start();
        let settled = worker.settle(performed).await;
        let deletions: Vec<_> = settled.into_iter().filter_map(|settled| settled.deletion).collect();
        for deleted in store.delete(&deletions).await {
            deleted?;
        }
        took += watch.read();
    }
    let done = store.status().await?.done;
    if done != u64::from(size * batches) {
        return Err(format!("{done} jobs are done; {} were sent", size * batches).into());
    }
    Ok(took)
}

fn select(path: &Path, size: u32, batches: u32) -> Result<Duration, Failure> {
    let mut conn = plain(path)?;
    insert_all(&mut conn, &lines(0..size * batches))?;
    let watch = Stopwatch::start();
    for _ in 0..batches {
        let taken = mark(&mut conn, size)?;
        let transaction = conn.transaction()?;
        for (seq, _) in &taken {
            transaction
                .prepare_cached("DELETE FROM plain WHERE seq = ?1")?
                .execute([seq])?;
        }
        transaction.commit()?;
    }
    let took = watch.read();
    let left: u32 = conn.query_row("SELECT count(*) FROM plain", [], |row| row.get(0))?;
    if left > 0 {
        return Err(format!("{left} lines were left").into());
    }
    Ok(took)
}

/// Marks the next lines as taken and answers them: without that commit a second reader would take them too.
fn mark(conn: &mut Connection, size: u32) -> Result<Vec<(i64, String)>, Failure> {
    let transaction = conn.transaction()?;
    let taken = {
        let mut next =
            transaction.prepare_cached("SELECT seq, body FROM plain WHERE taken = 0 ORDER BY seq LIMIT ?1")?;
        let rows = next.query_map([size], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<Vec<(i64, String)>, _>>()?
    };
    for (seq, _) in &taken {
        transaction
            .prepare_cached("UPDATE plain SET taken = 1 WHERE seq = ?1")?
            .execute(params![seq])?;
    }
    transaction.commit()?;
    Ok(taken)
}
