//! A provider on a loopback port that answers as the test says and keeps what it saw.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use adjourn_core::Timestamp;
use adjourn_worker::{Clock as _, SystemClock};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::Notify};

use super::account::PATIENCE;

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// When it arrived, by the same clock that the worker reads.
    pub(crate) at: Timestamp,
}

/// What the provider answers.
pub(crate) enum Answer {
    Done,
    /// 429 with this Retry-After.
    NotNow(&'static str),
    Status(u16),
    /// Never.
    Silence,
}

pub(crate) struct Provider {
    pub(crate) url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: Mutex<Vec<Call>>,
    more: Notify,
}

impl Provider {
    /// Answers each call by `answer`, which is told how often this path was called before.
    pub(crate) async fn start(answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, answer) = (Arc::new(Seen::default()), Arc::new(answer));
        let (all, decide) = (Arc::clone(&seen), answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&all), Arc::clone(&decide));
                let service = service_fn(move |request| reply(request, Arc::clone(&seen), Arc::clone(&answer)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, seen }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.seen.calls.lock().unwrap().clone()
    }

    /// Waits until there have been `count` calls.
    pub(crate) async fn called(&self, count: usize) -> Vec<Call> {
        let enough = async {
            loop {
                let more = self.seen.more.notified();
                if self.calls().len() >= count {
                    return;
                }
                more.await;
            }
        };
        let timely = tokio::time::timeout(PATIENCE, enough).await.is_ok();
        assert!(timely, "{} of {count} calls came", self.calls().len());
        self.calls()
    }
}

async fn reply(
    request: Request<hyper::body::Incoming>,
    seen: Arc<Seen>,
    answer: Arc<impl Fn(&Call, usize) -> Answer>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let at = SystemClock.now();
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let call = Call {
        path: head.uri.path().to_string(),
        headers: head.headers.iter().map(header).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
        at,
    };
    let before = {
        let mut calls = seen.calls.lock().unwrap();
        let before = calls.iter().filter(|earlier| earlier.path == call.path).count();
        calls.push(call.clone());
        before
    };
    seen.more.notify_waiters();
    let response = Response::builder();
    let response = match answer(&call, before) {
        Answer::Done => response.status(200),
        Answer::NotNow(retry_after) => response.status(429).header("Retry-After", retry_after),
        Answer::Status(status) => response.status(status),
        Answer::Silence => std::future::pending().await,
    };
    Ok(response.body(Full::new(Bytes::from_static(b"{}"))).unwrap())
}
