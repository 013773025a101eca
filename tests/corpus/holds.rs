//! Visibility timeouts: twelve hours from the receive, less what has passed and what may still pass.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Route, ScheduleReach, Timestamp};
use adjourn_worker::{
    Attribute, Clock, Settlement,
    fake::{Outgoing, QueueSettings},
};

use super::{
    Bench,
    waits::{on_sqs, road},
};

const TWELVE_HOURS: Duration = Duration::from_secs(43_200);
const MINUTE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

#[test]
fn bug_046_a_hold_asks_for_what_is_left_of_twelve_hours_and_not_for_all() {
    for held in [0, 2, 60, 3000] {
        let held = Duration::from_secs(held);
        let (reach, facts) = on_sqs(now(), held);
        let mut longest = Duration::ZERO;
        for wait in (901..50_000).step_by(97) {
            if let Route::Hold { visibility } = road(&reach, &facts, Duration::from_secs(wait), now()) {
                assert!(
                    visibility + held + Duration::from_secs(300) <= TWELVE_HOURS,
                    "{visibility:?} after {held:?}"
                );
                longest = longest.max(visibility);
            }
        }
        assert!(
            longest > Duration::from_secs(38_000),
            "long waits are held: {longest:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_047_twelve_hours_in_all_are_our_own_guard() {
    let (reach, facts) = on_sqs(now(), MINUTE);
    let after_a_minute = road(&reach, &facts, TWELVE_HOURS, now());
    assert!(!matches!(after_a_minute, Route::Hold { .. }), "{after_a_minute:?}");
    // The service's own guard stands behind ours: a first hold of a minute does not start the twelve hours anew.
    let bench = Bench::new(QueueSettings::default(), &[]);
    bench.queue.send_body("job").unwrap();
    let message = Arc::new(bench.queue.receive(1).await.unwrap().remove(0));
    let hold = |span| adjourn_worker::port::Hold {
        original: message.clone(),
        envelope: adjourn_core::Envelope::first(adjourn_core::DeferralId::new("job"), now(), message.content()),
        visibility: span,
        until: now() + span,
        receipt: adjourn_worker::Receipt {
            at: now(),
            transition: adjourn_worker::Transition::Deferred,
            cause: String::new(),
            until: None,
            mechanism: adjourn_core::Mechanism::Visibility,
            sequence: 1,
            gate: None,
            policy_version: adjourn_worker::POLICY_VERSION,
            jitter_ms: 0,
            observation: None,
        },
    };
    let port: &dyn adjourn_worker::port::Queue = &bench.queue;
    assert!(port.hold(&[hold(MINUTE)]).await[0].is_ok());
    bench.clock.sleep(Duration::from_secs(1)).await;
    assert!(port.hold(&[hold(TWELVE_HOURS)]).await[0].is_err());
}

#[test]
fn bug_048_a_wait_of_twelve_hours_goes_by_another_road() {
    let (mut reach, facts) = on_sqs(now(), Duration::ZERO);
    let without = road(&reach, &facts, TWELVE_HOURS, now());
    assert!(
        matches!(without, Route::Resend { delay, .. } if delay == Duration::from_secs(900)),
        "{without:?}"
    );
    reach.schedule = Some(ScheduleReach {
        step: MINUTE,
        lead: MINUTE,
    });
    let with = road(&reach, &facts, TWELVE_HOURS, now());
    assert!(matches!(with, Route::Schedule { .. }), "{with:?}");
}

#[tokio::test(start_paused = true)]
async fn bug_049_the_age_of_a_message_takes_nothing_from_a_hold() {
    let bench = Bench::new(QueueSettings::default(), &[Duration::from_secs(3600)]);
    bench.queue.send_body("job").unwrap();
    bench.clock.sleep(Duration::from_secs(13 * 3600)).await;
    let settled = bench.round().await;
    assert_eq!(
        settled[0].settlement,
        Settlement::Keep,
        "it is held for an hour, 13 hours after it was sent"
    );
    assert_eq!(bench.queue.calls().visibility, 1);
    bench.run().await;
    assert_eq!(bench.calls_of("job"), 2);
    assert!(bench.queue.refused().is_empty());
}

#[tokio::test(start_paused = true)]
async fn bug_050_a_hold_that_comes_too_late_is_seen_and_loses_nothing() {
    // There is no heartbeat here: a call is bounded by its timeout. One that outlives the visibility timeout all the same
    // finds its receipt worthless, says so, and leaves the message to the delivery that owns it now.
    let settings = QueueSettings {
        visibility_timeout: Duration::from_secs(5),
        ..QueueSettings::default()
    };
    let bench = Bench::with(
        settings,
        &[Duration::from_secs(30)],
        Duration::from_secs(8),
        |builder, _| builder,
    );
    let mut crowded = Outgoing::body("job");
    crowded.attributes = (0..10).map(|n| (format!("a{n}"), Attribute::text("v"))).collect();
    bench.queue.send(crowded).unwrap();
    let settled = bench.round().await;
    assert_eq!(settled[0].settlement, Settlement::Keep);
    assert!(
        bench.queue.refused()[0].contains("MessageNotInflight"),
        "{:?}",
        bench.queue.refused()
    );
    assert_eq!(bench.queue.messages().len(), 1, "it is still there");
}
