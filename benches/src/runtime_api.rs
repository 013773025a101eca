//! Lambda's runtime interface as one function sees it, on a loopback port (AWS Lambda Developer Guide, "Using the Lambda
//! runtime API"), with the moments at which the function speaks.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

use adjourn_worker::{Clock as _, SystemClock};

use crate::{Failure, pairs::Stopwatch};

/// The function's time limit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a function said.
enum Said {
    /// It asked for its next invocation.
    Asked,
    /// It answered one, after this time.
    Answered(Duration, Bytes),
    /// It reported an error.
    Failed(String),
}

/// One function's runtime interface.
pub(crate) struct RuntimeApi {
    pub(crate) address: SocketAddr,
    events: mpsc::Sender<Bytes>,
    said: mpsc::Receiver<Said>,
    server: JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Shared {
    events: Mutex<mpsc::Receiver<Bytes>>,
    said: mpsc::Sender<Said>,
    /// When the last event was handed out.
    handed_out: Mutex<Option<Stopwatch>>,
    number: AtomicU32,
}

impl RuntimeApi {
    pub(crate) async fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (events, waiting) = mpsc::channel(1);
        let (speaks, said) = mpsc::channel(4);
        let shared = Arc::new(Shared {
            events: Mutex::new(waiting),
            said: speaks,
            handed_out: Mutex::new(None),
            number: AtomicU32::new(0),
        });
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Only slower without it.
                let _ = stream.set_nodelay(true);
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self {
            address,
            events,
            said,
            server,
        })
    }

    /// Waits until the function asks for an invocation.
    pub(crate) async fn asked(&mut self) -> Result<(), Failure> {
        match self.said.recv().await {
            Some(Said::Asked) => Ok(()),
            Some(Said::Answered(..)) => Err("the function answered what it was not asked".into()),
            Some(Said::Failed(words)) => Err(words.into()),
            None => Err("the runtime interface ended".into()),
        }
    }

    /// Hands an event out and waits for its answer: the time between the two, and the answer.
    pub(crate) async fn invoke(&mut self, event: Bytes) -> Result<(Duration, Bytes), Failure> {
        self.events.send(event).await?;
        loop {
            match self.said.recv().await {
                Some(Said::Asked) => {}
                Some(Said::Answered(took, answer)) => return Ok((took, answer)),
                Some(Said::Failed(words)) => return Err(words.into()),
                None => return Err("the runtime interface ended".into()),
            }
        }
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_string();
    // Nobody may be listening any more when a function is ended.
    match (request.method(), path.rsplit('/').next()) {
        (&Method::GET, Some("next")) => {
            let _ = shared.said.send(Said::Asked).await;
            let Some(event) = shared.events.lock().await.recv().await else {
                return Ok(status(StatusCode::GONE));
            };
            let number = shared.number.fetch_add(1, Ordering::Relaxed);
            let ends_at = (SystemClock.now() + TIMEOUT).as_unix_ms();
            *shared.handed_out.lock().await = Some(Stopwatch::start());
            let response = Response::builder()
                .header("content-type", "application/json")
                .header("lambda-runtime-aws-request-id", format!("request-{number}"))
                .header("lambda-runtime-deadline-ms", ends_at)
                .header(
                    "lambda-runtime-invoked-function-arn",
                    "arn:aws:lambda:eu-west-1:111122223333:function:worker",
                )
                .header(
                    "lambda-runtime-trace-id",
                    "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0",
                )
                .body(Full::from(event));
            Ok(response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR)))
        }
        (_, Some("response")) => {
            let body = body(request).await;
            if let Some(watch) = shared.handed_out.lock().await.take() {
                let _ = shared.said.send(Said::Answered(watch.read(), body)).await;
            }
            Ok(status(StatusCode::ACCEPTED))
        }
        _ => {
            let body = body(request).await;
            let words = format!("the function said {path}: {}", String::from_utf8_lossy(&body));
            let _ = shared.said.send(Said::Failed(words)).await;
            Ok(status(StatusCode::ACCEPTED))
        }
    }
}

async fn body(request: Request<Incoming>) -> Bytes {
    let collected = request.into_body().collect().await;
    collected.map(|body| body.to_bytes()).unwrap_or_default()
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}
