//! A queue, a scheduler and a worker whose jobs do what their bodies say.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{Envelope, Fault, Kind, Policy, RateLimitError, Reading, ScopeKey, Signal, Timestamp};
use adjourn_worker::{
    Clock, Counter, Done, Handler, Interrupt, Job, Message, RateLimitedHandler, Settled, Settlement, Terms,
    Undecodable, VirtualClock, Worker, WorkerBuilder,
    fake::{FakeQueue, FakeScheduler, QueueSettings, RecordingSink, ScheduleSettings},
};
use serde_json::{Value, json};

/// Everything that a test looks at.
pub(crate) struct Stage {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) queue: FakeQueue,
    pub(crate) scheduler: FakeScheduler,
    pub(crate) sink: RecordingSink,
    pub(crate) calls: Arc<Mutex<Vec<Call>>>,
}

/// One call of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) at: Timestamp,
    pub(crate) receive_count: u32,
    pub(crate) left_in_queue: usize,
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-07-10T12:00:00Z").unwrap()
}

impl Stage {
    pub(crate) fn standard() -> Self {
        Self::with(QueueSettings::default())
    }

    pub(crate) fn fifo() -> Self {
        Self::with(QueueSettings {
            kind: adjourn_core::QueueKind::Fifo,
            ..QueueSettings::default()
        })
    }

    pub(crate) fn with(settings: QueueSettings) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(start()));
        let queue = FakeQueue::new("jobs", clock.clone(), settings);
        let scheduler = FakeScheduler::new(&queue, ScheduleSettings::default());
        Self {
            clock,
            queue,
            scheduler,
            sink: RecordingSink::default(),
            calls: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A worker of scripted jobs on this queue, with the scheduler.
    pub(crate) fn worker(&self) -> Worker<Scripted> {
        self.builder().scheduler(Arc::new(self.scheduler.clone())).build()
    }

    pub(crate) fn builder(&self) -> WorkerBuilder<Scripted> {
        Worker::builder(
            Scripted {
                clock: self.clock.clone(),
                queue: self.queue.clone(),
                calls: Arc::clone(&self.calls),
                done: Mutex::default(),
            },
            Arc::new(self.queue.clone()),
        )
        .clock(self.clock.clone())
        .sinks(vec![Arc::new(self.sink.clone())])
        .policy(Policy::default())
    }

    /// Sends a job and answers its message id.
    pub(crate) fn send(&self, job: &Value) -> String {
        self.queue.send_body(&job.to_string()).unwrap()
    }

    /// Receives what is visible, runs it and answers the batch, as an event source mapping does.
    pub(crate) async fn turn<H: Handler>(&self, worker: &Worker<H>) -> Vec<Settled> {
        self.turn_until(worker, None).await
    }

    pub(crate) async fn turn_until<H: Handler>(&self, worker: &Worker<H>, ends_at: Option<Timestamp>) -> Vec<Settled> {
        let batch = self.queue.receive(10).await.unwrap();
        let settled = worker.run_batch(batch.clone(), ends_at).await;
        let kept: Vec<String> = kept(&settled);
        self.queue.respond(&batch, &kept).await.unwrap();
        settled
    }

    /// Moves the clock to the next moment at which something becomes visible, and takes that turn.
    pub(crate) async fn next_turn<H: Handler>(&self, worker: &Worker<H>) -> Vec<Settled> {
        loop {
            self.scheduler.fire_due();
            let visible = self.queue.next_receivable_at();
            let firing = self.scheduler.next_firing_at();
            let at = [visible, firing].into_iter().flatten().min().expect("something waits");
            tokio::time::advance(at.since(self.now())).await;
            self.scheduler.fire_due();
            if self.queue.next_receivable_at().is_some_and(|at| at <= self.now()) {
                return self.turn(worker).await;
            }
        }
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .map(|call| call.name.clone())
            .collect()
    }

    /// The envelope of the only message in the queue.
    pub(crate) fn envelope(&self) -> Envelope {
        let messages = self.queue.messages();
        assert_eq!(messages.len(), 1, "one message in the queue");
        envelope_of(&messages[0], self.now())
    }

    /// The envelope of the only dead letter.
    pub(crate) fn dead_letter(&self) -> Envelope {
        let letters = self.queue.dead_letters();
        assert_eq!(letters.len(), 1, "one dead letter");
        // A dead letter's envelope is bound to the queue that it came from.
        let mut letter = letters[0].clone();
        letter.queue = self.queue.name().to_string();
        envelope_of(&letter, self.now())
    }
}

pub(crate) fn envelope_of(message: &Message, now: Timestamp) -> Envelope {
    match Envelope::read(message.envelope_text(), message.content(), now) {
        Reading::Read { envelope, .. } => envelope,
        other @ (Reading::Absent | Reading::Rejected(_)) => panic!("no envelope: {other:?}"),
    }
}

