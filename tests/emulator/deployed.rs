//! The worker deployed into an account by hand: queues, function, mapping. The template has its own test.

use std::{collections::BTreeMap, io::Write as _, sync::OnceLock, time::Duration};

use aws_sdk_lambda::{
    client::Waiters as _,
    primitives::Blob,
    types::{Environment, FunctionCode, FunctionResponseType, Runtime},
};
use aws_sdk_sqs::types::{Message, MessageAttributeValue, QueueAttributeName as Name};
use serde_json::{Map, Value, json};

use super::account::{Account, given};

/// What differs between the tests' deployments.
pub(crate) struct Setup {
    /// `adjourn.toml` after the provider's table.
    pub(crate) tiers: &'static str,
    pub(crate) fifo: bool,
    /// Whether the event source mapping delivers; otherwise the test invokes by itself.
    pub(crate) mapped: bool,
    pub(crate) schedules: bool,
    pub(crate) dead_letters: bool,
    pub(crate) visibility_s: u32,
    pub(crate) max_receive_count: u32,
    pub(crate) timeout_s: i32,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tiers: "",
            fifo: false,
            mapped: true,
            schedules: true,
            dead_letters: true,
            visibility_s: 60,
            max_receive_count: 10,
            timeout_s: 10,
        }
    }
}

pub(crate) struct Deployed {
    pub(crate) account: Account,
    pub(crate) queue: String,
    queue_arn: String,
    pub(crate) dead: String,
    pub(crate) unsent: String,
    pub(crate) unsent_arn: String,
    lambda: aws_sdk_lambda::Client,
    package: Vec<u8>,
}

pub(crate) const GROUP: &str = "adjourn-jobs";
const FUNCTION: &str = "worker";

impl Deployed {
    /// The worker, with one provider `acme` at `provider_url`.
    pub(crate) async fn new(provider_url: &str, setup: Setup) -> Self {
        let account = Account::new().await;
        let suffix = if setup.fifo { ".fifo" } else { "" };
        let fifo = setup.fifo.then(|| (Name::FifoQueue, "true".to_string()));
        let kind: Vec<_> = fifo.into_iter().collect();
        let (dead, dead_arn) = account.queue(&format!("jobs-dead{suffix}"), &kind).await;
        let (unsent, unsent_arn) = account
            .queue("unsent", &[(Name::VisibilityTimeout, setup.visibility_s.to_string())])
            .await;
        let redrive = json!({"deadLetterTargetArn": dead_arn, "maxReceiveCount": setup.max_receive_count.to_string()});
        let own = [
            (Name::VisibilityTimeout, setup.visibility_s.to_string()),
            (Name::RedrivePolicy, redrive.to_string()),
        ];
        let attributes: Vec<_> = kind.into_iter().chain(own).collect();
        let (queue, queue_arn) = account.queue(&format!("jobs{suffix}"), &attributes).await;
        account
            .scheduler
            .create_schedule_group()
            .name(GROUP)
            .send()
            .await
            .unwrap();

        let mut variables = BTreeMap::from([
            ("ADJOURN_QUEUE_URL", queue.clone()),
            ("ADJOURN_VISIBILITY_S", setup.visibility_s.to_string()),
            ("ADJOURN_RETENTION_S", "345600".to_string()),
            ("ADJOURN_MAX_RECEIVE_COUNT", setup.max_receive_count.to_string()),
        ]);
        if setup.dead_letters {
            variables.insert("ADJOURN_DLQ_URL", dead.clone());
        }
        if setup.schedules {
            variables.insert("ADJOURN_SCHEDULE_GROUP", GROUP.to_string());
            variables.insert(
                "ADJOURN_SCHEDULE_ROLE_ARN",
                format!("arn:aws:iam::{}:role/schedules", account.id),
            );
            variables.insert("ADJOURN_SCHEDULE_DLQ_ARN", unsent_arn.clone());
        }
        let lambda = aws_sdk_lambda::Client::new(&account.config);
        let package = package(provider_url, setup.tiers);
        let mut environment = Environment::builder();
        for (name, value) in variables {
            environment = environment.variables(name, value);
        }
        lambda
            .create_function()
            .function_name(FUNCTION)
            .runtime(Runtime::from("provided.al2023"))
            .role(format!("arn:aws:iam::{}:role/worker", account.id))
            .handler("bootstrap")
            .timeout(setup.timeout_s)
            .environment(environment.build())
            .code(FunctionCode::builder().zip_file(Blob::new(package.clone())).build())
            .send()
            .await
            .unwrap();
        let active = lambda.wait_until_function_active_v2().function_name(FUNCTION);
        active.wait(Duration::from_secs(30)).await.unwrap();
        if setup.mapped {
            for arn in [&queue_arn, &unsent_arn] {
                lambda
                    .create_event_source_mapping()
                    .event_source_arn(arn)
                    .function_name(FUNCTION)
                    .batch_size(10)
                    .function_response_types(FunctionResponseType::ReportBatchItemFailures)
                    .send()
                    .await
                    .unwrap();
            }
        }
        Self {
            account,
            queue,
            queue_arn,
            dead,
            unsent,
            unsent_arn,
            lambda,
            package,
        }
    }

