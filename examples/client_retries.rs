//! A client with retries of its own: turn them off, and hand its refusal on by `?`.
//!
//! A client that retries by itself sleeps inside your worker, spends the provider's limit on calls that nobody counts, and
//! hides the moment that the provider named. So every client that a handler uses makes one attempt:
//!
//! | client | one attempt | what a refusal is |
//! | --- | --- | --- |
//! | reqwest | `.retry(reqwest::retry::never())`, and no retry middleware around it | the response's status; below |
//! | the AWS SDK for Rust | `.retry_config(RetryConfig::disabled())` on the service's config | `SdkError::ServiceError` whose raw response has status 429 or whose code is a throttling code; its raw response has the headers |
//! | async-stripe | `Client::with_strategy(RequestStrategy::Once)` | `StripeError::Stripe` with `http_status` 429; it names no time |
//!
//! The last two are mapped as reqwest is here: make a [`Signal`](adjourn_core::Signal), with the moment where the error still
//! has it, and let it become a `RateLimitError` somewhere in the error's source chain.

mod provider;

use std::{fmt, sync::Arc, time::Duration};

use adjourn_core::{RateLimitError, Timestamp};
use adjourn_http::{PlainReader, ReadResponse, Response};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, VirtualClock, Worker, fake::FakeQueue};

/// The client of one provider, as an application has it.
struct Shop {
    http: reqwest::Client,
    url: String,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
enum ShopError {
    Refused(RateLimitError),
    Http(reqwest::Error),
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shop did not take the order")
    }
}

impl std::error::Error for ShopError {
    // Where adjourn finds the refusal, however deep it is wrapped.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Http(error) => Some(error),
        }
    }
}

impl From<reqwest::Error> for ShopError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error)
    }
}

impl Shop {
    fn new(url: String, clock: Arc<dyn Clock>) -> reqwest::Result<Self> {
        // reqwest's default features bring a TLS provider; a build without them names one, once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .retry(reqwest::retry::never())
            .no_proxy()
            .build()?;
        Ok(Self { http, url, clock })
    }

    async fn order(&self, sku: &str) -> Result<(), ShopError> {
        let response = self.http.post(format!("{}/orders/{sku}", self.url)).send().await?;
        let read = Response {
            status: response.status(),
            headers: response.headers(),
            body: b"",
            received_at: self.clock.now(),
        };
        let reading = PlainReader.read("shop", &read);
        if reading.is_limited() {
            return Err(ShopError::Refused(reading.into_signal().into()));
        }
        response.error_for_status()?;
        Ok(())
    }
}

struct Orders(Shop);

impl Handler for Orders {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        // A refusal anywhere in the error's source chain puts the job off; any other error is a failure.
        self.0.order(job.body()).await?;
        Ok(Done::new())
    }
}

#[tokio::test]
async fn a_refusal_inside_a_client_s_error_puts_the_job_off_after_one_call() {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 30\r\n")
        .await
        .unwrap();
    let noon = Timestamp::parse("2026-07-10T12:00:00Z").unwrap();
    let clock = Arc::new(VirtualClock::starting_at(noon));
    let queue = FakeQueue::standard("orders", clock.clone());
    let shop = Shop::new(url, clock.clone()).unwrap();
    let worker = Worker::builder(Orders(shop), Arc::new(queue.clone()))
        .clock(clock)
        .build();
    queue.send_body("7").unwrap();

    let batch = queue.receive(10).await.unwrap();
    worker.run_batch(batch, None).await;

    assert_eq!(called.recv().await, Some(1));
    assert!(called.try_recv().is_err(), "the client made one attempt");
    let steps = queue.steps();
    let [step] = steps.as_slice() else {
        panic!("one wait was accepted: {steps:?}")
    };
    assert!(step.due >= noon + Duration::from_secs(30), "{}", step.due);
}
