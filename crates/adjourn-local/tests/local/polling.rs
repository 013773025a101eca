//! The poller: everything gets done, once, when it may be, and nothing is kept that was not started.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjourn_core::{Kind, Observation, Pace, ScopeKey, Signal, Timestamp};
use adjourn_local::{JobFilter, LEASE, NewJob, Poller, PollerOptions, Progress, Redrive, Selection, State, Store};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, Message, SystemClock, Terms, Undecodable, VirtualClock,
    port::{Closing, GateStore},
};
use tokio::sync::{Notify, watch};

use crate::fixture::*;

/// A provider that refuses for `closed` seconds after every `limit` calls, and writes down who called when.
#[derive(Clone)]
struct Provider {
    clock: Arc<VirtualClock>,
    limit: usize,
    closed: Duration,
    calls: Arc<Mutex<Vec<(String, Timestamp)>>>,
    window: Arc<Mutex<(usize, Timestamp)>>,
    early: Arc<AtomicUsize>,
}

impl Provider {
    fn new(clock: &Arc<VirtualClock>, limit: usize, closed: Duration) -> Self {
        Self {
            clock: Arc::clone(clock),
            limit,
            closed,
            calls: Arc::default(),
            window: Arc::default(),
            early: Arc::default(),
        }
    }

    fn done(&self) -> HashMap<String, usize> {
        let calls = self.calls.lock().unwrap();
        calls.iter().fold(HashMap::new(), |mut counts, (id, _)| {
            *counts.entry(id.clone()).or_default() += 1;
            counts
        })
    }
}

impl Handler for Provider {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(Terms {
            provider: "acme".to_string(),
            scope: ScopeKey::provider("acme"),
            ..Terms::of(message)
        })
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        self.clock.sleep(Duration::from_millis(20)).await;
        let now = self.clock.now();
        let mut window = self.window.lock().unwrap();
        if now < window.1 {
            self.early.fetch_add(1, Ordering::Relaxed);
        }
        if now >= window.1 && window.0 >= self.limit {
            *window = (0, now);
        }
        window.0 += 1;
        if window.0 > self.limit {
            if window.1 <= now {
                window.1 = now + self.closed;
            }
            let signal = Signal::new("acme", now).kind(Kind::Short).status(429).reason("burst");
            return Err(Interrupt::throttled(signal.retry_at(window.1)));
        }
        self.calls.lock().unwrap().push((job.id().to_string(), now));
        Ok(Done::new().status(200))
    }
}

