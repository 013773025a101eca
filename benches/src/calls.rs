//! The calls without a queue: what a loop over a list of orders would do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use crate::{
    Failure,
    jobs::{BODY, CONCURRENCY, PATH, id},
};

/// A plain client.
pub(crate) fn client() -> Result<reqwest::Client, Failure> {
    client_named(None)
}

/// A plain client, which may say who it is.
pub(crate) fn client_named(name: Option<&str>) -> Result<reqwest::Client, Failure> {
    // Whoever was first stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy();
    let client = match name {
        Some(name) => client.user_agent(name),
        None => client,
    };
    Ok(client.build()?)
}

/// Makes `count` calls, as many at a time as a worker does.
pub(crate) async fn make(client: &reqwest::Client, url: &str, count: u32) -> Result<(), Failure> {
    let next = Arc::new(AtomicU32::new(0));
    let mut running = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, target, next) = (client.clone(), format!("{url}{PATH}"), Arc::clone(&next));
        running.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<(), Failure>(());
                }
                let request = client
                    .post(target.as_str())
                    .header("content-type", "application/json")
                    .header("idempotency-key", id(number))
                    .timeout(Duration::from_secs(10))
                    .body(BODY);
                request.send().await?.error_for_status()?.bytes().await?;
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}
