//! template.yaml, deployed as it stands through CloudFormation.

use aws_sdk_cloudformation::{
    client::Waiters as _,
    types::{Capability, ChangeSetType},
};
use aws_sdk_sqs::types::QueueAttributeName;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    account::{Account, PATIENCE, REGION, given},
    deployed::{job, package},
    provider::{Answer, Provider},
};

const TEMPLATE: &str = include_str!("../../template.yaml");
const STACK: &str = "acme-jobs";

/// Puts an object, as `sam package` does; a bucket where `key` is empty.
async fn put(account: &Account, bucket: &str, key: &str, content: &[u8]) {
    let emulator = given("ADJOURN_TEST_EMULATOR");
    let host = emulator.trim_start_matches("http://");
    let head = format!(
        "PUT /{bucket}/{key} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\nconnection: close\r\n\
         authorization: AWS4-HMAC-SHA256 Credential={}/20260101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=x\r\n\r\n",
        content.len(),
        account.id,
    );
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(content).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "PUT {bucket}/{key}: {answer}");
}

async fn attribute(account: &Account, url: &str, name: QueueAttributeName) -> String {
    let call = account
        .sqs
        .get_queue_attributes()
        .queue_url(url)
        .attribute_names(name.clone());
    call.send().await.unwrap().attributes.unwrap().remove(&name).unwrap()
}

#[tokio::test]
async fn the_template_deploys_and_a_job_goes_through_it() {
    let provider = Provider::start(|_, before| if before == 0 { Answer::NotNow("1") } else { Answer::Done }).await;
    let account = Account::new().await;
    put(&account, "packages", "", b"").await;
    put(&account, "packages", "worker.zip", &package(&provider.url, "")).await;
    let mut packaged = TEMPLATE.to_string();
    for (as_it_stands, here) in [
        // What `sam package` does.
        ("CodeUri: functions/", "CodeUri: s3://packages/worker.zip"),
        // The emulator hands a reference to a Number to its poller as text, and that breaks off on comparing it.
        ("MaximumConcurrency: !Ref MaximumConcurrency", "MaximumConcurrency: 10"),
    ] {
        assert_eq!(packaged.matches(as_it_stands).count(), 1, "{as_it_stands}");
        packaged = packaged.replace(as_it_stands, here);
    }

    let cloudformation = aws_sdk_cloudformation::Client::new(&account.config);
    let set = cloudformation
        .create_change_set()
        .stack_name(STACK)
        .change_set_name("first")
        .change_set_type(ChangeSetType::Create)
        .template_body(packaged)
        .capabilities(Capability::CapabilityIam)
        .capabilities(Capability::CapabilityAutoExpand)
        .send()
        .await
        .unwrap();
    let made = cloudformation
        .wait_until_change_set_create_complete()
        .change_set_name(set.id().unwrap());
    made.wait(PATIENCE).await.unwrap();
    cloudformation
        .execute_change_set()
        .change_set_name(set.id().unwrap())
        .send()
        .await
        .unwrap();
    let complete = cloudformation.wait_until_stack_create_complete().stack_name(STACK);
    let outcome = complete.wait(PATIENCE).await;
    let events = cloudformation
        .describe_stack_events()
        .stack_name(STACK)
        .send()
        .await
        .unwrap()
        .stack_events;
    let reasons: Vec<_> = events
        .iter()
        .flatten()
        .filter_map(|event| event.resource_status_reason())
        .collect();
    assert!(outcome.is_ok(), "{reasons:?}");

    let stacks = cloudformation
        .describe_stacks()
        .stack_name(STACK)
        .send()
        .await
        .unwrap()
        .stacks
        .unwrap();
    let output = |key: &str| {
        let found = stacks[0]
            .outputs()
            .iter()
            .find(|output| output.output_key() == Some(key));
        found
            .unwrap_or_else(|| panic!("no output {key}"))
            .output_value()
            .unwrap()
            .to_string()
    };
    let queue = output("QueueUrl");
    account
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body(job("order-1", "/orders"))
        .send()
        .await
        .unwrap();
    let calls = provider.called(2).await;
    assert!(
        calls[1].at >= calls[0].at + std::time::Duration::from_secs(1),
        "early: {calls:?}"
    );
    account.settles(&queue, [0, 0, 0]).await;
    assert_eq!(account.counts(&output("DeadLetterQueueUrl")).await, [0, 0, 0]);

    let lambda = aws_sdk_lambda::Client::new(&account.config);
    let function = lambda
        .get_function_configuration()
        .function_name(output("FunctionName"))
        .send()
        .await
        .unwrap();
    let visibility = &function.environment().unwrap().variables().unwrap()["ADJOURN_VISIBILITY_S"];
    assert!(visibility.parse::<i32>().unwrap() >= 6 * function.timeout().unwrap());
    let redrive = attribute(&account, &queue, QueueAttributeName::RedrivePolicy).await;
    let redrive: serde_json::Value = serde_json::from_str(&redrive).unwrap();
    let receives = &function.environment().unwrap().variables().unwrap()["ADJOURN_MAX_RECEIVE_COUNT"];
    assert_eq!(redrive["maxReceiveCount"].to_string().trim_matches('"'), receives);
    let retention = attribute(&account, &queue, QueueAttributeName::MessageRetentionPeriod).await;
    let dead = attribute(
        &account,
        &output("DeadLetterQueueUrl"),
        QueueAttributeName::MessageRetentionPeriod,
    )
    .await;
    assert!(
        retention.parse::<u32>().unwrap() < dead.parse::<u32>().unwrap(),
        "{retention} of the queue, {dead}"
    );
    let mappings = lambda
        .list_event_source_mappings()
        .send()
        .await
        .unwrap()
        .event_source_mappings
        .unwrap();
    assert_eq!(mappings.len(), 2);
    for mapping in mappings {
        let types = mapping.function_response_types();
        assert_eq!(
            types,
            [aws_sdk_lambda::types::FunctionResponseType::ReportBatchItemFailures]
        );
    }
}

#[test]
fn the_template_lets_the_worker_s_own_loop_run_and_trusts_one_group_of_schedules() {
    for line in [
        "RecursiveLoop: Allow",
        "aws:SourceAccount: !Ref AWS::AccountId",
        "aws:SourceArn: !GetAtt ScheduleGroup.Arn",
        "iam:PassedToService: scheduler.amazonaws.com",
        "redrivePermission: byQueue",
    ] {
        assert!(TEMPLATE.contains(line), "{line}");
    }
    let stars = TEMPLATE
        .lines()
        .filter(|line| line.contains("Resource") || line.contains("Action"));
    for line in stars {
        let bare = line.trim_end().trim_end_matches('"').ends_with(": *") || line.contains("\"*\"");
        assert!(!bare, "every action and resource is named: {line}");
    }
}
