//! The SDK's clients, with their behaviour, time limits and retries set by hand.

use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use crate::settings::{Environment, Mistake, Mistakes, QueueSettings};

/// How long calls may take and how often they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A call with its retries.
    pub operation: Duration,
    /// One try.
    pub attempt: Duration,
    /// Setting up a connection.
    pub connect: Duration,
    /// How many tries in all.
    pub attempts: u32,
}

impl Patience {
    /// A worker's: a call is over within half of the two seconds that are kept back for settling. A try that hangs leaves
    /// time for a second one; a lost reply is answered by the same step being sent again, which its identity makes plain.
    pub const WORKER: Self = Self {
        operation: Duration::from_millis(1000),
        attempt: Duration::from_millis(600),
        connect: Duration::from_millis(500),
        attempts: 2,
    };

    /// A person's, at a prompt and perhaps far from the region.
    pub const OPERATOR: Self = Self {
        operation: Duration::from_secs(20),
        attempt: Duration::from_secs(6),
        connect: Duration::from_secs(3),
        attempts: 3,
    };
}

/// Clients of SQS and EventBridge Scheduler over one connection pool.
#[derive(Clone, Debug)]
pub struct Clients {
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) scheduler: aws_sdk_scheduler::Client,
}

impl Clients {
    /// Clients as the process's environment says: credentials, `AWS_REGION` (else the region of the queue's URL) and
    /// `AWS_ENDPOINT_URL`. Makes no call.
    ///
    /// # Errors
    /// When no region is named.
    pub async fn connect(
        environment: &Environment,
        queue: &QueueSettings,
        patience: Patience,
    ) -> Result<Self, Mistakes> {
        Self::connect_by(environment, queue, patience, https()).await
    }

    async fn connect_by(
        environment: &Environment,
        queue: &QueueSettings,
        patience: Patience,
        http: SharedHttpClient,
    ) -> Result<Self, Mistakes> {
        let named = environment
            .get("AWS_REGION")
            .or_else(|| environment.get("AWS_DEFAULT_REGION"))
            .map(str::to_string);
        let Some(region) = named.or_else(|| queue.region()) else {
            return Err(Mistakes(vec![Mistake {
                setting: "AWS_REGION",
                found: None,
                allowed: "a region, as in eu-west-1".to_string(),
            }]));
        };
        let loader = aws_config::defaults(behaviour()).region(Region::new(region));
        // Boxed: the SDK's future nests so deep that a caller's `main` would reach the compiler's limit.
        Ok(Self::of(&Box::pin(limited(loader, patience, http).load()).await))
    }

    /// Clients of a configuration that the caller made. Its time limits and retries are the caller's too: see
    /// [`Patience::WORKER`] for what a worker can afford.
    #[must_use]
    pub fn of(config: &SdkConfig) -> Self {
        Self {
            sqs: aws_sdk_sqs::Client::new(config),
            scheduler: aws_sdk_scheduler::Client::new(config),
        }
    }
}

/// Pinned: `latest()` changes what a call does with the next update of the SDK.
fn behaviour() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}

fn limited(loader: ConfigLoader, patience: Patience, http: SharedHttpClient) -> ConfigLoader {
    loader
        .http_client(http)
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(patience.connect)
                .operation_attempt_timeout(patience.attempt)
                .operation_timeout(patience.operation)
                .build(),
        )
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(patience.attempts)
                .with_initial_backoff(Duration::from_millis(50))
                .with_max_backoff(Duration::from_millis(500)),
        )
}

/// One TLS stack for the whole binary. An idle connection is given up before a load balancer does it for us: a sandbox
/// that was frozen would find it dead.
fn https() -> SharedHttpClient {
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .pool_idle_timeout(Duration::from_secs(20))
        .build_https()
}

#[cfg(test)]
pub(crate) mod fakes {
    //! Clients that are answered by a function, or never.

    use super::*;
    use aws_sdk_sqs::config::Credentials;

    pub(crate) async fn clients(patience: Patience, http: SharedHttpClient) -> Clients {
        let loader = aws_config::defaults(behaviour())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("111122223333", "x", None, None, "test"));
        Clients::of(&limited(loader, patience, http).load().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use adjourn_worker::{Clock as _, VirtualClock};
    use aws_smithy_http_client::test_util::{NeverClient, infallible_client_fn};
    use aws_smithy_runtime_api::shared::IntoShared as _;
    use aws_smithy_types::body::SdkBody;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";

    fn answering(status: u16, body: &'static str) -> (SharedHttpClient, Arc<AtomicU32>) {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let client = infallible_client_fn(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            http::Response::builder()
                .status(status)
                .body(SdkBody::from(body))
                .unwrap()
        });
        (client, tries)
    }

    async fn count(clients: &Clients) -> Result<(), Failure> {
        let call = clients.sqs.get_queue_attributes().queue_url(URL).send().await;
        call.map(drop)
            .map_err(|error| Failure::of_call("GetQueueAttributes", error))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_error_is_tried_twice_and_no_more() {
        let (http, tries) = answering(503, "{}");
        let error = count(&fakes::clients(Patience::WORKER, http).await).await.unwrap_err();
        assert_eq!(tries.load(Ordering::SeqCst), 2);
        assert!(adjourn_worker::port::PortError::from(error).is_transient());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_tried_again() {
        let (http, tries) = answering(
            400,
            r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}"#,
        );
        let error = count(&fakes::clients(Patience::WORKER, http).await).await.unwrap_err();
        assert_eq!(tries.load(Ordering::SeqCst), 1);
        assert!(!adjourn_worker::port::PortError::from(error).is_transient());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_over_within_half_of_the_settling_reserve() {
        let never = NeverClient::new();
        let clients = fakes::clients(Patience::WORKER, never.clone().into_shared()).await;
        let started = VirtualClock::starting_at(adjourn_core::Timestamp::EPOCH);
        let error = count(&clients).await.unwrap_err();
        let took = started.now().since(adjourn_core::Timestamp::EPOCH);
        assert!(took <= Duration::from_millis(1001), "{took:?}");
        assert_eq!(never.num_calls(), 2, "the attempt timeout leaves room for a second try");
        assert!(
            adjourn_worker::port::PortError::from(error).is_transient(),
            "it may have been done"
        );
    }

    #[tokio::test]
    async fn nothing_is_called_before_the_first_message() {
        let (http, tries) = answering(200, "{}");
        let queue = QueueSettings::for_operator(&Environment::new([("ADJOURN_QUEUE_URL", URL)])).unwrap();
        Clients::connect_by(&Environment::default(), &queue, Patience::WORKER, http)
            .await
            .unwrap();
        assert_eq!(tries.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_queue_url_without_a_region_needs_one_named() {
        let queue =
            QueueSettings::for_operator(&Environment::new([("ADJOURN_QUEUE_URL", "http://127.0.0.1:1/1/jobs")]));
        let error = Clients::connect(&Environment::default(), &queue.unwrap(), Patience::WORKER)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("AWS_REGION: missing"));
    }
}
