//! Jobs through the SQLite engine beside the same calls without a queue.

use std::{future::pending, sync::Arc, time::Duration};

use adjourn_local::{Poller, PollerOptions, Store};
use adjourn_worker::SystemClock;

use crate::{
    Failure, calls, children, jobs,
    pairs::{Stopwatch, alternate},
    provider::Provider,
    table::{Bound, Table, rate},
};

/// Jobs of one run.
const JOBS: u32 = 10_000;
const PAIRS: u32 = 6;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let provider = Provider::start(Duration::ZERO).await?;
    let client = calls::client()?;
    calls::make(&client, &provider.url, JOBS).await?;
    for (what, repeatable, bound) in [
        ("engine: jobs beside calls without a queue", true, Bound::AtLeast(0.5)),
        (
            "engine: the same, each start written down first",
            false,
            Bound::Reported,
        ),
    ] {
        let compared = alternate(PAIRS, async |ours| {
            if ours {
                return run(&provider, repeatable).await;
            }
            let watch = Stopwatch::start();
            calls::make(&client, &provider.url, JOBS).await?;
            Ok(watch.read())
        })
        .await?;
        let (ours, other) = (rate(JOBS, compared.ours), rate(JOBS, compared.other));
        table.add(what, ours, other, 1.0 / compared.ratio, bound);
    }
    Ok(())
}

/// The time from a poller's start to its end on a file of jobs.
async fn run(provider: &Provider, repeatable: bool) -> Result<Duration, Failure> {
    let directory = children::directory()?;
    let store = Store::open(directory.path().join("jobs.db"), Arc::new(SystemClock))?;
    store.send(jobs::new_jobs(0..JOBS), false).await?;
    let before = provider.answered().await?;
    let worker = store
        .worker(jobs::handler(&provider.url, repeatable)?)
        .concurrency(jobs::CONCURRENCY)
        .build();
    let options = PollerOptions::default().concurrency(jobs::CONCURRENCY).until_idle();
    let watch = Stopwatch::start();
    Poller::run(worker, store.clone(), options, pending()).await?;
    let took = watch.read();
    let (done, calls) = (store.status().await?.done, provider.answered().await? - before);
    if (done, calls) != (u64::from(JOBS), JOBS) {
        return Err(format!("{done} jobs are done by {calls} calls; {JOBS} were sent").into());
    }
    Ok(took)
}
