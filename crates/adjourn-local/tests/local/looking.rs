//! What a person and a program see: names and values are the outward contract.

use adjourn_local::{JobFilter, State};
use adjourn_worker::port::Queue;
use serde_json::json;

use crate::fixture::*;

#[tokio::test(start_paused = true)]
async fn a_job_s_line_has_the_fields_of_the_contract() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 30 * SECOND;
    let sent = adjourn_local::NewJob {
        tenant: Some("t".to_string()),
        ..job("a", &format!("refuse:{until}"))
    };
    store.send(vec![sent], false).await.unwrap();
    settle(&store, &take_one(&store).await).await;
    let detail = detail(&store, "a").await;
    let due = detail.job.retry_at.unwrap();
    assert_eq!(
        serde_json::to_value(&detail.job).unwrap(),
        json!({
            "id": "a", "state": "waiting", "provider": "acme", "scopeKey": "acme", "tenant": "t", "run": "a",
            "attempts": 0, "deferrals": 1, "hops": 0, "mechanism": "delay", "retryAt": due, "reason": "burst",
            "lastStatus": 429, "deferralId": "a", "epoch": 0, "sequence": 1,
            "createdAt": "2026-07-10T20:00:00.000Z", "updatedAt": "2026-07-10T20:00:00.000Z",
        })
    );
    let value = serde_json::to_value(&detail).unwrap();
    let receipt = &value["receipts"][1];
    assert_eq!(receipt["transition"], "deferred");
    assert_eq!(receipt["mechanism"], "delay");
    assert_eq!(receipt["observation"]["status"], 429);
    assert_eq!(value["result"], serde_json::Value::Null);
    assert_eq!(value["id"], "a");
}

#[tokio::test(start_paused = true)]
async fn status_has_the_fields_of_the_contract() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 30 * SECOND;
    store
        .send(
            vec![
                job("a", &format!("refuse:{until}")),
                job("b", "done"),
                job("c", "reject"),
            ],
            false,
        )
        .await
        .unwrap();
    for id in ["a", "b", "c"] {
        let lease = take_one(&store).await;
        assert_eq!(lease.message.id, id);
        // Each on a worker that knows nothing of the others' refusals.
        let settled = settle(&store, &lease).await;
        if let Some(deletion) = settled.deletion {
            store.delete(&[deletion]).await.pop().unwrap().unwrap();
        }
        if id == "a" {
            // The refusal has closed the gate; the rest of this test is not about that.
            advance(31 * SECOND).await;
            store
                .cancel(adjourn_local::Selection::Ids(vec!["a".to_string()]))
                .await
                .unwrap();
        }
    }
    assert_eq!(
        serde_json::to_value(status(&store).await).unwrap(),
        json!({
            "ready": 0, "running": 0, "waiting": 0, "done": 1, "failed": 1, "exhausted": 0, "review": 0, "cancelled": 1,
            "nextDueAt": null, "gates": [],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_filtered_by_state_tenant_and_run() {
    let place = Place::new();
    let store = place.open();
    let with = |id: &str, tenant: &str, run: &str| adjourn_local::NewJob {
        run: Some(run.to_string()),
        ..of_tenant(id, tenant)
    };
    let later = adjourn_local::NewJob {
        not_before: Some(place.now() + 10 * SECOND),
        ..with("later", "t1", "r1")
    };
    store
        .send(
            vec![
                with("a", "t1", "r1"),
                with("b", "t1", "r2"),
                with("c", "t2", "r1"),
                later,
            ],
            false,
        )
        .await
        .unwrap();
    let ids = async |state: Option<State>, tenant: Option<&str>, run: Option<&str>| {
        let filter = JobFilter {
            state,
            tenant: tenant.map(ToString::to_string),
            run: run.map(ToString::to_string),
        };
        let mut ids: Vec<String> = list(&store, filter).await.into_iter().map(|job| job.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(None, None, None).await, ["a", "b", "c", "later"]);
    assert_eq!(ids(None, Some("t1"), None).await, ["a", "b", "later"]);
    assert_eq!(ids(None, None, Some("r1")).await, ["a", "c", "later"]);
    assert_eq!(ids(None, Some("t1"), Some("r1")).await, ["a", "later"]);
    assert_eq!(ids(Some(State::Waiting), None, None).await, ["later"]);
    assert_eq!(ids(Some(State::Ready), Some("t1"), Some("r2")).await, ["b"]);
    assert!(ids(Some(State::Done), None, None).await.is_empty());
    advance(10 * SECOND).await;
    assert_eq!(
        ids(Some(State::Ready), None, None).await,
        ["a", "b", "c", "later"],
        "a wait that has ended is no wait, though nothing was written"
    );
    assert!(store.job("nobody").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_nobody_reads_to_its_end_ends() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..2000).map(|n| job(&format!("{n}"), "done")).collect();
    store.send(jobs, false).await.unwrap();
    let mut rows = store.jobs(JobFilter::default());
    assert_eq!(rows.recv().await.unwrap().unwrap().id, "0");
    drop(rows);
    // A listing that went on would hold the file's snapshot; a write and a read go through.
    store.send(vec![job("one-more", "done")], false).await.unwrap();
    assert_eq!(status(&store).await.ready, 2001);
}
