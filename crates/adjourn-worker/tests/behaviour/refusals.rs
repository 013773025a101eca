//! Refusals over the life of a job: counters, caps, backoff.

use std::time::Duration;

use adjourn_core::{DeferralPolicy, Policy};
use serde_json::json;

use crate::stage::{Stage, job, start};

#[tokio::test(start_paused = true)]
async fn twenty_refusals_leave_attempts_at_zero_and_deferrals_at_twenty() {
    let stage = Stage::standard();
    let worker = stage.worker();
    stage.send(&job("a", &["refuse 1000"]));
    stage.turn(&worker).await;
    while stage.envelope().counters.deferrals < 20 {
        stage.next_turn(&worker).await;
    }
    let envelope = stage.envelope();
    assert_eq!((envelope.counters.deferrals, envelope.counters.failures), (20, 0));
    assert_eq!(envelope.first_deferred_at, Some(start()));
    assert!(
        stage.queue.messages().iter().all(|message| message.receive_count <= 1),
        "no delivery was spent"
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_backoff_after_ten_refusals_is_that_of_a_job_never_refused() {
    let stage = Stage::standard();
    let worker = stage.worker();
    stage.send(&job("a", &["refuse 1000", "refuse 1000", "refuse 1000", "fail"]));
    stage.turn(&worker).await;
    while stage.envelope().counters.failures == 0 {
        stage.next_turn(&worker).await;
    }
    let wait = stage.envelope().due.since(stage.now());
    assert!(
        wait >= Duration::from_secs(1) && wait <= Duration::from_millis(1250),
        "{wait:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_deferral_after_the_last_permitted_one_ends_the_job_once() {
    let stage = Stage::standard();
    let policy = Policy {
        deferral: DeferralPolicy {
            max_deferrals: 5,
            ..DeferralPolicy::default()
        },
        ..Policy::default()
    };
    let worker = stage.builder().policy(policy).build();
    stage.send(&job("a", &["refuse 1000"]));
    stage.turn(&worker).await;
    while stage.queue.dead_letters().is_empty() {
        stage.next_turn(&worker).await;
    }
    assert_eq!(stage.called().len(), 6);
    let letter = stage.dead_letter();
    assert_eq!(
        (letter.end.as_deref(), letter.counters.deferrals),
        (Some("exhausted"), 5)
    );
    assert!(letter.reason.contains("deferral cap"), "{}", letter.reason);
    assert!(stage.queue.messages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_moment_past_the_cap_ends_the_job_at_once_and_not_after_the_wait() {
    let stage = Stage::standard();
    stage.send(&job("a", &["refuse 266400000"]));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.now(), start());
    let letter = stage.dead_letter();
    assert_eq!(letter.end.as_deref(), Some("exhausted"));
    assert!(
        letter.reason.contains("2026-07-13T14:00:00.000Z"),
        "the moment is named: {}",
        letter.reason
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_without_a_time_climb_the_ladder() {
    let stage = Stage::standard();
    let worker = stage.worker();
    stage.send(&job("a", &["refuse"]));
    stage.turn(&worker).await;
    let mut waits = vec![stage.envelope().due.since(stage.now()).as_secs()];
    for _ in 0..3 {
        stage.next_turn(&worker).await;
        waits.push(stage.envelope().due.since(stage.now()).as_secs());
    }
    let rungs = [2, 5, 15, 60];
    for (wait, rung) in waits.iter().zip(rungs) {
        assert!((rung..=rung * 11 / 10).contains(wait), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_real_fault_after_refusals_still_counts_to_the_limit() {
    let stage = Stage::standard();
    let worker = stage.worker();
    stage.send(&job(
        "a",
        &["refuse 1000", "fail", "refuse 1000", "fail", "fail", "fail", "fail"],
    ));
    stage.turn(&worker).await;
    while stage.queue.dead_letters().is_empty() {
        stage.next_turn(&worker).await;
    }
    let letter = stage.dead_letter();
    assert!(
        letter.reason.contains("failed 5 times (max_attempts)"),
        "{}",
        letter.reason
    );
    assert_eq!(stage.called().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_pass_the_deadline_ends_the_job_at_once() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "a", "deadline": "2026-07-10T12:00:30Z", "answers": ["refuse 60000"]}));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.dead_letter().end.as_deref(), Some("deadline"));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_job_is_dead_lettered_with_its_status_in_words() {
    let stage = Stage::standard();
    stage.send(&job("a", &["reject"]));
    stage.turn(&stage.worker()).await;
    let letter = stage.dead_letter();
    assert_eq!(
        (letter.end.as_deref(), letter.reason.as_str()),
        (Some("rejected"), "no such contact")
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_name_keeps_the_id_of_its_original_message_on_every_copy() {
    let stage = Stage::standard();
    let worker = stage.worker();
    let id = stage.send(&json!({"answers": ["refuse 1000", "done"]}));
    stage.turn(&worker).await;
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), [id.clone(), id]);
}
