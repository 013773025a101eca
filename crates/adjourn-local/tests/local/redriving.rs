//! Redriving: ended jobs come back in a new epoch, on a slope and in turns.

use adjourn_core::{Envelope, Observation, Reading, ScopeKey};
use adjourn_local::{Redrive, Selection, State, Store};
use adjourn_worker::{
    Transition,
    port::{Closing, GateStore, Queue},
};

use crate::fixture::*;

async fn run_all(store: &Store) {
    loop {
        let leases = store.take(50).await.unwrap().leases;
        if leases.is_empty() {
            return;
        }
        for lease in leases {
            let settled = settle(store, &lease).await;
            if let Some(deletion) = settled.deletion {
                store.delete(&[deletion]).await.pop().unwrap().unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn redriven_jobs_come_back_on_a_slope_and_in_turns_between_tenants() {
    let place = Place::new();
    let store = place.open();
    let rejected = |n: usize| {
        let tenant = if n < 12 { "many" } else { "few" };
        adjourn_local::NewJob {
            body: "reject".to_string(),
            ..of_tenant(&format!("{n}"), tenant)
        }
    };
    store.send((0..15).map(rejected).collect(), false).await.unwrap();
    run_all(&store).await;
    assert_eq!(status(&store).await.failed, 15);

    let report = store.redrive(Redrive::All).await.unwrap();
    assert_eq!(report.redriven.len(), 15);
    let seconds: Vec<u64> = report
        .redriven
        .iter()
        .map(|one| one.due.since(place.now()).as_secs())
        .collect();
    assert_eq!(
        seconds,
        [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3],
        "one in the first second, then two, four, eight"
    );
    let first_six = report.redriven.iter().take(6);
    let of_few = first_six.filter(|one| one.id.parse::<usize>().unwrap() >= 12).count();
    assert_eq!(of_few, 3, "the tenants take turns");
}

#[tokio::test(start_paused = true)]
async fn a_redriven_job_starts_again_in_a_new_epoch() {
    let place = Place::new();
    let store = place.open();
    store
        .send(vec![job("a", "reject"), job("b", "done"), job("c", "done")], false)
        .await
        .unwrap();
    store.cancel(Selection::Ids(vec!["c".to_string()])).await.unwrap();
    run_all(&store).await;
    let ids = ["a", "b", "c", "d", "a"].map(ToString::to_string).to_vec();
    let report = store.redrive(Redrive::Ids(ids)).await.unwrap();
    assert_eq!(report.redriven.len(), 1);
    let states: Vec<State> = report.not_redrivable.iter().map(|one| one.state).collect();
    assert_eq!(states, [State::Done, State::Cancelled]);
    assert_eq!(report.unknown, ["d"]);

    let back = detail(&store, "a").await;
    assert_eq!(
        (back.job.state, back.job.epoch, back.job.sequence, back.job.attempts),
        (State::Ready, 1, 0, 0)
    );
    assert_eq!(back.job.last_status, None);
    let line = back.receipts.last().unwrap();
    assert_eq!(line.transition, Transition::Redriven);
    assert_eq!(line.cause, "redriven by a person: epoch 1, counters at zero");
    let lease = take_one(&store).await;
    let Reading::Read { envelope, .. } =
        Envelope::read(lease.message.envelope_text(), lease.message.content(), place.now())
    else {
        panic!("the epoch is lost")
    };
    assert_eq!((envelope.identity.epoch, envelope.identity.sequence), (1, 0));
    assert_eq!(lease.message.receive_count, 1);
    settle(&store, &lease).await;
    let again = detail(&store, "a").await.job;
    assert_eq!((again.state, again.epoch, again.attempts), (State::Failed, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_slope_of_a_closed_scope_begins_when_it_opens() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "reject")], false).await.unwrap();
    run_all(&store).await;
    let until = place.now() + 30 * SECOND;
    let closing = Closing {
        scope: ScopeKey::provider("acme"),
        until,
        reason: "burst".to_string(),
        observation: Observation::at(until),
    };
    GateStore::close(&store, &[closing]).await.unwrap();
    let report = store.redrive(Redrive::All).await.unwrap();
    assert!(report.redriven[0].due >= until, "{:?}", report.redriven);
}
