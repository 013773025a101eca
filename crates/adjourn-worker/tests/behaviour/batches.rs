//! A batch: neighbours, order, time.

use std::time::Duration;

use adjourn_worker::fake::Outgoing;
use serde_json::{Value, json};

use crate::stage::{Stage, job, kept, start};

fn fifo(stage: &Stage, group: &str, job: &Value) -> String {
    let mut outgoing = Outgoing::body(&job.to_string());
    outgoing.group = Some(group.to_string());
    outgoing.deduplication_id = Some(job["name"].as_str().unwrap().replace(' ', "-"));
    stage.queue.send(outgoing).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_panic_leaves_the_other_nine_finished() {
    let stage = Stage::standard();
    for n in 0..10 {
        stage.send(&job(&format!("job {n}"), &[if n == 4 { "panic" } else { "done" }]));
    }
    let settled = stage.turn(&stage.worker()).await;
    assert_eq!(settled.len(), 10);
    assert_eq!(kept(&settled), Vec::<String>::new());
    let envelope = stage.envelope();
    assert_eq!(envelope.counters.failures, 1);
    assert!(
        envelope.reason.contains("panicked: index out of bounds"),
        "{}",
        envelope.reason
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_over_its_timeout_has_failed_and_its_neighbour_has_not() {
    let stage = Stage::standard();
    stage.send(&job("hangs", &["hang"]));
    stage.send(&job("good", &["done"]));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.now(), start() + Duration::from_secs(10));
    let envelope = stage.envelope();
    assert_eq!(envelope.counters.failures, 1);
    assert!(envelope.reason.contains("10000 ms"), "{}", envelope.reason);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_repeated_and_hangs_has_an_unknown_outcome() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "charge", "repeatable": false, "answers": ["hang"]}));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.dead_letter().end.as_deref(), Some("unknown"));
}

#[tokio::test(start_paused = true)]
async fn jobs_run_side_by_side_up_to_the_configured_number() {
    let stage = Stage::standard();
    for n in 0..10 {
        stage.send(&job(&format!("job {n}"), &["slow 1000"]));
    }
    stage.turn(&stage.builder().concurrency(5).build()).await;
    let mut starts: Vec<u64> = stage
        .calls
        .lock()
        .unwrap()
        .iter()
        .map(|call| call.at.since(start()).as_secs())
        .collect();
    starts.sort_unstable();
    assert_eq!(starts, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_was_received_more_than_once_runs_after_the_others_are_gone() {
    let stage = Stage::standard();
    stage.send(&job("suspect", &["done"]));
    stage.queue.receive(10).await.unwrap();
    let at = stage.queue.next_receivable_at().unwrap();
    tokio::time::advance(at.since(stage.now())).await;
    stage.send(&job("fresh one", &["done"]));
    stage.send(&job("fresh two", &["done"]));
    stage.turn(&stage.worker()).await;
    let calls = stage.calls.lock().unwrap().clone();
    assert_eq!(calls.last().unwrap().name, "suspect");
    assert_eq!(
        calls.last().unwrap().left_in_queue,
        1,
        "the fresh ones are settled and deleted before it runs"
    );
}

#[tokio::test(start_paused = true)]
async fn ten_failures_in_ten_records_are_ten_settlements_and_no_error() {
    let stage = Stage::standard();
    for n in 0..10 {
        stage.send(&job(&format!("job {n}"), &["fail"]));
    }
    let settled = stage.turn(&stage.worker()).await;
    assert_eq!(settled.len(), 10);
    assert_eq!(
        stage.queue.messages().len(),
        10,
        "each has its own copy with its own backoff"
    );
    assert_eq!(stage.queue.calls().send, 1, "in one call");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_fit_is_given_back_at_once_and_the_first_always_starts() {
    let stage = Stage::standard();
    let worker = stage.builder().concurrency(1).build();
    for name in ["first", "second"] {
        stage.send(&json!({"name": name, "timeoutS": 60, "answers": ["slow 1000"]}));
    }
    stage
        .turn_until(&worker, Some(stage.now() + Duration::from_secs(10)))
        .await;
    assert_eq!(stage.called(), ["first"]);
    let given_back = stage.envelope();
    assert_eq!((given_back.counters.hops, given_back.counters.failures), (1, 0));
    assert!(stage.queue.next_receivable_at().unwrap() <= stage.now(), "at once");
}

#[tokio::test(start_paused = true)]
async fn the_first_jobs_timeout_is_clamped_to_what_the_invocation_leaves() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "long", "timeoutS": 60, "answers": ["hang"]}));
    let ends_at = stage.now() + Duration::from_secs(10);
    stage.turn_until(&stage.worker(), Some(ends_at)).await;
    assert_eq!(
        stage.now(),
        start() + Duration::from_secs(8),
        "two seconds are kept for settling"
    );
    assert_eq!(stage.envelope().counters.failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_fifo_group_stops_at_the_first_that_stays_and_another_group_goes_on() {
    let stage = Stage::fifo();
    let a1 = fifo(
        &stage,
        "a",
        &json!({"name": "a1", "scope": "a", "answers": ["refuse 60000"]}),
    );
    let a2 = fifo(&stage, "a", &json!({"name": "a2", "scope": "a2", "answers": ["done"]}));
    fifo(&stage, "b", &json!({"name": "b1", "scope": "b", "answers": ["done"]}));
    fifo(&stage, "b", &json!({"name": "b2", "scope": "b", "answers": ["done"]}));
    let settled = stage.turn(&stage.worker()).await;
    assert_eq!(kept(&settled), [a1, a2]);
    let called = stage.called();
    assert!(!called.contains(&"a2".to_string()), "a2 may not overtake a1");
    let b: Vec<&String> = called.iter().filter(|name| name.starts_with('b')).collect();
    assert_eq!(b, ["b1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn a_scope_with_room_for_one_runs_its_jobs_one_after_another() {
    let stage = Stage::standard();
    for name in ["one", "two"] {
        stage.send(&json!({"name": name, "maxInFlight": 1, "answers": ["slow 400"]}));
    }
    stage.turn(&stage.worker()).await;
    let mut starts: Vec<u128> = stage
        .calls
        .lock()
        .unwrap()
        .iter()
        .map(|call| call.at.since(start()).as_millis())
        .collect();
    starts.sort_unstable();
    assert_eq!(starts, [0, 400]);
    assert!(stage.queue.messages().is_empty());
}
