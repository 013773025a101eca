//! What a user writes: the job's handler, and an optional answer to its refusals.

use std::{future::Future, sync::Arc, time::Duration};

use adjourn_core::{Fault, Identity, Outcome, Pace, RateLimitError, RetryPolicy, ScopeKey, Signal, Timestamp, Verdict};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Counter, Message, RateLimited, port::FindPace};

/// Performs jobs.
///
/// ```
/// use adjourn_worker::{Done, Handler, Interrupt, Job};
///
/// struct Invoices;
///
/// impl Handler for Invoices {
///     async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
///         let invoice: std::collections::BTreeMap<String, String> = job.json()?;
///         // A client's error that has a RateLimitError anywhere in its source chain is a refusal, any other a failure.
///         let _ = invoice;
///         Ok(Done::new())
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// The terms under which a message's job runs, read before it is admitted. A message that is no job is
    /// [`Undecodable`]: it ends alone, without a call.
    ///
    /// # Errors
    /// When the message is no job of this handler.
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(Terms::of(message))
    }

    /// What finds the pace of scopes that have no configured rate ([`Terms::pace`]); by default nothing, and such a scope is called as
    /// fast as its jobs come. What [`WorkerBuilder::find_pace`](crate::WorkerBuilder::find_pace) names comes first.
    fn find_pace(&self) -> Option<Arc<dyn FindPace>> {
        None
    }

    /// Performs the job once.
    fn handle(&self, job: Job) -> impl Future<Output = Result<Done, Interrupt>> + Send;
}

/// Answers the RATE_LIMITED event in the integration's place of the default handler.
///
/// A handler that panics or takes longer than its time limit has said [`Verdict::Default`].
pub trait RateLimitedHandler: Send + Sync + 'static {
    /// What is to become of the job that was refused.
    fn rate_limited(&self, event: &RateLimited) -> impl Future<Output = Verdict> + Send;
}

/// The terms of a job: what admission, gates and fairness need to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The caller's name for the job.
    pub job_id: String,
    /// The provider that it calls.
    pub provider: String,
    /// The scope whose limit it shares.
    pub scope: ScopeKey,
    /// The fairness key.
    pub tenant: Option<String>,
    /// The caller's process that it is part of.
    pub run: Option<String>,
    /// Not before this moment.
    pub not_before: Option<Timestamp>,
    /// After this moment it is useless.
    pub deadline: Option<Timestamp>,
    /// Whether its call may be made a second time without harm.
    pub repeatable: bool,
    /// How long its call may take.
    pub timeout: Duration,
    /// The provider's configured rate.
    pub pace: Option<Pace>,
    /// How many calls of its scope may be in flight in this process.
    pub max_in_flight: Option<u32>,
    /// The provider's own retry policy.
    pub retry: Option<RetryPolicy>,
}

impl Terms {
    /// The terms of a job about which nothing is known: one scope for all, repeatable, 30 s a call.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        Self {
            job_id: message.id.clone(),
            provider: "default".to_string(),
            scope: ScopeKey::provider("default"),
            tenant: message.group.clone(),
            run: None,
            not_before: None,
            deadline: None,
            repeatable: true,
            timeout: Duration::from_secs(30),
            pace: None,
            max_in_flight: None,
            retry: None,
        }
    }
}

/// A message that is no job, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    reason: String,
}

impl Undecodable {
    /// No job, for this reason.
    #[must_use]
    pub fn new(reason: &str) -> Self {
        Self {
            reason: reason.to_string(),
        }
    }

    /// Why.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.reason
    }
}

/// What a handler is given.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) message: Arc<Message>,
    pub(crate) terms: Arc<Terms>,
    pub(crate) identity: Identity,
    pub(crate) delivery: Delivery,
    pub(crate) must_end_by: Timestamp,
    pub(crate) counters: adjourn_core::Counters,
}

/// How this delivery stands with its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// How often the message was received, this time included.
    pub receive_count: u32,
    /// After how many receives the queue gives it up; none where it is not known.
    pub max_receive_count: Option<u32>,
    /// Whether the queue gives it up after this one.
    pub is_last_attempt: bool,
}

