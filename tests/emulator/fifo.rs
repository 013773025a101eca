//! A FIFO queue: a wait holds the original, and the order of its group is kept.

use std::time::Duration;

use super::{
    deployed::{Deployed, Setup, job},
    provider::{Answer, Provider},
};

async fn send(deployed: &Deployed, group: &str, id: &str, path: &str) {
    let call = deployed
        .account
        .sqs
        .send_message()
        .queue_url(&deployed.queue)
        .message_body(job(id, path));
    call.message_group_id(group)
        .message_deduplication_id(id)
        .send()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_refusal_holds_its_group_in_order() {
    let provider = Provider::start(|call, before| match (call.path.as_str(), before) {
        ("/first", 0) => Answer::NotNow("3"),
        _ => Answer::Done,
    })
    .await;
    let setup = Setup {
        fifo: true,
        schedules: false,
        visibility_s: 20,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    send(&deployed, "g", "a", "/first").await;
    send(&deployed, "g", "b", "/second").await;
    let calls = provider.called(3).await;
    let paths: Vec<_> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["/first", "/first", "/second"]);
    assert!(calls[1].at >= calls[0].at + Duration::from_secs(3), "early: {calls:?}");
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
}

#[tokio::test]
async fn a_wait_that_no_hold_covers_ends_in_the_fifo_dead_letter_queue() {
    let provider = Provider::start(|_, _| Answer::NotNow("50000")).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            fifo: true,
            schedules: false,
            ..Setup::default()
        },
    )
    .await;
    send(&deployed, "g", "a", "/orders").await;
    let dead = deployed.account.receive(&deployed.dead, 1).await.remove(0);
    assert_eq!(super::deployed::envelope(&dead)["end"], "unholdable");
    assert_eq!(dead.body(), Some(job("a", "/orders").as_str()));
    let group = &dead.attributes.unwrap()[&aws_sdk_sqs::types::MessageSystemAttributeName::MessageGroupId];
    assert_eq!(group, "g");
}
