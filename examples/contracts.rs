//! Four contracts, each a file in `contracts/`, with a response that is read by it.
//!
//! | file | what it shows |
//! | --- | --- |
//! | `headers-and-body` | limits in headers with a unit of their own, and the body says which of them refused |
//! | `documentation-only` | a refusal without a time: the next midnight in a zone, with summer time |
//! | `client-not-ours` | a client library's own error, made a refusal by a hook in Rust |
//! | `declares-nothing` | no contract at all |

use std::{fmt, path::Path, sync::Arc, time::Duration};

use adjourn_core::{Kind, RateLimitError, ScopeHint, Timestamp};
use adjourn_http::{
    Classified, Classify, ContractReader, Explainer, Explanation, Pasted, ReadResponse, Response, Settings,
};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, VirtualClock, Worker, fake::FakeQueue};

#[cfg(test)]
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// What `provider` of `example` says by this response, received at `received_at`.
#[cfg(test)]
fn read(example: &str, provider: &str, response: &str, received_at: &str) -> Explanation {
    let settings = Settings::parse(&file(&format!("{example}.toml"))).unwrap();
    let known = settings.provider(provider).unwrap();
    let explainer = Explainer::default().provider(provider);
    let explainer = match known.contract() {
        Some(contract) => explainer.contract((**contract).clone()),
        None => explainer,
    };
    explainer.explain(&Pasted::read(response.as_bytes(), Some(at(received_at)), at(received_at)).unwrap())
}

#[test]
fn the_body_says_which_of_the_limits_in_the_headers_refused() {
    let day = file("headers-and-body.http");
    let told = read("headers-and-body", "ledger", &day, "2026-07-10T20:13:47Z");
    assert_eq!(
        (told.rate_limited, told.kind, told.scope_hint),
        (true, Kind::Daily, ScopeHint::Account)
    );
    // 13,573,000 ms: the day's reset, not the burst's.
    assert_eq!(told.retry_at, Some(at("2026-07-11T00:00:00Z")));
    assert_eq!((told.reason.as_str(), told.code.as_deref()), ("day", Some("DAY")));
    assert!(told.hint.unwrap().text.contains("20,000 calls a day"));

    let burst = day.replace("DAY", "BURST").replace("12, 0", "0, 7400");
    let told = read("headers-and-body", "ledger", &burst, "2026-07-10T20:13:47Z");
    assert_eq!((told.kind, told.wait_ms), (Kind::Short, Some(4000)));

    let budget = day.replace("DAY", "BUDGET");
    let told = read("headers-and-body", "ledger", &budget, "2026-07-10T20:13:47Z");
    assert_eq!((told.rate_limited, told.kind), (false, Kind::AccountDisabled));
    assert_eq!(told.decision.kind, "reject", "no wait helps");
}

#[test]
fn a_window_of_the_documentation_computes_the_moment() {
    let day = file("documentation-only.http");
    // The night to 8 March 2026 is the last in winter time: midnight in New York is at 5:00 UTC, and one night later at 4:00.
    for (received_at, midnight) in [
        ("2026-03-07T20:00:00Z", "2026-03-08T05:00:00Z"),
        ("2026-03-08T20:00:00Z", "2026-03-09T04:00:00Z"),
    ] {
        let undated = day.replace("Date: Sat, 07 Mar 2026 20:00:00 GMT\n", "");
        let told = read("documentation-only", "tides", &undated, received_at);
        assert_eq!(
            (told.kind, told.scope_hint, told.retry_at),
            (Kind::Daily, ScopeHint::App, Some(at(midnight))),
            "{received_at}"
        );
    }
    let month = day.replace("daily", "monthly");
    let told = read("documentation-only", "tides", &month, "2026-03-07T20:00:00Z");
    assert_eq!(
        (told.kind, told.retry_at),
        (Kind::Monthly, Some(at("2026-04-01T04:00:00Z")))
    );
    let right = day.replace("Your daily allowance is used up", "You may not see this");
    let told = read("documentation-only", "tides", &right, "2026-03-07T20:00:00Z");
    assert_eq!((told.rate_limited, told.decision.kind), (false, "reject"));
}

#[test]
fn without_a_contract_what_providers_have_in_common_is_read() {
    let told = read(
        "declares-nothing",
        "corner-shop",
        &file("declares-nothing.http"),
        "2026-07-10T20:13:47Z",
    );
    assert_eq!(
        (told.rate_limited, told.wait_ms, told.scope_hint),
        (true, Some(12_000), ScopeHint::Unknown)
    );
}

