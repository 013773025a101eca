//! Batches of which a part fails: what stays, what goes, and how it is answered.

use std::{sync::Arc, time::Duration};

use adjourn_aws::{Environment, lambda::Deployment};
use adjourn_worker::{
    Settlement, Worker,
    fake::{Faults, PortFault, QueueSettings},
    port::Queue,
};
use aws_lambda_events::event::sqs::SqsEvent;
use serde_json::{Value, json};

use super::{Bench, Refusing, service};

const WAIT: Duration = Duration::from_secs(30);

/// A record as the event source mapping writes it.
fn record(id: &str, body: &str) -> Value {
    json!({
        "messageId": id,
        "receiptHandle": format!("handle-{id}"),
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1783713600000",
            "ApproximateFirstReceiveTimestamp": "1783713600001",
            "SenderId": "AIDA"
        },
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:jobs",
        "awsRegion": "eu-west-1"
    })
}

/// The function's answer to these records, where every port is away: so what is refused stays.
async fn answer(records: Vec<Value>) -> Result<Value, String> {
    let bench = Bench::new(QueueSettings::default(), &[WAIT]);
    let faults = Faults::none();
    faults.outage("sqs");
    let ports: Arc<dyn Queue> = Arc::new(bench.queue.used_by(&faults.process()));
    let handler = Refusing {
        clock: bench.clock.clone(),
        waits: vec![WAIT],
        takes: Duration::ZERO,
        repeatable: true,
        calls: bench.calls.clone(),
    };
    let worker = Worker::builder(handler, ports).clock(bench.clock.clone()).build();
    let environment = Environment::new([
        (
            "ADJOURN_QUEUE_URL",
            "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs",
        ),
        ("ADJOURN_VISIBILITY_S", "180"),
        ("ADJOURN_RETENTION_S", "864000"),
    ]);
    let deployment = Deployment::read(&environment).await.unwrap();
    let event: SqsEvent = serde_json::from_value(json!({ "Records": records })).map_err(|error| error.to_string())?;
    let ends = u64::MAX;
    let response = deployment.function(worker).invoke(event, ends).await;
    let response = response.map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(response).unwrap())
}

#[tokio::test(start_paused = true)]
async fn bug_062_the_answer_is_spelled_as_lambda_reads_it() {
    let answered = answer(vec![record("m-1", "job")]).await.unwrap();
    assert_eq!(answered, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
}

#[tokio::test(start_paused = true)]
async fn bug_063_an_answer_names_ids_of_its_own_batch_and_nothing_else() {
    let ids = ["m-1", "\u{e9}", "0", "m-1/2", " "];
    let records = ids.iter().map(|id| record(id, &format!("job {id}"))).collect();
    let answered = answer(records).await.unwrap();
    let named: Vec<&str> = answered["batchItemFailures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["itemIdentifier"].as_str().unwrap())
        .collect();
    assert_eq!(named, ids);
    for odd in [json!(""), Value::Null] {
        let mut without = record("m-1", "job");
        without["messageId"] = odd;
        let error = answer(vec![record("m-0", "job"), without]).await.unwrap_err();
        assert!(
            !error.is_empty(),
            "without an id the invocation fails, and the whole batch comes back"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_064_one_refusal_of_ten_repeats_no_other() {
    let bench = Bench::with(QueueSettings::default(), &[], Duration::ZERO, |builder, _| {
        builder.concurrency(1)
    });
    let queue = &bench.queue;
    let handler = OneRefuses(bench.clock.clone(), bench.calls.clone());
    let worker = Worker::builder(handler, Arc::new(queue.clone()))
        .clock(bench.clock.clone())
        .concurrency(2)
        .build();
    for n in 1..=10 {
        queue.send_body(&n.to_string()).unwrap();
    }
    while let Some(at) = queue.next_receivable_at() {
        let now = adjourn_worker::Clock::now(&*bench.clock);
        adjourn_worker::Clock::sleep(&*bench.clock, at.since(now)).await;
        let batch = queue.receive(10).await.unwrap();
        let settled = worker.run_batch(batch.clone(), None).await;
        let kept = settled.iter().filter(|one| one.settlement == Settlement::Keep);
        let failures: Vec<String> = kept.map(|one| one.message.id.clone()).collect();
        queue.respond(&batch, &failures).await.unwrap();
    }
    for n in 1..=10 {
        assert_eq!(bench.calls_of(&n.to_string()), if n == 3 { 2 } else { 1 }, "job {n}");
    }
}

/// Refuses the first call of job 3.
struct OneRefuses(
    Arc<adjourn_worker::VirtualClock>,
    Arc<std::sync::Mutex<std::collections::BTreeMap<String, Vec<adjourn_core::Timestamp>>>>,
);

impl adjourn_worker::Handler for OneRefuses {
    async fn handle(&self, job: adjourn_worker::Job) -> Result<adjourn_worker::Done, adjourn_worker::Interrupt> {
        let now = adjourn_worker::Clock::now(&*self.0);
        let mut calls = self.1.lock().unwrap();
        let calls = calls.entry(job.body().to_string()).or_default();
        calls.push(now);
        if job.body() == "3" && calls.len() == 1 {
            let refusal = adjourn_core::Signal::new("acme", now).retry_at(now + WAIT);
            return Err(adjourn_worker::Interrupt::throttled(refusal));
        }
        Ok(adjourn_worker::Done::new())
    }
}

#[tokio::test]
async fn bug_066_a_failed_list_that_names_nothing_of_ours_is_an_error_and_no_panic() {
    for id in [json!(null), json!(-1), json!("x"), json!("7"), json!("")] {
        let failed = json!({"Successful": [], "Failed": [{"Id": id, "SenderFault": false, "Code": "InternalError"}]});
        let server = service::Service::answering(failed).await;
        let queue = server.queue("jobs");
        let copies = service::copies(2);
        let answers = queue.resend(&copies).await;
        assert_eq!(answers.len(), 2);
        for answer in answers {
            assert!(
                answer.unwrap_err().is_transient(),
                "{id}: it may or may not have been sent"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bug_069_what_a_batch_call_failed_to_send_is_not_deleted() {
    let bench = Bench::new(QueueSettings::default(), &[WAIT]);
    for n in 0..5 {
        bench.queue.send_body(&n.to_string()).unwrap();
    }
    // The first entry of the first SendMessageBatch fails, and no hold can be made either.
    let faults = Faults::at(0, PortFault::FailEntry);
    faults.outage("sqs.visibility");
    let ports = Arc::new(bench.queue.used_by(&faults.process()));
    let handler = Refusing {
        clock: bench.clock.clone(),
        waits: vec![WAIT],
        takes: Duration::ZERO,
        repeatable: true,
        calls: bench.calls.clone(),
    };
    let worker = Worker::builder(handler, ports).clock(bench.clock.clone()).build();
    let batch = bench.queue.receive(10).await.unwrap();
    let settled = worker.run_batch(batch, None).await;
    let kept: Vec<_> = settled
        .iter()
        .filter(|one| one.settlement == Settlement::Keep)
        .collect();
    assert_eq!(kept.len(), 1, "the one that was not sent stays, and only that one");
    assert_eq!(bench.queue.steps().len(), 4);
}
