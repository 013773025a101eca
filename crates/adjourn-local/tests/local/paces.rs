//! Paces that processes have found, as a person sees them: they close nothing, and they grow old.

use std::{future::pending, sync::Arc, time::Duration};

use adjourn_core::{Observation, ScopeKey, Signal, Timestamp};
use adjourn_local::{Poller, PollerOptions, State, Store};
use adjourn_worker::{
    Counter, Done, Handler, Interrupt, Job, Message, Terms, Undecodable,
    port::{CallEnd, Closing, FindPace, FoundPaceNote, GateStore, Pacer, PacerTurn},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fixture::*;

async fn note(store: &Store, scope: &str, us: impl Into<Option<u64>>, at: Timestamp) {
    let note = FoundPaceNote {
        scope: ScopeKey::provider(scope),
        interval: us.into().map(Duration::from_micros),
        at,
    };
    store.note_paces(&[note]).await.unwrap();
}

async fn close(store: &Store, scope: &str, until: Timestamp) {
    let observation: Observation = Signal::new("acme", Timestamp::EPOCH).observation().clone();
    let closing = Closing {
        scope: ScopeKey::provider(scope),
        until,
        reason: "burst".to_string(),
        observation,
    };
    store.close(&[closing]).await.unwrap();
}

async fn gates(store: &Store) -> Value {
    serde_json::to_value(status(store).await).unwrap()["gates"].take()
}

#[tokio::test(start_paused = true)]
async fn a_found_pace_is_shown_with_its_moment_and_closes_nothing() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    ours.send(vec![job("a", "done")], false).await.unwrap();
    note(&theirs, "acme", 250_000, place.now()).await;
    let shown = json!([{
        "scopeKey": "acme", "closedUntil": null, "paceMs": 250, "paceFoundAt": "2026-07-10T20:00:00.000Z", "reason": "found",
    }]);
    assert_eq!(gates(&ours).await, shown);
    let now = status(&ours).await;
    assert_eq!((now.ready, now.waiting, now.next_due_at), (1, 0, None));
    assert_eq!(state(&ours, "a").await, State::Ready);
    assert_eq!(ours.closed(&[ScopeKey::provider("acme")]).await.unwrap(), [None]);
    let taken = ours.take(1).await.unwrap();
    assert_eq!((taken.leases.len(), taken.closed), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_closing_and_a_pace_stand_beside_each_other() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 30 * SECOND;
    note(&store, "acme", 250_000, place.now()).await;
    note(&store, "zeta", 500_000, place.now()).await;
    close(&store, "acme", until).await;
    close(&store, "beta", until + SECOND).await;
    let (at, open) = ("2026-07-10T20:00:00.000Z", Value::Null);
    let gate = |scope: &str, until: Value, pace: Value, found: Value, reason: &str| json!({"scopeKey": scope, "closedUntil": until, "paceMs": pace, "paceFoundAt": found, "reason": reason});
    let zeta = gate("zeta", open.clone(), json!(500), json!(at), "found");
    assert_eq!(
        gates(&store).await,
        json!([
            gate("acme", json!(until), json!(250), json!(at), "burst"),
            gate("beta", json!(until + SECOND), Value::Null, Value::Null, "burst"),
            zeta,
        ]),
        "the first to open first, and then what is open"
    );
    // Told again while it is closed, a pace opens nothing.
    note(&store, "acme", 125_000, place.now()).await;
    let closed = store.closed(&[ScopeKey::provider("acme")]).await.unwrap();
    assert_eq!(closed, [Some((until, "burst".to_string()))]);
    advance(31 * SECOND).await;
    let acme = gate("acme", open, json!(125), json!(at), "found");
    assert_eq!(gates(&store).await, json!([acme, zeta]));
}

#[tokio::test(start_paused = true)]
async fn a_pace_that_nobody_says_any_more_is_not_shown_as_if_it_were_now() {
    let place = Place::new();
    let store = place.open();
    note(&store, "quick", 1000, place.now()).await;
    // One call each hour: it cannot be said more often than it is met.
    note(&store, "slow", 3_600_000_000, place.now()).await;
    let scopes = async || {
        let gates = status(&store).await.gates;
        let keys: Vec<String> = gates.iter().map(|gate| gate.scope_key.to_string()).collect();
        keys
    };
    advance(600 * SECOND).await;
    assert_eq!(scopes().await, ["quick", "slow"]);
    advance(SECOND).await;
    assert_eq!(scopes().await, ["slow"]);
    advance(7200 * SECOND).await;
    assert_eq!(scopes().await, Vec::<String>::new());
    note(&store, "quick", 1000, place.now()).await;
    assert_eq!(scopes().await, ["quick"], "and a process that finds it again says so");
    note(&store, "quick", None, place.now()).await;
    note(&store, "unknown", None, place.now()).await;
    assert_eq!(scopes().await, Vec::<String>::new(), "it keeps to none any more");
}

#[tokio::test(start_paused = true)]
async fn a_pace_is_in_whole_milliseconds_and_at_least_one() {
    let place = Place::new();
    let store = place.open();
    for (us, ms) in [(1, 1), (400, 1), (1499, 1), (1500, 2), (250_400, 250)] {
        note(&store, "acme", us, place.now()).await;
        assert_eq!(gates(&store).await[0]["paceMs"], ms, "{us} us");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_long_over_leaves_the_file() {
    let place = Place::new();
    let store = place.open();
    close(&store, "shut", place.now() + SECOND).await;
    note(&store, "paced", 1000, place.now()).await;
    advance(86_000 * SECOND).await;
    note(&store, "other", 1000, place.now()).await;
    let rows = || -> Vec<String> {
        let conn = Connection::open(place.path()).unwrap();
        let mut statement = conn.prepare("SELECT scope_key FROM gates ORDER BY scope_key").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(rows(), ["other", "paced", "shut"]);
    advance(500 * SECOND).await;
    // A closing looks through the gates too, and keeps the pace that is not old.
    close(&store, "new", place.now() + SECOND).await;
    assert_eq!(rows(), ["new", "other"]);
}

/// Believes in a pace of as many milliseconds as calls were answered.
#[derive(Clone, Copy, Debug, Default)]
struct Slower(u64);

impl FindPace for Slower {
    fn pacer(&self, _scope: &ScopeKey) -> Box<dyn Pacer> {
        Box::new(*self)
    }
}

impl Pacer for Slower {
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

    fn answered(&mut self, _call: u64, _end: CallEnd, _counters: &[Counter], _now: Timestamp) {
        self.0 += 1;
    }

    fn interval(&self) -> Option<Duration> {
        (self.0 > 0).then(|| Duration::from_millis(self.0))
    }

    fn knows(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn the_pace_of_a_run_stays_readable_after_its_end() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..20).map(|n| job(&format!("{n}"), "done")).collect();
    store.send(jobs, false).await.unwrap();
    let finder = Arc::new(Slower::default());
    let worker = store.worker(Obedient).sinks(vec![]).find_pace(finder).build();
    let options = PollerOptions::default().concurrency(1).until_idle();
    Poller::run(worker, store.clone(), options, pending()).await.unwrap();
    let [gate] = status(&store).await.gates.try_into().unwrap();
    // All of it took less than a second, in which no more than the first pace was told.
    assert_eq!((gate.closed_until, gate.pace_ms), (None, Some(20)));
}

/// Lets one call start each minute, as a counter does that is spent with each.
#[derive(Clone, Copy, Debug, Default)]
struct OneAMinute(Option<Timestamp>);

impl FindPace for OneAMinute {
    fn pacer(&self, _scope: &ScopeKey) -> Box<dyn Pacer> {
        Box::new(*self)
    }
}

impl Pacer for OneAMinute {
    fn turn(&mut self, now: Timestamp) -> PacerTurn {
        self.0
            .filter(|&reset| reset > now)
            .map_or(PacerTurn::Now, PacerTurn::Reset)
    }

    fn startable(&self, now: Timestamp, most: u32) -> u32 {
        most.min(u32::from(self.0.is_none_or(|reset| reset <= now)))
    }

    fn started(&mut self, now: Timestamp) -> u64 {
        self.0 = Some(now + 60 * SECOND);
        1
    }

    fn unmade(&mut self, _call: u64, _now: Timestamp) {
        panic!("every call is made here");
    }

    fn answered(&mut self, _call: u64, _end: CallEnd, _counters: &[Counter], _now: Timestamp) {}

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn knows(&self) -> bool {
        false
    }
}

/// Does what the body says, in the scope that the store knows the job by.
#[derive(Debug)]
struct InScope;

impl Handler for InScope {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(Terms {
            scope: ScopeKey::provider("acme"),
            ..Terms::of(message)
        })
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        obey(job.body())
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_are_left_in_the_file_until_a_spent_counter_starts_anew() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..5).map(|n| job(&format!("{n}"), "done")).collect();
    store.send(jobs, false).await.unwrap();
    let finder = Arc::new(OneAMinute::default());
    let worker = store.worker(InScope).sinks(vec![]).find_pace(finder).build();
    let options = PollerOptions::default().until_idle();
    Poller::run(worker, store.clone(), options, pending()).await.unwrap();
    let (mut done, mut hops) = (Vec::new(), 0);
    for id in ["0", "1", "2", "3", "4"] {
        let job = detail(&store, id).await.job;
        assert_eq!((job.state, job.deferrals), (State::Done, 0), "{id}");
        hops += job.hops;
        done.push(job.updated_at);
    }
    // All were taken while nothing was known of the scope, and stay where they are from then on, minute after minute.
    assert!(hops <= 4, "{hops} hops");
    done.sort_unstable();
    assert!(
        done.windows(2).all(|pair| pair[1].since(pair[0]) >= 59 * SECOND),
        "{done:?}"
    );
    assert!(
        place.now().since(done[0]) < 300 * SECOND,
        "and it is called as soon as it does"
    );
}
