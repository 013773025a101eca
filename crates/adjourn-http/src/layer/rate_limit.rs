//! The layer that spends a rate budget: each call waits for its turn, and each answer tells the budget what it says.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjourn_core::{RateLimitError, ScopeKey};
use http::Method;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    CallError, LayerRequest, LayerResponse,
    carried::carried,
    sight::{Heard, Sight},
};
use crate::{Allowance, Contract, InFlight, Now, RateBudget, ReadResponse, Settings, budget::PauseBounds, waiting};

/// Makes each call wait for its turn of a [`RateBudget`], as far as the caller's [`Allowance`] goes, and tells the budget what each
/// response says. A turn that comes too late is a [`CallError::Refused`] at once. The call counts as in flight until its body is
/// read to the end or dropped.
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    pub(super) limiting: Arc<Limiting>,
}

/// What a limiting layer was told.
#[derive(Clone, Debug)]
pub(super) struct Limiting {
    sight: Sight,
    budget: RateBudget,
}

impl RateLimitLayer {
    /// Calls to the provider of that name spend this budget.
    #[must_use]
    pub fn new(provider: &str, budget: RateBudget) -> Self {
        Self {
            limiting: Arc::new(Limiting {
                sight: Sight::new(provider),
                budget,
            }),
        }
    }

    /// For a provider as `adjourn.toml` has it: contract, timeout and `min_retry_after_ms`. None where it has no such provider.
    #[must_use]
    pub fn of(settings: &Settings, provider: &str, budget: RateBudget) -> Option<Self> {
        let sight = Sight::of(settings, settings.provider(provider)?);
        Some(Self {
            limiting: Arc::new(Limiting { sight, budget }),
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Sight)) -> Self {
        change(&mut Arc::make_mut(&mut self.limiting).sight);
        self
    }

    /// The provider's contract, by which its responses are read.
    #[must_use]
    pub fn contract(self, contract: &Contract) -> Self {
        self.with(|sight| sight.contract(contract))
    }

    /// A reader of responses in the contract's place. It is shown the beginning of every body, of a 2xx as well.
    #[must_use]
    pub fn reader(self, reader: Arc<dyn ReadResponse>) -> Self {
        self.with(|sight| sight.reader(reader))
    }

    /// What one call may take, so that time is left for it before a deadline; 30 s unless said, or the request says it.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|sight| sight.timeout = timeout)
    }

    /// The key under which the caller's limit is shared: the `scopeKey` of refusals, and in a worker the gate that they close. Unless
    /// said it is not known, and a worker closes the refused job's own scope.
    #[must_use]
    pub fn scope(self, key: ScopeKey) -> Self {
        self.with(|sight| sight.scope = Some(key))
    }

    /// What tells the wall clock's time; the machine's clock unless said.
    #[must_use]
    pub fn wall_clock(self, now: Now) -> Self {
        self.with(|sight| sight.now = now)
    }
}

/// A call's turn, taken, and what is to be known when its response is there.
pub(super) struct Started {
    in_flight: InFlight,
    allowance: Allowance,
    timeout: Duration,
    /// The method and the path by which it cost points, where the rate counts them.
    costs_by: Option<(Method, Box<str>)>,
}

impl Limiting {
    /// Waits for the call's turn and takes it.
    pub(super) async fn turn(&self, request: &impl LayerRequest) -> Result<Started, RateLimitError> {
        let (sight, budget, path) = (&self.sight, &self.budget, request.path());
        let allowance = Allowance::current();
        let timeout = request.timeout().unwrap_or(sight.timeout);
        let costs = sight.costs(path).filter(|_| budget.counts_points(path));
        let cost = costs.map_or(1, |(costs, below)| costs.points(request.method(), below));
        let turn = waiting::turn(budget, path, cost, &allowance, &sight.now, timeout).await;
        let costs_by = costs.map(|(_, below)| (request.method().clone(), Box::from(below)));
        Ok(Started {
            in_flight: turn.map_err(|too_late| sight.too_late(too_late))?,
            allowance,
            timeout,
            costs_by,
        })
    }

    /// Tells the budget what a response says, and makes its body hold the call's place.
    pub(super) async fn answered<P: LayerResponse>(&self, started: Started, response: P) -> P::Seen {
        let Started {
            in_flight,
            allowance,
            timeout,
            costs_by,
        } = started;
        let sight = &self.sight;
        let heard = |heard: &Heard<'_>| {
            let told = costs_by.as_ref().and_then(|(method, below)| {
                let (costs, _) = sight.costs(below)?;
                costs.told(method, below, heard.headers, heard.body)
            });
            if let Some(points) = told {
                in_flight.cost_was(points);
            }
            in_flight.heard_within(heard.status.as_u16(), heard.reading, heard.received_at, || {
                PauseBounds {
                    least: sight.least_wait(),
                    room: allowance.budget(heard.now, timeout),
                }
            })
        };
        let (mut seen, told) = sight.read(response, costs_by.is_some(), heard).await;
        P::seen_extensions(&mut seen).insert(told);
        P::held(seen, in_flight)
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit {
            inner,
            limiting: Arc::clone(&self.limiting),
        }
    }
}

/// A client behind a [`RateLimitLayer`].
#[derive(Clone, Debug)]
pub struct RateLimit<S> {
    inner: S,
    limiting: Arc<Limiting>,
}

impl<S, Q> Service<Q> for RateLimit<S>
where
    Q: LayerRequest + Sync,
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
        // The one that said it is ready makes the call.
        let clone = self.inner.clone();
        let mut service = std::mem::replace(&mut self.inner, clone);
        let limiting = Arc::clone(&self.limiting);
        // Of the task that calls, wherever the future is run.
        Box::pin(carried(async move {
            let started = limiting.turn(&request).await.map_err(CallError::Refused)?;
            let response = service
                .call(request)
                .await
                .map_err(|error| CallError::from(error.into()))?;
            Ok(limiting.answered(started, response).await)
        }))
    }
}
