//! The worker function beside a bare one: time of an invocation, time to the first poll, connections and memory.

use std::{
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
};

use crate::{
    Failure, children, jobs,
    pairs::{Stopwatch, alternate},
    provider::Provider,
    runtime_api::RuntimeApi,
    table::{Bound, Table, span},
};

/// Messages of a batch.
const BATCH: u32 = 10;
/// Batches that each function has answered before it is looked at.
const WARM: u32 = 50;
/// Timed batches of each function.
const INVOCATIONS: u32 = 400;
/// Timed starts of each function.
const STARTS: u32 = 20;
/// The most memory, in MiB.
const MEMORY: f64 = 64.0;

const QUEUE_ARN: &str = "arn:aws:sqs:eu-west-1:111122223333:jobs";

/// A running function with its own runtime interface. It ends with this value.
struct Function {
    api: RuntimeApi,
    process: Child,
    /// From before the process was started until it asked for its first invocation.
    first_poll: Duration,
}

/// Where functions live: a directory with `adjourn.toml`, and what stands for AWS.
struct Place {
    directory: tempfile::TempDir,
    provider: Provider,
    aws: Aws,
}

/// Stands for every service of AWS and counts who comes.
struct Aws {
    url: String,
    connections: Arc<AtomicU32>,
}

impl Aws {
    async fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let connections = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { url, connections })
    }
}

impl Function {
    async fn start(binary: &Path, place: &Place) -> Result<Self, Failure> {
        let mut api = RuntimeApi::start().await?;
        let aws = &place.aws.url;
        let mut command = Command::new(binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "worker")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "worker")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "1")
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "111122223333")
            .env("AWS_SECRET_ACCESS_KEY", "x")
            .env("AWS_ENDPOINT_URL", aws)
            .env("LAMBDA_TASK_ROOT", place.directory.path())
            .env("ADJOURN_QUEUE_URL", format!("{aws}/111122223333/jobs"))
            .env("ADJOURN_VISIBILITY_S", "180")
            .env("ADJOURN_RETENTION_S", "345600")
            .env("ADJOURN_MAX_RECEIVE_COUNT", "10")
            .env("BASE_URL", &place.provider.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let watch = Stopwatch::start();
        let mut process = command.spawn()?;
        tokio::select! {
            asked = api.asked() => asked?,
            ended = process.wait() => return Err(format!("{} ended: {}", binary.display(), ended?).into()),
        }
        let first_poll = watch.read();
        Ok(Self {
            api,
            process,
            first_poll,
        })
    }

    /// The time of one batch that leaves nothing.
    async fn invoke(&mut self, event: &Bytes) -> Result<Duration, Failure> {
        let (took, answer) = self.api.invoke(event.clone()).await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let failures = answer.get("batchItemFailures").and_then(Value::as_array);
        if failures.is_some_and(Vec::is_empty) {
            Ok(took)
        } else {
            Err(format!("the function answered {answer}").into())
        }
    }

    /// The most memory that it has had, in MiB.
    fn peak_memory(&self) -> Result<f64, Failure> {
        let id = self.process.id().ok_or("the function has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u32 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .ok_or("this system does not tell a process's peak memory")?
            .trim()
            .parse()?;
        Ok(f64::from(kib) / 1024.0)
    }

    async fn end(mut self) -> Result<(), Failure> {
        Ok(self.process.kill().await?)
    }
}

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let (worker, bare) = (children::beside("worker")?, children::beside("bare-function")?);
    let place = Place {
        directory: children::directory()?,
        provider: Provider::start(Duration::ZERO).await?,
        aws: Aws::start().await?,
    };
    let settings = jobs::settings(&place.provider.url, true);
    std::fs::write(place.directory.path().join("adjourn.toml"), settings)?;
    invocations(table, &place, &worker, &bare).await?;
    starts(table, &place, &worker, &bare).await
}

async fn invocations(table: &mut Table, place: &Place, worker: &Path, bare: &Path) -> Result<(), Failure> {
    let event = event();
    let before = place.provider.answered().await?;
    let mut ours = Function::start(worker, place).await?;
    let mut other = Function::start(bare, place).await?;
    for _ in 0..WARM {
        ours.invoke(&event).await?;
        other.invoke(&event).await?;
    }
    let (our_memory, other_memory) = (ours.peak_memory()?, other.peak_memory()?);
    let compared = alternate(INVOCATIONS, async |our_turn| {
        if our_turn {
            ours.invoke(&event).await
        } else {
            other.invoke(&event).await
        }
    })
    .await?;
    let calls = place.provider.answered().await? - before;
    let expected = 2 * (WARM + INVOCATIONS) * BATCH;
    if calls != expected {
        return Err(format!("{calls} calls were made; {expected} were asked for").into());
    }
    let each = |seconds: f64| span(seconds / f64::from(BATCH));
    table.add(
        "function: time of a message, batch of 10, beside a bare one",
        each(compared.ours),
        each(compared.other),
        compared.ratio,
        Bound::AtMost(1.2),
    );
    table.add(
        "function: peak memory after 50 batches, MiB",
        format!("{our_memory:.1}"),
        format!("{other_memory:.1}"),
        our_memory,
        Bound::AtMost(MEMORY),
    );
    ours.end().await?;
    other.end().await
}

async fn starts(table: &mut Table, place: &Place, worker: &Path, bare: &Path) -> Result<(), Failure> {
    // Once each before, so that both binaries are in memory.
    for binary in [worker, bare] {
        Function::start(binary, place).await?.end().await?;
    }
    let before = place.aws.connections.load(Ordering::Relaxed);
    let mut ours_came = 0;
    let compared = alternate(STARTS, async |our_turn| {
        let before = place.aws.connections.load(Ordering::Relaxed);
        let function = Function::start(if our_turn { worker } else { bare }, place).await?;
        let first_poll = function.first_poll;
        // It has nothing to do, so who came until its end came for its start.
        function.end().await?;
        if our_turn {
            ours_came += place.aws.connections.load(Ordering::Relaxed) - before;
        }
        Ok(first_poll)
    })
    .await?;
    let came = place.aws.connections.load(Ordering::Relaxed) - before;
    table.add(
        "function: start to first poll, beside a bare one",
        span(compared.ours),
        span(compared.other),
        compared.ratio,
        Bound::AtMost(1.3),
    );
    table.add(
        "function: connections to AWS before the first poll, 20 starts",
        ours_came.to_string(),
        (came - ours_came).to_string(),
        f64::from(ours_came),
        Bound::AtMost(0.0),
    );
    Ok(())
}

/// A batch as SQS hands it to a function.
fn event() -> Bytes {
    let records: Vec<Value> = (0..BATCH)
        .map(|number| {
            json!({
                "messageId": format!("059f36b4-87a3-44ab-83d2-66197597{number:04}"),
                "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
                "body": jobs::line(number),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1783714367000",
                    "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                    "ApproximateFirstReceiveTimestamp": "1783714367010",
                },
                "messageAttributes": {},
                "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
                "eventSource": "aws:sqs",
                "eventSourceARN": QUEUE_ARN,
                "awsRegion": "eu-west-1",
            })
        })
        .collect();
    Bytes::from(json!({ "Records": records }).to_string())
}
