//! A wait is one change of one row: durable, never doubled, made only by who holds the lease.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Cause, Ending, EndingKind, Envelope, Mechanism, Reading, Timestamp};
use adjourn_local::{MAX_DELAY, State, Store};
use adjourn_worker::{
    Message, POLICY_VERSION, Receipt, Settlement, Transition,
    port::{Copy, DeadLetter, Hold, Queue, ScheduledCopy, Scheduler},
};

use crate::fixture::*;

fn next_envelope(message: &Message, due: Timestamp) -> Envelope {
    let mut envelope = match Envelope::read(message.envelope_text(), message.content(), message.received_at) {
        Reading::Read { envelope, .. } => envelope,
        Reading::Absent => Envelope::first(
            adjourn_core::DeferralId::new(&message.id),
            message.sent_at,
            message.content(),
        ),
        Reading::Rejected(problem) => panic!("{problem}"),
    };
    envelope.identity = envelope.identity.next();
    envelope.due = due;
    envelope.rest = Some(Duration::ZERO);
    envelope.counters.deferrals += 1;
    envelope
}

fn receipt(at: Timestamp, until: Timestamp) -> Receipt {
    Receipt {
        at,
        transition: Transition::of(Cause::RefusedUntil),
        cause: "burst".to_string(),
        until: Some(until),
        mechanism: Mechanism::Delay,
        sequence: 1,
        gate: Some("acme".to_string()),
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: None,
    }
}

fn copy(message: &Arc<Message>, now: Timestamp, delay: Duration) -> Copy {
    Copy {
        original: Arc::clone(message),
        envelope: next_envelope(message, now + delay),
        delay,
        receipt: receipt(now, now + delay),
    }
}

async fn refused_for(place: &Place, store: &Store, wait: Duration) -> Timestamp {
    let until = place.now() + wait;
    store
        .send(vec![job("a", &format!("refuse:{until}"))], false)
        .await
        .unwrap();
    let lease = take_one(store).await;
    let settled = settle(store, &lease).await;
    assert!(matches!(settled.settlement, Settlement::Delete(_)), "{settled:?}");
    let answers = store.delete(&[settled.deletion.unwrap()]).await;
    assert!(
        answers.iter().all(Result::is_ok),
        "a deletion after the hand-off finds nothing left: {answers:?}"
    );
    until
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_waits_until_its_moment_even_if_the_process_is_killed() {
    let place = Place::new();
    let store = place.open();
    let until = refused_for(&place, &store, Duration::from_secs(30)).await;
    // A killed process closes nothing.
    std::mem::forget(store);
    let store = place.open();
    let waiting = detail(&store, "a").await.job;
    assert_eq!(
        (waiting.state, waiting.deferrals, waiting.attempts),
        (State::Waiting, 1, 0)
    );
    assert_eq!((waiting.mechanism, waiting.sequence), (Mechanism::Delay, 1));
    assert_eq!(waiting.last_status, Some(429));
    let due = waiting.retry_at.unwrap();
    assert!(due >= until, "{due} is before {until}");

    advance(due.since(place.now()) - Duration::from_millis(1)).await;
    assert!(ids(&store, 10).await.is_empty(), "never early");
    advance(Duration::from_millis(1)).await;
    let lease = take_one(&store).await;
    assert_eq!((lease.message.id.as_str(), lease.message.receive_count), ("a", 1));
    let Reading::Read { envelope, .. } =
        Envelope::read(lease.message.envelope_text(), lease.message.content(), place.now())
    else {
        panic!("the envelope is lost")
    };
    assert_eq!((envelope.identity.sequence, envelope.counters.deferrals), (1, 1));
    assert!(ids(&store, 10).await.is_empty(), "one wake-up, not two");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_longest_delay_is_a_schedule_and_is_acted_on_at_its_moment() {
    let place = Place::new();
    let store = place.open();
    refused_for(&place, &store, MAX_DELAY + Duration::from_secs(1)).await;
    let waiting = detail(&store, "a").await.job;
    assert_eq!(waiting.mechanism, Mechanism::Schedule);
    advance(waiting.retry_at.unwrap().since(place.now())).await;
    let lease = take_one(&store).await;
    let Reading::Read { envelope, .. } =
        Envelope::read(lease.message.envelope_text(), lease.message.content(), place.now())
    else {
        panic!("the envelope is lost")
    };
    assert_eq!(envelope.rest, Some(Duration::ZERO), "the store has kept the whole wait");
}

#[tokio::test(start_paused = true)]
async fn a_hand_off_whose_answer_was_lost_can_be_repeated() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    let copy = copy(&lease.message, place.now(), 5 * SECOND);
    let first = store.resend(std::slice::from_ref(&copy)).await.pop().unwrap().unwrap();
    let due = detail(&store, "a").await.job.retry_at;
    advance(SECOND).await;
    let again = store.resend(std::slice::from_ref(&copy)).await.pop().unwrap().unwrap();
    assert_eq!(first, again);
    let detail = detail(&store, "a").await;
    assert_eq!(detail.job.retry_at, due, "the second time changes nothing");
    assert_eq!(detail.receipts.len(), 2, "sent, deferred");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_lost_writes_nothing() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    ours.send(vec![job("a", "done:late")], false).await.unwrap();
    let lease = take_one(&ours).await;
    let settled = settle(&ours, &lease).await;
    advance(Duration::from_secs(16)).await;
    let taken_over = take_one(&theirs).await;
    assert!(taken_over.is_suspect && taken_over.message.receive_count == 2);

    let now = place.now();
    let before = detail(&ours, "a").await;
    let answers = [
        ours.resend(&[copy(&lease.message, now, SECOND)])
            .await
            .pop()
            .unwrap()
            .map(drop),
        ours.schedule(&[ScheduledCopy {
            original: Arc::clone(&lease.message),
            envelope: next_envelope(&lease.message, now + SECOND),
            at: now + SECOND,
            receipt: receipt(now, now),
        }])
        .await
        .pop()
        .unwrap()
        .map(drop),
        ours.hold(&[Hold {
            original: Arc::clone(&lease.message),
            envelope: next_envelope(&lease.message, now + SECOND),
            visibility: SECOND,
            until: now + SECOND,
            receipt: receipt(now, now),
        }])
        .await
        .pop()
        .unwrap()
        .map(drop),
        ours.dead_letter(&[DeadLetter {
            original: Arc::clone(&lease.message),
            envelope: next_envelope(&lease.message, now),
            ending: Ending::new(EndingKind::Rejected, "no"),
            receipt: receipt(now, now),
        }])
        .await
        .pop()
        .unwrap()
        .map(drop),
        ours.delete(&[settled.deletion.unwrap()]).await.pop().unwrap(),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains("the lease of a has ended"), "{error}");
    }
    assert_eq!(detail(&ours, "a").await, before);
    // Who holds it now settles it as if nothing had happened.
    let settled = settle(&theirs, &taken_over).await;
    assert!(theirs.delete(&[settled.deletion.unwrap()]).await.pop().unwrap().is_ok());
    assert_eq!(state(&ours, "a").await, State::Done);
}

