//! The suites on the ports in memory, and what only a fake can be asked.

use std::{sync::Arc, time::Duration};

use adjourn_core::{QueueKind, Timestamp};
use adjourn_worker::{
    Clock, Message, VirtualClock,
    fake::{FakeQueue, FakeScheduler, Outgoing, QueueSettings, ScheduleSettings},
    port::{Queue, Scheduler},
};
use async_trait::async_trait;

use super::{ScheduleSite, Site, copy, hold, received};

pub(crate) struct InMemory {
    clock: Arc<VirtualClock>,
    queue: FakeQueue,
    scheduler: FakeScheduler,
}

impl InMemory {
    fn new(settings: QueueSettings) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(
            Timestamp::parse("2026-07-10T20:13:47Z").unwrap(),
        ));
        let queue = FakeQueue::new("jobs", clock.clone(), settings);
        let settings = ScheduleSettings {
            max_input_bytes: 262_144,
            ..ScheduleSettings::default()
        };
        let scheduler = FakeScheduler::new(&queue, settings);
        Self {
            clock,
            queue,
            scheduler,
        }
    }
}

#[async_trait]
impl Site for InMemory {
    fn queue(&self) -> Arc<dyn Queue> {
        Arc::new(self.queue.clone())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn send(&self, outgoing: Outgoing) {
        self.queue.send(outgoing).unwrap();
    }

    async fn receive(&self) -> Vec<Message> {
        self.scheduler.fire_due();
        self.queue.receive(10).await.unwrap()
    }

    async fn next(&self, within: Duration) -> Vec<Message> {
        let ends = self.clock.now() + within;
        loop {
            let messages = self.receive().await;
            let events = [self.queue.next_receivable_at(), self.scheduler.next_firing_at()];
            let event = events.into_iter().flatten().min().filter(|at| *at <= ends);
            match event {
                _ if !messages.is_empty() => return messages,
                Some(at) => self.clock.sleep(at.since(self.clock.now())).await,
                None => return messages,
            }
        }
    }

    async fn dead_letters(&self) -> Vec<String> {
        let letters = self.queue.dead_letters();
        letters
            .iter()
            .map(|letter| letter.envelope_text().unwrap_or_default().to_string())
            .collect()
    }

    fn is_transactional(&self) -> bool {
        self.queue.settings().transactional
    }
}

#[async_trait]
impl ScheduleSite for InMemory {
    fn scheduler(&self) -> Arc<dyn Scheduler> {
        Arc::new(self.scheduler.clone())
    }

    async fn schedules(&self) -> Vec<(String, Timestamp)> {
        self.scheduler.waiting()
    }

