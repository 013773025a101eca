//! Four processes on one file beside one.

use std::{future::pending, path::Path, sync::Arc, time::Duration};

use adjourn_local::{JobFilter, Poller, PollerOptions, Store};
use adjourn_worker::{Clock as _, SystemClock};

use crate::{
    Failure,
    children::{self, Child},
    jobs,
    pairs::alternate,
    provider::Provider,
    table::{Bound, Table, rate},
};

/// Jobs of one run.
const JOBS: u32 = 4000;
const PAIRS: u32 = 5;
const PROCESSES: u32 = 4;

/// One process fills two processors where calls take no time, so there the ratio is a matter of chance around 1.
const CALLS: [(&str, Duration, Bound); 2] = [
    (
        "four processes on one file beside one, calls of 2 ms",
        Duration::from_millis(2),
        Bound::AtLeast(1.0),
    ),
    (
        "four processes on one file beside one, calls of no time",
        Duration::ZERO,
        Bound::Reported,
    ),
];

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    for (what, takes, bound) in CALLS {
        let provider = Provider::start(takes).await?;
        let compared = alternate(PAIRS, async |four| {
            run(&provider, if four { PROCESSES } else { 1 }).await
        })
        .await?;
        let (ours, other) = (rate(JOBS, compared.ours), rate(JOBS, compared.other));
        table.add(what, ours, other, 1.0 / compared.ratio, bound);
    }
    Ok(())
}

/// The time from the word to start until the last job was done.
async fn run(provider: &Provider, processes: u32) -> Result<Duration, Failure> {
    let directory = children::directory()?;
    let path = directory.path().join("jobs.db");
    let store = Store::open(&path, Arc::new(SystemClock))?;
    store.send(jobs::new_jobs(0..JOBS), false).await?;
    let before = provider.answered().await?;
    let name = path.to_str().ok_or("the path is no text")?;
    let mut pollers = Vec::new();
    for _ in 0..processes {
        let mut poller = Child::of_this_program(&[children::POLLER, name, &provider.url])?;
        poller.line().await?;
        pollers.push(poller);
    }
    let started = SystemClock.now();
    for poller in &mut pollers {
        poller.say("go").await?;
    }
    for poller in pollers {
        poller.end().await?;
    }
    // A process finds out that the others have done the rest only when it looks: the file says when that was.
    let mut ended = started;
    let mut listed = store.jobs(JobFilter::default());
    while let Some(job) = listed.recv().await {
        ended = ended.max(job?.updated_at);
    }
    let (done, calls) = (store.status().await?.done, provider.answered().await? - before);
    if (done, calls) != (u64::from(JOBS), JOBS) {
        return Err(format!("{done} jobs are done by {calls} calls; {JOBS} were sent").into());
    }
    Ok(ended.since(started))
}

/// One of the processes: says when it is ready, waits for the word, and polls until nothing is left.
pub(crate) fn poll(store: &str, url: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open_existing(Path::new(store), Arc::new(SystemClock))?;
        let worker = store
            .worker(jobs::handler(url, true)?)
            .concurrency(jobs::CONCURRENCY)
            .build();
        children::tell("ready")?;
        std::io::stdin().read_line(&mut String::new())?;
        let options = PollerOptions::default().concurrency(jobs::CONCURRENCY).until_idle();
        Ok(Poller::run(worker, store, options, pending()).await?)
    })
}
