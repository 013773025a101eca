//! Sending: all or nothing, an open id once, a newer revision in an older one's place.

use std::collections::BTreeMap;

use adjourn_core::{Envelope, Reading};
use adjourn_local::{MAX_JOB_BYTES, NewJob, SendOutcome, State, Store};
use adjourn_worker::{Attribute, AttributeValue, Transition, port::Queue};

use crate::fixture::*;

async fn send(store: &Store, job: NewJob, revise: bool) -> SendOutcome {
    store.send(vec![job], revise).await.unwrap().pop().unwrap().outcome
}

fn revision(body: &str, revision: u64) -> NewJob {
    NewJob {
        revision,
        ..job("a", body)
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_id_is_one_job_and_an_ended_one_may_be_sent_again() {
    let place = Place::new();
    let store = place.open();
    let sent = store
        .send(vec![job("a", "done:1"), job("a", "done:2"), job("b", "done")], false)
        .await
        .unwrap();
    let outcomes: Vec<SendOutcome> = sent.iter().map(|sent| sent.outcome).collect();
    assert_eq!(
        outcomes,
        [SendOutcome::Added, SendOutcome::AlreadyOpen, SendOutcome::Added]
    );
    let lease = take_one(&store).await;
    assert_eq!(
        (lease.message.id.as_str(), lease.message.body.as_str()),
        ("a", "done:1"),
        "the first one counts"
    );
    assert_eq!(send(&store, job("a", "done:3"), false).await, SendOutcome::AlreadyOpen);
    let settled = settle(&store, &lease).await;
    store.delete(&[settled.deletion.unwrap()]).await.pop().unwrap().unwrap();
    assert_eq!(send(&store, job("a", "done:4"), false).await, SendOutcome::AddedAgain);
    let again = detail(&store, "a").await;
    assert_eq!(
        (again.job.state, again.result, again.receipts.len()),
        (State::Ready, None, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_store_takes_keeps_the_whole_call_out() {
    let place = Place::new();
    let store = place.open();
    let big = "x".repeat(MAX_JOB_BYTES + 1);
    let error = store
        .send(vec![job("a", "done"), job("big", &big)], false)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "job \"big\" is 1046529 bytes, attributes included; at most 1046528 are allowed"
    );
    let error = store.send(vec![job("", "done")], false).await.unwrap_err();
    assert!(error.to_string().contains("a job's id is empty"), "{error}");
    assert_eq!(status(&store).await.ready, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_arrives_byte_for_byte() {
    let place = Place::new();
    let store = place.open();
    let attribute = |data_type: &str, value| Attribute {
        data_type: data_type.to_string(),
        value,
    };
    let attributes = BTreeMap::from([
        (
            "n".to_string(),
            attribute("Number.int", AttributeValue::Text("007".to_string())),
        ),
        (
            "b".to_string(),
            attribute("Binary.gzip", AttributeValue::Bytes(vec![0, 255, 34])),
        ),
        ("s".to_string(), Attribute::text("é\u{0}\"")),
    ]);
    for (id, body) in [
        ("small", "{\"é\": \"\u{1}\"}".to_string()),
        ("large", "ü".repeat(400_000)),
    ] {
        let sent = NewJob {
            attributes: attributes.clone(),
            tenant: Some("t".to_string()),
            trace_header: Some("Root=1-5759e988".to_string()),
            ..job(id, &body)
        };
        send(&store, sent, false).await;
        let message = take_one(&store).await.message;
        assert!(message.body == body, "the body of {id} changed");
        assert_eq!(message.attributes, attributes);
        assert_eq!(message.group.as_deref(), Some("t"));
        assert_eq!(message.trace_header.as_deref(), Some("Root=1-5759e988"));
        assert_eq!(message.queue, "local");
    }
}

#[tokio::test(start_paused = true)]
async fn not_before_is_a_wait_from_the_start() {
    let place = Place::new();
    let store = place.open();
    let at = place.now() + 5 * SECOND;
    let sent = NewJob {
        not_before: Some(at),
        ..job("a", "done")
    };
    send(&store, sent, false).await;
    let waiting = detail(&store, "a").await.job;
    assert_eq!((waiting.state, waiting.retry_at), (State::Waiting, Some(at)));
    assert_eq!(store.take(1).await.unwrap().next, Some(at));
    advance(5 * SECOND).await;
    assert_eq!(state(&store, "a").await, State::Ready);
    assert_eq!(ids(&store, 1).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_newer_revision_takes_the_waiting_one_s_place_but_not_its_wait() {
    let place = Place::new();
    let store = place.open();
    let until = place.now() + 60 * SECOND;
    send(&store, revision(&format!("refuse:{until}"), 1), false).await;
    settle(&store, &take_one(&store).await).await;
    let before = detail(&store, "a").await.job;
    assert_eq!(send(&store, revision("done:old", 1), true).await, SendOutcome::NotNewer);
    assert_eq!(send(&store, revision("done:new", 2), true).await, SendOutcome::Revised);
    assert_eq!(
        send(&store, revision("done:newer", 3), false).await,
        SendOutcome::AlreadyOpen
    );
    let after = detail(&store, "a").await;
    assert_eq!(
        after.job.retry_at, before.retry_at,
        "what the provider said still holds"
    );
    assert_eq!((after.job.deferrals, after.job.sequence), (1, 2));
    assert_eq!(after.receipts.last().unwrap().transition, Transition::Superseded);

    advance(before.retry_at.unwrap().since(place.now())).await;
    let lease = take_one(&store).await;
    assert_eq!(lease.message.body, "done:new");
    let Reading::Read { envelope, .. } =
        Envelope::read(lease.message.envelope_text(), lease.message.content(), place.now())
    else {
        panic!("the envelope has to be bound to the new body")
    };
    assert_eq!((envelope.identity.sequence, envelope.counters.deferrals), (2, 1));
    assert_eq!(
        send(&store, revision("done:newest", 9), true).await,
        SendOutcome::RunningAlready
    );
}

#[tokio::test(start_paused = true)]
async fn a_newer_revision_of_a_ready_job_is_what_runs() {
    let place = Place::new();
    let store = place.open();
    send(&store, revision("done:1", 1), false).await;
    let large = format!("done:{}", "x".repeat(5000));
    assert_eq!(send(&store, revision(&large, 2), true).await, SendOutcome::Revised);
    assert_eq!(send(&store, revision("done:3", 3), true).await, SendOutcome::Revised);
    assert_eq!(take_one(&store).await.message.body, "done:3");
}
