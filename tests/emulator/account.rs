//! An account of a test's own on the emulator, with clients that speak for it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::{
    config::Credentials,
    types::{Message, MessageSystemAttributeName, QueueAttributeName},
};

pub(crate) const REGION: &str = "us-east-1";

/// How long something that has to happen may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) config: SdkConfig,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) scheduler: aws_sdk_scheduler::Client,
}

/// What `make test` sets up and names in the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "where this suite starts: the emulator and the binary are named there"
)]
pub(crate) fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `make test`, which sets up the emulator"))
}

impl Account {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The process is in it too, so that a second run against the same emulator starts from nothing.
        let number = u64::from(std::process::id()) * 1000 + COUNT.fetch_add(1, Ordering::SeqCst);
        let id = format!("{number:012}");
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .endpoint_url(given("ADJOURN_TEST_EMULATOR"))
            .region(Region::new(REGION))
            .credentials_provider(Credentials::new(&id, "x", None, None, "test"))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .load()
            .await;
        let (sqs, scheduler) = (
            aws_sdk_sqs::Client::new(&config),
            aws_sdk_scheduler::Client::new(&config),
        );
        Self {
            id,
            config,
            sqs,
            scheduler,
        }
    }

    pub(crate) async fn queue(&self, name: &str, attributes: &[(QueueAttributeName, String)]) -> (String, String) {
        let mut call = self.sqs.create_queue().queue_name(name);
        for (name, value) in attributes {
            call = call.attributes(name.clone(), value);
        }
        let url = call.send().await.unwrap().queue_url.unwrap();
        let arn = format!("arn:aws:sqs:{REGION}:{}:{name}", self.id);
        (url, arn)
    }

    /// Receives until there are `count` messages, each with all that is on it. They stay in flight.
    pub(crate) async fn receive(&self, url: &str, count: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        let all = async {
            while messages.len() < count {
                messages.extend(self.poll(url, 20).await);
            }
        };
        let timely = tokio::time::timeout(PATIENCE, all).await.is_ok();
        assert!(
            timely && messages.len() == count,
            "{} of {count} messages came to {url}",
            messages.len()
        );
        messages
    }

    /// One long poll.
    pub(crate) async fn poll(&self, url: &str, seconds: i32) -> Vec<Message> {
        self.sqs
            .receive_message()
            .queue_url(url)
            .wait_time_seconds(seconds)
            .max_number_of_messages(10)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send()
            .await
            .unwrap()
            .messages
            .unwrap_or_default()
    }

    /// Visible, in flight, delayed.
    pub(crate) async fn counts(&self, url: &str) -> [u64; 3] {
        use QueueAttributeName as Name;
        let names = [
            Name::ApproximateNumberOfMessages,
            Name::ApproximateNumberOfMessagesNotVisible,
            Name::ApproximateNumberOfMessagesDelayed,
        ];
        let call = self
            .sqs
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(Name::All);
        let attributes = call.send().await.unwrap().attributes.unwrap();
        names.map(|name| attributes[&name].parse().unwrap())
    }

    /// Waits until a queue has these counts. The pause between two looks is a long poll on a queue that stays empty.
    pub(crate) async fn settles(&self, url: &str, counts: [u64; 3]) {
        let (quiet, _) = self.queue("quiet", &[]).await;
        let settled = async {
            while self.counts(url).await != counts {
                assert!(self.poll(&quiet, 1).await.is_empty());
            }
        };
        if tokio::time::timeout(PATIENCE, settled).await.is_err() {
            panic!(
                "{url} has {:?} visible, in flight, delayed; expected {counts:?}",
                self.counts(url).await
            );
        }
    }
}
