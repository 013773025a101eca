//! The end of an invocation: a provider that hangs costs its own job one attempt and nobody else anything.

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