pub(crate) fn kept(settled: &[Settled]) -> Vec<String> {
    settled
        .iter()
        .filter(|one| one.settlement == Settlement::Keep)
        .map(|one| one.message.id.clone())
        .collect()
}

/// A job that answers these, one after another; the last one repeats. `done|3 1000`: with the provider's counter, of which three calls are
/// left for a second.
pub(crate) fn job(name: &str, answers: &[&str]) -> Value {
    json!({"name": name, "answers": answers})
}

/// Jobs that do what their bodies say.
pub(crate) struct Scripted {
    clock: Arc<VirtualClock>,
    queue: FakeQueue,
    calls: Arc<Mutex<Vec<Call>>>,
    done: Mutex<HashMap<String, usize>>,
}

fn moment(job: &Value, field: &str) -> Option<Timestamp> {
    job[field].as_str().and_then(Timestamp::parse)
}

impl Handler for Scripted {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        let job: Value = serde_json::from_str(&message.body).map_err(|error| Undecodable::new(&error.to_string()))?;
        assert!(job["name"] != "panics when read", "as its name says");
        Ok(Terms {
            job_id: job["name"].as_str().unwrap_or(&message.id).to_string(),
            provider: "acme".to_string(),
            scope: ScopeKey::scoped("acme", "entity", job["scope"].as_str().unwrap_or("1")),
            not_before: moment(&job, "notBefore"),
            deadline: moment(&job, "deadline"),
            repeatable: job["repeatable"].as_bool().unwrap_or(true),
            timeout: Duration::from_secs(job["timeoutS"].as_u64().unwrap_or(10)),
            max_in_flight: job["maxInFlight"].as_u64().map(|n| u32::try_from(n).unwrap()),
            ..Terms::of(message)
        })
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let script: Value = job.json()?;
        let name = job.id().to_string();
        self.calls.lock().unwrap().push(Call {
            name: name.clone(),
            at: self.clock.now(),
            receive_count: job.delivery().receive_count,
            left_in_queue: self.queue.messages().len(),
        });
        let turn = {
            let mut done = self.done.lock().unwrap();
            let turn = done.entry(name).or_default();
            *turn += 1;
            *turn - 1
        };
        let answers = script["answers"].as_array().cloned().unwrap_or_default();
        let answer = answers
            .get(turn)
            .or(answers.last())
            .and_then(Value::as_str)
            .unwrap_or("done")
            .to_string();
        let (answer, told) = answer.split_once('|').unwrap_or((&answer, ""));
        let counter = told.split_once(' ').map(|(remaining, resets_in_ms)| Counter {
            limit: None,
            remaining: remaining.parse().unwrap(),
            resets_at: self.clock.now() + Duration::from_millis(resets_in_ms.parse().unwrap()),
        });
        let result = self.answer(answer).await;
        match counter {
            Some(counter) => result
                .map(|done| done.counting(counter))
                .map_err(|interrupt| interrupt.counting(counter)),
            None => result,
        }
    }
}

impl Scripted {
    async fn answer(&self, answer: &str) -> Result<Done, Interrupt> {
        let (what, number) = answer.split_once(' ').unwrap_or((answer, ""));
        let signal = Signal::new("acme", self.clock.now())
            .status(429)
            .reason("burst")
            .kind(Kind::Short);
        match what {
            "done" => Ok(Done::new().status(200)),
            "refuse" if number.is_empty() => Err(Interrupt::throttled(signal)),
            "refuse" => {
                let wait = Duration::from_millis(number.parse().unwrap());
                Err(Interrupt::throttled(signal.retry_at(self.clock.now() + wait)))
            }
            "refuse-all" => {
                let wait = Duration::from_millis(number.parse().unwrap());
                let signal = signal.also_closes(ScopeKey::provider("acme"));
                Err(Interrupt::throttled(signal.retry_at(self.clock.now() + wait)))
            }
            "refuse-in" => {
                let (provider, ..) = number.split_once(':').unwrap();
                let error = RateLimitError::from(Signal::new(provider, self.clock.now()).status(429));
                Err(error.in_scope(ScopeKey::from(number.to_string())).into())
            }
            "fail" => Err(Interrupt::failed(Fault::new("connection reset"))),
            "reject" => Err(Interrupt::rejected(Fault::new("no such contact").status(404))),
            "panic" => panic!("index out of bounds"),
            "hang" => std::future::pending().await,
            "slow" => {
                self.clock.sleep(Duration::from_millis(number.parse().unwrap())).await;
                Ok(Done::new())
            }
            other => panic!("no such answer: {other}"),
        }
    }
}

/// A RATE_LIMITED handler that answers by a function of the event.
pub(crate) struct Answering<F>(pub(crate) F);

impl<F> RateLimitedHandler for Answering<F>
where
    F: Fn(&adjourn_worker::RateLimited) -> adjourn_core::Verdict + Send + Sync + 'static,
{
    async fn rate_limited(&self, event: &adjourn_worker::RateLimited) -> adjourn_core::Verdict {
        (self.0)(event)
    }
}
