//! The paces that a worker has found are written down for who looks: seldom, and nobody obeys them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::{
    Counter, Worker,
    fake::{FakeGateStore, Faults},
    port::{CallEnd, FindPace, Pacer, PacerTurn},
};

use crate::stage::{Scripted, Stage, job};

/// Believes in the pace that the test says.
#[derive(Clone, Debug, Default)]
struct Believer(Arc<Mutex<Option<Duration>>>);

impl Believer {
    fn believe(&self, us: impl Into<Option<u64>>) {
        *self.0.lock().unwrap() = us.into().map(Duration::from_micros);
    }
}

impl FindPace for Believer {
    fn pacer(&self, _scope: &ScopeKey) -> Box<dyn Pacer> {
        Box::new(self.clone())
    }
}

impl Pacer for Believer {
    fn turn(&mut self, _now: Timestamp) -> PacerTurn {
        PacerTurn::Now
    }

    fn startable(&self, _now: Timestamp, most: u32) -> u32 {
        most
    }

    fn started(&mut self, _now: Timestamp) -> u64 {
        1
    }

    fn unmade(&mut self, _call: u64, _now: Timestamp) {}

    fn answered(&mut self, _call: u64, _end: CallEnd, _counters: &[Counter], _now: Timestamp) {}

    fn interval(&self) -> Option<Duration> {
        *self.0.lock().unwrap()
    }

    fn knows(&self) -> bool {
        true
    }
}

struct Scene {
    stage: Stage,
    believer: Believer,
    store: FakeGateStore,
    faults: Faults,
    worker: Worker<Scripted>,
}

impl Scene {
    fn new() -> Self {
        let (stage, believer, faults) = (Stage::standard(), Believer::default(), Faults::none());
        let store = FakeGateStore::default().used_by(&faults.process());
        let worker = stage
            .builder()
            .find_pace(Arc::new(believer.clone()))
            .gate_store(Arc::new(store.clone()))
            .build();
        Self {
            stage,
            believer,
            store,
            faults,
            worker,
        }
    }

    /// Performs jobs for so many seconds, one each 20 ms, while the pacer believes in one pace after another, in microseconds: none that would
    /// keep the gate. Says how many.
    async fn perform(&self, seconds: u64, paces: &[u64]) -> usize {
        let ends_at = self.stage.now() + Duration::from_secs(seconds);
        let before = self.stage.called().len();
        let mut turn = paces.iter().cycle();
        while self.stage.now() < ends_at {
            if let Some(&us) = turn.next() {
                self.believer.believe(us);
            }
            self.stage.send(&job("a", &["done"]));
            self.stage.turn(&self.worker).await;
            tokio::time::advance(Duration::from_millis(20)).await;
        }
        assert_eq!(self.stage.queue.messages(), []);
        self.stage.called().len() - before
    }

    /// What was written since the last time, write by write, in microseconds.
    fn written(&self, seen: &mut usize) -> Vec<Option<u128>> {
        let notes = self.store.notes();
        let new = notes[*seen..].iter().map(|write| {
            assert_eq!(write.len(), 1, "there is one scope");
            assert_eq!(write[0].scope, ScopeKey::scoped("acme", "entity", "1"));
            write[0].interval.map(|interval| interval.as_micros())
        });
        let new = new.collect();
        *seen = notes.len();
        new
    }
}

#[tokio::test(start_paused = true)]
async fn a_found_pace_is_written_once_and_again_when_it_changes_and_not_for_each_job() {
    let (scene, mut seen) = (Scene::new(), 0);
    scene.perform(2, &[]).await;
    assert_eq!(scene.written(&mut seen), [], "there is none yet");
    let jobs = scene.perform(10, &[100]).await;
    assert!(jobs >= 200, "{jobs}");
    assert_eq!(scene.written(&mut seen), [Some(100)], "once for all of the jobs");
    scene.perform(2, &[1000]).await;
    scene.perform(20, &[1000, 1045, 955]).await;
    assert_eq!(
        scene.written(&mut seen),
        [Some(1000)],
        "it wavers by less than a twentieth"
    );
    // It is another one with each job, and is looked at once a second.
    let jobs = scene.perform(20, &[500, 250, 125]).await;
    let writes = scene.written(&mut seen).len();
    assert!(
        (2..=21).contains(&writes),
        "{writes} writes in 20 seconds for {jobs} jobs"
    );
    scene.believer.believe(None);
    scene.perform(2, &[]).await;
    assert_eq!(scene.written(&mut seen), [None], "it keeps to none any more");
}

#[tokio::test(start_paused = true)]
async fn a_pace_that_holds_is_said_again_each_minute() {
    let (scene, mut seen) = (Scene::new(), 0);
    scene.perform(150, &[100]).await;
    assert_eq!(scene.written(&mut seen), [Some(100); 3], "in two and a half minutes");
    let said: Vec<Timestamp> = scene.store.notes().iter().map(|write| write[0].at).collect();
    assert!(
        said.windows(2).all(|pair| pair[1].since(pair[0]).as_secs() >= 60),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_word_is_written_whenever_it_is_asked_for() {
    let (scene, mut seen) = (Scene::new(), 0);
    scene.perform(2, &[100]).await;
    scene.believer.believe(200);
    scene.worker.note_paces().await;
    scene.worker.note_paces().await;
    assert_eq!(scene.written(&mut seen), [Some(100), Some(200)]);
}

#[tokio::test(start_paused = true)]
async fn nobody_obeys_what_was_written() {
    let scene = Scene::new();
    scene.believer.believe(60_000_000);
    scene.stage.send(&job("a", &["done"]));
    scene.stage.turn(&scene.worker).await;
    assert_eq!(scene.store.notes().len(), 1);
    assert_eq!(scene.store.closings(), []);
    assert_eq!(scene.worker.gates().closed(scene.stage.now()), []);
    // Another process on the same store.
    let stage = Stage::standard();
    let other = stage
        .builder()
        .find_pace(Arc::new(Believer::default()))
        .gate_store(Arc::new(scene.store.clone()))
        .build();
    for name in ["a", "b", "c"] {
        stage.send(&job(name, &["done"]));
    }
    stage.turn(&other).await;
    assert_eq!(stage.called().len(), 3, "all at once");
    assert_eq!(other.gates().paces(), []);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_costs_no_job_and_is_told_later() {
    let (scene, mut seen) = (Scene::new(), 0);
    scene.faults.outage("gates.note");
    let jobs = scene.perform(4, &[100]).await;
    assert_eq!(scene.written(&mut seen), []);
    let trail = scene.faults.trail();
    let tried = trail.iter().filter(|call| **call == "gates.note").count();
    assert!((3..=5).contains(&tried), "{tried} tries in four seconds");
    assert!(jobs >= 100, "{jobs}");
    scene.faults.mend("gates.note");
    scene.perform(4, &[100]).await;
    assert_eq!(scene.written(&mut seen), [Some(100)]);
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_pace_writes_none() {
    let scene = Scene::new();
    scene.believer.believe(100);
    let store = Arc::new(scene.store.clone());
    let worker = scene.stage.builder().gate_store(store).build();
    scene.stage.send(&job("a", &["done"]));
    scene.stage.turn(&worker).await;
    worker.note_paces().await;
    assert_eq!((scene.stage.called().len(), scene.store.notes().len()), (1, 0));
}
