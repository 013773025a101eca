//! Law 8: whatever road a wait takes, the message that comes back is the customer's, byte for byte.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{QueueKind, Signal, Timestamp};
use adjourn_worker::{
    Attribute, AttributeValue, Clock, Done, ENVELOPE_ATTRIBUTE, Handler, Interrupt, Job, Message, Settlement,
    VirtualClock, Worker,
    fake::{FakeQueue, FakeScheduler, Outgoing, QueueSettings, ScheduleSettings},
};

const HOUR: Duration = Duration::from_secs(3600);

/// Refuses each job as often as there are waits, and remembers every message that it was given.
struct Recording {
    clock: Arc<VirtualClock>,
    waits: Vec<Duration>,
    seen: Arc<Mutex<Vec<Message>>>,
}

impl Handler for Recording {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let mut seen = self.seen.lock().unwrap();
        let wait = self.waits.get(seen.len()).copied();
        seen.push(job.message().clone());
        let now = self.clock.now();
        match wait {
            Some(wait) => Err(Interrupt::throttled(Signal::new("acme", now).retry_at(now + wait))),
            None => Ok(Done::new()),
        }
    }
}

fn typed(data_type: &str, text: &str) -> Attribute {
    Attribute {
        data_type: data_type.to_string(),
        value: AttributeValue::Text(text.to_string()),
    }
}

/// Every kind of attribute that SQS takes, and a body that JSON would write in more than one way.
fn customers_message(binary: bool) -> Outgoing {
    let mut attributes = BTreeMap::from([
        (
            "Text".to_string(),
            typed("String", "h\u{e9}llo \"w\u{f6}rld\" \u{1F600}"),
        ),
        ("Count".to_string(), typed("Number", "0012.500")),
        ("Label.x".to_string(), typed("Number.int", "-7")),
        ("json-ish".to_string(), typed("String.json", "{\"a\":  1 ,\"b\":null}")),
    ]);
    if binary {
        let value = AttributeValue::Bytes(vec![0, 255, 10, 13, 128]);
        let data_type = "Binary.png".to_string();
        attributes.insert("Bytes".to_string(), Attribute { data_type, value });
    }
    Outgoing {
        body: "{\"z\":1,\"a\":\t2.50,\r\n \"u\":\"\\u00e9\u{e9}\"}".to_string(),
        attributes,
        group: Some("tenant-7".to_string()),
        trace_header: Some("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1".to_string()),
        ..Outgoing::default()
    }
}

/// Runs one message through these waits and answers every message that the handler saw.
async fn travel(outgoing: Outgoing, waits: Vec<Duration>, settings: QueueSettings, scheduled: bool) -> Vec<Message> {
    let clock = Arc::new(VirtualClock::starting_at(
        Timestamp::parse("2026-07-10T20:00:13Z").unwrap(),
    ));
    let queue = FakeQueue::new("jobs", clock.clone(), settings);
    let scheduler = FakeScheduler::new(&queue, ScheduleSettings::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = Recording {
        clock: clock.clone(),
        waits,
        seen: seen.clone(),
    };
    let mut builder = Worker::builder(handler, Arc::new(queue.clone())).clock(clock.clone());
    if scheduled {
        builder = builder.scheduler(Arc::new(scheduler.clone()));
    }
    let worker = builder.build();
    queue.send(outgoing).unwrap();
    while !queue.messages().is_empty() || !scheduler.waiting().is_empty() {
        let next = [queue.next_receivable_at(), scheduler.next_firing_at()]
            .into_iter()
            .flatten()
            .min();
        clock.sleep(next.unwrap().since(clock.now())).await;
        scheduler.fire_due();
        let batch = queue.receive(10).await.unwrap();
        let settled = worker.run_batch(batch.clone(), None).await;
        let kept = settled.iter().filter(|one| one.settlement == Settlement::Keep);
        let failures: Vec<String> = kept.map(|one| one.message.id.clone()).collect();
        queue.respond(&batch, &failures).await.unwrap();
    }
    assert!(queue.dead_letters().is_empty(), "it came to its end");
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn assert_is_the_customers(sent: &Outgoing, seen: &Message) {
    assert_eq!(seen.body.as_bytes(), sent.body.as_bytes());
    assert_eq!(seen.group, sent.group);
    assert_eq!(seen.trace_header, sent.trace_header);
    let mut attributes = seen.attributes.clone();
    attributes.remove(ENVELOPE_ATTRIBUTE);
    assert_eq!(attributes, sent.attributes);
}

#[tokio::test(start_paused = true)]
async fn law_8_the_message_is_the_customers() {
    let delays = vec![
        Duration::from_secs(30),
        Duration::from_secs(600),
        Duration::from_millis(1500),
    ];
    let long = vec![3 * HOUR, Duration::from_secs(30), 2 * HOUR];
    let roomy = QueueSettings::default();
    let cases = [
        ("delay", true, delays.clone(), roomy.clone(), true),
        ("schedule", false, long.clone(), roomy.clone(), true),
        (
            "a hold for what no schedule carries",
            true,
            long.clone(),
            roomy.clone(),
            true,
        ),
        ("holds and hops without a scheduler", true, long, roomy, false),
    ];
    for (road, binary, waits, settings, scheduled) in cases {
        let sent = customers_message(binary);
        let calls = waits.len() + 1;
        let seen = travel(sent.clone(), waits, settings, scheduled).await;
        assert_eq!(seen.len(), calls, "{road}");
        for message in &seen {
            assert_is_the_customers(&sent, message);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_8_on_a_fifo_queue_group_and_order_stay() {
    let settings = QueueSettings {
        kind: QueueKind::Fifo,
        max_receive_count: Some(20),
        ..QueueSettings::default()
    };
    let mut sent = customers_message(true);
    sent.deduplication_id = Some("first".to_string());
    let seen = travel(sent.clone(), vec![Duration::from_secs(30), HOUR], settings, false).await;
    assert_eq!(seen.len(), 3);
    for message in &seen {
        assert_is_the_customers(&sent, message);
        assert_eq!(message.id, seen[0].id, "it is the same message, held");
    }
}

#[tokio::test(start_paused = true)]
async fn an_envelope_of_another_message_is_no_envelope() {
    // A customer who forwards a deferred message with all its attributes forwards our envelope too.
    let waits = vec![Duration::from_secs(30)];
    let seen = travel(customers_message(false), waits, QueueSettings::default(), true).await;
    let foreign = seen[1].attributes[ENVELOPE_ATTRIBUTE].clone();
    let mut forwarded = Outgoing::body("another job");
    forwarded.attributes.insert(ENVELOPE_ATTRIBUTE.to_string(), foreign);
    let seen = travel(forwarded, vec![], QueueSettings::default(), true).await;
    assert_eq!(
        seen.len(),
        1,
        "it is not put off by the other message's due time, and it is not lost"
    );
}
