//! The layer that waits out refusals and tries failures again.

use std::{
    error::Error,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjourn_core::ScopeKey;
use http::{HeaderName, Method};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    CallError, LayerRequest, LayerResponse,
    carried::carried,
    chain::{self, Attempts, Broken},
    sight::Sight,
};
use crate::{Allowance, Contract, Now, ReadResponse, Settings, WaitPolicy};

/// Waits out refusals and tries failures again, as far as the caller's [`Allowance`] goes. What does not fit is a
/// [`CallError::Refused`] at once; a failure that is not tried again is what the client below made of it.
///
/// A refused call is made again whatever its method: it was not carried out. A 408, a 425, a 5xx and a broken connection are tried
/// again where that does no harm: the method is idempotent (RFC 9110, section 9.2.2), the request has an idempotency key, or
/// [`RetryLayer::repeat_unknown`] says so. A request whose body is a stream is made once.
#[derive(Clone, Debug)]
pub struct RetryLayer {
    pub(super) retrying: Arc<Retrying>,
}

/// What a retrying layer was told.
#[derive(Clone, Debug)]
pub(super) struct Retrying {
    pub(super) sight: Sight,
    pub(super) waits: WaitPolicy,
    idempotency_header: HeaderName,
    repeat_unknown: bool,
}

impl Retrying {
    pub(super) fn repeats(&self, request: &impl LayerRequest) -> bool {
        let method: &Method = request.method();
        method.is_idempotent() || self.repeat_unknown || request.headers().contains_key(&self.idempotency_header)
    }
}

impl RetryLayer {
    /// For a provider of that name, of which nothing more is known: its responses are read by what providers have in common.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self::seeing(Sight::new(provider))
    }

    /// For a provider as `adjourn.toml` has it: contract, timeout, idempotency header, `repeat_unknown` and
    /// `min_retry_after_ms`. None where it has no such provider.
    #[must_use]
    pub fn of(settings: &Settings, provider: &str) -> Option<Self> {
        let provider = settings.provider(provider)?;
        let min_retry_after = settings.policy().deferral.min_retry_after;
        Some(Self::seeing(Sight::of(settings, provider)).with(|retrying| {
            retrying.waits.min_retry_after = min_retry_after;
            retrying.repeat_unknown = provider.repeats(&Method::POST) && provider.idempotency_header().is_none();
            if let Some(header) = provider.idempotency_header() {
                retrying.idempotency_header = header.clone();
            }
        }))
    }

    fn seeing(sight: Sight) -> Self {
        Self {
            retrying: Arc::new(Retrying {
                sight,
                waits: WaitPolicy::default(),
                idempotency_header: HeaderName::from_static("idempotency-key"),
                repeat_unknown: false,
            }),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Retrying)) -> Self {
        change(Arc::make_mut(&mut self.retrying));
        self
    }

    /// The provider's contract, by which its responses are read.
    #[must_use]
    pub fn contract(self, contract: &Contract) -> Self {
        self.with(|retrying| retrying.sight.contract(contract))
    }

    /// A reader of responses in the contract's place. It is shown the beginning of every body, of a 2xx as well.
    #[must_use]
    pub fn reader(self, reader: Arc<dyn ReadResponse>) -> Self {
        self.with(|retrying| retrying.sight.reader(reader))
    }

    /// What is waited for; [`WaitPolicy::none`]: nothing, refusals are only read.
    #[must_use]
    pub fn waiting(self, policy: WaitPolicy) -> Self {
        self.with(|retrying| retrying.waits = policy)
    }

    /// What one call may take, so that time is left for it before a deadline; 30 s unless said, or the request says it. It is not
    /// enforced here: that is the client's, or a timeout layer's below.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|retrying| retrying.sight.timeout = timeout)
    }

    /// The key under which the caller's limit is shared: the `scopeKey` of refusals, and in a worker the gate that they close. Unless
    /// said it is not known, and a worker closes the refused job's own scope.
    #[must_use]
    pub fn scope(self, key: ScopeKey) -> Self {
        self.with(|retrying| retrying.sight.scope = Some(key))
    }

    /// Whether a call that may have had its effect is made again without an idempotency key.
    #[must_use]
    pub fn repeat_unknown(self, repeat: bool) -> Self {
        self.with(|retrying| retrying.repeat_unknown = repeat)
    }

    /// The header by which the provider knows a repeat; `Idempotency-Key` unless said.
    #[must_use]
    pub fn idempotency_header(self, header: HeaderName) -> Self {
        self.with(|retrying| retrying.idempotency_header = header)
    }

    /// What tells the wall clock's time, by which dates and deadlines are read; the machine's clock unless said.
    #[must_use]
    pub fn wall_clock(self, now: Now) -> Self {
        self.with(|retrying| retrying.sight.now = now)
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry {
            inner,
            retrying: Arc::clone(&self.retrying),
        }
    }
}

/// A client behind a [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    retrying: Arc<Retrying>,
}

impl<S, Q> Service<Q> for Retry<S>
where
    Q: LayerRequest,
    S: Service<Q> + Clone + Send + 'static,
    S::Response: LayerResponse,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
    S::Future: Send,
{
    type Response = <S::Response as LayerResponse>::Seen;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, CallError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.inner
            .poll_ready(context)
            .map_err(|error| CallError::from(error.into()))
    }

    fn call(&mut self, request: Q) -> Self::Future {
        // The one that said it is ready makes the first attempt.
        let clone = self.inner.clone();
        let mut attempts = Client::ready(std::mem::replace(&mut self.inner, clone));
        let retrying = Arc::clone(&self.retrying);
        // Of the task that calls, wherever the future is run.
        Box::pin(carried(async move {
            match chain::call(&retrying, &Allowance::current(), &mut attempts, request).await {
                Ok(seen) => Ok(seen),
                Err(Broken::Refused(refusal)) => Err(CallError::Refused(refusal)),
                Err(Broken::Failed(error)) => Err(error),
            }
        }))
    }
}

/// The client below, as what makes one attempt after another.
pub(super) struct Client<S> {
    service: S,
    ready: bool,
}

impl<S> Client<S> {
    /// One that said already that it is ready.
    pub(super) fn ready(service: S) -> Self {
        Self { service, ready: true }
    }
}

impl<S, Q> Attempts<Q> for Client<S>
where
    Q: LayerRequest,
    S: Service<Q> + Send,
    S::Response: LayerResponse,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = CallError;

    async fn make(&mut self, request: Q) -> Result<S::Response, CallError> {
        let failed = |error: S::Error| CallError::from(error.into());
        if !std::mem::take(&mut self.ready) {
            poll_fn(|context| self.service.poll_ready(context))
                .await
                .map_err(failed)?;
        }
        self.service.call(request).await.map_err(failed)
    }

    fn causes(error: &CallError) -> &(dyn Error + 'static) {
        error
    }
}
