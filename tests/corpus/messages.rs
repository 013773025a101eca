//! Messages: what grows on them, and what gets lost from them.

use std::{collections::BTreeMap, time::Duration};

use adjourn_worker::{
    Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message, Settlement,
    fake::{Outgoing, QueueSettings},
};

use super::Bench;

const WAIT: Duration = Duration::from_secs(30);

fn attributes(count: usize) -> BTreeMap<String, Attribute> {
    (0..count).map(|n| (format!("a{n}"), Attribute::text("v"))).collect()
}

/// Sends a message, has it refused once, and answers the copy that waits.
async fn deferred(outgoing: Outgoing) -> Message {
    let bench = Bench::new(QueueSettings::default(), &[WAIT]);
    bench.queue.send(outgoing).unwrap();
    let settled = bench.round().await;
    assert!(
        matches!(settled[0].settlement, Settlement::Delete(_)),
        "it was handed on: {:?}",
        bench.queue.refused()
    );
    bench.queue.messages().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn bug_091_attributes_do_not_grow_with_deferrals() {
    let bench = Bench::new(QueueSettings::default(), &[WAIT; 8]);
    let mut outgoing = Outgoing::body("job");
    outgoing.attributes = attributes(8);
    bench.queue.send(outgoing).unwrap();
    for _ in 0..8 {
        bench.round().await;
        assert_eq!(
            bench.queue.messages()[0].attributes.len(),
            9,
            "eight of the customer's and one of ours"
        );
        adjourn_worker::Clock::sleep(&*bench.clock, 2 * WAIT).await;
    }
    bench.run().await;
    assert_eq!(bench.calls_of("job"), 9);
}

#[tokio::test(start_paused = true)]
async fn bug_092_a_batch_is_split_by_the_bytes_of_attributes_too() {
    let bench = Bench::new(QueueSettings::default(), &[WAIT]);
    for n in 0..10 {
        let mut outgoing = Outgoing::body(&format!("{n}{}", "x".repeat(90_000)));
        outgoing
            .attributes
            .insert("large".to_string(), Attribute::text(&"y".repeat(30_000)));
        bench.queue.send(outgoing).unwrap();
    }
    let sent = bench.queue.calls().send;
    let settled = bench.round().await;
    assert_eq!(settled.len(), 10);
    assert!(bench.queue.refused().is_empty(), "{:?}", bench.queue.refused());
    assert_eq!(bench.queue.messages().len(), 10, "none was lost and none was doubled");
    assert_eq!(bench.queue.calls().send - sent, 2, "1,200,000 bytes are two calls");
}

#[tokio::test(start_paused = true)]
async fn bug_093_one_attribute_is_all_that_we_ask_for() {
    for count in 0..=9 {
        let mut outgoing = Outgoing::body("job");
        outgoing.attributes = attributes(count);
        assert_eq!(deferred(outgoing).await.attributes.len(), count + 1);
    }
    // Where no place is left, not even for one: the message is held, and nothing is sent that the queue would refuse.
    let bench = Bench::new(QueueSettings::default(), &[WAIT]);
    let mut outgoing = Outgoing::body("job");
    outgoing.attributes = attributes(10);
    bench.queue.send(outgoing).unwrap();
    bench.run().await;
    assert_eq!(
        (
            bench.calls_of("job"),
            bench.queue.calls().send,
            bench.queue.refused().len()
        ),
        (2, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn bug_094_every_kind_of_attribute_survives_byte_for_byte() {
    let text = |data_type: &str, value: &str| Attribute {
        data_type: data_type.to_string(),
        value: AttributeValue::Text(value.to_string()),
    };
    let bytes = |data_type: &str, value: &[u8]| Attribute {
        data_type: data_type.to_string(),
        value: AttributeValue::Bytes(value.to_vec()),
    };
    let mut outgoing = Outgoing::body("job");
    outgoing.attributes = BTreeMap::from([
        ("s".to_string(), text("String", "h\u{e9} \u{1F600}\n")),
        ("n".to_string(), text("Number", "007.50")),
        ("l".to_string(), text("Number.int", "7")),
        ("b".to_string(), bytes("Binary", &[0, 159, 146, 150])),
        ("c".to_string(), bytes("Binary.gif", &[71, 73, 70])),
    ]);
    let mut copy = deferred(outgoing.clone()).await;
    copy.attributes.remove(ENVELOPE_ATTRIBUTE);
    assert_eq!(copy.attributes, outgoing.attributes);
}

#[tokio::test(start_paused = true)]
async fn bug_095_the_trace_header_stays_a_system_attribute() {
    let mut outgoing = Outgoing::body("job");
    outgoing.trace_header = Some("Root=1-5759e988-bd862e3fe1be46a994272793".to_string());
    let copy = deferred(outgoing.clone()).await;
    assert_eq!(copy.trace_header, outgoing.trace_header);
    assert_eq!(copy.attributes.keys().collect::<Vec<_>>(), [ENVELOPE_ATTRIBUTE]);
}

#[test]
fn bug_096_no_receive_of_ours_could_forget_to_ask_for_attributes() {
    // The mapping's records hold every attribute and the trace header; the reader of records is typed by them.
    let sources = super::service::sources_of("crates/adjourn-aws/src");
    assert!(sources.iter().all(|(_, text)| !text.contains(".receive_message(")));
    let record = sources
        .iter()
        .find(|(path, _)| path.ends_with("lambda/record.rs"))
        .map(|(_, text)| text);
    let record = record.expect("the reader of records");
    assert!(record.contains("message_attributes") && record.contains("AWSTraceHeader"));
}