impl Job {
    /// The caller's name for the job.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.terms.job_id
    }

    /// Which step of which job this is; its `id` part is the same on every attempt.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The message's body.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.message.body
    }

    /// The whole message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The terms that [`Handler::terms`] gave.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// A rejection that says where the body is no such JSON: no further attempt would read it.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Interrupt> {
        serde_json::from_str(self.body())
            .map_err(|error| Interrupt::rejected(Fault::new(&format!("the body is not the expected JSON: {error}"))))
    }

    /// How this delivery stands with its queue.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// The moment by which the call has to be over.
    #[must_use]
    pub fn must_end_by(&self) -> Timestamp {
        self.must_end_by
    }

    /// What the job has used up so far.
    #[must_use]
    pub fn counters(&self) -> adjourn_core::Counters {
        self.counters
    }
}

/// A job that had its effect.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Done {
    pub(crate) status: Option<u16>,
    pub(crate) result: Option<String>,
    counters: Vec<Counter>,
}

impl Done {
    /// Done, and nothing to add.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The status of the response that said so.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// A result that is stored where the store keeps results.
    #[must_use]
    pub fn result(mut self, result: String) -> Self {
        self.result = Some(result);
        self
    }

    /// What one of the provider's counters said with that response: where the pace of the job's scope is being found, nothing starts
    /// that it leaves no room for.
    #[must_use]
    pub fn counting(mut self, counter: Counter) -> Self {
        self.counters.push(counter);
        self
    }

    /// The status of the response that said so.
    #[must_use]
    pub fn last_status(&self) -> Option<u16> {
        self.status
    }

    /// The result that is to be stored.
    #[must_use]
    pub fn stored_result(&self) -> Option<&str> {
        self.result.as_deref()
    }

    /// What the provider's counters said.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }
}

/// Why a handler did not get to its end.
///
/// Every error becomes one by `?`: with a [`RateLimitError`] anywhere in its source chain it is a refusal, which closes the scope that
/// the error names, otherwise a failure, which is tried again. What is no error itself, as anyhow's, takes
/// [`Interrupt::from_boxed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    kind: Kind,
    counters: Vec<Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Throttled(Box<Signal>),
    Failed(Fault),
    Unknown(Fault),
    Rejected(Fault),
}

impl Interrupt {
    /// The provider said "not now".
    #[must_use]
    pub fn throttled(signal: Signal) -> Self {
        Self::of_kind(Kind::Throttled(Box::new(signal)))
    }

    /// It failed and may be tried again.
    #[must_use]
    pub fn failed(fault: Fault) -> Self {
        Self::of_kind(Kind::Failed(fault))
    }

    /// It may have had its effect and must not be repeated.
    #[must_use]
    pub fn unknown(fault: Fault) -> Self {
        Self::of_kind(Kind::Unknown(fault))
    }

    /// It can never succeed.
    #[must_use]
    pub fn rejected(fault: Fault) -> Self {
        Self::of_kind(Kind::Rejected(fault))
    }

