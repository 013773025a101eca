//! The layers around a scripted client, together, on a clock that moves when nothing else can.

use std::{
    collections::VecDeque,
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use adjourn_core::{Outcome, RateLimitError, ScopeKey, Timestamp};
use adjourn_worker::{Clock, Interrupt, VirtualClock};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, timeout::TimeoutLayer};

use super::*;
use crate::{Allowance, CatalogueEntry, ContractReader, Now, Rate, RateBudget, WaitPolicy, policy_disabled};

mod redirects;

const S: fn(u64) -> Duration = Duration::from_secs;

/// A body that comes in pieces, each after a while.
#[derive(Debug, Default)]
struct Pieces {
    pieces: VecDeque<(Duration, &'static str)>,
    waits: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// Pieces that are no bytes: the body breaks off, or ends in trailers.
const BREAKS: &str = "breaks off";
const TRAILS: &str = "trailers";

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(&(after, piece)) = self.pieces.front() else {
            return Poll::Ready(None);
        };
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        std::task::ready!(waits.as_mut().poll(context));
        self.waits = None;
        self.pieces.pop_front();
        Poll::Ready(Some(match piece {
            BREAKS => Err("the connection was reset".into()),
            TRAILS => Ok(Frame::trailers(HeaderMap::from_iter([(
                http::header::ETAG,
                HeaderValue::from_static("7"),
            )]))),
            bytes => Ok(Frame::data(Bytes::from_static(bytes.as_bytes()))),
        }))
    }
}

#[derive(Clone, Debug)]
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<(Duration, &'static str)>,
    after: Duration,
    breaks: bool,
}

fn reply(status: u16) -> Reply {
    Reply {
        status,
        headers: Vec::new(),
        pieces: Vec::new(),
        after: Duration::ZERO,
        breaks: false,
    }
}

fn hint(seconds: u64) -> Reply {
    Reply {
        headers: vec![("retry-after", seconds.to_string())],
        ..reply(429)
    }
}

fn saying(status: u16, body: &'static str) -> Reply {
    Reply {
        pieces: vec![(Duration::ZERO, body)],
        ..reply(status)
    }
}

/// A provider's client that plays replies in turn, and then the last one again; it keeps when it was called.
#[derive(Clone)]
struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    called: Arc<Mutex<Vec<Timestamp>>>,
    clock: Arc<VirtualClock>,
}

impl Script {
    fn playing(replies: impl IntoIterator<Item = Reply>) -> Self {
        let start = Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
        Self {
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
            called: Arc::default(),
            clock: Arc::new(VirtualClock::starting_at(start)),
        }
    }

    fn now(&self) -> Now {
        let clock = Arc::clone(&self.clock);
        Arc::new(move || clock.now())
    }

    fn calls(&self) -> usize {
        self.called.lock().unwrap().len()
    }

    /// How long after the first call each further one came.
    fn gaps(&self) -> Vec<Duration> {
        let called = self.called.lock().unwrap();
        called.windows(2).map(|pair| pair[1].since(pair[0])).collect()
    }
}

impl Service<Request<String>> for Script {
    type Response = Response<Pieces>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move {
            script.called.lock().unwrap().push(script.clock.now());
            let reply = {
                let mut replies = script.replies.lock().unwrap();
                if replies.len() > 1 {
                    replies.pop_front().unwrap()
                } else {
                    replies[0].clone()
                }
            };
            tokio::time::sleep(reply.after).await;
            if reply.breaks {
                return Err("the connection broke".into());
            }
            let mut response = Response::builder().status(reply.status);
            for (name, value) in &reply.headers {
                response = response.header(*name, value);
            }
            Ok(response
                .body(Pieces {
                    pieces: reply.pieces.into(),
                    waits: None,
                })
                .unwrap())
        })
    }
}

fn get() -> Request<String> {
    Request::builder()
        .uri("https://api.acme.example/orders")
        .body(String::new())
        .unwrap()
}

fn post() -> Request<String> {
    let mut request = get();
    *request.method_mut() = Method::POST;
    request
}

fn retry(script: &Script) -> RetryLayer {
    RetryLayer::new("acme").wall_clock(script.now())
}

async fn through<S, P>(service: S, allowance: Allowance, request: Request<String>) -> Result<Response<P>, CallError>
where
    S: Service<Request<String>, Response = Response<P>, Error = CallError>,
{
    allowance.scope(service.oneshot(request)).await
}