    /// A new execution environment: whatever the process knew, its gates for one, is gone.
    pub(crate) async fn restart(&self) {
        let code = self.lambda.update_function_code().function_name(FUNCTION);
        code.zip_file(Blob::new(self.package.clone())).send().await.unwrap();
        let updated = self.lambda.wait_until_function_updated_v2().function_name(FUNCTION);
        updated.wait(Duration::from_secs(30)).await.unwrap();
    }

    /// Sends a body as it is.
    pub(crate) async fn send(&self, body: &str) {
        self.account
            .sqs
            .send_message()
            .queue_url(&self.queue)
            .message_body(body)
            .send()
            .await
            .unwrap();
    }

    /// Invokes the function with these messages, as the event source mapping would, and answers its response as
    /// compact JSON. (The emulator writes the response anew, with spaces; its exact bytes are a test of the crate's.)
    pub(crate) async fn invoke(&self, messages: &[Message]) -> String {
        let records: Vec<_> = messages
            .iter()
            .map(|message| record(message, &self.queue_arn))
            .collect();
        let event = json!({"Records": records}).to_string();
        let answer = self
            .lambda
            .invoke()
            .function_name(FUNCTION)
            .payload(Blob::new(event))
            .send()
            .await
            .unwrap();
        let payload = String::from_utf8(answer.payload.unwrap().into_inner()).unwrap();
        assert_eq!(answer.function_error, None, "{payload}");
        serde_json::from_str::<Value>(&payload).unwrap().to_string()
    }
}

/// An HTTP job of the provider.
pub(crate) fn job(id: &str, path: &str) -> String {
    json!({"provider": "acme", "method": "POST", "path": path, "id": id, "body": {"sku": 7}}).to_string()
}

/// The envelope that a message carries.
pub(crate) fn envelope(message: &Message) -> Value {
    let attribute = &message.message_attributes.as_ref().expect("attributes")["adjourn"];
    serde_json::from_str(attribute.string_value().unwrap()).unwrap()
}

/// The message's attributes but ours.
pub(crate) fn customers(message: &Message) -> BTreeMap<String, MessageAttributeValue> {
    let attributes = message.message_attributes.clone().unwrap_or_default();
    attributes.into_iter().filter(|(name, _)| name != "adjourn").collect()
}

/// The deployment package: the binary under the name that Lambda runs, and its configuration.
pub(crate) fn package(provider_url: &str, tiers: &str) -> Vec<u8> {
    static BINARY: OnceLock<Vec<u8>> = OnceLock::new();
    let binary = BINARY.get_or_init(|| std::fs::read(given("ADJOURN_TEST_BOOTSTRAP")).unwrap());
    let provider = format!(
        "[providers.acme]\nbase_url = \"{provider_url}\"\ntimeout_ms = 3000\nidempotency_header = \"Idempotency-Key\"\n"
    );
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("bootstrap", options.unix_permissions(0o755)).unwrap();
    zip.write_all(binary).unwrap();
    zip.start_file("adjourn.toml", options).unwrap();
    zip.write_all(format!("{provider}{tiers}").as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A received message as a record of the mapping's event (Lambda Developer Guide, SQS event).
fn record(message: &Message, arn: &str) -> Value {
    let system: Map<_, _> = message
        .attributes
        .iter()
        .flatten()
        .map(|(name, value)| (name.as_str().to_string(), Value::from(value.clone())))
        .collect();
    let attributes: Map<_, _> = message
        .message_attributes
        .iter()
        .flatten()
        .map(|(name, value)| {
            let mut attribute = json!({"dataType": value.data_type()});
            if let Some(text) = value.string_value() {
                attribute["stringValue"] = json!(text);
            }
            if let Some(bytes) = value.binary_value() {
                attribute["binaryValue"] = json!(aws_smithy_types::base64::encode(bytes.as_ref()));
            }
            (name.clone(), attribute)
        })
        .collect();
    json!({
        "messageId": message.message_id(),
        "receiptHandle": message.receipt_handle(),
        "body": message.body(),
        "attributes": system,
        "messageAttributes": attributes,
        "md5OfBody": message.md5_of_body(),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": super::account::REGION,
    })
}
