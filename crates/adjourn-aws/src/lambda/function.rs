//! One invocation: an SQS event in, the messages that stay out.

use std::sync::Arc;

use adjourn_core::Timestamp;
use adjourn_worker::{Clock, Handler, Settlement, Worker};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use lambda_runtime::Error;

use super::{
    record::{id_of, message_of, queue_of},
    unsent::send_again,
};
use crate::{Settings, SqsQueue};

/// What answers invocations. Cheap calls, no state of its own.
#[derive(Debug)]
pub struct Function<H> {
    worker: Worker<H>,
    queue: SqsQueue,
    queue_url: String,
    schedule_dead_letters: Option<String>,
    clock: Arc<dyn Clock>,
}

impl<H: Handler> Function<H> {
    pub(super) fn new(worker: Worker<H>, queue: SqsQueue, settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            worker,
            queue,
            queue_url: settings.queue.url.clone(),
            schedule_dead_letters: settings
                .schedules
                .as_ref()
                .map(|schedules| schedules.dead_letter_arn.clone()),
            clock,
        }
    }

    /// Runs the event's messages and answers exactly those that stay. `deadline` is the invocation's end in epoch
    /// milliseconds.
    ///
    /// # Errors
    /// When a record lacks what SQS puts on every one, or comes from a queue that is not this worker's. Then the whole
    /// batch stays.
    pub async fn invoke(&self, event: SqsEvent, deadline: u64) -> Result<SqsBatchResponse, Error> {
        let now = self.clock.now();
        let ends_at = Timestamp::from_unix_ms(i64::try_from(deadline).unwrap_or(i64::MAX));
        let (mut messages, mut unsent) = (Vec::new(), Vec::new());
        for record in event.records {
            id_of(&record)?;
            let arn = queue_of(&record)?;
            if self.schedule_dead_letters.as_deref() == Some(arn) {
                unsent.push(record);
            } else if name_in_arn(arn) == name_in_url(&self.queue_url) {
                messages.push(message_of(record, now)?);
            } else {
                let words = "is neither this worker's queue (ADJOURN_QUEUE_URL) nor its schedules' dead-letter queue";
                return Err(format!("the event comes from {arn}, which {words}").into());
            }
        }
        let mut stay = Vec::new();
        let may_go = send_again(&self.queue, &self.queue_url, &unsent).await;
        for (record, _) in unsent.iter().zip(may_go).filter(|(_, may_go)| !may_go) {
            stay.push(id_of(record)?.to_string());
        }
        for settled in self.worker.run_batch(messages, Some(ends_at)).await {
            match settled.settlement {
                Settlement::Delete(_) => {}
                // A batch may hold two deliveries of one message; its id is named once.
                Settlement::Keep if !stay.contains(&settled.message.id) => stay.push(settled.message.id.clone()),
                Settlement::Keep => {}
            }
        }
        let mut response = SqsBatchResponse::default();
        response.set_failures(stay);
        Ok(response)
    }
}

fn name_in_arn(arn: &str) -> Option<&str> {
    arn.rsplit(':').next()
}

