//! The engine on one machine: HTTP jobs from a SQLite file, with nothing else installed.
//!
//! `adjourn run` is this with a command line around it. The file survives the process: what waits in it waits on.

mod provider;

use std::sync::Arc;

use adjourn_http::{Credentials, HttpHandler, HttpJob, Settings};
use adjourn_local::{NewJob, Poller, PollerOptions, State, Store};
use adjourn_worker::SystemClock;

#[tokio::test]
async fn a_refused_job_comes_back_and_is_done() -> Result<(), Box<dyn std::error::Error>> {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after-ms: 50\r\n").await?;
    let directory = tempfile::tempdir()?;
    let clock = Arc::new(SystemClock);

    // What adjourn.toml would say, and the environment that holds the credentials.
    let settings = Settings::parse(&format!(
        r#"
        [providers.shop]
        base_url = "{url}"
        credential = {{ header = "Authorization", prefix = "Bearer ", env = "SHOP_TOKEN" }}
        "#
    ))?;
    let credentials = Credentials::read(&settings, |name| (name == "SHOP_TOKEN").then(|| "secret".to_string()))?;
    let policy = settings.policy().clone();

    let store = Store::open(directory.path().join("adjourn.db"), clock.clone())?;
    let body = r#"{"provider":"shop","method":"PUT","path":"/orders/7","id":"order-7"}"#;
    let job = HttpJob::parse(body)?;
    job.check(&settings)?;
    let new = NewJob {
        scope_key: job.scope_key(),
        ..NewJob::new("order-7", &job.provider, body)
    };
    store.send(vec![new], false).await?;

    let worker = store
        .worker(HttpHandler::new(settings, credentials, clock)?)
        .policy(policy)
        .build();
    Poller::run(
        worker,
        store.clone(),
        PollerOptions::default().until_idle(),
        std::future::pending(),
    )
    .await?;

    // Two calls: the one that was refused, and the one that came back when the provider had said.
    assert_eq!((called.recv().await, called.recv().await), (Some(1), Some(2)));
    assert!(called.try_recv().is_err());
    let done = store.job("order-7").await?.ok_or("the job is in the file")?;
    assert_eq!(
        (done.job.state, done.job.deferrals, done.job.last_status),
        (State::Done, 1, Some(200))
    );
    Ok(())
}
