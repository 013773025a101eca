//! Tokens as a requester's calls need them: a token endpoint and an API on the loopback, on a clock that moves when nothing else
//! can.

use std::future::Future;

use adjourn_core::{Interpretation, ScopeKey, Source};
use adjourn_worker::{Clock, VirtualClock};

use super::*;
use crate::{
    Allowance, Answer, ContractReader, Credentials, HttpJob, Requester, Settings,
    requester::loopback::{Act, Loopback},
};

const S: fn(u64) -> Duration = Duration::from_secs;

struct Scene {
    tokens: Loopback,
    api: Loopback,
    requester: Requester,
    clock: Arc<VirtualClock>,
}

fn granted(token: &str, rest: &str) -> Act {
    Act::status(
        200,
        "",
        &format!(r#"{{"access_token":"{token}","token_type":"Bearer"{rest}}}"#),
    )
}

impl Scene {
    async fn playing(tokens: Vec<Act>, api: Vec<Act>, more: &str) -> Self {
        let (tokens, api) = (Loopback::playing(tokens).await, Loopback::playing(api).await);
        let text = format!(
            "[providers.acme]\nbase_url = \"{}\"\ncredential = {{ oauth2 = {{ token_url = \"{}/oauth/token\", client_id = \"us&me\", client_secret = {{ env = \"ACME_SECRET\" }}{more} }} }}",
            api.url, tokens.url
        );
        let settings = Settings::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let secret = |name: &str| (name == "ACME_SECRET").then(|| "s3cret +".to_string());
        let credentials = Credentials::read(&settings, secret).unwrap();
        let start = Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
        let clock = Arc::new(VirtualClock::starting_at(start));
        let reader = Arc::new(ContractReader::of(&settings));
        let told = Arc::clone(&clock);
        let requester = Requester::new(settings, credentials, reader, Arc::new(move || told.now())).unwrap();
        Self {
            tokens,
            api,
            requester,
            clock,
        }
    }

    async fn call(&self) -> Result<Answer, RateLimitError> {
        self.call_within(Allowance::worker()).await
    }

    async fn call_within(&self, allowance: Allowance) -> Result<Answer, RateLimitError> {
        let job = HttpJob::parse(r#"{"provider":"acme","method":"POST","path":"/orders"}"#).unwrap();
        allowance.scope(self.requester.call(&job, "order-7")).await
    }

    /// The tokens that the API's calls carried.
    fn carried(&self) -> Vec<String> {
        let asked = self.api.asked();
        asked
            .iter()
            .map(|asked| asked.header("authorization").concat())
            .collect()
    }
}

fn done() -> Act {
    Act::status(200, "", "")
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_a_token() {
    let scene = Scene::playing(vec![granted("t-1", "")], vec![done()], ", scope = \"orders read\"").await;
    assert_eq!(scene.call().await.unwrap().outcome, Outcome::Done);
    let [asked] = &scene.tokens.asked()[..] else {
        panic!("one question")
    };
    assert_eq!(asked.request_line(), "POST /oauth/token HTTP/1.1");
    // Both halves are form-encoded before the pair is: RFC 6749, section 2.3.1.
    assert_eq!(asked.header("authorization"), ["Basic dXMlMjZtZTpzM2NyZXQrJTJC"]);
    assert_eq!(asked.header("content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(asked.body, b"grant_type=client_credentials&scope=orders+read");
    assert_eq!(scene.carried(), ["Bearer t-1"]);

    let scene = Scene::playing(vec![granted("t-1", "")], vec![done()], ", client_auth = \"body\"").await;
    scene.call().await.unwrap();
    let asked = scene.tokens.asked();
    assert!(asked[0].header("authorization").is_empty());
    assert_eq!(
        asked[0].body,
        b"grant_type=client_credentials&client_id=us%26me&client_secret=s3cret+%2B"
    );
}

#[tokio::test(start_paused = true)]
async fn one_token_serves_many_callers_and_is_renewed_before_its_end() {
    let hour = r#","expires_in":"3600""#;
    let scene = Scene::playing(vec![granted("t-1", hour), granted("t-2", hour)], vec![done()], "").await;
    let mut callers = Vec::new();
    for _ in 0..20 {
        callers.push(scene.call());
    }
    for answer in futures_of(callers).await {
        assert_eq!(answer.unwrap().outcome, Outcome::Done);
    }
    assert_eq!((scene.tokens.asked().len(), scene.api.asked().len()), (1, 20));
    tokio::time::advance(S(3539)).await;
    scene.call().await.unwrap();
    assert_eq!(scene.tokens.asked().len(), 1);
    tokio::time::advance(S(1)).await;
    scene.call().await.unwrap();
    assert_eq!(scene.tokens.asked().len(), 2, "a minute before its end");
    assert_eq!(scene.carried().last().unwrap(), "Bearer t-2");
}

/// Runs futures side by side in this task.
async fn futures_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, answer) in &mut running {
            if answer.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *answer = Some(output);
            }
        }
        let all = running.iter().all(|(_, answer)| answer.is_some());
        if all {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[tokio::test(start_paused = true)]
async fn a_401_renews_the_token_once_and_repeats_the_call_once() {
    let both = || vec![granted("t-1", ""), granted("t-2", "")];
    let scene = Scene::playing(both(), vec![Act::status(401, "", ""), done()], "").await;
    assert_eq!(scene.call().await.unwrap().outcome, Outcome::Done);
    assert_eq!(scene.carried(), ["Bearer t-1", "Bearer t-2"]);
    scene.call().await.unwrap();
    assert_eq!(scene.tokens.asked().len(), 2, "the fresh one is kept");

    let scene = Scene::playing(both(), vec![Act::status(401, "", "")], "").await;
    let Outcome::Rejected(fault) = scene.call().await.unwrap().outcome else {
        panic!("a fresh token that is not taken either is the provider's word")
    };
    assert_eq!(fault.why(), "unauthorized: acme answered 401 Unauthorized");
    assert_eq!((scene.tokens.asked().len(), scene.api.asked().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_refused_refresh_is_the_token_endpoint_s_own_refusal_and_is_not_asked_again_before_its_moment() {
    let refusal = Act::status(429, "retry-after: 30\r\n", "");
    let scene = Scene::playing(
        vec![granted("t-1", ""), refusal, granted("t-2", "")],
        vec![Act::status(401, "", "")],
        "",
    )
    .await;
    let refused = scene.call().await.unwrap_err();
    assert_eq!(refused.scope_key().map(ScopeKey::as_str), Some("acme:token"));
    assert_eq!(refused.signal().closes().map(ScopeKey::as_str), Some("acme:token"));
    assert_eq!(
        (refused.status(), refused.told_by(), refused.wait()),
        (Some(429), Source::Parser, Some(S(30)))
    );
    assert_eq!(refused.retry_at(), Some(scene.clock.now() + S(30)));
    assert_eq!((refused.provider(), refused.is_retryable()), ("acme", true));
    assert_eq!(refused.signal().observation().interpretation, Interpretation::Delay);

    let again = scene.call().await.unwrap_err();
    assert_eq!(again.scope_key().map(ScopeKey::as_str), Some("acme:token"));
    assert!(again.status() == Some(429) && again.retry_at().is_some());
    assert_eq!(
        (scene.tokens.asked().len(), scene.api.asked().len()),
        (2, 1),
        "nobody was called"
    );
    tokio::time::advance(S(33)).await;
    assert!(scene.call().await.is_ok());
    assert_eq!(scene.carried().last().unwrap(), "Bearer t-2");
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_that_gives_none_is_a_failure_to_try_again_and_never_the_job_s() {
    let denied = r#"{"error":"invalid_client","error_description":"bad secret s3cret +"}"#;
    for (act, words) in [
        (
            Act::status(401, "", denied),
            "answered 401 Unauthorized: invalid_client",
        ),
        (
            Act::status(400, "", r#"{"error":"s3cret +"}"#),
            "answered 400 Bad Request",
        ),
        (Act::status(403, "", ""), "answered 403 Forbidden"),
        (Act::status(503, "", ""), "answered 503 Service Unavailable"),
        (Act::status(200, "", "{}"), "answered 200 OK without a token"),
    ] {
        let scene = Scene::playing(vec![act], vec![done()], "").await;
        let answer = scene.call().await.unwrap();
        let Outcome::Failed(fault) = answer.outcome else {
            panic!("{words}: {answer:?}")
        };
        assert_eq!(
            fault.why(),
            format!("the token endpoint of acme {words}; the call was not sent")
        );
        assert_eq!((fault.last_status(), scene.api.asked().len()), (answer.status, 0));
    }
    let scene = Scene::playing(vec![Act::HangUp], vec![done()], "").await;
    let Outcome::Failed(fault) = scene.call().await.unwrap().outcome else {
        panic!("a failure")
    };
    assert!(
        fault.why().starts_with("the token endpoint of acme did not answer: "),
        "{}",
        fault.why()
    );
}

#[tokio::test(start_paused = true)]
async fn callers_that_wait_for_one_answer_share_it_also_where_it_is_none() {
    let scene = Scene::playing(vec![Act::status(429, "", ""), granted("t-1", "")], vec![done()], "").await;
    let callers = (0..20).map(|_| scene.call()).collect();
    let answers = futures_of(callers).await;
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    assert_eq!((scene.tokens.asked().len(), scene.api.asked().len()), (1, 0));
    assert!(scene.call().await.is_ok(), "whoever comes later asks anew");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_never_printed() {
    let repeats = Act::status(400, "", "no such order for t-1-and-more");
    let scene = Scene::playing(vec![granted("t-1-and-more", "")], vec![repeats], "").await;
    let Outcome::Rejected(fault) = scene.call().await.unwrap().outcome else {
        panic!("a rejection")
    };
    assert_eq!(
        fault.why(),
        "refused: acme answered 400 Bad Request: no such order for [credential]"
    );
    let printed = format!("{:?} {:?}", scene.requester, scene.requester.clone());
    assert!(
        !printed.contains("s3cret") && !printed.contains("t-1-and-more"),
        "{printed}"
    );
    let token = Token::new(SecretString::from("t-1-and-more"), None);
    assert!(!format!("{token:?}").contains("t-1"));
}

#[tokio::test(start_paused = true)]
async fn a_source_of_one_s_own_gives_the_tokens() {
    #[derive(Debug)]
    struct Fixed;
    #[async_trait]
    impl TokenSource for Fixed {
        async fn token(&self, _: Duration) -> Result<Token, TokenError> {
            Ok(Token::new(SecretString::from("mine"), None))
        }
        async fn renewed(&self, _: &Token, _: Duration) -> Result<Token, TokenError> {
            Err(TokenError::Failed(Fault::new("there is no other")))
        }
    }
    let mut scene = Scene::playing(vec![granted("t-1", "")], vec![done(), Act::status(401, "", "")], "").await;
    scene.requester = scene.requester.tokens("acme", Arc::new(Fixed));
    assert_eq!(scene.call().await.unwrap().outcome, Outcome::Done);
    assert_eq!(scene.carried(), ["Bearer mine"]);
    assert!(
        matches!(scene.call().await.unwrap().outcome, Outcome::Failed(fault) if fault.why() == "there is no other")
    );
    assert!(scene.tokens.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_s_pause_is_waited_out_by_whoever_may_however_short_the_provider_s_timeout() {
    let refusal = Act::status(429, "retry-after: 600\r\n", "");
    let scene = Scene::playing(vec![refusal, granted("t-1", "")], vec![done()], "").await;
    assert!(scene.call().await.is_err());
    let started_at = scene.clock.now();
    // Side by side, and the first holds the question: the second may not be kept waiting, and has the refusal at once.
    let patient = scene.call_within(Allowance::of(S(700)));
    let hasty = async {
        tokio::time::sleep(S(100)).await;
        let refused = scene.call().await;
        (refused, scene.clock.now().since(started_at))
    };
    let (patient, (hasty, took)) = tokio::join!(patient, hasty);
    assert_eq!(patient.unwrap().outcome, Outcome::Done);
    assert!(scene.clock.now().since(started_at) >= S(600));
    let hasty = hasty.unwrap_err();
    assert!(took < S(101), "{took:?}");
    assert_eq!(hasty.scope_key().map(ScopeKey::as_str), Some("acme:token"));
    assert_eq!((hasty.status(), hasty.is_retryable()), (Some(429), true));
    assert!(hasty.wait() >= Some(S(499)), "{hasty}");
    assert_eq!(scene.tokens.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_s_moment_that_fits_is_waited_out_whatever_jitter_its_pause_would_have_had() {
    for _ in 0..20 {
        let refusal = Act::status(429, "retry-after: 100\r\n", "");
        let scene = Scene::playing(vec![refusal, granted("t-1", "")], vec![done()], "").await;
        let answer = scene.call_within(Allowance::of(S(101))).await;
        assert_eq!(answer.unwrap().outcome, Outcome::Done);
        assert_eq!((scene.tokens.asked().len(), scene.api.asked().len()), (2, 1));
    }
}
