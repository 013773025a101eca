//! The delay tier: a copy in the same queue, delayed by it.
//!
//! The emulator leaves system attributes out of SendMessageBatch, so that the trace header is looked at where a schedule
//! sends, and in the port's own tests.

use std::time::Duration;

use adjourn_core::Timestamp;
use aws_sdk_sqs::{
    primitives::Blob,
    types::{Message, MessageAttributeValue, MessageSystemAttributeName},
};

use super::{
    deployed::{Deployed, Setup, customers, envelope, job},
    provider::{Answer, Provider},
};

const NOTHING_STAYS: &str = r#"{"batchItemFailures":[]}"#;

#[tokio::test]
async fn a_refused_job_comes_back_when_its_provider_said_and_is_done() {
    let provider = Provider::start(|_, before| if before == 0 { Answer::NotNow("2") } else { Answer::Done }).await;
    let deployed = Deployed::new(&provider.url, Setup::default()).await;
    deployed.send(&job("order-1", "/orders")).await;
    let calls = provider.called(2).await;
    assert!(calls[1].at >= calls[0].at + Duration::from_secs(2), "early: {calls:?}");
    assert_eq!(calls[0].headers["idempotency-key"], calls[1].headers["idempotency-key"]);
    assert_eq!(calls[0].body, r#"{"sku":7}"#);
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    assert_eq!(provider.calls().len(), 2);
    assert_eq!(deployed.account.counts(&deployed.dead).await, [0, 0, 0]);
}

#[tokio::test]
async fn one_refusal_of_a_batch_leaves_its_neighbours_alone() {
    let provider = Provider::start(|call, before| match (call.path.as_str(), before) {
        ("/refused", 0) => Answer::NotNow("1"),
        _ => Answer::Done,
    })
    .await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    deployed.send(&job("a", "/refused")).await;
    deployed.send(&job("b", "/fine")).await;
    let messages = deployed.account.receive(&deployed.queue, 2).await;
    assert_eq!(deployed.invoke(&messages).await, NOTHING_STAYS);
    assert!(provider.calls().iter().any(|call| call.path == "/refused"));
}

#[tokio::test]
async fn the_copy_is_the_customer_s_message_byte_for_byte() {
    let provider = Provider::start(|_, _| Answer::NotNow("2")).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    let text = |data_type: &str, value: &str| {
        MessageAttributeValue::builder()
            .data_type(data_type)
            .string_value(value)
            .build()
            .unwrap()
    };
    let bytes: Vec<u8> = (0..=255).collect();
    let binary = |data_type: &str| {
        MessageAttributeValue::builder()
            .data_type(data_type)
            .binary_value(Blob::new(bytes.clone()))
            .build()
            .unwrap()
    };
    // Spaces and an escape that no JSON writer of ours would write: the body is kept as it came.
    let body =
        "{ \"provider\":\"acme\", \"method\":\"POST\",\"path\":\"/orders\", \"bodyText\":\"na\\u00efve \u{1F600}\" }";
    deployed
        .account
        .sqs
        .send_message()
        .queue_url(&deployed.queue)
        .message_body(body)
        .message_group_id("tenant-1")
        .message_attributes("text", text("String", "zażółć"))
        .message_attributes("number", text("Number", "1.50"))
        .message_attributes("labelled", text("Number.int", "007"))
        .message_attributes("custom", text("String.colour", "red"))
        .message_attributes("bytes", binary("Binary"))
        .message_attributes("picture", binary("Binary.png"))
        .send()
        .await
        .unwrap();
    let original = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(deployed.invoke(&original).await, NOTHING_STAYS);
    let refused = provider.calls().remove(0);

    let copy = deployed.account.receive(&deployed.queue, 1).await.remove(0);
    assert_eq!(copy.body(), Some(body));
    assert_eq!(customers(&copy), customers(&original[0]));
    let group =
        |message: &Message| message.attributes.as_ref().unwrap()[&MessageSystemAttributeName::MessageGroupId].clone();
    assert_eq!(group(&copy), group(&original[0]));
    let envelope = envelope(&copy);
    assert_eq!((&envelope["sequence"], &envelope["deferrals"]), (&1.into(), &1.into()));
    assert_eq!(envelope["id"], original[0].message_id().unwrap());
    let due = Timestamp::parse(envelope["due"].as_str().unwrap()).unwrap();
    assert!(
        due >= refused.at + Duration::from_secs(2),
        "due {due}, refused at {}",
        refused.at
    );
}

#[tokio::test]
async fn more_deferrals_than_lambda_allows_a_loop_by_default_all_arrive() {
    const REFUSALS: usize = 18;
    let refuse = |_: &super::provider::Call, before| {
        if before < REFUSALS {
            Answer::NotNow("1")
        } else {
            Answer::Done
        }
    };
    let provider = Provider::start(refuse).await;
    let deployed = Deployed::new(&provider.url, Setup::default()).await;
    deployed.send(&job("order-1", "/orders")).await;
    let calls = provider.called(REFUSALS + 1).await;
    for pair in calls.windows(2) {
        assert!(pair[1].at >= pair[0].at + Duration::from_secs(1), "early: {pair:?}");
    }
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    assert_eq!(deployed.account.counts(&deployed.dead).await, [0, 0, 0]);
}

#[tokio::test]
async fn many_jobs_through_a_provider_that_refuses_each_once_are_each_done_once() {
    const JOBS: usize = 40;
    let provider = Provider::start(|_, before| if before == 0 { Answer::NotNow("1") } else { Answer::Done }).await;
    let deployed = Deployed::new(&provider.url, Setup::default()).await;
    for n in 0..JOBS {
        deployed
            .send(&job(&format!("order-{n}"), &format!("/orders/{n}")))
            .await;
    }
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    for n in 0..JOBS {
        let path = format!("/orders/{n}");
        let calls: Vec<_> = provider.calls().into_iter().filter(|call| call.path == path).collect();
        assert_eq!(calls.len(), 2, "{path}: {calls:?}");
    }
    assert_eq!(deployed.account.counts(&deployed.dead).await, [0, 0, 0]);
}
