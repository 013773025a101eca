//! A generated client that sends by a tower service: three lines give it retries, a rate and refusals that a worker understands.
//!
//! Whatever else is a service is wrapped in the same way: hyper's client, or an SDK whose builder takes a layer. Turn off what it
//! retries by itself: docs/clients.md.

mod provider;

use std::{sync::Arc, time::Duration};

use adjourn_core::RateLimitError;
use adjourn_http::{
    Allowance, Rate, RateBudget,
    layer::{CallError, FollowRedirectLayer, RateLimitLayer, RetryLayer},
};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, SystemClock, VirtualClock, Worker, fake::FakeQueue};
use tower::{Service, ServiceBuilder, ServiceExt};

/// As a generator writes it: it knows the API's operations, and sends by whatever it is given.
mod generated {
    use super::{CallError, Service, ServiceExt};

    #[derive(Clone)]
    pub(super) struct ShopClient<S> {
        pub(super) base_url: String,
        pub(super) service: S,
    }

    #[derive(Debug)]
    pub(super) enum Error {
        Transport(CallError),
        Status(u16),
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self {
                Self::Transport(_) => f.write_str("the shop could not be asked"),
                Self::Status(status) => write!(f, "the shop answered {status}"),
            }
        }
    }

    impl std::error::Error for Error {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            match self {
                Self::Transport(error) => Some(error),
                Self::Status(_) => None,
            }
        }
    }

    impl<S> ShopClient<S>
    where
        S: Service<reqwest::Request, Response = reqwest::Response, Error = CallError> + Clone,
    {
        /// GET /orders/{sku}
        pub(super) async fn get_order(&self, sku: &str) -> Result<String, Error> {
            let url = format!("{}/orders/{sku}", self.base_url).parse();
            let request = reqwest::Request::new(reqwest::Method::GET, url.map_err(|_| Error::Status(0))?);
            let response = self.service.clone().oneshot(request).await.map_err(Error::Transport)?;
            if !response.status().is_success() {
                return Err(Error::Status(response.status().as_u16()));
            }
            response.text().await.map_err(|_| Error::Status(0))
        }
    }
}

use generated::ShopClient;

/// The client with a retry, and one turn of the rate for each attempt.
fn shop(
    base_url: String,
) -> reqwest::Result<
    ShopClient<
        impl Service<reqwest::Request, Response = reqwest::Response, Error = CallError, Future: Send> + Clone + Sync,
    >,
> {
    // reqwest's default features bring a TLS provider; a build without them names one, once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()?;
    // Redirects are followed above the rate, so that each hop takes a turn of its own.
    let service = ServiceBuilder::new()
        .layer(FollowRedirectLayer::new())
        .layer(RetryLayer::new("shop").timeout(Duration::from_secs(5)))
        .layer(RateLimitLayer::new("shop", RateBudget::new(Rate::per_second(10))))
        .service(client);
    Ok(ShopClient { base_url, service })
}

#[tokio::test(start_paused = true)]
async fn a_front_end_waits_a_little_and_answers_its_caller() {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 2\r\n")
        .await
        .unwrap();
    let shop = shop(url).unwrap();
    // Around each request that the front end serves.
    let order = Allowance::front_end().scope(shop.get_order("7")).await.unwrap();
    assert_eq!(order, "");
    assert_eq!((called.recv().await, called.recv().await), (Some(1), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_moved_is_asked_for_where_it_is_now() {
    let (url, mut called) = provider::refusing_once("307 Temporary Redirect\r\nlocation: /archive/7\r\n")
        .await
        .unwrap();
    let shop = shop(url).unwrap();
    Allowance::front_end().scope(shop.get_order("7")).await.unwrap();
    assert_eq!((called.recv().await, called.recv().await), (Some(1), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_front_end_hands_on_what_would_take_too_long() {
    let (url, _called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 600\r\n")
        .await
        .unwrap();
    let shop = shop(url).unwrap();
    let error = Allowance::front_end().scope(shop.get_order("7")).await.unwrap_err();
    let generated::Error::Transport(CallError::Refused(refusal)) = &error else {
        panic!("{error}")
    };
    let body = serde_json::to_value(refusal).unwrap();
    assert_eq!(
        (body["status"].as_u64(), body["waitMs"].as_u64()),
        (Some(429), Some(600_000))
    );
    assert_eq!((&body["provider"], &body["retryable"]), (&"shop".into(), &true.into()));
    assert_eq!(
        refusal.wait(),
        Some(Duration::from_secs(600)),
        "{}",
        RateLimitError::clone(refusal)
    );
}

struct Orders<S>(ShopClient<S>);

impl<S> Handler for Orders<S>
where
    S: Service<reqwest::Request, Response = reqwest::Response, Error = CallError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        // In a worker nothing is waited for: a refusal anywhere in the error's source chain puts the job off.
        self.0.get_order(job.body()).await?;
        Ok(Done::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_puts_the_job_off_after_one_call() {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 2\r\n")
        .await
        .unwrap();
    // The layers read the machine's clock, so the worker's begins there, too.
    let clock = Arc::new(VirtualClock::starting_at(SystemClock.now()));
    let queue = FakeQueue::standard("orders", clock.clone());
    let worker = Worker::builder(Orders(shop(url).unwrap()), Arc::new(queue.clone()))
        .clock(clock.clone())
        .build();
    queue.send_body("7").unwrap();
    let batch = queue.receive(10).await.unwrap();
    worker.run_batch(batch, None).await;

    assert_eq!(called.recv().await, Some(1));
    assert!(called.try_recv().is_err(), "one call");
    let steps = queue.steps();
    let [step] = steps.as_slice() else {
        panic!("one wait was accepted: {steps:?}")
    };
    assert!(step.due >= clock.now() + Duration::from_secs(1), "{}", step.due);
}
