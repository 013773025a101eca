//! What a running job's task knows of its time, so that no client within it waits longer than the worker does.

use std::{
    any::Any,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use adjourn_core::Timestamp;

tokio::task_local! {
    static CURRENT: InProcess;
}

/// How long a running job may wait in process, and by when it has to be over. A worker sets it around every handler.
#[derive(Clone, Debug)]
pub struct InProcess {
    cap: Duration,
    must_end_by: Timestamp,
    kept: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

impl InProcess {
    pub(crate) fn new(cap: Duration, must_end_by: Timestamp) -> Self {
        Self {
            cap,
            must_end_by,
            kept: Arc::default(),
        }
    }

    /// That of the job in whose task this is called; none outside a worker, and in a task that the handler spawned.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// How long it may wait, `max_in_process_wait` of the worker's policy: nothing, unless an operator allows more.
    #[must_use]
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// By when it has to be over.
    #[must_use]
    pub fn must_end_by(&self) -> Timestamp {
        self.must_end_by
    }

    /// What the job's calls share for as long as it runs, such as how long they slept: made by the first that asks. One thing for a
    /// job; who asks for a thing of another type has one of its own each time.
    #[must_use]
    pub fn kept<T: Send + Sync + 'static>(&self, make: impl Fn() -> T) -> Arc<T> {
        let kept = self.kept.get_or_init(|| Arc::new(make()));
        Arc::clone(kept).downcast().unwrap_or_else(|_| Arc::new(make()))
    }

    pub(crate) fn around<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use adjourn_core::Policy;

    use super::*;
    use crate::{Clock, Done, Handler, Interrupt, Job, VirtualClock, Worker, fake::FakeQueue};

    struct Looks(Arc<Mutex<Vec<(InProcess, Timestamp)>>>);

    impl Handler for Looks {
        async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
            let seen = InProcess::current().map(|current| (current, job.must_end_by()));
            self.0.lock().unwrap().extend(seen);
            Ok(Done::new())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_handler_runs_under_the_worker_s_cap_and_its_own_end() {
        assert!(InProcess::current().is_none());
        for cap in [Duration::ZERO, Duration::from_secs(7)] {
            let clock = Arc::new(VirtualClock::starting_at(Timestamp::EPOCH));
            let queue = FakeQueue::standard("jobs", clock.clone());
            let seen = Arc::default();
            let mut policy = Policy::default();
            policy.deferral.max_in_process_wait = cap;
            let worker = Worker::builder(Looks(Arc::clone(&seen)), Arc::new(queue.clone()))
                .clock(clock.clone())
                .policy(policy)
                .build();
            queue.send_body("1").unwrap();
            let batch = queue.receive(10).await.unwrap();
            worker.run_batch(batch, None).await;

            let seen = seen.lock().unwrap();
            let [(current, must_end_by)] = seen.as_slice() else {
                panic!("one job ran under a cap")
            };
            assert_eq!((current.cap(), current.must_end_by()), (cap, *must_end_by));
            assert!(*must_end_by > clock.now());
        }
    }

    #[test]
    fn what_a_job_keeps_is_one_for_all_who_look_at_it() {
        let current = InProcess::new(Duration::ZERO, Timestamp::EPOCH);
        let first = current.clone().kept(|| Mutex::new(1));
        *first.lock().unwrap() = 7;
        assert_eq!(*current.kept(|| Mutex::new(1)).lock().unwrap(), 7);
        assert_eq!(*current.kept(|| "another's"), "another's");
        let other = InProcess::new(Duration::ZERO, Timestamp::EPOCH);
        assert_eq!(*other.kept(|| Mutex::new(1)).lock().unwrap(), 1);
    }
}
