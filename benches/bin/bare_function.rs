//! What a team would write without adjourn: the same SDK clients, the same HTTP calls, an empty list of failures. It reads
//! no limit, keeps no wait, and is what the worker function is compared with.

use std::{sync::Arc, time::Duration};

use aws_config::{BehaviorVersion, retry::RetryConfig, timeout::TimeoutConfig};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

/// A job, as far as this function needs it.
#[derive(Deserialize)]
struct Job {
    id: String,
    path: String,
    body: Box<RawValue>,
}

struct Calls {
    client: reqwest::Client,
    base_url: String,
    /// Held as a real function would hold them.
    _sqs: aws_sdk_sqs::Client,
    _scheduler: aws_sdk_scheduler::Client,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    #[expect(clippy::disallowed_methods, reason = "this is where this program starts")]
    let base_url = std::env::var("BASE_URL")?;
    let http = Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .pool_idle_timeout(Duration::from_secs(20))
        .build_https();
    let loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .timeout_config(
            TimeoutConfig::builder()
                .operation_timeout(Duration::from_secs(1))
                .build(),
        )
        .retry_config(RetryConfig::standard().with_max_attempts(2));
    let config = Box::pin(loader.load()).await;
    // Whoever was first stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let calls = Arc::new(Calls {
        client: reqwest::Client::builder().no_proxy().build()?,
        base_url,
        _sqs: aws_sdk_sqs::Client::new(&config),
        _scheduler: aws_sdk_scheduler::Client::new(&config),
    });
    let answer = move |event: LambdaEvent<SqsEvent>| answer(Arc::clone(&calls), event.payload);
    Box::pin(lambda_runtime::run(service_fn(answer))).await
}

async fn answer(calls: Arc<Calls>, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
    let mut running = JoinSet::new();
    for record in event.records {
        let calls = Arc::clone(&calls);
        running.spawn(async move { call(&calls, &record.body.unwrap_or_default()).await });
    }
    while let Some(called) = running.join_next().await {
        called??;
    }
    Ok(SqsBatchResponse::default())
}

async fn call(calls: &Calls, body: &str) -> Result<(), Error> {
    let job: Job = serde_json::from_str(body)?;
    let request = calls
        .client
        .post(format!("{}{}", calls.base_url, job.path))
        .header("content-type", "application/json")
        .header("idempotency-key", job.id)
        .timeout(Duration::from_secs(10))
        .body(job.body.get().to_string());
    let response = request.send().await?.error_for_status()?;
    response.bytes().await?;
    Ok(())
}