#[tokio::test(start_paused = true)]
async fn one_refused_entry_of_a_group_leaves_its_neighbours_alone() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    ours.send(vec![job("a", "done"), job("b", "done")], false)
        .await
        .unwrap();
    let lost = take_one(&ours).await;
    advance(Duration::from_secs(16)).await;
    take_one(&theirs).await;
    let held = take_one(&ours).await;
    let (lost, held) = if lost.message.id == "a" {
        (lost, held)
    } else {
        panic!("a was sent first")
    };
    let now = place.now();
    let answers = ours
        .resend(&[copy(&lost.message, now, SECOND), copy(&held.message, now, SECOND)])
        .await;
    assert!(answers[0].is_err() && answers[1].is_ok(), "{answers:?}");
    assert_eq!(state(&ours, &held.message.id).await, State::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_hold_keeps_the_receive_count_and_a_copy_starts_again() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    let now = place.now();
    let hold = Hold {
        original: Arc::clone(&lease.message),
        envelope: next_envelope(&lease.message, now + 2 * SECOND),
        visibility: 2 * SECOND,
        until: now + 2 * SECOND,
        receipt: receipt(now, now + 2 * SECOND),
    };
    store.hold(&[hold]).await.pop().unwrap().unwrap();
    assert_eq!(detail(&store, "a").await.job.mechanism, Mechanism::Visibility);
    assert!(ids(&store, 1).await.is_empty());
    advance(2 * SECOND).await;
    let lease = take_one(&store).await;
    assert_eq!((lease.message.receive_count, lease.is_suspect), (2, false));
    store
        .resend(&[copy(&lease.message, place.now(), SECOND)])
        .await
        .pop()
        .unwrap()
        .unwrap();
    advance(SECOND).await;
    assert_eq!(take_one(&store).await.message.receive_count, 1);
}

#[tokio::test(start_paused = true)]
async fn ends_say_how_and_keep_their_counts() {
    let place = Place::new();
    let store = place.open();
    store
        .send(vec![job("no", "reject"), job("yes", "done:7")], false)
        .await
        .unwrap();
    for lease in store.take(2).await.unwrap().leases {
        let settled = settle(&store, &lease).await;
        store.delete(&[settled.deletion.unwrap()]).await.pop().unwrap().unwrap();
    }
    let no = detail(&store, "no").await;
    assert_eq!(
        (no.job.state, no.job.attempts, no.job.last_status),
        (State::Failed, 1, Some(404))
    );
    assert_eq!(no.job.reason.as_deref(), Some("rejected: no such invoice"));
    assert_eq!(no.receipts.last().unwrap().transition, Transition::Ended);
    let yes = detail(&store, "yes").await;
    assert_eq!(
        (yes.job.state, yes.job.attempts, yes.job.last_status),
        (State::Done, 1, Some(200))
    );
    assert_eq!(yes.result.as_deref(), Some("7"));
    let history: Vec<Transition> = yes.receipts.iter().map(|line| line.transition).collect();
    assert_eq!(history, [Transition::Sent, Transition::Done]);
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_waits_ends_as_exhausted() {
    let place = Place::new();
    let store = place.open();
    let far = place.now() + Duration::from_secs(27 * 3600);
    store
        .send(vec![job("a", &format!("refuse:{far}"))], false)
        .await
        .unwrap();
    let lease = take_one(&store).await;
    settle(&store, &lease).await;
    assert_eq!(state(&store, "a").await, State::Exhausted);
}
