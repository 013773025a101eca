//! What a layer knows of its provider, and a response as it was read: once, however many layers there are.

use std::{fmt, sync::Arc, time::Duration};

use adjourn_core::{Kind, RateLimitError, ScopeKey, Signal, Timestamp};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::LayerResponse;
use crate::{
    Contract, ContractReader, Costs, Executed, Feedback, Now, Provider, READ_BYTES, ReadResponse, Reading, Response,
    Settings, StatusTest, WaitPolicy, budget,
    requester::floored,
    waiting::{self, TooLate},
};

/// What one call may take where nobody says.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the beginning of a body is waited for. Whatever says why a call was refused comes at once.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// What a layer knows of its provider.
#[derive(Clone)]
pub(super) struct Sight {
    pub(super) provider: Arc<str>,
    /// Where it was said.
    pub(super) scope: Option<ScopeKey>,
    pub(super) timeout: Duration,
    pub(super) now: Now,
    reader: Arc<dyn ReadResponse>,
    floor_ms: Option<u64>,
    /// The settings' least wait after a refusal.
    min_retry_after: Duration,
    /// The contract, where it states what calls cost.
    costs: Option<Arc<Contract>>,
    /// The path of the provider's base URL, where that is known: a contract's paths stand below it.
    base: Box<str>,
    /// Whether a 2xx may be a refusal, by its body too.
    reads_success: bool,
}

impl fmt::Debug for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sight")
            .field("provider", &self.provider)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

/// A response as it was read; it travels in the response's extensions, so that the layers above need not read it again.
#[derive(Clone)]
pub(super) struct Told {
    reading: Arc<Reading>,
    /// When the budget lets the call be repeated, the moment at which its own pause ends.
    resumes_at: Option<Timestamp>,
    /// When that was read off the caller's time.
    pub(super) heard_at: Timestamp,
}

/// What a budget is told of a response.
pub(super) struct Heard<'r> {
    pub(super) status: StatusCode,
    pub(super) headers: &'r HeaderMap,
    /// Its beginning, as far as it was read.
    pub(super) body: &'r [u8],
    pub(super) reading: &'r Reading,
    pub(super) received_at: Timestamp,
    pub(super) now: Timestamp,
}

/// What a response means for the call.
pub(super) enum Meaning {
    /// Nothing that a layer has to do with.
    Passes,
    /// "Not now"; and the budget's moment.
    Refused(Box<Signal>, Option<Timestamp>),
    /// It may be tried again, not before a moment that the server named; and the budget's moment.
    Failed(Option<Timestamp>, Option<Timestamp>),
}

impl Sight {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: Arc::from(provider),
            scope: None,
            timeout: DEFAULT_TIMEOUT,
            now: Arc::new(budget::wall),
            reader: Arc::new(ContractReader::default()),
            floor_ms: None,
            min_retry_after: Duration::ZERO,
            costs: None,
            base: Box::from(""),
            reads_success: false,
        }
    }

    /// As the settings have it.
    pub(super) fn of(settings: &Settings, provider: &Provider) -> Self {
        let mut sight = Self::new(provider.name());
        sight.timeout = provider.timeout();
        sight.min_retry_after = settings.policy().deferral.min_retry_after;
        sight.base = Box::from(provider.base_url().path().trim_end_matches('/'));
        if let Some(contract) = provider.contract() {
            sight.contract(contract);
        }
        sight
    }

    pub(super) fn contract(&mut self, contract: &Contract) {
        let reader = ContractReader::default().with_contract(&self.provider, contract.clone());
        self.reader = Arc::new(reader);
        self.floor_ms = contract.min_retry_after_ms;
        self.costs = (!contract.costs.is_empty()).then(|| Arc::new(contract.clone()));
        self.reads_success = contract.classify.iter().any(|rule| {
            rule.status.iter().any(|test| match test {
                StatusTest::Is(status) => status / 100 == 2,
                StatusTest::Class(hundred) => *hundred == 2,
            })
        });
    }

    pub(super) fn reader(&mut self, reader: Arc<dyn ReadResponse>) {
        self.reader = reader;
        self.reads_success = true;
    }

    /// Reads a response, unless a layer below has. `heard` is told what was read; its answer is when the call may be repeated. The
    /// beginning of a success is read where it may say something, or where `heard` wants it.
    pub(super) async fn read<P: LayerResponse>(
        &self,
        mut response: P,
        wants_body: bool,
        heard: impl FnOnce(&Heard<'_>) -> Feedback,
    ) -> (P::Seen, Told) {
        let (status, received_at) = (response.status(), (self.now)());
        if let Some(told) = response.extensions().remove::<Told>() {
            return (response.begun(0, READ_WITHIN).await.1, told);
        }
        let headers = response.headers().clone();
        let most = if status.is_success() && !self.reads_success && !wants_body {
            0
        } else {
            READ_BYTES
        };
        let (read, seen) = response.begun(most, READ_WITHIN).await;
        let reading = self.reading(status, &headers, &read, received_at);
        let heard_at = (self.now)();
        let feedback = heard(&Heard {
            status,
            headers: &headers,
            body: &read,
            reading: &reading,
            received_at,
            now: heard_at,
        });
        let told = Told {
            reading: Arc::new(reading),
            resumes_at: feedback.retry_after.map(|wait| heard_at + wait),
            heard_at,
        };
        (seen, told)
    }

    fn reading(&self, status: StatusCode, headers: &HeaderMap, body: &Bytes, received_at: Timestamp) -> Reading {
        let response = Response {
            status,
            headers,
            body: body.get(..READ_BYTES).unwrap_or(body),
            received_at,
        };
        self.reader.read(&self.provider, &response)
    }

    /// The least pause after a refusal that names a time.
    pub(super) fn least_wait(&self) -> Duration {
        let policy = WaitPolicy {
            backoff: Vec::new(),
            min_retry_after: self.min_retry_after,
        };
        policy.least(self.floor_ms)
    }

    /// What calls cost by the contract, and the path by which it knows this one; none where it states nothing.
    pub(super) fn costs<'s>(&'s self, path: &'s str) -> Option<(Costs<'s>, &'s str)> {
        let below = path.strip_prefix(&*self.base).unwrap_or(path);
        self.costs.as_deref().map(|contract| (Costs::of(contract), below))
    }

    /// What a response means that was read so. A refusal that carried out a part of the call passes: repeated whole, its done
    /// parts would be done twice.
    pub(super) fn meaning(&self, status: StatusCode, told: &Told) -> Meaning {
        let reading = &told.reading;
        let signal = reading.signal();
        if reading.is_limited() && reading.executed() != Some(Executed::Some) {
            let signal = floored(signal.clone(), self.floor_ms);
            return Meaning::Refused(Box::new(signal), told.resumes_at);
        }
        if signal.limit_kind() == Kind::AccountDisabled {
            return Meaning::Refused(Box::new(signal.clone()), None);
        }
        match status.as_u16() {
            408 | 425 | 500.. => Meaning::Failed(reading.not_before(), told.resumes_at),
            _ => Meaning::Passes,
        }
    }

    /// A call that comes too late, for the caller: it was not made.
    pub(super) fn too_late(&self, too_late: TooLate) -> RateLimitError {
        self.refusal(waiting::refused(&self.provider, too_late, (self.now)()))
    }

    /// A refusal for the caller.
    pub(super) fn refusal(&self, signal: Signal) -> RateLimitError {
        let refusal = RateLimitError::from(signal);
        match &self.scope {
            Some(key) => refusal.in_scope(key.clone()),
            None => refusal,
        }
    }
}
