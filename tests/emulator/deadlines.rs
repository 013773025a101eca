//! The end of an invocation, in time or not: a provider that hangs or a process that dies costs its own job one call and
//! nobody else anything.

use super::{
    deployed::{Deployed, Setup, envelope, job},
    provider::{Answer, Provider},
};

#[tokio::test]
async fn a_provider_that_never_answers_does_not_take_the_batch_along() {
    let provider = Provider::start(|call, _| {
        if call.path == "/silent" {
            Answer::Silence
        } else {
            Answer::Done
        }
    })
    .await;
    let setup = Setup {
        mapped: false,
        timeout_s: 8,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    deployed.send(&job("a", "/silent")).await;
    deployed.send(&job("b", "/fine")).await;
    let messages = deployed.account.receive(&deployed.queue, 2).await;
    assert_eq!(deployed.invoke(&messages).await, r#"{"batchItemFailures":[]}"#);
    let copy = deployed.account.receive(&deployed.queue, 1).await.remove(0);
    assert!(copy.body().unwrap().contains("/silent"));
    assert_eq!(
        (&envelope(&copy)["failures"], &envelope(&copy)["sequence"]),
        (&1.into(), &1.into())
    );
}

#[tokio::test]
async fn a_call_that_would_outlast_the_invocation_is_cut_in_time_to_settle_it() {
    let provider = Provider::start(|_, _| Answer::Silence).await;
    // The provider's timeout is three seconds; the invocation has three, and a part of them is kept for settling.
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            timeout_s: 3,
            ..Setup::default()
        },
    )
    .await;
    deployed.send(&job("a", "/silent")).await;
    let messages = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(deployed.invoke(&messages).await, r#"{"batchItemFailures":[]}"#);
    let copy = deployed.account.receive(&deployed.queue, 1).await.remove(0);
    assert_eq!(envelope(&copy)["failures"], 1);
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_loses_nothing_and_repeats_it_with_the_same_key() {
    let provider = Provider::start(|_, before| if before == 0 { Answer::Silence } else { Answer::Done }).await;
    let setup = Setup {
        visibility_s: 4,
        ..Setup::default()
    };
    let deployed = Deployed::new(&provider.url, setup).await;
    deployed.send(&job("a", "/orders")).await;
    provider.called(1).await;
    // New code ends the process while its call is in flight; nothing of it could be settled.
    deployed.restart().await;
    let calls = provider.called(2).await;
    assert_eq!(calls[0].headers["idempotency-key"], calls[1].headers["idempotency-key"]);
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    assert_eq!(provider.calls().len(), 2);
    assert_eq!(deployed.account.counts(&deployed.dead).await, [0, 0, 0]);
}
