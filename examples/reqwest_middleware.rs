//! A generated client that takes a `reqwest_middleware::ClientWithMiddleware`, as openapi-generator's clients do: the same layers
//! are its middleware.

mod provider;

use std::sync::Arc;

use adjourn_http::{
    Allowance, RateBudget,
    layer::{FollowRedirectLayer, RateLimitLayer, RetryLayer},
};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, SystemClock, VirtualClock, Worker, fake::FakeQueue};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

/// As a generator writes it.
struct ShopApi {
    base_path: String,
    client: ClientWithMiddleware,
}

impl ShopApi {
    /// POST /orders
    async fn add_order(&self, sku: &str) -> Result<String, reqwest_middleware::Error> {
        let url = format!("{}/orders", self.base_path);
        let request = self
            .client
            .post(url)
            .header("idempotency-key", sku)
            .body(sku.to_string());
        Ok(request.send().await?.error_for_status()?.text().await?)
    }
}

fn shop(base_path: String) -> reqwest::Result<ShopApi> {
    // reqwest's default features bring a TLS provider; a build without them names one, once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()?;
    // No `RetryTransientMiddleware` beside these. Redirects are followed above the rate, so that each hop takes a turn of its own.
    let client = ClientBuilder::new(client)
        .with(FollowRedirectLayer::new())
        .with(RetryLayer::new("shop"))
        .with(RateLimitLayer::new("shop", RateBudget::unknown().max_in_flight(8)))
        .build();
    Ok(ShopApi { base_path, client })
}

#[tokio::test(start_paused = true)]
async fn a_script_waits_as_long_as_it_says() {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 45\r\n")
        .await
        .unwrap();
    let shop = shop(url).unwrap();
    let an_hour = std::time::Duration::from_secs(3600);
    Allowance::of(an_hour).scope(shop.add_order("7")).await.unwrap();
    assert_eq!((called.recv().await, called.recv().await), (Some(1), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn an_order_is_taken_where_the_shop_sends_it() {
    let (url, mut called) = provider::refusing_once("308 Permanent Redirect\r\nlocation: /v2/orders\r\n")
        .await
        .unwrap();
    let shop = shop(url).unwrap();
    Allowance::front_end().scope(shop.add_order("7")).await.unwrap();
    assert_eq!((called.recv().await, called.recv().await), (Some(1), Some(2)));
}

struct Orders(ShopApi);

impl Handler for Orders {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        self.0.add_order(job.body()).await?;
        Ok(Done::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_s_refused_job_comes_back_when_the_provider_said() {
    let (url, mut called) = provider::refusing_once("429 Too Many Requests\r\nretry-after: 45\r\n")
        .await
        .unwrap();
    // The layers read the machine's clock, so the worker's begins there, too.
    let clock = Arc::new(VirtualClock::starting_at(SystemClock.now()));
    let queue = FakeQueue::standard("orders", clock.clone());
    let worker = Worker::builder(Orders(shop(url).unwrap()), Arc::new(queue.clone()))
        .clock(clock.clone())
        .build();
    queue.send_body("7").unwrap();
    for calls in 1..=2 {
        let batch = queue.receive(10).await.unwrap();
        assert_eq!(batch.len(), 1, "{calls}");
        worker.run_batch(batch.clone(), None).await;
        queue.respond(&batch, &[]).await.unwrap();
        assert_eq!(called.recv().await, Some(calls));
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
    }
    assert!(
        queue.messages().is_empty() && queue.dead_letters().is_empty(),
        "done after two calls"
    );
}
