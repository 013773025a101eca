//! `--store aws` against a queue on loopback that speaks SQS's JSON protocol as far as these commands need it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::scene::{Ended, Scene, job, lines, settings};

/// A queue that remembers what it was asked.
struct Queue {
    endpoint: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    _runtime: Runtime,
}

impl Queue {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&remembered);
                tokio::spawn(http1::Builder::new().serve_connection(
                    TokioIo::new(stream),
                    service_fn(move |request| answer(Arc::clone(&asked), request)),
                ));
            }
        });
        Self {
            endpoint,
            asked,
            _runtime: runtime,
        }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }

    /// Runs a command on this queue.
    fn adjourn(&self, scene: &Scene, arguments: &[&str]) -> Ended {
        let mut command = scene.command(arguments);
        command
            .env("ADJOURN_STORE", "aws")
            .env("ADJOURN_QUEUE_URL", format!("{}/000000000000/jobs", self.endpoint))
            .env("ADJOURN_DLQ_URL", format!("{}/000000000000/dead", self.endpoint))
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HOME", scene.path(""));
        crate::scene::ended(command)
    }
}

async fn answer(
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let target = request.headers()["x-amz-target"]
        .to_str()
        .unwrap()
        .replace("AmazonSQS.", "");
    let body: Value = serde_json::from_slice(&request.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let answer = match target.as_str() {
        "SendMessageBatch" => {
            // The body "refuse me" stands for a message that the queue does not take.
            let (bad, good): (Vec<&Value>, Vec<&Value>) = body["Entries"]
                .as_array()
                .unwrap()
                .iter()
                .partition(|entry| entry["MessageBody"].as_str().unwrap().contains("refuse me"));
            json!({
                "Successful": good.iter().map(|entry| json!({
                    "Id": entry["Id"], "MessageId": format!("message-{}", entry["Id"].as_str().unwrap()), "MD5OfMessageBody": "",
                })).collect::<Vec<_>>(),
                "Failed": bad.iter().map(|entry| json!({
                    "Id": entry["Id"], "Code": "InvalidMessageContents", "SenderFault": true, "Message": "no",
                })).collect::<Vec<_>>(),
            })
        }
        "GetQueueAttributes" => {
            let dead = body["QueueUrl"].as_str().unwrap().ends_with("/dead");
            json!({"Attributes": {
                "ApproximateNumberOfMessages": if dead { "4" } else { "1" },
                "ApproximateNumberOfMessagesNotVisible": if dead { "0" } else { "2" },
                "ApproximateNumberOfMessagesDelayed": if dead { "0" } else { "3" },
            }})
        }
        other => panic!("{other} was not expected"),
    };
    asked.lock().unwrap().push((target, body));
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    response
        .headers_mut()
        .insert("content-type", "application/x-amz-json-1.0".parse().unwrap());
    Ok(response)
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    scene
}

#[test]
fn jobs_are_sent_to_the_queue_with_their_tenant_as_the_group() {
    let (queue, scene) = (Queue::open(), scene());
    let mut nameless = job("y", "x");
    nameless.as_object_mut().unwrap().remove("id");
    let later = {
        let mut job = job("x", "later");
        job["notBefore"] = json!("2999-01-01T00:00:00Z");
        job
    };
    let input = [job("x", "a"), nameless, later];
    scene.write("jobs.jsonl", &lines(&input));
    let sent = queue.adjourn(&scene, &["send", "jobs.jsonl"]).ok();
    assert_eq!(
        sent.stdout, "a\nmessage-1\nlater\n",
        "a job without an id is known by its message"
    );
    let asked = queue.asked();
    assert_eq!(asked.len(), 1, "one batch");
    let entries = asked[0].1["Entries"].as_array().unwrap();
    for (entry, job) in entries.iter().zip(&input) {
        assert_eq!(entry["MessageBody"], job.to_string(), "the line as it was written");
        assert_eq!(entry["MessageGroupId"], job["tenant"]);
    }
    let delays: Vec<&Value> = entries.iter().map(|entry| &entry["DelaySeconds"]).collect();
    assert_eq!(delays, [0, 0, 900], "the longest delay; the worker waits out the rest");
}

#[test]
fn what_the_queue_did_not_take_is_exit_1_and_named() {
    let (queue, scene) = (Queue::open(), scene());
    let mut refused = job("x", "b");
    refused["body"] = json!("refuse me");
    scene.write("jobs.jsonl", &lines(&[job("x", "a"), refused, job("x", "c")]));
    let sent = queue.adjourn(&scene, &["send", "jobs.jsonl"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(1), "a\nc\n"), "{sent:?}");
    assert!(
        sent.stderr.contains("line 2: not queued") && sent.stderr.contains("1 of 3"),
        "{sent:?}"
    );
}

#[test]
fn a_wrong_line_keeps_the_others_from_the_queue_too() {
    let (queue, scene) = (Queue::open(), scene());
    scene.write("jobs.jsonl", &format!("{}{{}}\n", lines(&[job("x", "a")])));
    let sent = queue.adjourn(&scene, &["send", "jobs.jsonl"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(2), ""), "{sent:?}");
    assert_eq!(queue.asked(), []);
}

#[test]
fn status_gives_the_queues_counts_and_no_number_that_it_cannot_know() {
    let (queue, scene) = (Queue::open(), scene());
    let status = queue.adjourn(&scene, &["status", "--json"]).ok().json();
    assert_eq!(
        status,
        json!({
            "ready": 1, "running": 2, "waiting": 3, "done": null, "failed": null, "exhausted": null, "review": null,
            "cancelled": null, "nextDueAt": null, "gates": null, "deadLettered": 4, "approximate": true,
        })
    );
    let said = queue.adjourn(&scene, &["status"]).ok();
    assert!(
        ["ready", "running", "waiting", "dead", "approximate"]
            .iter()
            .all(|word| said.stdout.contains(word)),
        "{said:?}"
    );
}

#[test]
fn a_revision_needs_the_table_and_is_not_sent() {
    let (queue, scene) = (Queue::open(), scene());
    scene.write("jobs.jsonl", &lines(&[job("x", "a")]));
    let sent = queue.adjourn(&scene, &["send", "--revise", "jobs.jsonl"]);
    assert_eq!(sent.code, Some(2), "{sent:?}");
    assert!(sent.stderr.contains("ADJOURN_TABLE"), "{sent:?}");
    assert_eq!(queue.asked(), []);
}
