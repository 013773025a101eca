//! The ends of jobs that do not succeed: our own dead letters, and the queue's after too many receives.

use aws_sdk_sqs::types::{MessageAttributeValue, MessageSystemAttributeName};

use super::{
    deployed::{Deployed, Setup, customers, envelope, job},
    provider::{Answer, Provider},
};

#[tokio::test]
async fn a_message_that_is_no_job_ends_alone_and_untouched() {
    let provider = Provider::start(|_, _| Answer::Done).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    let poison = "{\"provider\": \"acme\", \u{1F4A9} not JSON";
    let attribute = MessageAttributeValue::builder()
        .data_type("String.x")
        .string_value("kept")
        .build()
        .unwrap();
    let call = deployed
        .account
        .sqs
        .send_message()
        .queue_url(&deployed.queue)
        .message_body(poison);
    call.message_attributes("mark", attribute).send().await.unwrap();
    deployed.send(&job("b", "/fine")).await;
    let messages = deployed.account.receive(&deployed.queue, 2).await;
    assert_eq!(deployed.invoke(&messages).await, r#"{"batchItemFailures":[]}"#);

    let dead = deployed.account.receive(&deployed.dead, 1).await.remove(0);
    let original = messages.iter().find(|message| message.body() == Some(poison)).unwrap();
    assert_eq!(dead.body(), Some(poison));
    assert_eq!(customers(&dead), customers(original));
    assert_eq!(envelope(&dead)["end"], "undecodable");
    let paths: Vec<_> = provider.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(
        paths,
        ["/fine"],
        "the neighbour is done, and nothing was called for the poison"
    );
}

#[tokio::test]
async fn a_rejected_job_ends_at_once_with_its_reason() {
    let provider = Provider::start(|_, _| Answer::Status(422)).await;
    let deployed = Deployed::new(&provider.url, Setup::default()).await;
    deployed.send(&job("order-1", "/orders")).await;
    let dead = deployed.account.receive(&deployed.dead, 1).await.remove(0);
    assert_eq!(envelope(&dead)["end"], "rejected");
    assert!(envelope(&dead)["reason"].as_str().unwrap().contains("422"));
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn a_failing_job_is_tried_as_often_as_it_may_be() {
    let provider = Provider::start(|_, _| Answer::Status(500)).await;
    let tiers = "[retry]\nmax_attempts = 3\nbackoff_ms = [1000]\n";
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            tiers,
            ..Setup::default()
        },
    )
    .await;
    deployed.send(&job("order-1", "/orders")).await;
    let dead = deployed.account.receive(&deployed.dead, 1).await.remove(0);
    assert_eq!(envelope(&dead)["end"], "failed");
    assert_eq!(provider.calls().len(), 3);
    let keys: std::collections::BTreeSet<_> = provider
        .calls()
        .into_iter()
        .map(|call| call.headers["idempotency-key"].clone())
        .collect();
    assert_eq!(keys.len(), 1, "each attempt has the same key");
}

#[tokio::test]
async fn exactly_what_stays_is_named() {
    let provider = Provider::start(|call, _| match call.path.as_str() {
        "/rejected" => Answer::Status(422),
        "/refused" => Answer::NotNow("1"),
        _ => Answer::Done,
    })
    .await;
    // Without a dead-letter queue of ours a rejected job can only stay, until the queue's own redrive takes it.
    let setup = Setup {
        mapped: false,
        dead_letters: false,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    for path in ["/done", "/rejected", "/refused"] {
        deployed.send(&job(path.trim_start_matches('/'), path)).await;
    }
    let messages = deployed.account.receive(&deployed.queue, 3).await;
    let rejected = messages
        .iter()
        .find(|message| message.body().unwrap().contains("rejected"))
        .unwrap();
    let stays = format!(
        r#"{{"batchItemFailures":[{{"itemIdentifier":"{}"}}]}}"#,
        rejected.message_id().unwrap()
    );
    assert_eq!(deployed.invoke(&messages).await, stays);
}

#[tokio::test]
async fn after_too_many_receives_the_queue_itself_gives_the_original_up() {
    let provider = Provider::start(|_, _| Answer::Status(422)).await;
    let setup = Setup {
        dead_letters: false,
        visibility_s: 1,
        max_receive_count: 3,
        timeout_s: 1,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    deployed.send(&job("order-1", "/orders")).await;
    let dead = deployed.account.receive(&deployed.dead, 1).await.remove(0);
    assert_eq!(dead.body(), Some(job("order-1", "/orders").as_str()));
    assert!(dead.message_attributes.is_none(), "the original, not a copy");
    let receives = &dead.attributes.unwrap()[&MessageSystemAttributeName::ApproximateReceiveCount];
    assert!(receives.parse::<u32>().unwrap() > 3, "{receives}");
}