    /// What `?` makes of an error, for one that is no [`Error`](std::error::Error) itself: a `Box<dyn Error + Send + Sync>`, and the
    /// reports of anyhow and eyre. `fetch().map_err(Interrupt::from_boxed)?`.
    #[must_use]
    pub fn from_boxed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::of(&*error.into())
    }

    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        if let Some(refusal) = RateLimitError::find_in(error) {
            let scope = refusal.scope_key().cloned();
            let signal = refusal.into_signal();
            return Self::throttled(match scope {
                Some(scope) => signal.scope_key(scope),
                None => signal,
            });
        }
        let mut words = error.to_string();
        let mut link = error.source();
        while let Some(cause) = link {
            words = format!("{words}: {cause}");
            link = cause.source();
        }
        Self::failed(Fault::new(&words))
    }

    const fn of_kind(kind: Kind) -> Self {
        Self {
            kind,
            counters: Vec::new(),
        }
    }

    /// What one of the provider's counters said with the response that this is, as [`Done::counting`].
    #[must_use]
    pub fn counting(mut self, counter: Counter) -> Self {
        self.counters.push(counter);
        self
    }

    /// What the provider's counters said.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The outcome that this interrupt is.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        match self.kind {
            Kind::Throttled(signal) => Outcome::Throttled(*signal),
            Kind::Failed(fault) => Outcome::Failed(fault),
            Kind::Unknown(fault) => Outcome::Unknown(fault),
            Kind::Rejected(fault) => Outcome::Rejected(fault),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Interrupt {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{error::Error, fmt};

    #[derive(Debug)]
    struct Wrapped(Box<dyn Error + Send + Sync>);
    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the client gave up")
        }
    }
    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.0.as_ref())
        }
    }

    /// As `#[error(transparent)]` makes it: it shows the cause of what it holds, and not that itself.
    #[derive(Debug)]
    struct Transparent<E>(E);
    impl<E: fmt::Display> fmt::Display for Transparent<E> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }
    impl<E: Error> Error for Transparent<E> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.0.source()
        }
    }

    #[derive(Debug)]
    struct Caused<E>(E);
    impl<E> fmt::Display for Caused<E> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the order was not taken")
        }
    }
    impl<E: Error + 'static> Error for Caused<E> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    fn refusal() -> (RateLimitError, Outcome) {
        let signal = Signal::new("crm", Timestamp::EPOCH).reason("burst");
        let key = ScopeKey::scoped("crm", "entity", "7");
        let error = RateLimitError::from(signal.clone()).in_scope(key.clone());
        (error, Outcome::Throttled(signal.scope_key(key)))
    }

    #[test]
    fn a_refusal_is_found_anywhere_in_a_source_chain_with_the_scope_that_it_closes() {
        use std::{io, sync::Arc};
        let (refusal, throttled) = refusal();
        let boxed = || Box::new(refusal.clone());
        let found = [
            Interrupt::from(refusal.clone()),
            Interrupt::from(Wrapped(Box::new(Wrapped(boxed())))),
            Interrupt::from(Transparent(refusal.clone())),
            Interrupt::from(Transparent(Transparent(Caused(refusal.clone())))),
            Interrupt::from(io::Error::other(refusal.clone())),
            Interrupt::from(io::Error::other(io::Error::other(refusal.clone()))),
            Interrupt::from(Transparent(io::Error::other(Caused(refusal.clone())))),
            Interrupt::from(Arc::new(refusal.clone())),
            Interrupt::from(Caused(Arc::new(refusal.clone()))),
            Interrupt::from(Caused(boxed())),
            Interrupt::from(Caused(Arc::new(Transparent(boxed())))),
        ];
        for (place, interrupt) in found.into_iter().enumerate() {
            assert_eq!(interrupt.into_outcome(), throttled, "{place}");
        }
    }

    #[test]
    fn a_refusal_is_found_in_what_is_no_error_itself() {
        let (refusal, throttled) = refusal();
        let boxed: Box<dyn Error + Send + Sync> = Box::new(refusal.clone());
        let report = anyhow::Error::new(refusal.clone());
        let with_context = anyhow::Error::new(Transparent(refusal)).context("order 7");
        for interrupt in [
            Interrupt::from_boxed(boxed),
            Interrupt::from_boxed(report),
            Interrupt::from_boxed(with_context),
        ] {
            assert_eq!(interrupt.into_outcome(), throttled);
        }
        assert_eq!(
            Interrupt::from_boxed(anyhow::anyhow!("no route").context("order 7")).into_outcome(),
            Outcome::Failed(Fault::new("order 7: no route"))
        );
    }

    #[test]
    fn any_other_error_is_a_failure_with_its_whole_chain_in_words() {
        let error = Wrapped(Box::new(std::io::Error::other("connection reset")));
        assert_eq!(
            Interrupt::from(error).into_outcome(),
            Outcome::Failed(Fault::new("the client gave up: connection reset"))
        );
    }
}