    async fn occupy(&self, name: &str, at: Timestamp) -> bool {
        self.scheduler.occupy(name, at);
        true
    }
}

async fn standard_site(_case: &str) -> InMemory {
    InMemory::new(QueueSettings::default())
}

async fn transactional_site(_case: &str) -> InMemory {
    InMemory::new(QueueSettings {
        transactional: true,
        ..QueueSettings::default()
    })
}

suite!(
    standard,
    [start_paused = true],
    crate::conformance::fakes::standard_site,
    crate::conformance::queue,
    [
        a_copy_is_accepted_by_its_step_and_arrives_with_it,
        a_copy_is_the_customers_message,
        a_delayed_copy_comes_after_its_delay,
        a_held_message_is_hidden_and_comes_back_as_itself,
        a_hold_of_nothing_gives_the_message_back_at_once,
        a_dead_letter_says_why,
        what_is_deleted_is_gone_and_deleting_again_harms_nothing,
        a_hand_off_is_a_copy_and_then_a_deletion,
        more_than_a_batch_is_answered_in_its_order,
        nothing_is_asked_and_nothing_is_answered,
        one_entry_that_is_refused_hurts_no_other,
        what_sqs_refuses_is_refused_here,
        an_empty_attribute_keeps_no_copy_from_being_sent,
    ]
);

suite!(
    transactional,
    [start_paused = true],
    crate::conformance::fakes::transactional_site,
    crate::conformance::queue,
    [
        a_copy_is_accepted_by_its_step_and_arrives_with_it,
        a_copy_is_the_customers_message,
        a_delayed_copy_comes_after_its_delay,
        a_held_message_is_hidden_and_comes_back_as_itself,
        a_hold_of_nothing_gives_the_message_back_at_once,
        a_dead_letter_says_why,
        what_is_deleted_is_gone_and_deleting_again_harms_nothing,
        a_hand_off_is_a_copy_and_then_a_deletion,
        more_than_a_batch_is_answered_in_its_order,
    ]
);

suite!(
    schedules,
    [start_paused = true],
    crate::conformance::fakes::standard_site,
    crate::conformance::scheduler,
    [
        a_schedule_is_accepted_by_its_step,
        making_the_same_again_is_a_success_and_makes_no_second,
        one_of_ours_that_is_later_serves_too,
        one_of_ours_that_is_earlier_is_replaced,
        a_name_that_is_somebody_elses_is_refused,
        a_moment_that_is_not_in_the_future_is_refused,
        what_a_scheduler_would_change_is_not_carried,
        a_schedule_sends_its_copy_within_its_minute_and_is_gone,
    ]
);

fn fifo() -> QueueSettings {
    QueueSettings {
        kind: QueueKind::Fifo,
        ..QueueSettings::default()
    }
}

fn of_group(group: &str, body: &str) -> Outgoing {
    Outgoing {
        group: Some(group.to_string()),
        deduplication_id: Some(body.to_string()),
        ..Outgoing::body(body)
    }
}

#[tokio::test(start_paused = true)]
async fn a_hidden_message_blocks_its_group_and_no_other() {
    let site = InMemory::new(fifo());
    for (group, body) in [("a", "a1"), ("a", "a2"), ("b", "b1")] {
        site.send(of_group(group, body)).await;
    }
    let first = Arc::new(site.queue.receive(1).await.unwrap().remove(0));
    assert_eq!(first.body, "a1");
    site.queue
        .hold(&[hold(&site, &first, Duration::from_secs(3600))])
        .await
        .remove(0)
        .unwrap();
    let bodies: Vec<_> = site.receive().await.into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["b1"], "a2 waits behind a1");
    site.clock.sleep(Duration::from_secs(3600)).await;
    let bodies: Vec<_> = site.receive().await.into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["a1", "a2", "b1"], "in their order");
}

