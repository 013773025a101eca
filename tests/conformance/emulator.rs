//! The suites on the SQS and the Scheduler of an emulator. `make test` starts it; without it these tests fail and say so.
//!
//! Its clock is the machine's, so what has to pass is a second or two, waited for by long polling.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use adjourn_aws::{Clients, Environment, EventBridgeScheduler, Settings, SqsQueue};
use adjourn_core::Timestamp;
use adjourn_worker::{
    Attribute, AttributeValue, Clock, Message, SystemClock,
    fake::Outgoing,
    port::{Queue, Scheduler},
};
use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_scheduler::types::{FlexibleTimeWindow, FlexibleTimeWindowMode, Target};
use aws_sdk_sqs::{
    config::Credentials,
    types::{Message as Received, MessageSystemAttributeName as System, QueueAttributeName},
};

use super::{ScheduleSite, Site};

const REGION: &str = "us-east-1";
const GROUP: &str = "adjourn";

pub(crate) struct Emulated {
    sqs: aws_sdk_sqs::Client,
    schedules: aws_sdk_scheduler::Client,
    url: String,
    dead_url: String,
    queue: SqsQueue,
    scheduler: EventBridgeScheduler,
}

#[expect(
    clippy::disallowed_methods,
    reason = "where these suites start: the emulator is named by what started it"
)]
fn endpoint() -> String {
    std::env::var("ADJOURN_TEST_EMULATOR")
        .expect("ADJOURN_TEST_EMULATOR is not set: run `make test`, which starts an emulator")
}

/// An account of this test's own, since an access key of twelve digits is one.
fn account() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("7{:07}{count:04}", std::process::id() % 10_000_000)
}

