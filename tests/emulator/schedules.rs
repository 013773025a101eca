//! The schedule tier: a one-time schedule that sends a copy.

use std::time::Duration;

use adjourn_core::Timestamp;
use adjourn_worker::{Clock as _, SystemClock};
use aws_sdk_scheduler::{operation::get_schedule::GetScheduleOutput, types as scheduler};
use aws_sdk_sqs::types::{
    Message, MessageAttributeValue, MessageSystemAttributeName, MessageSystemAttributeNameForSends,
    MessageSystemAttributeValue,
};
use serde_json::Value;

use super::{
    deployed::{Deployed, GROUP, Setup, customers, envelope, job},
    provider::{Answer, Provider},
    pump,
};

fn due(schedule: &GetScheduleOutput) -> Timestamp {
    let input: Value = serde_json::from_str(schedule.target().unwrap().input().unwrap()).unwrap();
    let envelope = input["MessageAttributes"]["adjourn"]["StringValue"].as_str().unwrap();
    let envelope: Value = serde_json::from_str(envelope).unwrap();
    Timestamp::parse(envelope["due"].as_str().unwrap()).unwrap()
}

fn at(schedule: &GetScheduleOutput) -> Timestamp {
    let expression = schedule.schedule_expression().unwrap();
    let moment = expression.trim_start_matches("at(").trim_end_matches(')');
    Timestamp::parse(&format!("{moment}Z")).unwrap()
}

#[tokio::test]
async fn a_long_wait_becomes_a_schedule_that_brings_the_job_back() {
    let provider = Provider::start(|_, before| {
        if before == 0 {
            Answer::NotNow("7200")
        } else {
            Answer::Done
        }
    })
    .await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    let colour = MessageAttributeValue::builder()
        .data_type("String.colour")
        .string_value("rot, \"grün\"")
        .build();
    let call = deployed
        .account
        .sqs
        .send_message()
        .queue_url(&deployed.queue)
        .message_body(job("order-1", "/orders"));
    let header = MessageSystemAttributeValue::builder()
        .data_type("String")
        .string_value("Root=1-5759e988-bd86")
        .build();
    let call = call
        .message_group_id("tenant-1")
        .message_attributes("colour", colour.unwrap())
        .message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, header.unwrap());
    call.send().await.unwrap();
    let original = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(deployed.invoke(&original).await, r#"{"batchItemFailures":[]}"#);

    let schedules = pump::schedules(&deployed.account).await;
    let [schedule] = &schedules[..] else {
        panic!("{schedules:?}")
    };
    let refused = provider.calls()[0].at;
    assert!(
        due(schedule) >= refused + Duration::from_secs(7200),
        "due {}",
        due(schedule)
    );
    assert!(
        at(schedule) + Duration::from_secs(60) <= due(schedule),
        "a minute is left for the scheduler's precision"
    );
    assert_eq!(
        at(schedule).floor_to(Duration::from_secs(60)),
        at(schedule),
        "a full minute"
    );
    assert_eq!(schedule.group_name(), Some(GROUP));
    assert_eq!(schedule.schedule_expression_timezone(), Some("UTC"));
    assert_eq!(
        schedule.flexible_time_window().unwrap().mode(),
        &scheduler::FlexibleTimeWindowMode::Off
    );
    assert_eq!(
        schedule.action_after_completion(),
        Some(&scheduler::ActionAfterCompletion::Delete)
    );
    let dead_letters = schedule.target().unwrap().dead_letter_config().unwrap();
    assert_eq!(dead_letters.arn(), Some(deployed.unsent_arn.as_str()));

    // It fires early, which is ordinary for the scheduler and here by two hours: parked for the rest, without a call.
    pump::fire(&deployed.account, schedule).await;
    let copy = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(copy[0].body(), original[0].body());
    assert_eq!(customers(&copy[0]), customers(&original[0]));
    for name in [
        MessageSystemAttributeName::MessageGroupId,
        MessageSystemAttributeName::AwsTraceHeader,
    ] {
        let value = |message: &Message| message.attributes.as_ref().unwrap()[&name].clone();
        assert_eq!(value(&copy[0]), value(&original[0]), "{name}");
    }
    assert_eq!(deployed.invoke(&copy).await, r#"{"batchItemFailures":[]}"#);
    assert_eq!(provider.calls().len(), 1, "never early");
    let parked = pump::schedules(&deployed.account).await;
    let [parked] = &parked[..] else { panic!("{parked:?}") };
    assert!(due(parked) >= due(schedule), "no earlier than before");

    // And now when it is due, in an environment that does not remember the closed gate.
    deployed.restart().await;
    pump::fire_when_due(&deployed.account, parked, &SystemClock.now().to_string()).await;
    let copy = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(
        (&envelope(&copy[0])["sequence"], &envelope(&copy[0])["hops"]),
        (&2.into(), &1.into())
    );
    assert_eq!(deployed.invoke(&copy).await, r#"{"batchItemFailures":[]}"#);
    let calls = provider.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].headers["idempotency-key"], calls[1].headers["idempotency-key"]);
    assert!(pump::schedules(&deployed.account).await.is_empty());
}

#[tokio::test]
async fn a_repeated_step_leaves_one_schedule_and_the_later_one() {
    let provider = Provider::start(|_, before| Answer::NotNow(if before == 0 { "7200" } else { "7300" })).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    deployed.send(&job("order-1", "/orders")).await;
    let original = deployed.account.receive(&deployed.queue, 1).await;
    assert_eq!(deployed.invoke(&original).await, r#"{"batchItemFailures":[]}"#);
    let first = pump::schedules(&deployed.account).await.remove(0);
    // The reply was lost, say: the same delivery is run again in a new environment, which knows no gate.
    deployed.restart().await;
    assert_eq!(deployed.invoke(&original).await, r#"{"batchItemFailures":[]}"#);
    let schedules = pump::schedules(&deployed.account).await;
    let [second] = &schedules[..] else {
        panic!("{schedules:?}")
    };
    assert_eq!(provider.calls().len(), 2);
    assert!(due(second) > due(&first));
    assert_ne!(second.name(), first.name());
}

#[tokio::test]
async fn what_a_schedule_cannot_carry_goes_another_way() {
    let provider = Provider::start(|_, _| Answer::NotNow("7200")).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            mapped: false,
            ..Setup::default()
        },
    )
    .await;
    let body = job("order-1", "/orders").replace('7', "\"<aws.scheduler.execution-id>\"");
    deployed.send(&body).await;
    let original = deployed.account.receive(&deployed.queue, 1).await;
    assert!(
        deployed
            .invoke(&original)
            .await
            .contains(original[0].message_id().unwrap()),
        "held"
    );
    assert!(pump::schedules(&deployed.account).await.is_empty());
}
