//! Performs HTTP jobs: calls bounded in time and bytes, and what their answers mean.

mod answer;
mod attempt;
mod client;
mod exchange;
mod outgoing;
mod paced;
mod redirect;
mod waited;

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjourn_core::{Outcome, Timestamp};

pub use answer::Answer;
pub(crate) use answer::{chain, floored, meaning};
pub use client::ClientError;
pub(crate) use exchange::read_body;

use crate::{
    Budgets, Credential, Credentials, HttpJob, READ_BYTES, ReadResponse, Reading, Response, Results, Settings, Token,
    TokenSource, WaitPolicy, scope,
    settings::redacted,
    token::{self, ClientCredentials, Endpoint},
};
use attempt::Attempt;
use client::Clients;
use exchange::Received;
use outgoing::Order;
use paced::Started;

/// The most bytes of a response that are kept as a job's result.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;

/// Tells the time; the requester itself reads no clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Performs HTTP jobs under the settings. Cheap to clone; one for a process, since it holds the connections.
#[derive(Clone)]
pub struct Requester {
    inner: Arc<Inner>,
    waits: Arc<WaitPolicy>,
    /// None where somebody else paces the calls: a worker's gates.
    budgets: Option<Budgets>,
    /// By provider.
    tokens: Arc<BTreeMap<String, Arc<dyn TokenSource>>>,
}

struct Inner {
    settings: Settings,
    credentials: Credentials,
    clients: Clients,
    reader: Arc<dyn ReadResponse>,
    now: Now,
}

impl fmt::Debug for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requester")
            .field("credentials", &self.inner.credentials)
            .field("reader", &self.inner.reader)
            .finish_non_exhaustive()
    }
}

impl Requester {
    /// A requester for the providers of `settings`, whose responses `reader` reads.
    ///
    /// # Errors
    /// When the machine's certificates cannot be loaded.
    pub fn new(
        settings: Settings,
        credentials: Credentials,
        reader: Arc<dyn ReadResponse>,
        now: Now,
    ) -> Result<Self, ClientError> {
        let clients = Clients::for_providers(settings.providers())?;
        let waits = WaitPolicy {
            min_retry_after: settings.policy().deferral.min_retry_after,
            ..WaitPolicy::default()
        };
        let budgets = Budgets::of(&settings);
        let mut tokens = BTreeMap::<String, Arc<dyn TokenSource>>::new();
        for provider in settings.providers() {
            let oauth2 = provider.credential().and_then(Credential::oauth2);
            if let (Some(oauth2), Some(secret)) = (oauth2, credentials.secret(provider.name())) {
                let endpoint = Endpoint {
                    provider: provider.name().to_string(),
                    oauth2: oauth2.clone(),
                    secret: secret.clone(),
                    client: client::to(oauth2.token_url(), provider.timeout())?,
                    budget: budgets.budget(&token::scope(provider.name())),
                    timeout: provider.timeout(),
                    least_wait: waits.least(None),
                    now: Arc::clone(&now),
                };
                let source = ClientCredentials::new(endpoint);
                tokens.insert(provider.name().to_string(), Arc::new(source));
            }
        }
        Ok(Self {
            budgets: Some(budgets),
            tokens: Arc::new(tokens),
            inner: Arc::new(Inner {
                settings,
                credentials,
                clients,
                reader,
                now,
            }),
            waits: Arc::new(waits),
        })
    }

    /// The same requester, whose [`call`](Self::call) waits as `policy` says; without it by the default ladder and
    /// `min_retry_after_ms` of the settings.
    #[must_use]
    pub fn waiting(mut self, policy: WaitPolicy) -> Self {
        self.waits = Arc::new(policy);
        self
    }

    /// The same requester, whose [`call`](Self::call) spends these budgets; without it, budgets of its own by `rate`, `lanes` and
    /// `max_in_flight` of the settings. None: calls are paced elsewhere.
    #[must_use]
    pub fn pacing(mut self, budgets: Option<Budgets>) -> Self {
        self.budgets = budgets;
        self
    }

