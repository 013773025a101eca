//! What a provider's own counter says reaches the pacer of the job's scope, and holds the scope until it starts anew.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{Policy, ScopeKey, Timestamp};
use adjourn_worker::{
    Counter, Worker,
    port::{CallEnd, FindPace, Pacer, PacerTurn},
};

use crate::stage::{Scripted, Stage, job, start};

/// Lets nothing start before the last counter that was told starts anew, if nothing was left of it.
#[derive(Clone, Debug, Default)]
struct Keeper(Arc<Mutex<Vec<Told>>>);

/// What a call came to, and the counters that its answer told.
type Told = (CallEnd, Vec<Counter>);

impl Keeper {
    fn resets_at(&self, now: Timestamp) -> Option<Timestamp> {
        let told = self.0.lock().unwrap();
        let counter = told.last()?.1.last().copied()?;
        (counter.remaining == 0 && counter.resets_at > now).then_some(counter.resets_at)
    }
}

impl FindPace for Keeper {
    fn pacer(&self, _scope: &ScopeKey) -> Box<dyn Pacer> {
        Box::new(self.clone())
    }
}

impl Pacer for Keeper {
    fn turn(&mut self, now: Timestamp) -> PacerTurn {
        self.resets_at(now).map_or(PacerTurn::Now, PacerTurn::Reset)
    }

    fn startable(&self, now: Timestamp, most: u32) -> u32 {
        self.resets_at(now).map_or(most, |_| 0)
    }

    fn started(&mut self, _now: Timestamp) -> u64 {
        1
    }

    fn unmade(&mut self, _call: u64, _now: Timestamp) {
        panic!("every call is made here");
    }

    fn answered(&mut self, _call: u64, end: CallEnd, counters: &[Counter], _now: Timestamp) {
        self.0.lock().unwrap().push((end, counters.to_vec()));
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn knows(&self) -> bool {
        false
    }
}

fn worker(stage: &Stage, keeper: &Keeper) -> Worker<Scripted> {
    stage.builder().find_pace(Arc::new(keeper.clone())).build()
}

fn after(ms: u64) -> Timestamp {
    start() + Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_any_kind_tells_its_counter() {
    for (answer, end) in [
        ("done|7 5000", CallEnd::Passed),
        ("reject|7 5000", CallEnd::Passed),
        ("fail|7 5000", CallEnd::Failed),
        ("refuse|7 5000", CallEnd::Refused(None)),
        ("refuse 9000|7 5000", CallEnd::Refused(Some(after(9000)))),
    ] {
        let (stage, keeper) = (Stage::standard(), Keeper::default());
        stage.send(&job("a", &[answer, "done"]));
        stage.turn(&worker(&stage, &keeper)).await;
        let counter = Counter {
            limit: None,
            remaining: 7,
            resets_at: after(5000),
        };
        assert_eq!(*keeper.0.lock().unwrap(), [(end, vec![counter])], "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_counter_holds_a_scope_no_longer_than_a_refusal_may() {
    let (stage, keeper) = (Stage::standard(), Keeper::default());
    stage.send(&job("a", &["done|0 999999999999"]));
    stage.turn(&worker(&stage, &keeper)).await;
    let until = start() + Policy::default().deferral.max_deferred;
    assert_eq!(keeper.resets_at(start()), Some(until));
}

#[tokio::test(start_paused = true)]
async fn before_a_spent_counter_starts_anew_nothing_is_called_and_nothing_was_refused() {
    let (stage, keeper) = (Stage::standard(), Keeper::default());
    let worker = worker(&stage, &keeper);
    stage.send(&job("first", &["done|0 30000"]));
    stage.turn(&worker).await;
    stage.send(&job("second", &["done|9 30000"]));
    stage.turn(&worker).await;
    assert_eq!(stage.called(), ["first"]);
    assert_eq!(worker.gates().closed(stage.now()), [], "nobody refused");
    let envelope = stage.envelope();
    assert!(envelope.due >= after(30_000), "never early: {}", envelope.due);
    assert_eq!((envelope.counters.deferrals, envelope.counters.hops), (0, 1));
    assert_eq!(
        envelope.reason,
        "acme:entity:1 is closed until 2026-07-10T12:00:30.000Z: its provider's own counter leaves no call until then"
    );
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["first", "second"]);
    assert!(stage.calls.lock().unwrap()[1].at >= after(30_000));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_counter_comes_back_on_a_slope() {
    let (stage, keeper) = (Stage::standard(), Keeper::default());
    let worker = worker(&stage, &keeper);
    stage.send(&job("first", &["done|0 30000"]));
    stage.turn(&worker).await;
    for name in ["a", "b", "c", "d"] {
        stage.send(&job(name, &["done"]));
    }
    stage.turn(&worker).await;
    let due: Vec<Timestamp> = stage
        .queue
        .messages()
        .iter()
        .map(|message| crate::stage::envelope_of(message, stage.now()).due)
        .collect();
    assert_eq!(due.len(), 4);
    // One in the first second, two in the next, then four.
    assert!(due[0] >= after(30_000) && due[3] >= after(32_000), "{due:?}");
    assert!(due.is_sorted(), "{due:?}");
    while !stage.queue.messages().is_empty() {
        stage.next_turn(&worker).await;
    }
    assert_eq!(stage.called().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_time_waits_for_the_counter_s_end() {
    let (stage, keeper) = (Stage::standard(), Keeper::default());
    let worker = worker(&stage, &keeper);
    stage.send(&job("refused", &["refuse|0 30000", "done"]));
    stage.turn(&worker).await;
    assert_eq!(worker.gates().closed(stage.now()), []);
    let due = stage.envelope().due;
    // The ladder's first rung is two seconds; jitter adds at most a tenth and a second.
    assert!(due >= after(30_000) && due <= after(34_000), "{due}");
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["refused", "refused"]);
}
