//! A scope whose pace is being found: its pacer is asked before each start and told of each end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::{
    Counter, Worker,
    port::{CallEnd, FindPace, Pacer, PacerTurn},
};

use crate::stage::{Scripted, Stage, job, start};

const EVERY: Duration = Duration::from_secs(3);

/// Lets a call start every three seconds, and writes down what it is told.
#[derive(Clone, Debug, Default)]
struct Metronome(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    last: Option<Timestamp>,
    started: u64,
    ends: Vec<(u64, CallEnd)>,
}

impl FindPace for Metronome {
    fn pacer(&self, scope: &ScopeKey) -> Box<dyn Pacer> {
        assert_eq!(scope.as_str(), "acme:entity:1");
        Box::new(self.clone())
    }
}

impl Pacer for Metronome {
    fn turn(&mut self, now: Timestamp) -> PacerTurn {
        match self.0.lock().unwrap().last.map(|last| last + EVERY) {
            Some(at) if at > now => PacerTurn::At(at),
            _ => PacerTurn::Now,
        }
    }

    fn startable(&self, now: Timestamp, most: u32) -> u32 {
        let last = self.0.lock().unwrap().last;
        most.min(u32::from(last.is_none_or(|last| last + EVERY <= now)))
    }

    fn started(&mut self, now: Timestamp) -> u64 {
        let mut told = self.0.lock().unwrap();
        told.last = Some(now);
        told.started += 1;
        told.started
    }

    fn unmade(&mut self, _call: u64, _now: Timestamp) {
        panic!("every call is made here");
    }

    fn answered(&mut self, call: u64, end: CallEnd, _counters: &[Counter], _now: Timestamp) {
        self.0.lock().unwrap().ends.push((call, end));
    }

    fn interval(&self) -> Option<Duration> {
        Some(EVERY)
    }

    fn knows(&self) -> bool {
        let told = self.0.lock().unwrap();
        told.ends.iter().any(|(_, end)| *end == CallEnd::Passed)
    }
}

fn worker(stage: &Stage, metronome: &Metronome) -> Worker<Scripted> {
    stage.builder().find_pace(Arc::new(metronome.clone())).build()
}

fn called_after(stage: &Stage) -> Vec<(String, u128)> {
    let calls = stage.calls.lock().unwrap();
    let after = |at: Timestamp| at.since(start()).as_millis();
    calls.iter().map(|call| (call.name.clone(), after(call.at))).collect()
}

#[tokio::test(start_paused = true)]
async fn jobs_are_parked_until_their_turns_and_none_waits_as_a_task() {
    let stage = Stage::standard();
    let worker = worker(&stage, &Metronome::default());
    for name in ["a", "b", "c"] {
        stage.send(&job(name, &["done"]));
    }
    stage.turn(&worker).await;
    assert_eq!(stage.called(), ["a"]);
    assert_eq!(stage.queue.messages().len(), 2, "the others wait in the queue");
    while !stage.queue.messages().is_empty() {
        stage.next_turn(&worker).await;
    }
    assert_eq!(stage.called().len(), 3);
    let calls = called_after(&stage);
    assert!(calls.windows(2).all(|pair| pair[1].1 - pair[0].1 >= 3000), "{calls:?}");
    assert_eq!(
        worker.gates().paces(),
        [(ScopeKey::scoped("acme", "entity", "1"), EVERY)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_time_waits_for_its_turn_and_closes_no_gate() {
    waits_for_its_turn("refuse").await;
    // By its name the job's scope is the same one.
    waits_for_its_turn("refuse-in acme:entity:1").await;
}

async fn waits_for_its_turn(refused: &str) {
    let stage = Stage::standard();
    let metronome = Metronome::default();
    let worker = worker(&stage, &metronome);
    stage.send(&job("first", &["done"]));
    stage.turn(&worker).await;
    stage.send(&job("refused", &[refused, "done"]));
    stage.turn(&worker).await;
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["first", "refused"]);
    assert_eq!(worker.gates().closed(stage.now()), []);
    let envelope = stage.envelope();
    assert_eq!(envelope.counters.deferrals, 1);
    let wait = envelope.due.since(stage.now());
    // The ladder's first rung is two seconds, and jitter adds a tenth of it.
    assert!(wait >= EVERY && wait <= EVERY * 3 / 2, "{wait:?}");
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["first", "refused", "refused"]);
    let ends = metronome.0.lock().unwrap().ends.clone();
    assert_eq!(
        ends,
        [(1, CallEnd::Passed), (2, CallEnd::Refused(None)), (3, CallEnd::Passed)]
    );
}

#[tokio::test(start_paused = true)]
async fn before_anything_has_passed_the_ladder_and_the_gate_hold() {
    let stage = Stage::standard();
    let worker = worker(&stage, &Metronome::default());
    stage.send(&job("refused", &["refuse", "done"]));
    stage.turn(&worker).await;
    assert_eq!(worker.gates().closed(stage.now()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_moment_that_is_named_closes_the_gate_for_all() {
    let stage = Stage::standard();
    let metronome = Metronome::default();
    let worker = worker(&stage, &metronome);
    stage.send(&job("first", &["done"]));
    stage.turn(&worker).await;
    stage.send(&job("refused", &["refuse 30000", "done"]));
    stage.turn(&worker).await;
    stage.next_turn(&worker).await;
    let named = stage.now() + Duration::from_secs(30);
    let closed = worker.gates().closed(stage.now());
    assert_eq!((closed.len(), closed[0].1), (1, named));
    assert_eq!(
        metronome.0.lock().unwrap().ends.last(),
        Some(&(2, CallEnd::Refused(Some(named))))
    );
}

#[tokio::test(start_paused = true)]
async fn what_fails_and_what_is_rejected_says_so() {
    let stage = Stage::standard();
    let metronome = Metronome::default();
    let worker = worker(&stage, &metronome);
    stage.send(&job("rejected", &["reject"]));
    stage.turn(&worker).await;
    stage.send(&job("fails", &["fail", "done"]));
    stage.turn(&worker).await;
    stage.next_turn(&worker).await;
    let ends = metronome.0.lock().unwrap().ends.clone();
    // A 404 passed the limit.
    assert_eq!(ends, [(1, CallEnd::Passed), (2, CallEnd::Failed)]);
}
