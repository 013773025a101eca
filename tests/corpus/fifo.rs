//! FIFO queues: no delays, remembered ids, groups that block.

use std::{sync::Arc, time::Duration};

use adjourn_aws::{Environment, Settings};
use adjourn_core::{Fifo, Mechanism, Policy, QueueKind};
use adjourn_sim::{Hint, Limit, Provider, Setup, SimJob, World};
use adjourn_worker::{
    fake::{FakeScheduler, Faults, Outgoing, QueueSettings, ScheduleSettings},
    port::Queue,
};

use super::{Bench, service};

fn fifo() -> QueueSettings {
    QueueSettings {
        kind: QueueKind::Fifo,
        max_receive_count: Some(10),
        ..QueueSettings::default()
    }
}

/// What SqsQueue sends to a FIFO queue for one copy.
async fn sent_entry() -> serde_json::Value {
    let server = service::Service::answering(serde_json::json!({"Successful": [], "Failed": []})).await;
    let _ = server.queue("jobs.fifo").resend(&service::copies(1)).await;
    server.asked()[0]["Entries"][0].clone()
}

#[tokio::test]
async fn bug_055_a_fifo_send_has_no_delay_at_all() {
    let entry = sent_entry().await;
    assert!(entry["MessageBody"].is_string(), "{entry}");
    assert!(entry.get("DelaySeconds").is_none(), "{entry}");
}

#[tokio::test]
async fn bug_056_what_an_emulator_refuses_is_never_sent_to_it() {
    let entry = sent_entry().await;
    let names: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(!names.contains(&"DelaySeconds"), "{names:?}");
    assert!(
        names.contains(&"MessageGroupId") && names.contains(&"MessageDeduplicationId"),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn bug_057_a_delay_of_the_queues_own_cannot_make_a_wait_shorter() {
    // On FIFO a wait is a hold of the message itself: nothing is sent, so a delay of the queue's own never comes into it.
    let mut setup = Setup::new(57)
        .provider(Provider::new(
            "acme",
            Limit::RefuseFirst {
                calls: 2,
                wait: Duration::from_secs(600),
            },
            Hint::Seconds,
        ))
        .jobs([SimJob::new("job", "acme")]);
    setup.queue = fifo();
    setup.scheduler = None;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    assert_eq!((report.done, report.early, report.calls.send), (1, 0, 0), "{report}");
    assert!(
        world
            .queue()
            .steps()
            .iter()
            .all(|step| step.mechanism == Mechanism::Visibility)
    );
}

#[tokio::test(start_paused = true)]
async fn bug_058_a_copy_within_five_minutes_is_not_taken_for_its_original() {
    let bench = Bench::new(fifo(), &[]);
    bench.queue.send_body("job").unwrap();
    let original = Arc::new(bench.queue.receive(1).await.unwrap().remove(0));
    let mut copies = service::copies_of(&original, 2);
    copies[1].envelope.identity = copies[0].envelope.identity.next();
    for copy in &copies {
        assert!(bench.queue.resend(std::slice::from_ref(copy)).await[0].is_ok());
    }
    bench.queue.respond(&[(*original).clone()], &[]).await.unwrap();
    let arrived = bench.queue.receive(10).await.unwrap();
    assert_eq!(arrived.len(), 2, "each step has an id of its own");
    assert!(
        arrived
            .iter()
            .all(|copy| copy.deduplication_id != original.deduplication_id)
    );
    // And the same step sent again is the same message, not a second one.
    assert!(bench.queue.resend(&copies[..1]).await[0].is_ok());
    assert_eq!(bench.queue.messages().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn bug_060_group_and_deduplication_survive_every_road() {
    let mut policy = Policy::default();
    policy.deferral.fifo = Fifo::Relaxed;
    let waits = [Duration::from_secs(60), Duration::from_secs(20 * 3600)];
    let mut scheduler = None;
    let bench = Bench::with(fifo(), &waits, Duration::ZERO, |builder, queue| {
        let ours = FakeScheduler::new(queue, ScheduleSettings::default());
        scheduler = Some(ours.clone());
        builder.policy(policy).scheduler(Arc::new(ours))
    });
    let scheduler = scheduler.unwrap();
    let sent = Outgoing {
        group: Some("g1".to_string()),
        deduplication_id: Some("first".to_string()),
        ..Outgoing::body("job")
    };
    bench.queue.send(sent).unwrap();
    bench.run().await;
    assert_eq!(
        bench.calls_of("job"),
        2,
        "held for a minute, then scheduled for twenty hours"
    );
    let waiting = scheduler.scheduled().remove(0);
    assert_eq!(waiting.group.as_deref(), Some("g1"));
    assert!(waiting.deduplication_id.is_some_and(|id| id != "first"));
    let at = scheduler.next_firing_at().unwrap();
    adjourn_worker::Clock::sleep(&*bench.clock, at.since(adjourn_worker::Clock::now(&*bench.clock))).await;
    scheduler.fire_due();
    assert_eq!(bench.queue.messages()[0].group.as_deref(), Some("g1"));
    bench.run().await;
    assert_eq!(bench.calls_of("job"), 3);
}

#[test]
fn bug_061_relaxed_order_without_a_schedule_is_refused_at_start() {
    let environment = Environment::new([
        (
            "ADJOURN_QUEUE_URL",
            "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs.fifo",
        ),
        ("ADJOURN_VISIBILITY_S", "180"),
        ("ADJOURN_RETENTION_S", "864000"),
    ]);
    let settings = Settings::read(&environment).unwrap();
    let mut policy = Policy::default();
    assert!(settings.check(&policy).is_ok(), "holding needs no schedule");
    policy.deferral.fifo = Fifo::Relaxed;
    let mistakes = settings.check(&policy).unwrap_err().to_string();
    assert!(
        mistakes.contains("ADJOURN_SCHEDULE_GROUP") && mistakes.contains("relaxed"),
        "{mistakes}"
    );
}
