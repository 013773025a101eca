//! What went wrong in other people's workers, one fault a line of faults.jsonl: each line is a test of its id.
//!
//! The input is the scenario and the right behaviour the assertion. Where a line cannot apply to this design, its test asserts
//! the fact of the design that makes it so.

mod batches;
mod budgets;
mod duplicates;
mod fifo;
mod holds;
mod loops;
mod messages;
mod schedules;
mod service;
mod waits;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{Signal, Timestamp};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, Message, Settled, Settlement, Terms, Undecodable, VirtualClock, Worker,
    WorkerBuilder,
    fake::{FakeQueue, QueueSettings},
};
use serde::Deserialize;

const LINES: &str = include_str!("faults.jsonl");

/// The sources in which the tests of this part stand.
const SOURCES: &[&str] = &[
    include_str!("batches.rs"),
    include_str!("budgets.rs"),
    include_str!("duplicates.rs"),
    include_str!("fifo.rs"),
    include_str!("holds.rs"),
    include_str!("loops.rs"),
    include_str!("messages.rs"),
    include_str!("schedules.rs"),
    include_str!("waits.rs"),
];

/// The categories of which each line is a test here.
const HERE: &[&str] = &[
    "adaptive-throttle",
    "duplicates",
    "eventbridge-scheduler",
    "fifo",
    "limiter-maths",
    "lost-metadata",
    "message-growth",
    "partial-batch",
    "poison-loop",
    "receives-to-dlq",
    "sqs-delay-limit",
    "thundering-herd",
    "visibility-timeout",
    "worker-blocking",
];

/// The categories that belong to later parts of the project, and which.
const LATER: &[(&str, &str)] = &[
    ("classification", "reading every provider's dialect"),
    ("clock-skew", "reading every provider's dialect"),
    ("header-parsing", "reading every provider's dialect"),
];

#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    category: String,
}

#[test]
fn every_line_of_these_categories_has_its_test() {
    let mut missing = Vec::new();
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for line in LINES.lines() {
        let line: Line = serde_json::from_str(line).expect("a line of the corpus");
        *counted.entry(line.category.clone()).or_default() += 1;
        let is_here = HERE.contains(&line.category.as_str());
        let is_later = LATER.iter().any(|(category, _)| *category == line.category);
        assert!(
            is_here != is_later,
            "{}: the category {} has no place",
            line.id,
            line.category
        );
        let test = format!("fn {}_", line.id.replace('-', "_"));
        let tests: usize = SOURCES.iter().map(|source| source.matches(&test).count()).sum();
        if is_here && tests != 1 {
            missing.push(format!("{} ({}): {tests} tests", line.id, line.category));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    let here: usize = counted
        .iter()
        .filter(|(category, _)| HERE.contains(&category.as_str()))
        .map(|(_, n)| n)
        .sum();
    assert_eq!(here, 59, "{counted:?}");
}

/// A handler that refuses each job's first calls, one wait after the other, and then does it.
struct Refusing {
    clock: Arc<VirtualClock>,
    waits: Vec<Duration>,
    takes: Duration,
    repeatable: bool,
    calls: Arc<Mutex<BTreeMap<String, Vec<Timestamp>>>>,
}

impl Handler for Refusing {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(Terms {
            job_id: message.body.clone(),
            repeatable: self.repeatable,
            timeout: Duration::from_secs(300),
            ..Terms::of(message)
        })
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let now = self.clock.now();
        let made = {
            let mut calls = self.calls.lock().unwrap();
            let calls = calls.entry(job.body().to_string()).or_default();
            calls.push(now);
            calls.len()
        };
        self.clock.sleep(self.takes).await;
        let now = self.clock.now();
        match self.waits.get(made - 1) {
            Some(wait) => Err(Interrupt::throttled(
                Signal::new("acme", now).status(429).retry_at(now + *wait),
            )),
            None => Ok(Done::new().status(200)),
        }
    }
}

/// One queue with one worker, driven batch by batch.
struct Bench {
    clock: Arc<VirtualClock>,
    queue: FakeQueue,
    worker: Worker<Refusing>,
    calls: Arc<Mutex<BTreeMap<String, Vec<Timestamp>>>>,
}

impl Bench {
    fn new(settings: QueueSettings, waits: &[Duration]) -> Self {
        Self::with(settings, waits, Duration::ZERO, |builder, _| builder)
    }

    fn with(
        settings: QueueSettings,
        waits: &[Duration],
        takes: Duration,
        finish: impl FnOnce(WorkerBuilder<Refusing>, &FakeQueue) -> WorkerBuilder<Refusing>,
    ) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(
            Timestamp::parse("2026-07-10T20:13:47Z").unwrap(),
        ));
        let queue = FakeQueue::new("jobs", clock.clone(), settings);
        let calls = Arc::new(Mutex::new(BTreeMap::new()));
        let handler = Refusing {
            clock: clock.clone(),
            waits: waits.to_vec(),
            takes,
            repeatable: true,
            calls: calls.clone(),
        };
        let builder = Worker::builder(handler, Arc::new(queue.clone())).clock(clock.clone());
        let worker = finish(builder, &queue).build();
        Self {
            clock,
            queue,
            worker,
            calls,
        }
    }

    /// Receives what there is, has the worker run it, and answers the source.
    async fn round(&self) -> Vec<Settled> {
        let batch = self.queue.receive(10).await.unwrap();
        let settled = self.worker.run_batch(batch.clone(), None).await;
        let kept = settled.iter().filter(|one| one.settlement == Settlement::Keep);
        let failures: Vec<String> = kept.map(|one| one.message.id.clone()).collect();
        self.queue.respond(&batch, &failures).await.unwrap();
        settled
    }

    /// Rounds until the queue is empty, each at its moment.
    async fn run(&self) {
        while let Some(at) = self.queue.next_receivable_at() {
            self.clock.sleep(at.since(self.clock.now())).await;
            self.round().await;
        }
    }

    /// When this job was called, in seconds since the start.
    fn calls_of(&self, job: &str) -> usize {
        self.calls.lock().unwrap().get(job).map_or(0, Vec::len)
    }
}

/// The JSON of a message's envelope, as it is on the wire.
fn wire(message: &Message) -> serde_json::Value {
    serde_json::from_str(message.envelope_text().expect("an envelope")).expect("its JSON")
}