/// A client library as somebody else wrote it: it has read the response and keeps what it thinks matters.
mod parcels {
    #[derive(Debug)]
    pub(crate) enum Error {
        /// The server said no: its status and the text that came with it.
        Api { status: u16, text: String },
        /// The address is wrong.
        Address,
    }

    pub(crate) fn print_label(parcel: &str) -> Result<(), Error> {
        match parcel {
            // The seconds to wait are in hexadecimal: 0x1c20 is two hours.
            "one too many" => Err(Error::Api {
                status: 400,
                text: "PX-DAY-1c20".to_string(),
            }),
            _ => Err(Error::Address),
        }
    }
}

/// Reads the library's codes: `PX-DAY-` and the seconds to wait in hexadecimal.
#[derive(Debug)]
struct ParcelCodes;

impl Classify for ParcelCodes {
    fn classify(&self, response: &Response<'_>) -> Option<Classified> {
        let text = std::str::from_utf8(response.body).ok()?;
        let seconds = u64::from_str_radix(text.strip_prefix("PX-DAY-")?, 16).ok()?;
        let mut limit = Classified::limit(Kind::Unknown);
        limit.reason = Some("labels-a-day".to_string());
        limit.retry_at = Some(response.received_at + Duration::from_secs(seconds));
        Some(limit)
    }
}

/// The library's error with the refusal where adjourn finds it: in the source chain.
#[derive(Debug)]
enum LabelError {
    Refused(RateLimitError),
    Failed(parcels::Error),
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("no label now"),
            Self::Failed(error) => write!(f, "no label: {error:?}"),
        }
    }
}

impl std::error::Error for LabelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) => None,
        }
    }
}

struct Labels {
    reader: ContractReader,
    clock: Arc<dyn Clock>,
}

impl Labels {
    /// What the library's error means: a refusal where the reader says so, and otherwise a failure.
    fn meaning(&self, error: parcels::Error) -> LabelError {
        let parcels::Error::Api { status, text } = &error else {
            return LabelError::Failed(error);
        };
        let response = Response {
            status: (*status).try_into().unwrap_or_default(),
            headers: &http::HeaderMap::new(),
            body: text.as_bytes(),
            received_at: self.clock.now(),
        };
        let reading = self.reader.read("parcels", &response);
        if reading.is_limited() {
            LabelError::Refused(reading.into_signal().into())
        } else {
            LabelError::Failed(error)
        }
    }
}

impl Handler for Labels {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        parcels::print_label(job.body()).map_err(|error| self.meaning(error))?;
        Ok(Done::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_library_s_own_error_puts_the_job_off_by_a_hook() {
    let settings = Settings::parse(&file("client-not-ours.toml")).unwrap();
    let noon = at("2026-07-10T12:00:00Z");
    let clock = Arc::new(VirtualClock::starting_at(noon));
    let queue = FakeQueue::standard("labels", clock.clone());
    let labels = Labels {
        reader: ContractReader::of(&settings).with_classifier("parcels", Arc::new(ParcelCodes)),
        clock: clock.clone(),
    };

    let refusal = labels.meaning(parcels::print_label("one too many").unwrap_err());
    let LabelError::Refused(refusal) = refusal else {
        panic!("it is a refusal: {refusal}")
    };
    let signal = refusal.signal();
    // The code says when; the contract says which kind of limit that is, and whom it concerns.
    assert_eq!(signal.earliest_retry_at(), Some(noon + Duration::from_secs(7200)));
    assert_eq!((signal.limit_kind(), signal.concerns()), (Kind::Daily, ScopeHint::User));
    assert!(matches!(
        labels.meaning(parcels::print_label("nowhere").unwrap_err()),
        LabelError::Failed(_)
    ));

    let worker = Worker::builder(labels, Arc::new(queue.clone())).clock(clock).build();
    queue.send_body("one too many").unwrap();
    let batch = queue.receive(10).await.unwrap();
    worker.run_batch(batch, None).await;
    let steps = queue.steps();
    let [step] = steps.as_slice() else {
        panic!("one wait was accepted: {steps:?}")
    };
    assert!(step.due >= noon + Duration::from_secs(7200), "{}", step.due);
    assert!(queue.dead_letters().is_empty());
}
