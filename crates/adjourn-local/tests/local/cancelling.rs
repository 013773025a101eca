//! Cancelling: it wins over every wake-up that has not started, in either order.

use adjourn_core::{Discarded, Mechanism, Standing};
use adjourn_local::{LEASE, NewJob, Selection, State};
use adjourn_worker::{
    Settlement, Transition,
    port::{Ledger, Queue},
};

use crate::fixture::*;

fn named(ids: &[&str]) -> Selection {
    Selection::Ids(ids.iter().map(ToString::to_string).collect())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_never_wakes_up_and_says_what_it_prevented() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 60 * SECOND;
    store
        .send(vec![job("a", &format!("refuse:{until}")), job("b", "done")], false)
        .await
        .unwrap();
    settle(&store, &take_one(&store).await).await;
    let due = detail(&store, "a").await.job.retry_at;
    let report = store.cancel(named(&["a", "b", "c"])).await.unwrap();
    assert_eq!(report.prevented.len(), 2);
    assert_eq!(
        (
            report.prevented[0].id.as_str(),
            report.prevented[0].due,
            report.prevented[0].mechanism
        ),
        ("a", due, Mechanism::Delay)
    );
    assert_eq!((report.prevented[1].id.as_str(), report.prevented[1].due), ("b", None));
    assert_eq!(report.unknown, ["c"]);
    assert!(!report.is_complete());
    // Over a restart, too.
    std::mem::forget(store);
    let store = place.open();
    advance(120 * SECOND).await;
    assert!(ids(&store, 10).await.is_empty());
    let detail = detail(&store, "a").await;
    assert_eq!(detail.job.state, State::Cancelled);
    assert_eq!(detail.job.reason.as_deref(), Some("cancelled by a person"));
    assert_eq!(detail.receipts.last().unwrap().transition, Transition::Cancelled);
    let again = store.cancel(named(&["a"])).await.unwrap();
    assert_eq!(again.ended[0].state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_before_a_deferral_of_the_same_instant_wins() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 60 * SECOND;
    store
        .send(vec![job("a", &format!("refuse:{until}"))], false)
        .await
        .unwrap();
    let lease = take_one(&store).await;
    let report = store.cancel(named(&["a"])).await.unwrap();
    assert_eq!(report.running, ["a"], "it is being done, and that is said");
    let settled = settle(&store, &lease).await;
    assert!(matches!(settled.settlement, Settlement::Delete(_)));
    let ended = detail(&store, "a").await;
    assert_eq!(ended.job.state, State::Cancelled);
    let history: Vec<Transition> = ended.receipts.iter().map(|line| line.transition).collect();
    assert_eq!(history, [Transition::Sent, Transition::Deferred, Transition::Cancelled]);
    advance(120 * SECOND).await;
    assert!(ids(&store, 1).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_after_a_deferral_of_the_same_instant_wins() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 60 * SECOND;
    store
        .send(vec![job("a", &format!("refuse:{until}"))], false)
        .await
        .unwrap();
    settle(&store, &take_one(&store).await).await;
    let report = store.cancel(named(&["a"])).await.unwrap();
    assert_eq!(report.prevented.len(), 1);
    assert_eq!(state(&store, "a").await, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_done_stays_done() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    let settled = settle(&store, &lease).await;
    store.cancel(named(&["a"])).await.unwrap();
    store.delete(&[settled.deletion.unwrap()]).await.pop().unwrap().unwrap();
    assert_eq!(state(&store, "a").await, State::Done);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_not_started() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    store.cancel(named(&["a"])).await.unwrap();
    assert_eq!(
        store.mark_started(&lease.message).await.unwrap(),
        Standing::Over(Discarded::Cancelled)
    );
    // Given back, as a poller does with what it did not start: it ends.
    store.release(&[lease]).await.unwrap();
    assert_eq!(state(&store, "a").await, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_outlives_the_process_that_was_running_the_job() {
    let place = Place::new();
    let (killed, other) = (place.open(), place.open());
    killed.send(vec![job("a", "done")], false).await.unwrap();
    take_one(&killed).await;
    other.cancel(named(&["a"])).await.unwrap();
    std::mem::forget(killed);
    advance(LEASE).await;
    assert!(ids(&other, 1).await.is_empty());
    assert_eq!(state(&other, "a").await, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_or_a_tenant_is_cancelled_as_a_whole() {
    let place = Place::new();
    let store = place.open();
    let of_run = |id: &str, run: Option<&str>| NewJob {
        run: run.map(ToString::to_string),
        ..job(id, "done")
    };
    store
        .send(
            vec![
                of_run("a", Some("import")),
                of_run("b", Some("import")),
                of_run("import", None),
                of_tenant("c", "t1"),
                of_tenant("d", "t2"),
                of_run("e", None),
            ],
            false,
        )
        .await
        .unwrap();
    let report = store.cancel(Selection::Run("import".to_string())).await.unwrap();
    let mut cancelled: Vec<_> = report.prevented.iter().map(|one| one.id.as_str()).collect();
    cancelled.sort_unstable();
    assert_eq!(cancelled, ["a", "b", "import"]);
    let report = store.cancel(Selection::Tenant("t1".to_string())).await.unwrap();
    assert_eq!(report.prevented.len(), 1);
    assert_eq!(state(&store, "d").await, State::Ready);
    assert_eq!(state(&store, "e").await, State::Ready);
}
