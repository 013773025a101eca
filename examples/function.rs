//! A Lambda function of your own: its handler, and what it answers to an SQS event.
//!
//! `main` of the deployed binary is `Deployment::read(&Environment::of_process()).await?`, the worker, and
//! `deployment.serve(worker).await`; `template.yaml` makes everything around it. Here the clients speak to a queue on
//! 127.0.0.1 instead.

use std::{sync::Arc, time::Duration};

use adjourn_aws::{
    Clients, Environment, Settings,
    lambda::{Deployment, InJobSpan},
};
use adjourn_core::{Policy, Signal};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, SystemClock, Worker};
use aws_config::BehaviorVersion;
use aws_sdk_sqs::config::Credentials;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

#[derive(serde::Deserialize)]
struct Invoice {
    customer: String,
}

struct Invoices;

impl Handler for Invoices {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let invoice: Invoice = job.json()?;
        if invoice.customer == "busy" {
            let now = SystemClock.now();
            let refusal = Signal::new("bookkeeping", now).reason("ten a minute");
            return Err(Interrupt::throttled(refusal.retry_at(now + Duration::from_secs(30))));
        }
        Ok(Done::new())
    }
}

/// The worker of this function on a deployment. A policy that cannot be kept there is said at start.
fn worker(deployment: &Deployment) -> Result<Worker<InJobSpan<Invoices>>, adjourn_aws::Mistakes> {
    Ok(deployment.worker(Invoices, Policy::default())?.concurrency(5).build())
}

/// A queue on 127.0.0.1 that takes every copy: its address, and what it was asked.
async fn queue() -> std::io::Result<(String, mpsc::UnboundedReceiver<Value>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let (asked, asks) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            if let Some(body) = answered(connection).await
                && asked.send(body).is_err()
            {
                return;
            }
        }
    });
    Ok((url, asks))
}

/// Answers one request, and says what was in it.
async fn answered(mut connection: TcpStream) -> Option<Value> {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    let body: Value = loop {
        let read = connection.read(&mut piece).await.ok()?;
        request.extend_from_slice(piece.get(..read)?);
        let text = String::from_utf8_lossy(&request);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
        if let Some(Ok(body)) = body {
            break body;
        }
    };
    let id = body.pointer("/Entries/0/Id")?;
    let accepted = json!({"Successful": [{"Id": id, "MessageId": "copy-1", "MD5OfMessageBody": ""}]}).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{accepted}",
        accepted.len()
    );
    connection.write_all(answer.as_bytes()).await.ok()?;
    Some(body)
}

fn record(id: &str, body: &str) -> Value {
    json!({
        "messageId": id, "receiptHandle": format!("handle-{id}"), "body": body,
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:invoices",
        "attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": "1783714400000",
            "ApproximateFirstReceiveTimestamp": "1783714427000",
        },
        "messageAttributes": {},
    })
}

#[tokio::test]
async fn a_refused_message_becomes_a_copy_and_nothing_of_the_batch_comes_back() {
    let (endpoint, mut asked) = queue().await.unwrap();
    let settings = Settings::read(&Environment::new([
        (
            "ADJOURN_QUEUE_URL",
            "https://sqs.eu-west-1.amazonaws.com/111122223333/invoices",
        ),
        ("ADJOURN_MAX_RECEIVE_COUNT", "10"),
        ("ADJOURN_VISIBILITY_S", "180"),
        ("ADJOURN_RETENTION_S", "1036800"),
    ]))
    .unwrap();
    let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .region("eu-west-1")
        .endpoint_url(endpoint)
        .credentials_provider(Credentials::for_tests())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .load()
        .await;
    let deployment = Deployment::of(settings, &Clients::of(&config), Arc::new(SystemClock));
    let worker = worker(&deployment).unwrap();
    let event = json!({"Records": [record("1", r#"{"customer":"ada"}"#), record("2", r#"{"customer":"busy"}"#)]});

    let ends_at = (SystemClock.now() + Duration::from_secs(60)).as_unix_ms();
    let answer = deployment
        .function(worker)
        .invoke(serde_json::from_value(event).unwrap(), ends_at.try_into().unwrap())
        .await
        .unwrap();

    // One is done, and of the other a copy is durable: so both originals may go.
    assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"batchItemFailures":[]}"#);
    let copy = &asked.recv().await.unwrap()["Entries"][0];
    assert_eq!(copy["MessageBody"], r#"{"customer":"busy"}"#);
    let delay = copy["DelaySeconds"].as_u64().unwrap();
    assert!(
        (29..=33).contains(&delay),
        "thirty seconds, less what has passed, plus up to a tenth: {delay}"
    );
    assert!(
        copy["MessageAttributes"]["adjourn"]["StringValue"]
            .as_str()
            .unwrap()
            .contains("ten a minute")
    );
}
