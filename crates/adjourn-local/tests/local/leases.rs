//! Leases: a killed process's jobs come back, a living one's do not.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Discarded, Standing};
use adjourn_local::{LEASE, MAX_RECEIVE_COUNT, State};
use adjourn_worker::port::{Ledger, Queue};

use crate::fixture::*;

#[tokio::test(start_paused = true)]
async fn a_killed_process_s_jobs_come_back_within_their_lease() {
    let place = Place::new();
    let (killed, other) = (place.open(), place.open());
    killed.send(vec![job("a", "done")], false).await.unwrap();
    take_one(&killed).await;
    std::mem::forget(killed);
    let taken = other.take(1).await.unwrap();
    assert!(taken.leases.is_empty());
    assert_eq!(taken.next, Some(place.now() + LEASE), "that is when to look again");
    assert_eq!(state(&other, "a").await, State::Running);
    advance(LEASE).await;
    assert_eq!(
        state(&other, "a").await,
        State::Ready,
        "before anybody has looked at it"
    );
    let lease = take_one(&other).await;
    assert_eq!((lease.message.receive_count, lease.is_suspect), (2, true));
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_holds() {
    let place = Place::new();
    let (ours, other) = (place.open(), place.open());
    ours.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&ours).await;
    for _ in 0..5 {
        advance(LEASE - SECOND).await;
        ours.renew(std::slice::from_ref(&lease)).await.unwrap();
        assert!(ids(&other, 1).await.is_empty());
    }
    let settled = settle(&ours, &lease).await;
    assert!(ours.delete(&[settled.deletion.unwrap()]).await.pop().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn renewing_a_lost_lease_takes_nothing_back() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    ours.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&ours).await;
    advance(LEASE).await;
    let taken_over = take_one(&theirs).await;
    ours.renew(std::slice::from_ref(&lease)).await.unwrap();
    advance(LEASE).await;
    assert_eq!(
        state(&ours, "a").await,
        State::Ready,
        "our renewal did not prolong theirs"
    );
    drop(taken_over);
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_back_costs_no_receive_and_no_place() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    advance(SECOND).await;
    store.send(vec![job("b", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    assert_eq!(lease.message.id, "a");
    advance(SECOND).await;
    store.release(std::slice::from_ref(&lease)).await.unwrap();
    let again = take_one(&store).await;
    assert_eq!(
        (again.message.id.as_str(), again.message.receive_count, again.is_suspect),
        ("a", 1, false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_kills_every_process_ends_as_crashed() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("poison", "done")], false).await.unwrap();
    for receive in 1..=MAX_RECEIVE_COUNT {
        assert_eq!(take_one(&store).await.message.receive_count, receive);
        advance(LEASE).await;
    }
    assert!(ids(&store, 1).await.is_empty());
    let ended = detail(&store, "poison").await.job;
    assert_eq!(ended.state, State::Failed);
    assert_eq!(
        ended.reason.as_deref(),
        Some("crashed: received 5 times, and no process that did it lived to settle it")
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_marked_once_and_the_mark_outlives_its_process() {
    let place = Place::new();
    let (killed, other) = (place.open(), place.open());
    killed.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&killed).await;
    assert_eq!(lease.standing, Standing::Current);
    assert_eq!(killed.mark_started(&lease.message).await.unwrap(), Standing::Current);
    assert_eq!(killed.mark_started(&lease.message).await.unwrap(), Standing::Started);
    advance(LEASE).await;
    let again = take_one(&other).await;
    assert_eq!(again.standing, Standing::Started);
    assert_eq!(
        killed.mark_started(&lease.message).await.unwrap(),
        Standing::Over(Discarded::Stale),
        "the first lease starts nothing any more"
    );
    let standings = other
        .standing(&[Arc::clone(&lease.message), Arc::clone(&again.message)])
        .await
        .unwrap();
    assert_eq!(standings, [Standing::Over(Discarded::Stale), Standing::Started]);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_another_queue_is_refused_by_name() {
    let place = Place::new();
    let store = place.open();
    store.send(vec![job("a", "done")], false).await.unwrap();
    let lease = take_one(&store).await;
    let mut foreign = (*lease.message).clone();
    foreign.receipt = "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a".to_string();
    let error = store.mark_started(&Arc::new(foreign)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("message a was not taken from this store: its receipt \"AQEBwJnKyr"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_queue_says_what_it_can() {
    let place = Place::new();
    let reach = worker(&place.open()).reach();
    assert_eq!(reach.max_delay, Duration::from_secs(900));
    assert_eq!(reach.delay_step, Duration::from_millis(1));
    assert_eq!(reach.max_visibility, Duration::from_secs(43_200));
    assert_eq!(reach.max_receive_count, Some(5));
    let schedule = reach.schedule.unwrap();
    assert_eq!(
        (schedule.step, schedule.lead),
        (Duration::from_millis(1), Duration::ZERO)
    );
}