async fn text<B: Body<Data = Bytes>>(response: Response<B>) -> String {
    let mut body = Box::pin(response.into_body());
    let mut text = Vec::new();
    while let Some(Ok(frame)) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        text.extend(frame.into_data().unwrap_or_default());
    }
    String::from_utf8(text).unwrap()
}

fn refusal(result: Result<Response<impl Sized>, CallError>) -> RateLimitError {
    match result {
        Err(CallError::Refused(refusal)) => refusal,
        Err(CallError::Failed(error)) => panic!("failed: {error}"),
        Ok(response) => panic!("answered {}", response.status()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_generated_client_waits_out_a_refusal_without_knowing_it() {
    let script = Script::playing([hint(4), saying(200, "fine")]);
    let service = retry(&script).layer(script.clone());
    let response = through(service, Allowance::front_end(), post()).await.unwrap();
    assert_eq!(text(response).await, "fine");
    let [gap] = script.gaps()[..] else { panic!("two calls") };
    assert!(gap >= S(4) && gap <= Duration::from_millis(4400), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_the_client_s_error_and_the_worker_s_interrupt_by_a_question_mark() {
    /// What a client's own error looks like.
    #[derive(Debug)]
    struct ClientError(BoxError);
    impl std::fmt::Display for ClientError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the order was not taken")
        }
    }
    impl Error for ClientError {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.0.as_ref())
        }
    }
    async fn handle(script: &Script) -> Result<(), Interrupt> {
        let service = retry(script)
            .scope(ScopeKey::scoped("acme", "entity", "7"))
            .layer(script.clone());
        let answered = through(service, Allowance::worker(), get()).await;
        answered.map_err(|error| ClientError(error.into()))?;
        Ok(())
    }
    let script = Script::playing([hint(30)]);
    let Outcome::Throttled(signal) = handle(&script).await.unwrap_err().into_outcome() else {
        panic!("a refusal")
    };
    assert_eq!((signal.wait(), script.calls()), (Some(S(30)), 1));
    assert_eq!(
        signal.closes().map(ScopeKey::as_str),
        Some("acme:entity:7"),
        "the layer's scope reaches the gate"
    );

    let service = retry(&script)
        .scope(ScopeKey::scoped("acme", "entity", "7"))
        .layer(script.clone());
    let refusal = refusal(through(service, Allowance::worker(), get()).await);
    assert_eq!(refusal.scope_key().map(ScopeKey::as_str), Some("acme:entity:7"));
    let unsaid = retry(&script).layer(script.clone());
    let unsaid = super::tests::refusal(through(unsaid, Allowance::worker(), get()).await);
    assert_eq!(unsaid.scope_key(), None, "the job's own, whatever that is");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_where_that_does_no_harm_and_is_otherwise_the_client_s() {
    let broken = || Reply {
        breaks: true,
        ..reply(0)
    };
    let keyed = || {
        let mut request = post();
        request.headers_mut().insert("idempotency-key", "7".parse().unwrap());
        request
    };
    for (first, request, calls) in [
        (reply(503), get(), 2),
        (reply(503), post(), 1),
        (reply(503), keyed(), 2),
        (broken(), get(), 2),
        (broken(), post(), 1),
        (broken(), keyed(), 2),
        (reply(404), get(), 1),
    ] {
        let script = Script::playing([first.clone(), reply(200)]);
        let service = retry(&script).layer(script.clone());
        let answer = through(service, Allowance::front_end(), request).await;
        assert_eq!(script.calls(), calls, "{first:?}");
        match answer {
            Ok(response) if calls == 2 => assert_eq!(response.status(), StatusCode::OK),
            Ok(response) => assert_eq!(response.status(), first.status, "as the server said it"),
            Err(error) => assert!(first.breaks && calls == 1 && error.refusal().is_none(), "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_read_of_a_body_is_still_in_it_and_a_stalling_one_holds_nobody_up() {
    let slow = Reply {
        pieces: vec![(S(1), "out of "), (S(60), "stock")],
        ..reply(409)
    };
    let script = Script::playing([slow]);
    let service = retry(&script).layer(script.clone());
    let started_at = script.clock.now();
    let response = through(service, Allowance::worker(), get()).await.unwrap();
    assert_eq!(script.clock.now().since(started_at), S(5));
    assert_eq!(text(response).await, "out of stock");
    assert!(
        script.clock.now().since(started_at) < S(70),
        "nothing is waited for twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_or_ends_in_trailers_does_so_for_whoever_reads_it_too() {
    let frames = async |response: Response<ReadBody<ReadBody<Pieces>>>| {
        let mut body = Box::pin(response.into_body());
        let mut seen = Vec::new();
        while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            assert!(seen.len() < 9, "it ends");
            seen.push(match frame.map(Frame::into_data) {
                Ok(Ok(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
                Ok(Err(_)) => TRAILS.to_string(),
                Err(error) => error.to_string(),
            });
        }
        assert!(body.is_end_stream());
        seen.join(", ")
    };
    for (status, last, expected) in [
        (200, BREAKS, "012345, the connection was reset"),
        (404, BREAKS, "012345, the connection was reset"),
        (500, BREAKS, "012345, the connection was reset"),
        (404, TRAILS, "012345, trailers"),
    ] {
        for before in [&[(Duration::ZERO, "012"), (Duration::ZERO, "345")][..], &[]] {
            let pieces = before.iter().copied().chain([(Duration::ZERO, last)]).collect();
            let script = Script::playing([Reply {
                pieces,
                ..reply(status)
            }]);
            let budget = RateBudget::unknown().max_in_flight(1);
            let reader = Arc::new(ContractReader::default());
            let service = ServiceBuilder::new()
                .layer(retry(&script).waiting(WaitPolicy::none()).reader(reader.clone()))
                .layer(RateLimitLayer::new("acme", budget.clone()).reader(reader))
                .service(script.clone());
            let response = through(service, Allowance::worker(), get()).await.unwrap();
            let bytes: usize = before.iter().map(|(_, piece)| piece.len()).sum();
            assert!(response.body().size_hint().lower() >= u64::try_from(bytes).unwrap());
            let expected = expected.trim_start_matches(if before.is_empty() { "012345, " } else { "" });
            assert_eq!(frames(response).await, expected, "{status}");
            assert_eq!(budget.in_flight(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_200_that_refuses_is_known_by_the_contract_and_a_batch_that_was_partly_done_is_not_repeated() {
    let contract = |name| CatalogueEntry::find(name).unwrap().contract().unwrap();
    let throttled = saying(200, r#"{"errors":[{"extensions":{"code":"THROTTLED"}}]}"#);
    let script = Script::playing([throttled]);
    let service = retry(&script).contract(&contract("shopify")).layer(script.clone());
    let refused = refusal(through(service, Allowance::worker(), post()).await);
    assert_eq!((refused.status(), script.calls()), (Some(200), 1));
    let service = retry(&script).layer(script.clone());
    assert!(
        through(service, Allowance::worker(), post()).await.is_ok(),
        "without it, it is done"
    );

    let partly = r#"{"responses":[{"id":"1","status":200},{"id":"2","status":429,"headers":{"Retry-After":"1"}}]}"#;
    let script = Script::playing([saying(200, partly)]);
    let service = retry(&script)
        .contract(&contract("microsoft-graph"))
        .layer(script.clone());
    let response = through(service, Allowance::front_end(), post()).await.unwrap();
    assert_eq!((text(response).await.as_str(), script.calls()), (partly, 1));
}

#[tokio::test(start_paused = true)]
async fn retry_limit_and_timeout_together_are_bounded_in_calls_and_in_time() {
    // Every call hangs: each attempt ends by its own timeout, and the ladder by the cap.
    let hangs = Reply {
        after: S(3600),
        ..reply(200)
    };
    let script = Script::playing([hangs]);
    let budget = RateBudget::new(Rate::per_second(1)).max_in_flight(1);
    let service = ServiceBuilder::new()
        .layer(retry(&script).timeout(S(2)))
        .layer(RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now()))
        .layer(TimeoutLayer::new(S(2)))
        .service(script.clone());
    let started_at = script.clock.now();
    let error = through(service, Allowance::of(S(20)), get())
        .await
        .map(drop)
        .unwrap_err();
    assert!(error.refusal().is_none(), "{error:?}");
    // 1, 3 and 10 s of the ladder fit into 20 s, 30 s does not.
    assert_eq!((script.calls(), budget.in_flight()), (4, 0));
    let took = script.clock.now().since(started_at);
    assert!(
        took >= S(22) && took <= S(24),
        "four calls of 2 s and three waits: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_whole_never_takes_longer_than_a_timeout_around_it_allows() {
    let script = Script::playing([hint(1)]);
    let service = ServiceBuilder::new()
        .layer(TimeoutLayer::new(S(5)))
        .layer(retry(&script))
        .layer(RateLimitLayer::new("acme", RateBudget::unknown()).wall_clock(script.now()))
        .service(script.clone());
    let started_at = script.clock.now();
    let error = service.oneshot(get()).await.map(drop).unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
    assert_eq!(script.clock.now().since(started_at), S(5));
    assert!(script.calls() <= 6, "{}", script.calls());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_of_a_refusing_provider_make_no_storm() {
    // Refused once, the budget pauses for all; nobody calls before its end, and each comes back in its turn.
    let script = Script::playing([hint(7), reply(200)]);
    let budget = RateBudget::new(Rate::per_second(100)).throttle(None);
    let service = ServiceBuilder::new()
        .layer(retry(&script))
        .layer(RateLimitLayer::new("acme", budget).wall_clock(script.now()))
        .service(script.clone());
    let started_at = script.clock.now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        callers.spawn(through(service.clone(), Allowance::of(S(60)), get()));
    }
    let answers = callers.join_all().await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().is_ok_and(|response| response.status() == 200))
    );
    let called = script.called.lock().unwrap().clone();
    let early = called.iter().filter(|at| at.since(started_at) < S(7)).count();
    // The first hundred were sent before the first answer, which alone was a refusal.
    assert!(early <= 100, "{early} calls before the provider's moment");
    assert_eq!(called.len(), 1001);
    let took = script.clock.now().since(started_at);
    assert!(
        took >= S(16) && took <= S(19),
        "7 s and up to a tenth, and 900 calls at 100 a second: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_retry_and_the_budget_s_pause_end_at_one_moment() {
    for _ in 0..20 {
        let script = Script::playing([hint(10), reply(200)]);
        let budget = RateBudget::unknown();
        let service = ServiceBuilder::new()
            .layer(retry(&script))
            .layer(RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now()))
            .service(script.clone());
        let pauses_until = tokio::spawn({
            let (budget, clock) = (budget.clone(), Arc::clone(&script.clock));
            async move {
                tokio::time::sleep(S(5)).await;
                clock.now() + budget.pause_remaining().unwrap()
            }
        });
        through(service, Allowance::of(S(60)), get()).await.unwrap();
        let again = script.called.lock().unwrap()[1];
        let pauses_until = pauses_until.await.unwrap();
        // tokio's timers have whole milliseconds.
        assert!(
            again >= pauses_until && again.since(pauses_until) <= Duration::from_millis(2),
            "{again} {pauses_until}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fits_is_waited_out_whatever_jitter_the_budget_s_pause_would_have_had() {
    for _ in 0..20 {
        for status in [429, 503] {
            let asks = Reply { status, ..hint(100) };
            let script = Script::playing([asks, reply(200)]);
            let service = ServiceBuilder::new()
                .layer(retry(&script))
                .layer(RateLimitLayer::new("acme", RateBudget::unknown()).wall_clock(script.now()))
                .service(script.clone());
            let response = through(service, Allowance::of(S(101)), get()).await.unwrap();
            assert_eq!((response.status(), script.calls()), (StatusCode::OK, 2), "{status}");
            let waited = script.gaps()[0];
            assert!(
                waited >= S(100) && waited <= S(101) + Duration::from_millis(2),
                "{waited:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_turn_in_time_is_refused_at_once_and_never_made() {
    let script = Script::playing([reply(200)]);
    let layer = RateLimitLayer::new("acme", RateBudget::new(Rate::new(1, S(60)))).wall_clock(script.now());
    let service = ServiceBuilder::new()
        .layer(retry(&script))
        .layer(layer)
        .service(script.clone());
    through(service.clone(), Allowance::worker(), get()).await.unwrap();
    let started_at = script.clock.now();
    let refused = refusal_in_chain(through(service, Allowance::worker(), get()).await);
    assert_eq!((script.calls(), script.clock.now()), (1, started_at));
    assert!(
        refused.wait().is_some_and(|wait| wait > S(59) && wait <= S(60)),
        "{refused:?}"
    );
    assert!(refused.reason().contains("paced"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_comes_after_its_deadline_does_not_queue_and_past_it_none_is_made() {
    let ms = Duration::from_millis;
    for (turn_in, left, made) in [(900, 100, false), (900, 2000, true), (0, 100, true), (0, 0, false)] {
        let script = Script::playing([reply(200)]);
        let budget = RateBudget::new(Rate::new(1, ms(900)));
        let layer = RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now());
        let service = layer.layer(script.clone());
        budget.check("/").unwrap();
        tokio::time::advance(ms(900 - turn_in)).await;
        let started_at = script.clock.now();
        let allowance = Allowance::worker().until(started_at + ms(left));
        let answered = through(service.clone(), allowance, get()).await;
        assert_eq!(
            (answered.is_ok(), script.calls()),
            (made, usize::from(made)),
            "{turn_in} {left}"
        );
        if let Err(error) = answered {
            assert_eq!(script.clock.now(), started_at, "at once");
            let expected = (turn_in > 0).then(|| ms(turn_in));
            assert_eq!(error.refusal().unwrap().wait(), expected, "{error:?}");
            assert_eq!(budget.in_flight(), 0);
            // Nothing was spent.
            tokio::time::advance(ms(turn_in)).await;
            budget.check("/").unwrap();
        }
    }
    let script = Script::playing([reply(200)]);
    let over = Allowance::of(S(300)).until(script.clock.now());
    let refused = refusal(through(retry(&script).layer(script.clone()), over, get()).await);
    assert_eq!((refused.retry_at(), script.calls()), (None, 0));
    assert!(refused.reason().contains("deadline"), "{refused}");
}

fn refusal_in_chain(result: Result<Response<impl Sized>, CallError>) -> RateLimitError {
    result.map(drop).unwrap_err().refusal().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_in_flight_until_its_body_is_read_or_dropped() {
    let script = Script::playing([saying(200, "one")]);
    let budget = RateBudget::unknown().max_in_flight(2);
    let layer = RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now());
    let service = layer.layer(script.clone());
    let first = through(service.clone(), Allowance::worker(), get()).await.unwrap();
    let second = through(service, Allowance::worker(), get()).await.unwrap();
    assert_eq!(budget.in_flight(), 2);
    assert_eq!(text(first).await, "one");
    assert_eq!(budget.in_flight(), 1);
    drop(second);
    assert_eq!(budget.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_outside_of_every_budget_stays_outside_wherever_it_is_run() {
    let script = Script::playing([reply(200)]);
    let budget = RateBudget::new(Rate::new(1, S(3600))).max_in_flight(1);
    budget.check("/").unwrap();
    let limit = RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now());
    let limited = limit.layer(script.clone());
    let retried = retry(&script).layer(limited.clone());
    let made = policy_disabled(async { (limited.clone().call(get()), retried.clone().call(get())) });
    let (first, second) = made.await;
    assert!(tokio::spawn(first).await.unwrap().is_ok());
    assert!(tokio::spawn(second).await.unwrap().is_ok());
    assert_eq!(script.calls(), 2);
    let (held,) = Allowance::worker()
        .scope(async { (retried.clone().call(get()),) })
        .await;
    assert!(tokio::spawn(held).await.unwrap().is_err(), "others are held");
    assert_eq!(script.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_outside_an_allowance_and_run_inside_has_it() {
    let script = Script::playing([hint(4), reply(200)]);
    let mut service = retry(&script).layer(script.clone());
    let call = service.ready().await.unwrap().call(get());
    assert_eq!(refusal(Allowance::worker().scope(call).await).wait(), Some(S(4)));
    let layer = RateLimitLayer::new("acme", RateBudget::new(Rate::new(1, S(60)))).wall_clock(script.now());
    let mut service = layer.layer(script.clone());
    service.ready().await.unwrap().call(get()).await.unwrap();
    let call = service.ready().await.unwrap().call(get());
    assert!(
        Allowance::worker().scope(call).await.is_err(),
        "no turn within a second"
    );
}

#[tokio::test(start_paused = true)]
async fn the_allowance_is_that_of_the_task_that_calls_wherever_the_call_is_run() {
    let script = Script::playing([hint(4), reply(200)]);
    let mut service = retry(&script).layer(script.clone());
    let answered = Allowance::worker()
        .scope(async {
            let call = service.ready().await.unwrap().call(get());
            tokio::spawn(call).await.unwrap()
        })
        .await;
    assert_eq!(refusal(answered).wait(), Some(S(4)));
    assert_eq!(script.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn callers_that_were_refused_together_come_back_apart_however_short_the_hint_and_whatever_budget_they_share() {
    let soon = Reply {
        headers: vec![("retry-after-ms", "800".to_string())],
        ..reply(429)
    };
    let gaps = |budget: Option<RateBudget>| {
        let soon = soon.clone();
        async move {
            let mut gaps = std::collections::BTreeSet::new();
            for _ in 0..20 {
                let script = Script::playing([soon.clone(), reply(200)]);
                let layer = RateLimitLayer::new("acme", budget.clone().unwrap_or(RateBudget::unknown()));
                let service = ServiceBuilder::new()
                    .layer(retry(&script))
                    .layer(layer.wall_clock(script.now()))
                    .service(script.clone());
                through(service, Allowance::front_end(), get()).await.unwrap();
                gaps.extend(script.gaps());
            }
            gaps
        }
    };
    for gaps in [gaps(None).await, gaps(Some(RateBudget::unknown())).await] {
        let (least, most) = (Duration::from_millis(1000), Duration::from_millis(1102));
        assert!(
            gaps.len() > 5 && gaps.iter().all(|gap| (least..=most).contains(gap)),
            "{gaps:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_waits_a_later_call_does_not_wait_for_the_end_of_the_pause_either() {
    let script = Script::playing([hint(60), reply(200)]);
    let budget = RateBudget::unknown();
    let service = ServiceBuilder::new()
        .layer(retry(&script).waiting(WaitPolicy::none()))
        .layer(RateLimitLayer::new("acme", budget).wall_clock(script.now()))
        .service(script.clone());
    let first = refusal(through(service.clone(), Allowance::of(S(300)), get()).await);
    assert_eq!((first.status(), script.calls()), (Some(429), 1));
    let started_at = script.clock.now();
    let second = refusal(through(service, Allowance::of(S(300)), get()).await);
    assert_eq!((second.status(), script.calls()), (Some(429), 1));
    assert!(script.clock.now().since(started_at) < S(1));
    assert!(second.wait() >= Some(S(59)), "{second}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_in_points_is_spent_by_the_contract_s_costs_and_set_right_by_the_response() {
    let contract = "[[costs]]\npoints = 5\nheader = \"X-Cost\"\nfield = \"/cost\"";
    let contract = crate::Contract::parse(contract).unwrap();
    for (reply, expected) in [
        (reply(200), 2),
        (saying(200, r#"{"cost":2}"#), 3),
        (
            Reply {
                headers: vec![("x-cost", "10".to_string())],
                ..reply(200)
            },
            1,
        ),
    ] {
        let script = Script::playing([reply]);
        let budget = RateBudget::new(Rate::per_hour(10).in_points());
        let limit = RateLimitLayer::new("acme", budget)
            .contract(&contract)
            .wall_clock(script.now());
        let service = limit.layer(script.clone());
        for _ in 0..expected {
            assert!(through(service.clone(), Allowance::worker(), get()).await.is_ok());
        }
        refusal(through(service, Allowance::worker(), get()).await);
        assert_eq!(script.calls(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_least_wait_after_a_refusal_holds_for_everybody_that_its_pause_holds() {
    for floor in [
        "[deferral]\nmin_retry_after_ms = 20000",
        "[providers.acme.contract]\nmin_retry_after_ms = 20000",
    ] {
        let text = format!("[providers.acme]\nbase_url = \"https://api.acme.example\"\n{floor}");
        let settings = crate::Settings::parse(&text).unwrap();
        let script = Script::playing([hint(2), reply(200)]);
        let limit = RateLimitLayer::of(&settings, "acme", RateBudget::unknown()).unwrap();
        let service = limit.wall_clock(script.now()).layer(script.clone());
        assert!(through(service.clone(), Allowance::worker(), get()).await.is_ok());
        tokio::time::advance(S(18)).await;
        let held = refusal(through(service.clone(), Allowance::worker(), get()).await);
        assert_eq!((held.status(), script.calls()), (Some(429), 1), "{floor}");
        tokio::time::advance(S(4)).await;
        assert!(through(service, Allowance::worker(), get()).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn without_waits_a_refusal_is_only_read() {
    let script = Script::playing([hint(1), reply(200)]);
    let service = retry(&script).waiting(WaitPolicy::none()).layer(script.clone());
    assert_eq!(
        refusal(through(service, Allowance::front_end(), get()).await).wait(),
        Some(S(1))
    );
    assert_eq!(script.calls(), 1);
}

#[cfg(feature = "handler")]
mod of_a_worker {
    //! A client of one's own in a worker's handler.

    use adjourn_worker::{Done, Handler, Job, Worker, fake::FakeQueue};

    use super::*;

    use adjourn_core::Policy;

    /// Asks twice for what costs four seconds of waiting, under the allowance that a job without one of its own would have.
    struct Patient(Script);

    impl Handler for Patient {
        async fn handle(&self, _: Job) -> Result<Done, Interrupt> {
            assert_eq!(Allowance::current().cap(), S(7));
            for _ in 0..2 {
                let call = retry(&self.0).layer(self.0.clone()).oneshot(get());
                Allowance::of(S(300)).scope(call).await?;
            }
            Ok(Done::new())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_s_cap_is_for_all_of_its_calls_and_no_scope_around_or_in_it_lengthens_it() {
        let script = Script::playing([hint(4), reply(200), hint(4), reply(200)]);
        let clock = Arc::clone(&script.clock);
        let queue = FakeQueue::standard("orders", clock.clone());
        let mut policy = Policy::default();
        policy.deferral.max_in_process_wait = S(7);
        let worker = Worker::builder(Patient(script.clone()), Arc::new(queue.clone()))
            .clock(clock.clone())
            .policy(policy)
            .build();
        queue.send_body("7").unwrap();
        let batch = queue.receive(10).await.unwrap();
        Allowance::of(S(300)).scope(worker.run_batch(batch, None)).await;
        assert_eq!(
            script.calls(),
            3,
            "four of seven seconds are slept: the second refusal puts the job off"
        );
        assert_eq!(queue.steps().len(), 1);
    }

    struct Orders(Script);

    impl Handler for Orders {
        async fn handle(&self, _: Job) -> Result<Done, Interrupt> {
            assert_eq!(Allowance::current().cap(), Duration::ZERO);
            let carried = tokio::spawn(Allowance::carry(async { Allowance::current() }));
            let carried = carried.await.unwrap();
            assert_eq!((carried.cap(), carried.deadline().is_some()), (Duration::ZERO, true));
            retry(&self.0).layer(self.0.clone()).oneshot(get()).await?;
            Ok(Done::new())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_waits_for_nothing_in_process_whatever_client_it_uses_and_nobody_has_to_say_so() {
        let script = Script::playing([hint(2), reply(200)]);
        let clock = Arc::clone(&script.clock);
        let queue = FakeQueue::standard("orders", clock.clone());
        let worker = Worker::builder(Orders(script.clone()), Arc::new(queue.clone()))
            .clock(clock.clone())
            .build();
        queue.send_body("7").unwrap();
        let (batch, started_at) = (queue.receive(10).await.unwrap(), clock.now());
        worker.run_batch(batch, None).await;
        assert_eq!(script.calls(), 1);
        assert!(clock.now() < started_at + S(1), "nothing in process");
        let steps = queue.steps();
        let [step] = steps.as_slice() else {
            panic!("one wait was accepted by the queue: {steps:?}")
        };
        assert!(step.due >= started_at + S(2));
    }
}

mod of_reqwest {
    //! The same around reqwest's own client, against a server on the loopback.

    use super::*;
    use crate::requester::loopback::{Act, Loopback};

    fn client() -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
        client.build().unwrap()
    }

    fn refusal_then_done() -> Vec<Act> {
        let refusal = Act::status(429, "retry-after: 2\r\n", "busy");
        vec![
            refusal,
            Act::status(200, "x-one: 1\r\n", "fine"),
            Act::status(404, "", "no such order"),
        ]
    }

    /// The whole of a response that went through layers is what the server sent.
    async fn check(server: &Loopback, response: reqwest::Response, body: &str) {
        assert_eq!(response.url().as_str(), format!("{}/orders", server.url));
        assert_eq!(response.content_length(), Some(u64::try_from(body.len()).unwrap()));
        assert_eq!(response.text().await.unwrap(), body);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reqwest_client_is_a_service_like_any_other() {
        let server = Loopback::playing(refusal_then_done()).await;
        let budget = RateBudget::unknown().max_in_flight(1);
        let mut service = ServiceBuilder::new()
            .layer(RetryLayer::new("acme"))
            .layer(RateLimitLayer::new("acme", budget.clone()))
            .service(client());
        for (calls, body) in [(2, "fine"), (3, "no such order")] {
            let request = client().get(format!("{}/orders", server.url)).build().unwrap();
            let response = service.ready().await.unwrap().call(request).await.unwrap();
            assert_eq!((server.asked().len(), budget.in_flight()), (calls, 1));
            check(&server, response, body).await;
            assert_eq!(budget.in_flight(), 0);
        }
    }

    #[cfg(feature = "reqwest-middleware")]
    #[tokio::test(start_paused = true)]
    async fn a_reqwest_client_takes_the_layers_as_middleware() {
        let server = Loopback::playing(refusal_then_done()).await;
        let budget = RateBudget::unknown().max_in_flight(1);
        let client = reqwest_middleware::ClientBuilder::new(client())
            .with(RetryLayer::new("acme"))
            .with(RateLimitLayer::new("acme", budget.clone()))
            .build();
        for (calls, body) in [(2, "fine"), (3, "no such order")] {
            let response = client.get(format!("{}/orders", server.url)).send().await.unwrap();
            assert_eq!((server.asked().len(), budget.in_flight()), (calls, 1));
            check(&server, response, body).await;
            assert_eq!(budget.in_flight(), 0);
        }
    }

    #[cfg(feature = "reqwest-middleware")]
    #[tokio::test(start_paused = true)]
    async fn a_middleware_s_refusal_is_the_worker_s_interrupt_by_a_question_mark() {
        async fn handle(url: &str) -> Result<(), Interrupt> {
            let middleware = RetryLayer::new("acme");
            let client = reqwest_middleware::ClientBuilder::new(client())
                .with(middleware)
                .build();
            client.get(url).send().await?;
            Ok(())
        }
        let server = Loopback::playing(vec![Act::status(429, "retry-after: 600\r\n", "")]).await;
        let refused = Allowance::worker().scope(handle(&server.url)).await.unwrap_err();
        let Outcome::Throttled(signal) = refused.into_outcome() else {
            panic!("a refusal")
        };
        assert_eq!((signal.wait(), server.asked().len()), (Some(S(600)), 1));

        let nobody = Loopback::nobody().await;
        let failed = Allowance::worker().scope(handle(&nobody)).await.unwrap_err();
        assert!(matches!(failed.into_outcome(), Outcome::Failed(fault) if fault.why().contains("refused")));
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_an_error_for_who_reads_it_whatever_layers_there_are() {
        for status in [200, 404, 500] {
            let act = format!("HTTP/1.1 {status} X\r\ncontent-length: 100\r\n\r\n0123456789");
            let server = Loopback::playing(vec![Act::Answer(act.into_bytes())]).await;
            let reader = Arc::new(ContractReader::default());
            let mut service = ServiceBuilder::new()
                .layer(
                    RetryLayer::new("acme")
                        .reader(reader.clone())
                        .waiting(WaitPolicy::none()),
                )
                .layer(RateLimitLayer::new("acme", RateBudget::unknown()).reader(reader))
                .service(client());
            let request = client().get(&server.url).build().unwrap();
            let response = service.ready().await.unwrap().call(request).await.unwrap();
            assert_eq!(response.status(), status);
            assert!(
                response.content_length().is_none_or(|length| length >= 100),
                "as announced"
            );
            let error = response.bytes().await.unwrap_err();
            assert!(error.is_body() || error.is_decode(), "{status}: {error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_a_stream_is_sent_once() {
        let server = Loopback::playing(refusal_then_done()).await;
        let body = reqwest::Body::wrap(Pieces::default());
        let request = client()
            .post(format!("{}/orders", server.url))
            .header("content-length", "0")
            .body(body);
        let service = RetryLayer::new("acme").layer(client());
        let answered = Allowance::front_end()
            .scope(service.oneshot(request.build().unwrap()))
            .await;
        assert_eq!(answered.unwrap_err().refusal().unwrap().wait(), Some(S(2)));
        assert_eq!(server.asked().len(), 1);
    }
}