fn name_in_url(url: &str) -> Option<&str> {
    url.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::super::{Deployment, record::tests::record};
    use crate::{Environment, Patience, Settings, clients::fakes, fixture};
    use adjourn_core::{Fault, Signal};
    use adjourn_worker::{Clock as _, Done, Handler, Interrupt, Job, VirtualClock};
    use aws_lambda_events::event::sqs::SqsEvent;
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use aws_smithy_types::body::SdkBody;
    use serde_json::{Value, json};
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";
    const SCHEDULES_DEAD: &str = "arn:aws:sqs:eu-west-1:111122223333:schedules-dead";

    /// Does what the body says.
    struct Script;

    impl Handler for Script {
        async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
            match job.body() {
                "done" => Ok(Done::new()),
                "wait" => Err(Interrupt::throttled(
                    Signal::new("acme", fixture::now()).retry_at(fixture::now() + Duration::from_secs(60)),
                )),
                "reject" => Err(Interrupt::rejected(Fault::new("no"))),
                other => panic!("{other}"),
            }
        }
    }

    type Asked = Arc<Mutex<Vec<(String, Value)>>>;

    /// Invokes the function with these records; what SQS refuses is chosen by `refuses`. Answers the response's bytes.
    async fn invoke(records: Vec<Value>, refuses: fn(&str) -> bool) -> (Result<String, String>, Asked) {
        let asked = Asked::default();
        let noted = Arc::clone(&asked);
        let http = infallible_client_fn(move |request: http::Request<SdkBody>| {
            let target = request.headers()["x-amz-target"]
                .to_str()
                .unwrap()
                .trim_start_matches("AmazonSQS.")
                .to_string();
            let body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
            let entries = body["Entries"].as_array().unwrap().iter();
            let answer = if refuses(&target) {
                json!({"Successful": [], "Failed": entries
                    .map(|entry| json!({"Id": entry["Id"], "SenderFault": true, "Code": "InvalidParameterValue"}))
                    .collect::<Vec<_>>()})
            } else {
                json!({"Failed": [], "Successful": entries
                    .map(|entry| json!({"Id": entry["Id"], "MessageId": "sent", "MD5OfMessageBody": ""}))
                    .collect::<Vec<_>>()})
            };
            noted.lock().unwrap().push((target, body));
            http::Response::builder()
                .status(200)
                .body(SdkBody::from(answer.to_string()))
                .unwrap()
        });
        let settings = Settings::read(&Environment::new([
            ("ADJOURN_QUEUE_URL", URL),
            (
                "ADJOURN_DLQ_URL",
                "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs-dead",
            ),
            ("ADJOURN_VISIBILITY_S", "180"),
            ("ADJOURN_RETENTION_S", "345600"),
            ("ADJOURN_MAX_RECEIVE_COUNT", "10"),
            ("ADJOURN_SCHEDULE_GROUP", "adjourn-jobs"),
            ("ADJOURN_SCHEDULE_ROLE_ARN", "arn:aws:iam::111122223333:role/schedules"),
            ("ADJOURN_SCHEDULE_DLQ_ARN", SCHEDULES_DEAD),
        ]));
        let clients = fakes::clients(Patience::WORKER, http).await;
        let clock = Arc::new(VirtualClock::starting_at(fixture::now()));
        let deadline = (clock.now() + Duration::from_secs(60)).as_unix_ms();
        let deployment = Deployment::of(settings.unwrap(), &clients, clock);
        let worker = deployment.worker(Script, Default::default()).unwrap().build();
        let function = deployment.function(worker);
        let event: SqsEvent = serde_json::from_value(json!({"Records": records})).unwrap();
        let response = function.invoke(event, u64::try_from(deadline).unwrap()).await;
        (
            response
                .map(|response| serde_json::to_string(&response).unwrap())
                .map_err(|error| error.to_string()),
            asked,
        )
    }

    fn dead_schedule(id: &str, body: &str) -> Value {
        let mut record = record(id, body);
        record["eventSourceARN"] = json!(SCHEDULES_DEAD);
        record["messageAttributes"] = json!({"ERROR_CODE": {"stringValue": "AccessDenied", "dataType": "String"}});
        record
    }

    fn operations(asked: &Asked) -> Vec<String> {
        asked
            .lock()
            .unwrap()
            .iter()
            .map(|(operation, _)| operation.clone())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_leaves_nothing_is_answered_by_an_empty_list() {
        let (response, asked) = invoke(vec![record("m-1", "done"), record("m-2", "wait")], |_| false).await;
        assert_eq!(response.unwrap(), r#"{"batchItemFailures":[]}"#);
        assert_eq!(operations(&asked), ["SendMessageBatch"]);
    }

    #[tokio::test(start_paused = true)]
    async fn exactly_what_stays_is_named() {
        let records = vec![record("m-1", "done"), record("m-2", "wait"), record("m-3", "done")];
        // Neither a copy nor a change of visibility is taken: the original stays.
        let (response, _) = invoke(records, |_| true).await;
        assert_eq!(response.unwrap(), r#"{"batchItemFailures":[{"itemIdentifier":"m-2"}]}"#);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_stays_with_its_own_job() {
        let (response, asked) = invoke(vec![record("m-1", "explode"), record("m-2", "done")], |_| false).await;
        assert_eq!(response.unwrap(), r#"{"batchItemFailures":[]}"#);
        let asked = asked.lock().unwrap();
        assert_eq!(
            asked[0].1["Entries"][0]["MessageBody"], "explode",
            "it waits for its next attempt"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_without_an_id_fails_the_invocation() {
        let mut nameless = record("m-1", "done");
        nameless["messageId"] = Value::Null;
        let (response, asked) = invoke(vec![record("m-0", "done"), nameless], |_| false).await;
        assert!(response.unwrap_err().contains("messageId"));
        assert!(asked.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_s_queue_fails_the_invocation() {
        let mut stranger = record("m-1", "done");
        stranger["eventSourceARN"] = json!("arn:aws:sqs:eu-west-1:111122223333:others");
        let (response, _) = invoke(vec![stranger], |_| false).await;
        assert!(response.unwrap_err().contains(":others"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_schedule_could_not_send_is_sent_and_what_is_not_ours_stays() {
        let ours = json!({
            "QueueUrl": URL, "MessageBody": "done", "DelaySeconds": 0, "MessageGroupId": "t",
            "MessageAttributes": {"adjourn": {"DataType": "String", "StringValue": "{}"}},
        });
        let elsewhere = json!({"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/other", "MessageBody": "done"});
        let records = vec![
            dead_schedule("d-1", &ours.to_string()),
            dead_schedule("d-2", &elsewhere.to_string()),
            dead_schedule("d-3", "{\"hello\":1}"),
        ];
        let (response, asked) = invoke(records, |_| false).await;
        assert_eq!(
            response.unwrap(),
            r#"{"batchItemFailures":[{"itemIdentifier":"d-2"},{"itemIdentifier":"d-3"}]}"#
        );
        let asked = asked.lock().unwrap();
        let entries = asked[0].1["Entries"].as_array().unwrap();
        assert_eq!((asked.len(), entries.len()), (1, 1));
        assert_eq!(
            (&entries[0]["MessageBody"], &entries[0]["MessageGroupId"]),
            (&json!("done"), &json!("t"))
        );
        assert_eq!(entries[0]["MessageAttributes"]["adjourn"]["StringValue"], "{}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unsent_job_that_cannot_be_sent_now_either_stays() {
        let ours = json!({"QueueUrl": URL, "MessageBody": "done", "DelaySeconds": 0});
        let (response, _) = invoke(vec![dead_schedule("d-1", &ours.to_string())], |_| true).await;
        assert_eq!(response.unwrap(), r#"{"batchItemFailures":[{"itemIdentifier":"d-1"}]}"#);
    }
}