async fn run_until_idle<H: Handler>(place: &Place, handler: H, concurrency: usize) {
    let store = place.open();
    let worker = store.worker(handler).sinks(vec![]).build();
    let options = PollerOptions::default().until_idle().concurrency(concurrency);
    Poller::run(worker, store, options, std::future::pending())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn throttled_jobs_are_all_done_once_and_the_provider_is_left_alone_while_it_is_closed() {
    let place = Place::new();
    let store = place.open();
    let jobs: Vec<NewJob> = (0..200)
        .map(|n| of_tenant(&format!("{n}"), ["a", "b", "c"][n % 3]))
        .collect();
    store.send(jobs, false).await.unwrap();
    let provider = Provider::new(&place.clock, 40, Duration::from_secs(3));
    run_until_idle(&place, provider.clone(), 10).await;
    let done = provider.done();
    assert_eq!(done.len(), 200);
    assert!(done.values().all(|&times| times == 1), "each once");
    // A refusal is learnt when it is read: only calls that were under way then can come after it.
    let early = provider.early.load(Ordering::Relaxed);
    assert!(early <= 4 * 10, "{early} calls while the provider was closed");
    assert_eq!(status(&store).await.done, 200);
    assert!(store.is_idle().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_process_finds_what_another_one_sends_though_nothing_tells_it() {
    let place = Place::new();
    let (ours, other) = (place.open(), place.open());
    let worker = worker(&ours);
    let stop = Arc::new(Notify::new());
    let told = Arc::clone(&stop);
    let polling = tokio::spawn(async move {
        let shutdown = async move { told.notified().await };
        Poller::run(worker, ours, PollerOptions::default(), shutdown).await
    });
    place.clock.sleep(Duration::from_secs(60)).await;
    let sent_at = place.now();
    other.send(vec![job("a", "done")], false).await.unwrap();
    let found_at = loop {
        place.clock.sleep(Duration::from_millis(10)).await;
        if state(&other, "a").await == State::Done {
            break place.now();
        }
        assert!(place.now().since(sent_at) < Duration::from_secs(5), "never found");
    };
    assert!(found_at.since(sent_at) <= Duration::from_millis(300), "{found_at}");
    stop.notify_one();
    polling.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_process_s_closed_gate_is_kept_and_its_jobs_are_not_called() {
    let place = Place::new();
    let other = place.open();
    let until = place.now() + Duration::from_secs(30);
    let closing = Closing {
        scope: ScopeKey::provider("acme"),
        until,
        reason: "burst".to_string(),
        observation: Observation::at(until),
    };
    GateStore::close(&other, &[closing]).await.unwrap();
    other
        .send((0..5).map(|n| job(&format!("{n}"), "done")).collect(), false)
        .await
        .unwrap();
    let provider = Provider::new(&place.clock, usize::MAX, Duration::ZERO);
    run_until_idle(&place, provider.clone(), 10).await;
    let calls = provider.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 5);
    assert!(calls.iter().all(|(_, at)| *at >= until), "{calls:?}");
    for n in 0..5 {
        let job = detail(&other, &n.to_string()).await.job;
        assert_eq!(
            (job.state, job.hops),
            (State::Done, 0),
            "nothing was taken only to be parked"
        );
    }
}

/// A handler that hangs until it is told.
#[derive(Clone, Default)]
struct Hanging {
    started: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Handler for Hanging {
    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.go.notified().await;
        Ok(Done::new())
    }
}

async fn until(what: impl Fn() -> bool, clock: &VirtualClock) {
    for _ in 0..1000 {
        if what() {
            return;
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not come to that");
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_running_jobs_finish_and_nothing_else_starts() {
    let place = Place::new();
    let store = place.open();
    store
        .send((0..5).map(|n| job(&format!("{n}"), "done")).collect(), false)
        .await
        .unwrap();
    let handler = Hanging::default();
    let worker = store.worker(handler.clone()).build();
    let stop = Arc::new(Notify::new());
    let (told, polled) = (Arc::clone(&stop), store.clone());
    let polling = tokio::spawn(async move {
        let options = PollerOptions::default().concurrency(2);
        Poller::run(worker, polled, options, async move { told.notified().await }).await
    });
    until(|| handler.started.load(Ordering::Relaxed) == 2, &place.clock).await;
    stop.notify_one();
    place.clock.sleep(Duration::from_secs(1)).await;
    handler.go.notify_waiters();
    polling.await.unwrap().unwrap();
    let status = status(&store).await;
    assert_eq!((status.done, status.ready, status.running), (2, 3, 0));
    assert_eq!(handler.started.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_a_job_that_does_not_end_is_given_back() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let handler = Hanging::default();
    let worker = store.worker(handler.clone()).build();
    let stop = Arc::new(Notify::new());
    let (told, polled) = (Arc::clone(&stop), store.clone());
    let polling = tokio::spawn(async move {
        let options = PollerOptions::default().grace(Duration::from_secs(3));
        Poller::run(worker, polled, options, async move { told.notified().await }).await
    });
    until(|| handler.started.load(Ordering::Relaxed) == 1, &place.clock).await;
    stop.notify_one();
    polling.await.unwrap().unwrap();
    assert_eq!(state(&store, "a").await, State::Ready);
    let again = take_one(&store).await;
    assert_eq!(
        (again.message.receive_count, again.is_suspect),
        (2, true),
        "its call may have been made"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_long_keeps_its_lease() {
    let place = Place::new();
    let (store, other) = (place.open(), place.open());
    store.send(vec![job("a", "done")], false).await.unwrap();
    let handler = Hanging::default();
    let worker = store.worker(handler.clone()).build();
    let go = Arc::clone(&handler.go);
    let polling = tokio::spawn(async move {
        let options = PollerOptions::default().until_idle();
        Poller::run(worker, store, options, std::future::pending()).await
    });
    until(|| handler.started.load(Ordering::Relaxed) == 1, &place.clock).await;
    // Under the 30 s that a job may take, and well over a lease.
    for _ in 0..25 {
        place.clock.sleep(SECOND).await;
        assert!(ids(&other, 1).await.is_empty());
    }
    go.notify_waiters();
    polling.await.unwrap().unwrap();
    assert_eq!(state(&other, "a").await, State::Done);
    assert!(Duration::from_secs(25) > LEASE);
}

/// Writes down who runs beside whom.
#[derive(Clone)]
struct Company {
    clock: Arc<VirtualClock>,
    running: Arc<Mutex<Vec<String>>>,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Handler for Company {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        {
            let mut running = self.running.lock().unwrap();
            running.push(job.id().to_string());
            self.seen.lock().unwrap().push(running.clone());
        }
        self.clock.sleep(Duration::from_millis(50)).await;
        self.running.lock().unwrap().retain(|id| id != job.id());
        Ok(Done::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_may_kill_its_process_runs_after_the_others_are_settled() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("suspect", "done")], false).await.unwrap();
    take_one(&store).await;
    advance(LEASE).await;
    store
        .send((0..6).map(|n| job(&format!("{n}"), "done")).collect(), false)
        .await
        .unwrap();
    let handler = Company {
        clock: Arc::clone(&place.clock),
        running: Arc::default(),
        seen: Arc::default(),
    };
    run_until_idle(&place, handler.clone(), 10).await;
    let seen = handler.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 7);
    assert_eq!(seen.last().unwrap(), &["suspect"], "{seen:?}");
    let updated = |detail: adjourn_local::JobDetail| detail.job.updated_at;
    let last = updated(detail(&store, "suspect").await);
    for n in 0..6 {
        assert!(updated(detail(&store, &n.to_string()).await) < last);
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_rate_is_kept_and_used_up() {
    #[derive(Clone)]
    struct Paced(Provider);
    impl Handler for Paced {
        fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
            Ok(Terms {
                pace: Some(Pace::new(5, Duration::from_secs(1))),
                ..self.0.terms(message)?
            })
        }
        async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
            self.0.handle(job).await
        }
    }
    let place = Place::new();
    let store = place.open();
    store
        .send((0..30).map(|n| job(&format!("{n}"), "done")).collect(), false)
        .await
        .unwrap();
    let provider = Provider::new(&place.clock, usize::MAX, Duration::ZERO);
    run_until_idle(&place, Paced(provider.clone()), 10).await;
    let calls = provider.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 30);
    // Five at once, then one each 200 ms: in any second no more than the saved-up burst and the second's own five.
    for eleven in calls.windows(11) {
        let span = eleven[10].1.since(eleven[0].1);
        assert!(span >= Duration::from_millis(1000), "11 calls in {span:?}");
    }
    let all = calls.last().unwrap().1.since(calls[0].1);
    assert!(all <= Duration::from_millis(25 * 200 + 500), "30 calls took {all:?}");
    let jobs = list(&store, JobFilter::default()).await;
    let hops: u32 = jobs.iter().map(|job| job.hops).sum();
    // The first take knows nothing of the rate; what it brings beyond the burst is parked once.
    assert!(hops <= 10, "{hops} jobs were taken only to be parked");
}

#[tokio::test(start_paused = true)]
async fn who_watches_is_told_the_truth_at_the_end() {
    let place = Place::new();
    let store = place.open();
    store
        .send(vec![job("a", "done"), job("b", "reject")], false)
        .await
        .unwrap();
    let (sender, receiver) = watch::channel(Progress::default());
    let worker = worker(&store);
    let options = PollerOptions::default().until_idle().progress(sender);
    Poller::run(worker, store.clone(), options, std::future::pending())
        .await
        .unwrap();
    let last = receiver.borrow().clone();
    assert_eq!((last.done, last.failed, last.running, last.waiting), (1, 1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_or_redriven_meanwhile_is_seen() {
    let place = Place::new();
    let store = place.open();
    let later = NewJob {
        not_before: Some(place.now() + Duration::from_secs(3600)),
        ..job("later", "done")
    };
    store.send(vec![later, job("no", "reject")], false).await.unwrap();
    let (worker, polled, other) = (worker(&store), store.clone(), place.open());
    let polling = tokio::spawn(async move {
        let options = PollerOptions::default().until_idle();
        Poller::run(worker, polled, options, std::future::pending()).await
    });
    place.clock.sleep(SECOND).await;
    let report = other.redrive(Redrive::All).await.unwrap();
    assert_eq!(report.redriven.len(), 1);
    place.clock.sleep(SECOND).await;
    assert_eq!(detail(&other, "no").await.job.epoch, 1);
    assert_eq!(state(&other, "no").await, State::Failed);
    assert!(!polling.is_finished(), "one still waits");
    let report = other.cancel(Selection::Ids(vec!["later".to_string()])).await.unwrap();
    assert!(report.is_complete());
    polling.await.unwrap().unwrap();
    assert!(place.now() < Timestamp::parse("2026-07-10T20:01:00Z").unwrap());
}

/// Counts its calls, and lets others run meanwhile.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<HashMap<String, usize>>>);

impl Handler for Counting {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        tokio::task::yield_now().await;
        *self.0.lock().unwrap().entry(job.id().to_string()).or_default() += 1;
        Ok(Done::new())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_processes_on_one_file_do_every_job_once() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::open(directory.path().join("adjourn.db"), Arc::new(SystemClock)).unwrap();
    let sender = open();
    let jobs = (0..600).map(|n| of_tenant(&format!("{n}"), ["a", "b", "c"][n % 3]));
    sender.send(jobs.collect(), false).await.unwrap();
    let handler = Counting::default();
    let mut pollers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = open();
        let worker = store.worker(handler.clone()).build();
        let options = PollerOptions::default().until_idle();
        pollers.spawn(Poller::run(worker, store, options, std::future::pending()));
    }
    while let Some(polled) = pollers.join_next().await {
        polled.unwrap().unwrap();
    }
    let calls = handler.0.lock().unwrap().clone();
    assert_eq!(calls.len(), 600);
    assert!(calls.values().all(|&times| times == 1), "{calls:?}");
    assert_eq!(status(&sender).await.done, 600);
}
