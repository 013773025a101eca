//! Fires schedules, which the emulator stores and never fires when their target is universal.
//!
//! It does what EventBridge Scheduler does: reads the schedule, takes its Input as the request of the target's API call, makes
//! that call, and deletes the schedule. The Input is read strictly, by a definition of SendMessage of its own.

use std::collections::BTreeMap;

use aws_sdk_scheduler::operation::get_schedule::GetScheduleOutput;
use aws_sdk_sqs::types::{MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue};
use serde::Deserialize;
use serde_json::Value;

use super::{account::Account, deployed::GROUP};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendMessage {
    queue_url: String,
    message_body: String,
    delay_seconds: Option<i32>,
    #[serde(default)]
    message_attributes: BTreeMap<String, Attribute>,
    #[serde(default)]
    message_system_attributes: BTreeMap<String, Attribute>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Attribute {
    data_type: String,
    string_value: String,
}

/// Every schedule of the group, by name.
pub(crate) async fn schedules(account: &Account) -> Vec<GetScheduleOutput> {
    let names = account
        .scheduler
        .list_schedules()
        .group_name(GROUP)
        .send()
        .await
        .unwrap()
        .schedules;
    let mut found = Vec::new();
    for name in names.iter().filter_map(|schedule| schedule.name()) {
        found.push(
            account
                .scheduler
                .get_schedule()
                .group_name(GROUP)
                .name(name)
                .send()
                .await
                .unwrap(),
        );
    }
    found.sort_by(|a, b| a.name().cmp(&b.name()));
    found
}

/// Fires a schedule as it stands.
pub(crate) async fn fire(account: &Account, schedule: &GetScheduleOutput) {
    let input = schedule.target().unwrap().input().unwrap().to_string();
    fire_with(account, schedule, input).await;
}

/// Fires a schedule as it would be after its wait: the due time in its envelope is moved to now, since the binary's clock
/// cannot be moved to the due time.
pub(crate) async fn fire_when_due(account: &Account, schedule: &GetScheduleOutput, now: &str) {
    let mut input: Value = serde_json::from_str(schedule.target().unwrap().input().unwrap()).unwrap();
    let text = input["MessageAttributes"]["adjourn"]["StringValue"].as_str().unwrap();
    let mut envelope: Value = serde_json::from_str(text).unwrap();
    envelope["due"] = now.into();
    input["MessageAttributes"]["adjourn"]["StringValue"] = envelope.to_string().into();
    fire_with(account, schedule, input.to_string()).await;
}

async fn fire_with(account: &Account, schedule: &GetScheduleOutput, input: String) {
    assert_eq!(
        schedule.target().unwrap().arn(),
        "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"
    );
    let request: SendMessage = serde_json::from_str(&input).unwrap();
    let mut call = account
        .sqs
        .send_message()
        .queue_url(request.queue_url)
        .message_body(request.message_body)
        .set_delay_seconds(request.delay_seconds)
        .set_message_group_id(request.message_group_id)
        .set_message_deduplication_id(request.message_deduplication_id);
    for (
        name,
        Attribute {
            data_type,
            string_value,
        },
    ) in request.message_attributes
    {
        let value = MessageAttributeValue::builder()
            .data_type(data_type)
            .string_value(string_value)
            .build();
        call = call.message_attributes(name, value.unwrap());
    }
    for (
        name,
        Attribute {
            data_type,
            string_value,
        },
    ) in request.message_system_attributes
    {
        assert_eq!(name, "AWSTraceHeader", "the only one that may be sent");
        let value = MessageSystemAttributeValue::builder()
            .data_type(data_type)
            .string_value(string_value)
            .build();
        call = call.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, value.unwrap());
    }
    call.send().await.unwrap();
    account
        .scheduler
        .delete_schedule()
        .group_name(GROUP)
        .name(schedule.name().unwrap())
        .send()
        .await
        .unwrap();
}
