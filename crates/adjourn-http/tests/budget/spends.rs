//! What spends a budget: whatever reaches the provider, and nothing else. The layers are stand-ins, each of the shape that such a layer
//! has anywhere: a service around a service.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use adjourn_http::{NoTurn, Rate, RateBudget};
use http::HeaderMap;

use crate::calls::{MS, S, Watch, try_send};

type Answer = Result<u16, NoTurn>;
type Calling<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

trait Service: Send + Sync {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a>;
}

/// Asks the budget, right before the provider, and tells it the answer.
struct Budgeted {
    budget: RateBudget,
    provider: Provider,
}

/// Answers with these statuses in turn, the last one for ever, each after a while.
#[derive(Clone)]
struct Provider {
    statuses: Arc<Vec<u16>>,
    takes: Duration,
    calls: Arc<AtomicU32>,
}

impl Provider {
    fn new(statuses: &[u16]) -> Self {
        Self {
            statuses: Arc::new(statuses.to_vec()),
            takes: 10 * MS,
            calls: Arc::default(),
        }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    async fn answer(&self) -> u16 {
        let place = usize::try_from(self.calls.fetch_add(1, Ordering::SeqCst)).unwrap();
        tokio::time::sleep(self.takes).await;
        self.statuses[place.min(self.statuses.len() - 1)]
    }
}

impl Service for Budgeted {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let in_flight = try_send(&self.budget, path, None).await?;
            let status = self.provider.answer().await;
            in_flight.answered(status, &HeaderMap::new());
            Ok(status)
        })
    }
}

/// Calls again after a 5xx or a refusal.
struct Retry<S>(S, u32);

impl<S: Service> Service for Retry<S> {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let mut status = self.0.call(path).await?;
            for _ in 1..self.1 {
                if status < 500 && status != 429 {
                    break;
                }
                status = self.0.call(path).await?;
            }
            Ok(status)
        })
    }
}

/// Calls a second time when the first one takes long; the first answer counts, and the other call is dropped.
struct Hedge<S>(S, Duration);

impl<S: Service> Service for Hedge<S> {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let mut first = self.0.call(path);
            tokio::select! {
                answer = &mut first => return answer,
                () = tokio::time::sleep(self.1) => {}
            }
            tokio::select! {
                answer = first => answer,
                answer = self.0.call(path) => answer,
            }
        })
    }
}

/// Follows a redirect to another path of the same provider.
struct Follow<S>(S);

impl<S: Service> Service for Follow<S> {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let mut status = self.0.call(path).await?;
            while status == 307 {
                status = self.0.call("/moved").await?;
            }
            Ok(status)
        })
    }
}

/// Answers out of memory what was answered before.
struct Cache<S>(S, Mutex<BTreeSet<String>>);

impl<S: Service> Service for Cache<S> {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            if self.1.lock().unwrap().contains(path) {
                return Ok(200);
            }
            let status = self.0.call(path).await?;
            if status == 200 {
                self.1.lock().unwrap().insert(path.to_string());
            }
            Ok(status)
        })
    }
}

/// Gets a token by a call of its own, once.
struct Token<S>(S, tokio::sync::OnceCell<()>);

impl<S: Service> Service for Token<S> {
    fn call<'a>(&'a self, path: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let token = self
                .1
                .get_or_try_init(|| async { self.0.call("/token").await.map(drop) });
            token.await?;
            self.0.call(path).await
        })
    }
}

/// A budget that refills too slowly to matter, without a throttle, and the service that it paces.
fn service(statuses: &[u16]) -> (RateBudget, Provider, Budgeted) {
    let budget = RateBudget::new(Rate::new(1000, 10_000_000 * S)).throttle(None);
    let provider = Provider::new(statuses);
    let service = Budgeted {
        budget: budget.clone(),
        provider: provider.clone(),
    };
    (budget, provider, service)
}

/// How much of the thousand is spent.
fn spent(budget: &RateBudget) -> u32 {
    1000 - u32::try_from((0..1000).take_while(|_| budget.check("/").is_ok()).count()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_retry_spends() {
    let (budget, provider, service) = service(&[500, 503, 200]);
    assert_eq!(Retry(service, 5).call("/").await, Ok(200));
    assert_eq!((provider.calls(), spent(&budget)), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_hedge_spends_for_both_calls_also_the_one_that_is_dropped() {
    let (budget, provider, service) = service(&[200]);
    assert_eq!(Hedge(service, 5 * MS).call("/").await, Ok(200));
    assert_eq!((provider.calls(), spent(&budget)), (2, 2));
    assert_eq!(budget.in_flight(), 0, "and the dropped one holds no place");
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_is_not_needed_spends_nothing() {
    let (budget, provider, service) = service(&[200]);
    assert_eq!(Hedge(service, S).call("/").await, Ok(200));
    assert_eq!((provider.calls(), spent(&budget)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn each_hop_of_a_redirect_spends() {
    let (budget, provider, service) = service(&[307, 307, 200]);
    assert_eq!(Follow(service).call("/").await, Ok(200));
    assert_eq!((provider.calls(), spent(&budget)), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_call_for_a_token_spends() {
    let (budget, provider, service) = service(&[200]);
    let service = Token(service, tokio::sync::OnceCell::new());
    for _ in 0..3 {
        assert_eq!(service.call("/").await, Ok(200));
    }
    assert_eq!((provider.calls(), spent(&budget)), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn what_a_cache_answers_spends_nothing() {
    let (budget, provider, service) = service(&[200]);
    let service = Cache(service, Mutex::default());
    for _ in 0..10 {
        assert_eq!(service.call("/a").await, Ok(200));
    }
    assert_eq!((provider.calls(), spent(&budget)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn all_layers_together_end_within_their_bound_and_spend_what_reached_the_provider() {
    // Each kind of answer is met on the way: a token, a failure, a redirect, a slow one, a refusal.
    let budget = RateBudget::new(Rate::per_second(20)).max_in_flight(4);
    let provider = Provider {
        takes: 30 * MS,
        ..Provider::new(&[200, 500, 307, 429, 200, 503, 200, 307, 200, 429, 200])
    };
    let inner = Budgeted {
        budget: budget.clone(),
        provider: provider.clone(),
    };
    let layered = Retry(Hedge(Follow(inner), 20 * MS), 6);
    let service = Arc::new(Cache(Token(layered, tokio::sync::OnceCell::new()), Mutex::default()));
    let watch = Watch::start();
    let mut tasks = Vec::new();
    for number in 0..30 {
        let service = service.clone();
        tasks.push(tokio::spawn(
            async move { service.call(&format!("/{}", number % 10)).await },
        ));
    }
    let all = async {
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(200));
        }
    };
    tokio::time::timeout(60 * S, all).await.expect("nothing hangs");
    let (calls, took) = (provider.calls(), watch.read());
    assert!(calls > 30, "every path to the provider was taken: {calls}");
    let allowed = 20.0 + 20.0 * took.as_secs_f64() + 1.0;
    assert!(f64::from(calls) <= allowed, "{calls} calls in {took:?}");
    assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
}
