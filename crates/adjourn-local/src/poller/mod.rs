//! The loop that plays the event source mapping's part: it takes, has performed, and settles, without a pause between.

mod held;
mod pace;
mod progress;
mod run;

use std::{future::Future, pin::pin, time::Duration};

use adjourn_worker::{Handler, Worker};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{Store, StoreError};
pub use progress::Progress;
use run::Run;

/// How a poller runs.
#[derive(Clone, Debug)]
pub struct PollerOptions {
    concurrency: usize,
    until_idle: bool,
    grace: Duration,
    progress: Option<watch::Sender<Progress>>,
}

impl Default for PollerOptions {
    /// 10 jobs at a time, for good, with 10 s for running jobs when it is told to stop.
    fn default() -> Self {
        Self {
            concurrency: 10,
            until_idle: false,
            grace: Duration::from_secs(10),
            progress: None,
        }
    }
}

impl PollerOptions {
    /// How many jobs run at a time; at least one.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }

    /// It ends once nothing is ready, running or waiting.
    #[must_use]
    pub fn until_idle(mut self) -> Self {
        self.until_idle = true;
        self
    }

    /// How long running jobs may go on once it is told to stop. Then they are broken off and their leases given back.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// Who is told how far it has come.
    #[must_use]
    pub fn progress(mut self, watcher: watch::Sender<Progress>) -> Self {
        self.progress = Some(watcher);
        self
    }
}

/// Runs a worker on a store.
#[derive(Clone, Copy, Debug)]
pub struct Poller;

impl Poller {
    /// Takes jobs and has `worker` do them until `shutdown` completes, or until nothing is left to do if the options say so.
    ///
    /// # Errors
    /// When the file can be used no longer: what was running has been given its grace before. A busy or full file is
    /// waited for.
    pub async fn run<H: Handler>(
        worker: Worker<H>,
        store: Store,
        options: PollerOptions,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), StoreError> {
        let (stop, stopped) = oneshot::channel();
        // A task of its own, among those of the jobs: a caller's thread that only waits would have to be woken for each job
        // that ends. It ends with this future.
        let mut polling = JoinSet::new();
        polling.spawn(poll(Run::new(worker, store, options), stopped));
        let mut shutdown = pin!(shutdown);
        let ended = tokio::select! {
            ended = polling.join_next() => ended,
            () = &mut shutdown => {
                // It may be at its end already.
                let _ = stop.send(());
                polling.join_next().await
            }
        };
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => Err(StoreError::internal("the poller broke off")),
        }
    }
}

async fn poll<H: Handler>(mut run: Run<H>, stopped: oneshot::Receiver<()>) -> Result<(), StoreError> {
    run.until_stopped(async {
        // A sender that is gone is no wish to stop.
        if stopped.await.is_err() {
            std::future::pending().await
        }
    })
    .await;
    run.note_last().await;
    run.tell_last().await;
    match run.failure {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use adjourn_worker::{Clock, Done, Interrupt, Job, SystemClock};

    use super::*;
    use crate::{
        NewJob,
        fixture::{count_statements, jobs, store},
    };

    struct Never;
    impl Handler for Never {
        async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
            panic!("nothing is due in this test")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_second_with_a_hundred_thousand_waiting_jobs_costs_five_statements_at_most() {
        let (_directory, store) = store();
        let later = store.now() + Duration::from_secs(86_400);
        let waiting = jobs(100_000).into_iter().map(|job| NewJob {
            not_before: Some(later),
            ..job
        });
        store.send(waiting.collect(), false).await.unwrap();
        let (sender, _receiver) = watch::channel(Progress::default());
        let options = PollerOptions::default().progress(sender);
        let worker = store.worker(Never).build();
        let polling = tokio::spawn(Poller::run(worker, store.clone(), options, std::future::pending()));
        // The first second finds out that there is nothing to do.
        SystemClock.sleep(Duration::from_secs(1)).await;
        let statements = count_statements(&store);
        for second in 1..=20 {
            let before = statements.load(Ordering::Relaxed);
            SystemClock.sleep(Duration::from_secs(1)).await;
            let spent = statements.load(Ordering::Relaxed) - before;
            assert!(spent <= 5, "{spent} statements in second {second}");
        }
        let all = statements.load(Ordering::Relaxed);
        assert!(
            all >= 20 * 3,
            "{all} statements in 20 s: nobody looks for other processes' writes"
        );
        assert!(!polling.is_finished());
        polling.abort();
    }
}
