//! A service on 127.0.0.1 that gives one answer and remembers what it was asked, for the ports of AWS; and their requests.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_aws::{Clients, Environment, EventBridgeScheduler, Settings, SqsQueue};
use adjourn_core::{DeferralId, Envelope, Mechanism, Timestamp};
use adjourn_worker::{
    Message, POLICY_VERSION, Receipt, SystemClock, Transition,
    port::{Copy, ScheduledCopy, Scheduler},
};
use aws_config::{BehaviorVersion, Region, retry::RetryConfig};
use aws_sdk_sqs::config::Credentials;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A service that answers every request with the same JSON.
pub(super) struct Service {
    url: String,
    clients: Clients,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Service {
    pub(super) async fn answering(answer: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.to_string());
                tokio::spawn(async move {
                    while let Some(body) = request(&mut stream).await {
                        seen.lock().unwrap().push(body);
                        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
                        if stream.write_all((head + &answer).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .endpoint_url(&url)
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("111122223333", "x", None, None, "test"))
            .retry_config(RetryConfig::disabled())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .load()
            .await;
        Self {
            url,
            clients: Clients::of(&config),
            asked,
        }
    }

    /// What it was asked, oldest first.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    fn settings(&self, queue: &str) -> Settings {
        let environment = Environment::new([
            ("ADJOURN_QUEUE_URL", format!("{}/111122223333/{queue}", self.url)),
            ("ADJOURN_VISIBILITY_S", "180".to_string()),
            ("ADJOURN_RETENTION_S", "864000".to_string()),
            ("ADJOURN_SCHEDULE_GROUP", "adjourn".to_string()),
            (
                "ADJOURN_SCHEDULE_ROLE_ARN",
                "arn:aws:iam::111122223333:role/schedules".to_string(),
            ),
            (
                "ADJOURN_SCHEDULE_DLQ_ARN",
                "arn:aws:sqs:eu-west-1:111122223333:unsent".to_string(),
            ),
        ]);
        Settings::read(&environment).unwrap()
    }

    /// The queue port on this service.
    pub(super) fn queue(&self, name: &str) -> SqsQueue {
        SqsQueue::new(&self.clients, self.settings(name).queue)
    }
}

/// The JSON of the next request on a connection.
async fn request(stream: &mut tokio::net::TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            return serde_json::from_str(body).ok();
        }
    }
}

/// What CreateSchedule is asked for a job that waits for two hours.
pub(super) async fn created_schedule() -> Value {
    let service =
        Service::answering(json!({"ScheduleArn": "arn:aws:scheduler:eu-west-1:111122223333:schedule/adjourn/x"})).await;
    let settings = service.settings("jobs");
    let schedules = settings.schedules.clone().unwrap();
    let scheduler = EventBridgeScheduler::new(&service.clients, schedules, &settings.queue, Arc::new(SystemClock));
    let at = (adjourn_worker::Clock::now(&SystemClock) + Duration::from_secs(7200)).floor_to(Duration::from_secs(60));
    scheduler.schedule(&scheduled_copies(1, at)).await.remove(0).unwrap();
    service.asked().remove(0)
}

fn message(n: usize) -> Arc<Message> {
    let now = Timestamp::EPOCH;
    Arc::new(Message {
        id: format!("m-{n}"),
        receipt: format!("handle-{n}"),
        queue: "jobs".to_string(),
        body: format!("job {n}"),
        attributes: Default::default(),
        group: Some("g".to_string()),
        deduplication_id: None,
        trace_header: None,
        sent_at: now,
        first_received_at: now,
        received_at: now,
        receive_count: 1,
    })
}

fn envelope(message: &Message, due: Timestamp) -> Envelope {
    let mut envelope = Envelope::first(DeferralId::new(&message.id), message.sent_at, message.content());
    envelope.identity = envelope.identity.next();
    envelope.due = due;
    envelope
}

fn receipt(envelope: &Envelope) -> Receipt {
    Receipt {
        at: envelope.due,
        transition: Transition::Deferred,
        cause: "burst".to_string(),
        until: Some(envelope.due),
        mechanism: Mechanism::Delay,
        sequence: envelope.identity.sequence,
        gate: None,
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: None,
    }
}

/// Copies of messages of their own, without a delay.
pub(super) fn copies(count: usize) -> Vec<Copy> {
    (0..count).flat_map(|n| copies_of(&message(n), 1)).collect()
}

/// Copies of one message, without a delay.
pub(super) fn copies_of(original: &Arc<Message>, count: usize) -> Vec<Copy> {
    let envelope = envelope(original, original.sent_at);
    let copy = Copy {
        original: Arc::clone(original),
        delay: Duration::ZERO,
        receipt: receipt(&envelope),
        envelope,
    };
    vec![copy; count]
}

/// Copies of messages of their own, for a schedule at this moment.
pub(super) fn scheduled_copies(count: usize, at: Timestamp) -> Vec<ScheduledCopy> {
    let copies = (0..count).map(|n| {
        let original = message(n);
        let envelope = envelope(&original, at);
        ScheduledCopy {
            original,
            at,
            receipt: receipt(&envelope),
            envelope,
        }
    });
    copies.collect()
}

/// The sources under a folder of the workspace: path and text.
pub(super) fn sources_of(folder: &str) -> Vec<(String, String)> {
    fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&tests.parent().unwrap().join(folder), &mut found);
    found
}