    /// The same requester, which asks `source` for the tokens of a provider's calls. They go where the provider's credential says,
    /// or into `Authorization: Bearer` where it has none.
    #[must_use]
    pub fn tokens(mut self, provider: &str, source: Arc<dyn TokenSource>) -> Self {
        let mut tokens = BTreeMap::clone(&self.tokens);
        tokens.insert(provider.to_string(), source);
        self.tokens = Arc::new(tokens);
        self
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Makes the job's call once and says what its answer means. It is over by `must_end_by`, and within the provider's own
    /// timeout. `lasting_id` is the name that the job's message keeps for life; the idempotency key is made from it where
    /// the job has neither a key nor an id.
    pub async fn perform(&self, job: &HttpJob, lasting_id: &str, must_end_by: Timestamp) -> Answer {
        let attempt = self.attempt(job, lasting_id, Some(must_end_by), None).await;
        attempt.unwrap_or_else(Attempt::from).answer
    }

    fn reading(&self, order: &Order<'_>, received: &Received) -> Reading {
        let response = Response {
            status: received.status,
            headers: &received.headers,
            body: received.body.get(..READ_BYTES).unwrap_or(&received.body),
            received_at: received.at,
        };
        self.inner.reader.read(order.provider.name(), &response)
    }

    /// Tells the budget what a response says that is no answer to the call: a redirect.
    fn hear(&self, order: &Order<'_>, received: &Received, started: Option<&Started>) {
        if let Some(started) = started {
            let reading = self.reading(order, received);
            started.cost_told_by(order, &received.headers, &received.body);
            started
                .in_flight
                .heard_within(received.status.as_u16(), &reading, received.at, || {
                    self.pause_bounds(order, (self.inner.now)())
                });
        }
    }

    fn answer(
        &self,
        order: &Order<'_>,
        received: Received,
        token: Option<&Token>,
        started: Option<Started>,
    ) -> Attempt {
        let reading = self.reading(order, &received);
        let Received {
            status,
            headers,
            body,
            whole,
            at,
        } = received;
        let provider = order.provider;
        let read = body.get(..READ_BYTES).unwrap_or(&body);
        // One reading serves the call and its budget, and both wait for one moment.
        let mut heard_at = None;
        let heard = started.as_ref().map(|started| {
            started.cost_told_by(order, &headers, read);
            started.in_flight.heard_within(status.as_u16(), &reading, at, || {
                let now = (self.inner.now)();
                heard_at = Some(now);
                self.pause_bounds(order, now)
            })
        });
        let resumes_in = heard.and_then(|heard| heard.retry_after);
        let resumes_at = resumes_in.map(|span| heard_at.unwrap_or_else(|| (self.inner.now)()) + span);
        let said = || {
            // Blotted out before it is cut, so that no half of a credential is left at the cut.
            let text = String::from_utf8_lossy(read.get(..4096).unwrap_or(read)).into_owned();
            let secrets = self.inner.credentials.secret(provider.name()).into_iter();
            redacted(&text, secrets.chain(token.map(Token::secret)))
                .chars()
                .take(200)
                .collect()
        };
        let contract = provider.contract().map(AsRef::as_ref);
        let floor_ms = contract.and_then(|contract| contract.min_retry_after_ms);
        let scopes = if reading.is_limited() {
            reading.scopes().to_vec()
        } else {
            Vec::new()
        };
        let (limits, not_before) = (reading.limits().to_vec(), reading.not_before());
        let outcome = match meaning(provider.name(), status, reading, floor_ms, said) {
            Outcome::Throttled(signal) => Outcome::Throttled(scope::closing(signal, &scopes, order.job, contract)),
            outcome @ (Outcome::Done | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Rejected(_)) => outcome,
        };
        let mut answer = Answer {
            outcome,
            status: Some(status.as_u16()),
            result: None,
            limits,
            not_before,
        };
        if answer.outcome == Outcome::Done && provider.results() == Results::Store {
            if whole {
                answer.result = Some(String::from_utf8_lossy(&body).into_owned());
            } else {
                tracing::warn!(
                    provider = provider.name(),
                    status = status.as_u16(),
                    "the response is not stored: it broke off or is longer than {MAX_RESULT_BYTES} bytes"
                );
            }
        }
        Attempt {
            answer,
            resumes_at,
            heard_at,
        }
    }
}

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
pub(crate) mod loopback;
#[cfg(test)]
mod paced_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waited_tests;
