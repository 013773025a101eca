//! A provider that limits its callers, on a loopback port, and keeps its own books of who called when.
//!
//! A job is known by the last segment of its path, its tenant by the first: `POST /calls/TENANT/JOB`.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjourn_core::Timestamp;
use adjourn_worker::Clock;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    books::{Books, Call},
    limit::{Bucket, Limit},
    random::Random,
};

/// The header by which a caller marks the attempts of one job.
pub const IDEMPOTENCY_HEADER: &str = "Idempotency-Key";
/// The millisecond form of Retry-After.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How a refusal names its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// `Retry-After` in whole seconds, rounded up: the usual form.
    Seconds,
    /// `retry-after-ms`, to the millisecond.
    Milliseconds,
    /// It names none.
    Absent,
}

/// How a provider behaves.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Its limit; none refuses nobody.
    pub limit: Option<Limit>,
    /// How a refusal names its moment.
    pub retry_after: RetryAfter,
    /// How long an accepted call takes, drawn from the seed; an empty range is its start.
    pub latency: Range<Duration>,
    /// What latencies are drawn from.
    pub seed: u64,
}

impl Default for Behaviour {
    /// 20 calls a second with a burst of 20, whole seconds of Retry-After, 5 to 25 ms a call.
    fn default() -> Self {
        Self {
            limit: Some(Limit {
                burst: 20,
                per_second: 20,
            }),
            retry_after: RetryAfter::Seconds,
            latency: Duration::from_millis(5)..Duration::from_millis(25),
            seed: 1,
        }
    }
}

/// A running provider. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Behaviour,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bucket: Option<Bucket>,
    random: Random,
    books: Books,
}

impl Provider {
    /// Opens a provider on a free loopback port. Its bucket is full, and its books count time from now.
    ///
    /// # Errors
    /// When no loopback port can be bound.
    pub async fn open(behaviour: Behaviour, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let now = clock.now();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                bucket: behaviour.limit.map(|limit| Bucket::full(limit, now)),
                random: Random::seeded(behaviour.seed),
                books: Books::opened_at(now),
            }),
            behaviour,
            clock,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it is called, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The path of a job's call.
    #[must_use]
    pub fn path_of(tenant: &str, job: &str) -> String {
        format!("/calls/{tenant}/{job}")
    }

    /// The provider's books as they stand.
    #[must_use]
    pub fn books(&self) -> Books {
        self.shared.lock().books.clone()
    }

    /// Reads the books where they are, without a copy of them.
    pub fn with_books<T>(&self, read: impl FnOnce(&Books) -> T) -> T {
        read(&self.shared.lock().books)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    /// The books are whole after every statement, so a poisoned lock is as good as another.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections belong to this task, so that they end with it.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
                    // A caller that goes away is the caller's business.
                    let _ = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// What a call was given at the door.
enum Passed {
    In { number: usize, latency: Duration },
    Refused { wait: Duration },
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let mut segments = parts.uri.path().trim_start_matches('/').split('/');
    let (Some("calls"), Some(tenant), Some(job), None) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return Ok(reply(StatusCode::NOT_FOUND, r#"{"error":"no such path"}"#));
    };
    let key = parts.headers.get(IDEMPOTENCY_HEADER);
    let mut call = Call {
        tenant: tenant.to_string(),
        job: job.to_string(),
        idempotency_key: key.and_then(|value| value.to_str().ok()).map(str::to_string),
        arrived_at: shared.clock.now(),
        answered_at: None,
        refused_until: None,
    };
    // A call whose body never came had no effect.
    if body.collect().await.is_err() {
        return Ok(reply(StatusCode::BAD_REQUEST, r#"{"error":"the body broke off"}"#));
    }
    match pass(&shared, &mut call) {
        Passed::Refused { wait } => Ok(refusal(shared.behaviour.retry_after, wait)),
        Passed::In { number, latency } => {
            shared.clock.sleep(latency).await;
            let now = shared.clock.now();
            shared.lock().books.answered(number, now);
            Ok(reply(StatusCode::CREATED, r#"{"accepted":true}"#))
        }
    }
}

fn pass(shared: &Shared, call: &mut Call) -> Passed {
    let mut state = shared.lock();
    let state = &mut *state;
    // Read under the lock: the bucket sees its calls in the order of their times.
    let now = shared.clock.now();
    call.arrived_at = now;
    let taken = state.bucket.as_mut().map_or(Ok(()), |bucket| bucket.take(now));
    match taken {
        Ok(()) => {
            let latency = state.random.span(&shared.behaviour.latency);
            Passed::In {
                number: state.books.accepted(call.clone()),
                latency,
            }
        }
        Err(wait) => {
            let wait = match shared.behaviour.retry_after {
                RetryAfter::Seconds => Duration::from_secs(u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(1)),
                RetryAfter::Milliseconds | RetryAfter::Absent => wait,
            };
            let named = shared.behaviour.retry_after != RetryAfter::Absent;
            call.answered_at = Some(now);
            call.refused_until = Some(if named { now + wait } else { now });
            state.books.refused(call.clone());
            Passed::Refused { wait }
        }
    }
}

fn reply(status: StatusCode, json: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(json.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refusal(form: RetryAfter, wait: Duration) -> Response<Full<Bytes>> {
    let mut response = reply(StatusCode::TOO_MANY_REQUESTS, r#"{"error":"too many calls"}"#);
    let (name, value) = match form {
        RetryAfter::Seconds => (RETRY_AFTER, wait.as_secs()),
        RetryAfter::Milliseconds => (RETRY_AFTER_MS, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        RetryAfter::Absent => return response,
    };
    response.headers_mut().insert(name, HeaderValue::from(value));
    response
}

/// The moment before which a job may not be called again, as the newest refusal told it.
pub(super) fn is_early(refused_until: Option<Timestamp>, arrived_at: Timestamp) -> bool {
    refused_until.is_some_and(|until| arrived_at < until)
}
