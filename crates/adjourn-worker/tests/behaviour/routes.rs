//! Which road a wait takes, and what happens when a port refuses.

use std::{sync::Arc, time::Duration};

use adjourn_worker::{
    Attribute, AttributeValue,
    fake::{Faults, Outgoing, QueueSettings},
};

use crate::stage::{Stage, job, kept};

#[tokio::test(start_paused = true)]
async fn a_delay_is_rounded_down_and_the_rest_is_waited_before_the_call() {
    let stage = Stage::standard();
    let worker = stage.worker();
    stage.send(&job("a", &["refuse 30250", "done"]));
    stage.turn(&worker).await;
    let envelope = stage.envelope();
    let delay = stage.queue.stored()[0].visible_at.since(stage.now());
    assert_eq!(delay.subsec_millis(), 0, "whole seconds");
    assert_eq!(Some(envelope.due.since(stage.now()) - delay), envelope.rest);
    stage.next_turn(&worker).await;
    assert_eq!(stage.calls.lock().unwrap()[1].at, envelope.due, "to the millisecond");
}

#[tokio::test(start_paused = true)]
async fn where_no_schedule_can_be_made_one_hold_covers_the_wait() {
    let stage = Stage::standard();
    let worker = stage.builder().build();
    let id = stage.send(&job("a", &["refuse 3600000", "done"]));
    let settled = stage.turn(&worker).await;
    assert_eq!(kept(&settled), [id], "a held message stays in its queue");
    assert_eq!(stage.queue.calls().visibility, 1);
    assert!(stage.queue.next_receivable_at().unwrap() >= stage.now() + Duration::from_secs(3600));
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["a", "a"]);
    assert_eq!(stage.calls.lock().unwrap()[1].receive_count, 2);
}

#[tokio::test(start_paused = true)]
async fn with_three_receives_ten_refusals_without_a_scheduler_lose_nothing() {
    let stage = Stage::with(QueueSettings {
        max_receive_count: Some(3),
        ..QueueSettings::default()
    });
    let worker = stage.builder().build();
    let mut answers = vec!["refuse 1800000"; 10];
    answers.push("done");
    stage.send(&job("a", &answers));
    stage.turn(&worker).await;
    while !stage.queue.messages().is_empty() {
        stage.next_turn(&worker).await;
    }
    assert_eq!(stage.called().len(), 11);
    assert!(stage.queue.dead_letters().is_empty());
    assert_eq!(
        stage.queue.calls().visibility,
        0,
        "with three receives nothing is held: a chain of delays does it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_fails_is_held_and_a_hold_that_fails_leaves_the_original() {
    let stage = Stage::standard();
    let faults = Faults::none();
    let queue = stage.queue.used_by(&faults.process());
    let worker = adjourn_worker::Worker::builder(scripted(&stage), Arc::new(queue))
        .clock(stage.clock.clone())
        .build();
    faults.outage("sqs.send");
    let id = stage.send(&job("a", &["refuse 60000"]));
    assert_eq!(kept(&stage.turn(&worker).await), std::slice::from_ref(&id));
    assert_eq!(
        stage.queue.next_receivable_at().unwrap().since(stage.now()).as_secs() / 60,
        1,
        "held for its wait"
    );
    faults.outage("sqs.visibility");
    let at = stage.queue.next_receivable_at().unwrap();
    tokio::time::advance(at.since(stage.now())).await;
    assert_eq!(kept(&stage.turn(&worker).await), [id]);
    assert_eq!(stage.queue.messages().len(), 1, "the original is whole");
}

fn scripted(stage: &Stage) -> Reuse {
    Reuse(stage.worker())
}

/// The stage's handler, on another queue port.
struct Reuse(adjourn_worker::Worker<crate::stage::Scripted>);

impl adjourn_worker::Handler for Reuse {
    async fn handle(&self, _job: adjourn_worker::Job) -> Result<adjourn_worker::Done, adjourn_worker::Interrupt> {
        let now = self.0.clock().now();
        let signal = adjourn_core::Signal::new("acme", now)
            .status(429)
            .retry_at(now + Duration::from_secs(60));
        Err(adjourn_worker::Interrupt::throttled(signal))
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_with_ten_attributes_is_held_or_ends_as_unholdable() {
    for (wait, end) in [("refuse 60000", None), ("refuse 50000000", Some("unholdable"))] {
        let stage = Stage::standard();
        let mut outgoing = Outgoing::body(&job("a", &[wait]).to_string());
        for n in 0..10 {
            outgoing.attributes.insert(format!("mine.{n}"), Attribute::text("x"));
        }
        stage.queue.send(outgoing).unwrap();
        stage.turn(&stage.worker()).await;
        match end {
            None => assert_eq!(stage.queue.calls().visibility, 1),
            Some(_) => {
                let letters = stage.queue.dead_letters();
                assert_eq!(letters.len(), 1);
                assert_eq!(letters[0].attributes.len(), 10, "untouched");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_attribute_group_and_trace_survive_a_delay() {
    let stage = Stage::standard();
    let worker = stage.worker();
    let mut outgoing = Outgoing::body(&job("a", &["refuse 5000"]).to_string());
    let label = |data_type: &str, value| Attribute {
        data_type: data_type.to_string(),
        value,
    };
    outgoing.attributes.insert("text".into(), Attribute::text("héllo"));
    outgoing
        .attributes
        .insert("count".into(), label("Number.int", AttributeValue::Text("42".into())));
    outgoing.attributes.insert(
        "bytes".into(),
        label("Binary.png", AttributeValue::Bytes(vec![0, 255, 7])),
    );
    outgoing.group = Some("tenant-7".to_string());
    outgoing.trace_header = Some("Root=1-5759e988-bd862e3fe1be46a994272793".to_string());
    let sent = outgoing.clone();
    stage.queue.send(outgoing).unwrap();
    stage.turn(&worker).await;
    let copy = stage.queue.messages().remove(0);
    let mut attributes = copy.attributes.clone();
    assert!(attributes.remove("adjourn").is_some());
    assert_eq!(
        (copy.body, attributes, copy.group, copy.trace_header),
        (sent.body, sent.attributes, sent.group, sent.trace_header)
    );
}

#[tokio::test(start_paused = true)]
async fn on_fifo_the_last_permitted_receive_is_never_held() {
    let stage = Stage::with(QueueSettings {
        kind: adjourn_core::QueueKind::Fifo,
        max_receive_count: Some(3),
        ..QueueSettings::default()
    });
    let worker = stage.builder().build();
    stage.send(&job("a", &["refuse 60000"]));
    stage.turn(&worker).await;
    stage.next_turn(&worker).await;
    assert_eq!(stage.queue.calls().visibility, 2);
    stage.next_turn(&worker).await;
    assert_eq!(stage.dead_letter().end.as_deref(), Some("unholdable"));
    assert_eq!(stage.called().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_delays_adds_the_clocks_skew_once() {
    let stage = Stage::standard();
    let mut policy = adjourn_core::Policy::default();
    policy.deferral.clock_skew = Duration::from_secs(2);
    policy.deferral.fallback = adjourn_core::Fallback::Hops;
    let worker = stage.builder().policy(policy).build();
    stage.send(&job("a", &["refuse 7200000", "done"]));
    stage.turn(&worker).await;
    let due = stage.envelope().due;
    while stage.called().len() < 2 {
        stage.next_turn(&worker).await;
    }
    let late = stage.calls.lock().unwrap()[1].at.since(due);
    assert!(late <= Duration::from_secs(2), "{late:?}");
}
