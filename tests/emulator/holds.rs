//! The hold tier: the original stays, invisible until its moment.

use super::{
    deployed::{Deployed, Setup, job},
    provider::{Answer, Provider},
};

#[tokio::test]
async fn a_long_wait_without_schedules_is_held_and_named_as_staying() {
    let provider = Provider::start(|_, _| Answer::NotNow("3600")).await;
    let setup = Setup {
        mapped: false,
        schedules: false,
        visibility_s: 2,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    deployed.send(&job("order-1", "/orders")).await;
    let messages = deployed.account.receive(&deployed.queue, 1).await;
    let stays = format!(
        r#"{{"batchItemFailures":[{{"itemIdentifier":"{}"}}]}}"#,
        messages[0].message_id().unwrap()
    );
    assert_eq!(deployed.invoke(&messages).await, stays);
    // Its own visibility timeout of two seconds ends within this poll, and it does not come.
    assert!(deployed.account.poll(&deployed.queue, 5).await.is_empty());
    assert_eq!(deployed.account.counts(&deployed.queue).await, [0, 1, 0]);
}

#[tokio::test]
async fn the_mapping_leaves_a_held_message_hidden() {
    let provider = Provider::start(|_, _| Answer::NotNow("3600")).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            schedules: false,
            visibility_s: 12,
            ..Setup::default()
        },
    )
    .await;
    deployed.send(&job("order-1", "/orders")).await;
    provider.called(1).await;
    // The queue's own timeout ends within these polls on an empty queue; a message that was not held would be called again.
    assert!(deployed.account.poll(&deployed.dead, 15).await.is_empty());
    assert_eq!(provider.calls().len(), 1);
    assert_eq!(deployed.account.counts(&deployed.queue).await, [0, 1, 0]);
}

#[tokio::test]
async fn hops_serve_where_they_are_preferred() {
    let provider = Provider::start(|_, _| Answer::NotNow("3600")).await;
    let tiers = "[deferral]\nfallback = \"hops\"\n";
    let setup = Setup {
        mapped: false,
        schedules: false,
        tiers,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    deployed.send(&job("order-1", "/orders")).await;
    let messages = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(deployed.invoke(&messages).await, r#"{"batchItemFailures":[]}"#);
    assert_eq!(
        deployed.account.counts(&deployed.queue).await,
        [0, 1, 1],
        "the original in flight, its copy delayed"
    );
}
