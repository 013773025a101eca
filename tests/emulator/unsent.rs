//! What a schedule could not send: its Input comes back through the schedules' dead-letter queue.

use aws_sdk_sqs::types::MessageAttributeValue;
use serde_json::json;

use super::{
    deployed::{Deployed, Setup, job},
    provider::{Answer, Provider},
};

#[tokio::test]
async fn an_unsent_job_is_sent_and_done_and_what_is_not_ours_stays() {
    let provider = Provider::start(|_, _| Answer::Done).await;
    let deployed = Deployed::new(
        &provider.url,
        Setup {
            visibility_s: 600,
            ..Setup::default()
        },
    )
    .await;
    let input = json!({"QueueUrl": deployed.queue, "MessageBody": job("order-1", "/orders"), "DelaySeconds": 0});
    let why = MessageAttributeValue::builder()
        .data_type("String")
        .string_value("AWS.SQS.AccessDenied")
        .build()
        .unwrap();
    for body in [input.to_string(), "{\"detail\":\"of somebody else\"}".to_string()] {
        let call = deployed
            .account
            .sqs
            .send_message()
            .queue_url(&deployed.unsent)
            .message_body(body);
        call.message_attributes("ERROR_CODE", why.clone()).send().await.unwrap();
    }
    assert_eq!(provider.called(1).await[0].path, "/orders");
    deployed.account.settles(&deployed.queue, [0, 0, 0]).await;
    // The stranger stays in flight, to be looked at again when its visibility timeout ends.
    deployed.account.settles(&deployed.unsent, [0, 1, 0]).await;
}