async fn site(_case: &str) -> Emulated {
    let account = account();
    let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .endpoint_url(endpoint())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new(&account, "x", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .load()
        .await;
    let sqs = aws_sdk_sqs::Client::new(&config);
    let schedules = aws_sdk_scheduler::Client::new(&config);
    let made = sqs
        .create_queue()
        .queue_name("jobs")
        .attributes(QueueAttributeName::VisibilityTimeout, "180");
    let url = made.send().await.unwrap().queue_url.unwrap();
    let dead_url = sqs
        .create_queue()
        .queue_name("dead")
        .send()
        .await
        .unwrap()
        .queue_url
        .unwrap();
    schedules.create_schedule_group().name(GROUP).send().await.unwrap();
    let environment = Environment::new([
        ("ADJOURN_QUEUE_URL", url.clone()),
        ("ADJOURN_DLQ_URL", dead_url.clone()),
        ("ADJOURN_VISIBILITY_S", "180".to_string()),
        ("ADJOURN_RETENTION_S", "345600".to_string()),
        ("ADJOURN_SCHEDULE_GROUP", GROUP.to_string()),
        (
            "ADJOURN_SCHEDULE_ROLE_ARN",
            format!("arn:aws:iam::{account}:role/schedules"),
        ),
        (
            "ADJOURN_SCHEDULE_DLQ_ARN",
            format!("arn:aws:sqs:{REGION}:{account}:unsent"),
        ),
    ]);
    let settings = Settings::read(&environment).unwrap();
    let clients = Clients::of(&config);
    Emulated {
        queue: SqsQueue::new(&clients, settings.queue.clone()),
        scheduler: EventBridgeScheduler::new(
            &clients,
            settings.schedules.clone().unwrap(),
            &settings.queue,
            Arc::new(SystemClock),
        ),
        sqs,
        schedules,
        url,
        dead_url,
    }
}

impl Emulated {
    async fn poll(&self, url: &str, wait: i32) -> Vec<Message> {
        let call = self
            .sqs
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .wait_time_seconds(wait)
            .message_attribute_names("All")
            .message_system_attribute_names(System::All);
        let received = call.send().await.unwrap().messages.unwrap_or_default();
        received.into_iter().map(message).collect()
    }
}

/// A received message with everything on it.
fn message(received: Received) -> Message {
    let system = received.attributes.unwrap_or_default();
    let moment = |name: &System| Timestamp::from_unix_ms(system[name].parse().unwrap());
    let attributes: BTreeMap<String, Attribute> = received
        .message_attributes
        .unwrap_or_default()
        .into_iter()
        .map(|(name, attribute)| {
            let value = match attribute.binary_value {
                Some(bytes) => AttributeValue::Bytes(bytes.into_inner()),
                None => AttributeValue::Text(attribute.string_value.unwrap()),
            };
            let data_type = attribute.data_type;
            (name, Attribute { data_type, value })
        })
        .collect();
    Message {
        id: received.message_id.unwrap(),
        receipt: received.receipt_handle.unwrap(),
        queue: "jobs".to_string(),
        body: received.body.unwrap(),
        attributes,
        group: system.get(&System::MessageGroupId).cloned(),
        deduplication_id: system.get(&System::MessageDeduplicationId).cloned(),
        trace_header: system.get(&System::AwsTraceHeader).cloned(),
        sent_at: moment(&System::SentTimestamp),
        first_received_at: moment(&System::ApproximateFirstReceiveTimestamp),
        received_at: SystemClock.now(),
        receive_count: system[&System::ApproximateReceiveCount].parse().unwrap(),
    }
}

#[async_trait]
impl Site for Emulated {
    fn queue(&self) -> Arc<dyn Queue> {
        Arc::new(self.queue.clone())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn send(&self, outgoing: Outgoing) {
        let sent = adjourn_aws::Outgoing {
            body: outgoing.body,
            attributes: outgoing.attributes,
            group: outgoing.group,
            deduplication_id: outgoing.deduplication_id,
            trace_header: outgoing.trace_header,
        };
        self.queue.send(vec![(sent, Duration::ZERO)]).await.remove(0).unwrap();
    }

    async fn receive(&self) -> Vec<Message> {
        self.poll(&self.url, 0).await
    }

    async fn next(&self, within: Duration) -> Vec<Message> {
        let seconds = i32::try_from(within.as_secs().clamp(1, 20)).unwrap();
        self.poll(&self.url, seconds).await
    }

    fn keeps_trace_headers(&self) -> bool {
        // It leaves them out of SendMessageBatch. That they are asked for is a test of the port's own.
        false
    }

    async fn dead_letters(&self) -> Vec<String> {
        let letters = self.poll(&self.dead_url, 0).await;
        letters
            .iter()
            .map(|letter| letter.envelope_text().unwrap_or_default().to_string())
            .collect()
    }
}

#[async_trait]
impl ScheduleSite for Emulated {
    fn scheduler(&self) -> Arc<dyn Scheduler> {
        Arc::new(self.scheduler.clone())
    }

    async fn schedules(&self) -> Vec<(String, Timestamp)> {
        let listed = self.schedules.list_schedules().group_name(GROUP).send().await.unwrap();
        let mut found = Vec::new();
        for schedule in listed.schedules {
            let name = schedule.name.unwrap();
            let read = self
                .schedules
                .get_schedule()
                .group_name(GROUP)
                .name(&name)
                .send()
                .await
                .unwrap();
            let expression = read.schedule_expression.unwrap();
            let at = expression.trim_start_matches("at(").trim_end_matches(')');
            found.push((name, Timestamp::parse(&format!("{at}Z")).unwrap()));
        }
        found
    }

    async fn occupy(&self, name: &str, at: Timestamp) -> bool {
        let target = Target::builder()
            .arn("arn:aws:lambda:us-east-1:111122223333:function:theirs")
            .role_arn("arn:aws:iam::111122223333:role/theirs");
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off);
        let made = self
            .schedules
            .create_schedule()
            .group_name(GROUP)
            .name(name)
            .schedule_expression(format!("at({})", &at.to_string()[..19]))
            .flexible_time_window(window.build().unwrap())
            .target(target.build().unwrap());
        made.send().await.unwrap();
        true
    }

    fn fires(&self) -> bool {
        false
    }
}

suite!(
    queue,
    [],
    crate::conformance::emulator::site,
    crate::conformance::queue,
    [
        a_copy_is_accepted_by_its_step_and_arrives_with_it,
        a_copy_is_the_customers_message,
        a_delayed_copy_comes_after_its_delay,
        a_held_message_is_hidden_and_comes_back_as_itself,
        a_hold_of_nothing_gives_the_message_back_at_once,
        a_dead_letter_says_why,
        what_is_deleted_is_gone_and_deleting_again_harms_nothing,
        a_hand_off_is_a_copy_and_then_a_deletion,
        more_than_a_batch_is_answered_in_its_order,
        nothing_is_asked_and_nothing_is_answered,
        one_entry_that_is_refused_hurts_no_other,
        what_sqs_refuses_is_refused_here,
        an_empty_attribute_keeps_no_copy_from_being_sent,
    ]
);

suite!(
    schedules,
    [],
    crate::conformance::emulator::site,
    crate::conformance::scheduler,
    [
        a_schedule_is_accepted_by_its_step,
        making_the_same_again_is_a_success_and_makes_no_second,
        one_of_ours_that_is_later_serves_too,
        one_of_ours_that_is_earlier_is_replaced,
        a_name_that_is_somebody_elses_is_refused,
        a_moment_that_is_not_in_the_future_is_refused,
        what_a_scheduler_would_change_is_not_carried,
    ]
);