#[tokio::test(start_paused = true)]
async fn a_deduplication_id_is_remembered_for_five_minutes_even_of_what_is_gone() {
    let site = InMemory::new(fifo());
    site.send(of_group("a", "x")).await;
    let batch = site.receive().await;
    site.queue.respond(&batch, &[]).await.unwrap();
    site.clock.sleep(Duration::from_secs(299)).await;
    site.send(of_group("a", "x")).await;
    assert!(site.receive().await.is_empty(), "accepted, and never delivered");
    site.clock.sleep(Duration::from_secs(1)).await;
    site.send(of_group("a", "x")).await;
    assert_eq!(site.receive().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_old_receipt_hides_nothing_and_deletes_nothing() {
    let site = InMemory::new(QueueSettings::default());
    let old = received(&site, "x").await;
    site.clock.sleep(Duration::from_secs(181)).await;
    let error = site
        .queue
        .hold(&[hold(&site, &old, Duration::from_secs(60))])
        .await
        .remove(0)
        .unwrap_err();
    assert!(error.to_string().contains("MessageNotInflight"), "{error}");
    let again = site.receive().await;
    site.queue.respond(&[(*old).clone()], &[]).await.unwrap();
    assert_eq!(
        site.queue.messages().len(),
        1,
        "an old receipt is accepted and deletes nothing"
    );
    site.queue.respond(&again, &[]).await.unwrap();
    assert!(site.queue.messages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn twelve_hours_count_from_the_receive() {
    let site = InMemory::new(QueueSettings::default());
    let message = received(&site, "x").await;
    site.clock.sleep(Duration::from_secs(2)).await;
    let all = Duration::from_secs(43_200);
    assert!(site.queue.hold(&[hold(&site, &message, all)]).await.remove(0).is_err());
    let rest = Duration::from_secs(43_198);
    site.queue.hold(&[hold(&site, &message, rest)]).await.remove(0).unwrap();
}

#[tokio::test(start_paused = true)]
async fn past_its_receives_a_message_moves_and_past_its_retention_it_is_lost() {
    let settings = QueueSettings {
        max_receive_count: Some(2),
        visibility_timeout: Duration::from_secs(10),
        retention: Duration::from_secs(60),
        ..QueueSettings::default()
    };
    let site = InMemory::new(settings);
    site.send(Outgoing::body("moves")).await;
    for receive in 1..=2 {
        assert_eq!(site.receive().await[0].receive_count, receive);
        site.clock.sleep(Duration::from_secs(10)).await;
    }
    assert!(site.receive().await.is_empty());
    assert_eq!(site.queue.dead_letters()[0].body, "moves");
    site.send(Outgoing::body("expires")).await;
    site.clock.sleep(Duration::from_secs(60)).await;
    assert!(site.receive().await.is_empty());
    assert_eq!(site.queue.expired()[0].body, "expires");
}

#[tokio::test(start_paused = true)]
async fn too_many_in_flight_are_an_error_on_a_standard_queue_and_silence_on_a_fifo() {
    for (kind, refused) in [(QueueKind::Standard, true), (QueueKind::Fifo, false)] {
        let site = InMemory::new(QueueSettings {
            kind,
            in_flight_limit: 1,
            ..QueueSettings::default()
        });
        for n in 0..2 {
            let fifo = kind == QueueKind::Fifo;
            let outgoing = of_group(&format!("g{n}"), &format!("m{n}"));
            let deduplication_id = outgoing.deduplication_id.clone().filter(|_| fifo);
            site.send(Outgoing {
                deduplication_id,
                ..outgoing
            })
            .await;
        }
        assert_eq!(site.queue.receive(10).await.unwrap().len(), 1);
        match site.queue.receive(10).await {
            Ok(none) => assert!(none.is_empty() && !refused),
            Err(error) => assert!(refused && error.is_throttled(), "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_split_by_ten_and_by_bytes() {
    let site = InMemory::new(QueueSettings::default());
    let mut originals = Vec::new();
    for _ in 0..3 {
        originals.push(received(&site, &"x".repeat(500_000)).await);
    }
    let copies: Vec<_> = originals
        .iter()
        .map(|one| copy(&site, one, Duration::from_secs(9)))
        .collect();
    assert!(site.queue.resend(&copies).await.iter().all(Result::is_ok));
    assert_eq!(
        site.queue.calls().send,
        2,
        "two of 500,000 bytes fit into a call, three do not"
    );
}

#[tokio::test(start_paused = true)]
async fn a_keyword_in_an_input_is_replaced() {
    // The port refuses to carry it; this is what would happen if it did not.
    let site = InMemory::new(QueueSettings::default());
    let original = received(&site, "run <aws.scheduler.attempt-number>").await;
    let at = (site.clock.now() + Duration::from_secs(3600)).floor_to(Duration::from_secs(60));
    site.scheduler
        .schedule(&[super::scheduled(&original, at)])
        .await
        .remove(0)
        .unwrap();
    site.queue.respond(&[(*original).clone()], &[]).await.unwrap();
    let arrived = site.next(Duration::from_secs(7200)).await.remove(0);
    assert_eq!(arrived.body, "run 1");
}

#[tokio::test(start_paused = true)]
async fn what_the_target_refuses_is_kept_by_the_schedules_dead_letters() {
    let site = InMemory::new(QueueSettings::default());
    let original = received(&site, "kept").await;
    let at = (site.clock.now() + Duration::from_secs(3600)).floor_to(Duration::from_secs(60));
    site.scheduler
        .schedule(&[super::scheduled(&original, at)])
        .await
        .remove(0)
        .unwrap();
    site.queue.respond(&[(*original).clone()], &[]).await.unwrap();
    site.scheduler.refuse_at_target(true);
    assert!(site.next(Duration::from_secs(7200)).await.is_empty());
    assert_eq!(site.scheduler.undelivered()[0].body, "kept");
}
