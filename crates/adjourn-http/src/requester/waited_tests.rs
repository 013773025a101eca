//! Calls that wait in process: a scripted provider on the loopback, on a clock that moves when nothing else can.

use std::time::Duration;

use adjourn_core::{Kind, RateLimitError, ScopeKey, Source};
use adjourn_worker::{Clock, VirtualClock};

use super::{
    loopback::{Act, Loopback},
    *,
};
use crate::{Allowance, ContractReader};

pub(super) const S: fn(u64) -> Duration = Duration::from_secs;

/// A provider that plays the acts, and whoever calls it.
pub(super) struct Scene {
    pub(super) server: Loopback,
    pub(super) requester: Requester,
    pub(super) clock: Arc<VirtualClock>,
}

impl Scene {
    pub(super) async fn playing(acts: Vec<Act>, settings: &str) -> Self {
        let server = Loopback::playing(acts).await;
        let text = format!("[providers.acme]\nbase_url = \"{}\"\n{settings}", server.url);
        let settings = Settings::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let clock = Arc::new(VirtualClock::starting_at(
            Timestamp::parse("2026-07-10T20:13:47Z").unwrap(),
        ));
        let reader = Arc::new(ContractReader::of(&settings));
        let told = Arc::clone(&clock);
        let requester = Requester::new(settings, Credentials::default(), reader, Arc::new(move || told.now())).unwrap();
        Self {
            server,
            requester,
            clock,
        }
    }

    /// Calls under an allowance: what came of it, how many calls that took, and how long.
    pub(super) async fn call(
        &self,
        allowance: Allowance,
        method: &str,
    ) -> (Result<Answer, RateLimitError>, usize, Duration) {
        let text = format!(r#"{{"provider":"acme","method":"{method}","path":"/orders"}}"#);
        let job = HttpJob::parse(&text).unwrap();
        let (before, started_at) = (self.server.asked().len(), self.clock.now());
        let answer = allowance.scope(self.requester.call(&job, "order-7")).await;
        let calls = self.server.asked().len() - before;
        (answer, calls, self.clock.now().since(started_at))
    }
}

pub(super) fn hint(seconds: u64) -> Act {
    Act::status(429, &format!("retry-after: {seconds}\r\n"), "")
}

pub(super) fn bare() -> Act {
    Act::status(429, "", "")
}

pub(super) fn done() -> Act {
    Act::status(200, "", "")
}

pub(super) fn ample() -> Allowance {
    Allowance::of(S(300))
}

#[tokio::test(start_paused = true)]
async fn a_short_refusal_is_waited_out_and_the_caller_sees_the_answer() {
    let scene = Scene::playing(vec![hint(4), done()], "").await;
    let (answer, calls, took) = scene.call(Allowance::front_end(), "POST").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 2));
    assert!(took >= S(4) && took <= S(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_the_caller_s_at_once_with_everything_that_was_read() {
    let body = r#"{"errorType":"RATE_LIMIT","policyName":"SECONDLY"}"#;
    let refusal = Act::status(429, "retry-after: 60\r\n", body);
    let scene = Scene::playing(vec![refusal, done()], "contract = \"hubspot\"").await;
    let (refused, calls, took) = scene.call(Allowance::front_end(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!(calls, 1);
    assert!(took < S(1), "{took:?}");
    assert_eq!(
        (refused.status(), refused.kind(), refused.told_by(), refused.wait()),
        (Some(429), Kind::Short, Source::Parser, Some(S(60)))
    );
    assert_eq!((refused.policy(), refused.reason()), (Some("SECONDLY"), "secondly"));
    assert_eq!(refused.scope_key(), Some(&ScopeKey::provider("acme")));
    assert!(refused.is_retryable() && refused.provider() == "acme");
    assert_eq!(
        refused.retry_at(),
        Some(refused.signal().observation().observed_at + S(60))
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_s_refusal_defers_at_once_whatever_it_says() {
    for act in [hint(1), bare(), hint(0)] {
        let scene = Scene::playing(vec![act, done()], "").await;
        let (refused, calls, took) = scene.call(Allowance::worker(), "GET").await;
        assert_eq!((refused.unwrap_err().status(), calls), (Some(429), 1));
        assert!(took < S(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_eleventh_named_moment_is_the_caller_s() {
    let scene = Scene::playing(vec![hint(1)], "").await;
    let (refused, calls, took) = scene.call(ample(), "GET").await;
    assert_eq!((refused.unwrap_err().wait(), calls), (Some(S(1)), 11));
    assert!(took >= S(10) && took < S(12), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn bare_refusals_go_up_the_ladder_and_the_moment_told_is_unknown_and_never_the_ladder_s() {
    let scene = Scene::playing(vec![bare()], "").await;
    let (refused, calls, took) = scene.call(ample(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.retry_at(), refused.wait(), calls), (None, None, 7));
    assert!(
        took >= S(284) && took < S(301),
        "1 + 3 + 10 + 30 + 60 + 180 s and no more than the cap: {took:?}"
    );

    let (refused, calls, took) = scene.call(Allowance::front_end(), "GET").await;
    assert_eq!((refused.unwrap_err().retry_at(), calls), (None, 3));
    assert!(took >= S(4) && took < S(5), "the rung of 10 s did not fit: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_s_cap_counts_what_it_slept_over_all_its_calls() {
    let scene = Scene::playing(vec![hint(4), done(), hint(4), done(), hint(4), done()], "").await;
    let front_end = Allowance::front_end();
    for expected in [2, 2, 1] {
        let (answer, calls, _) = scene.call(front_end.clone(), "GET").await;
        assert_eq!((calls, answer.is_ok()), (expected, expected == 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_leaves_the_call_its_time_or_half_of_what_there_is() {
    // 29 s left and a timeout of 30 s: 14.5 s may be waited, the tenth included that a pause is longer at most.
    for (seconds, expected) in [(13, 2), (15, 1)] {
        let scene = Scene::playing(vec![hint(seconds), done()], "timeout_ms = 30000").await;
        let deadline = scene.clock.now() + S(29);
        let (answer, calls, took) = scene.call(ample().until(deadline), "GET").await;
        assert_eq!((calls, answer.is_ok()), (expected, expected == 2), "{seconds} s");
        assert!(took < S(29));
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_backoff_means_no_wait_in_process_at_all() {
    for act in [hint(1), bare(), Act::status(503, "", "")] {
        let mut scene = Scene::playing(vec![act, done()], "").await;
        scene.requester = scene.requester.waiting(WaitPolicy::none());
        let (_, calls, took) = scene.call(ample(), "GET").await;
        assert_eq!(calls, 1);
        assert!(took < S(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_an_empty_backoff_a_later_call_does_not_wait_for_a_pause_or_a_turn_either() {
    let mut scene = Scene::playing(vec![hint(60), done()], "").await;
    scene.requester = scene.requester.waiting(WaitPolicy::none());
    assert_eq!(scene.call(ample(), "GET").await.1, 1);
    let (refused, calls, took) = scene.call(ample(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.status(), calls), (Some(429), 0));
    assert!(took < S(1), "{took:?}");
    assert!(refused.wait() >= Some(S(59)), "the time that is left: {refused}");

    let rate = "rate = { requests = 1, per_ms = 30000 }";
    let mut scene = Scene::playing(vec![done()], rate).await;
    scene.requester = scene.requester.waiting(WaitPolicy::none());
    assert_eq!(scene.call(ample(), "GET").await.1, 1);
    let (refused, calls, took) = scene.call(ample(), "GET").await;
    assert!(refused.is_err() && calls == 0);
    assert!(took < S(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_our_own_pace_is_a_wait_and_no_moment_of_the_provider_s_and_the_end_of_a_pause_is() {
    let scene = Scene::playing(vec![done()], "rate = { requests = 1, per_ms = 3600000 }").await;
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
    let paced = scene.call(Allowance::worker(), "GET").await.0.unwrap_err();
    assert_eq!(
        (paced.retry_at(), paced.told_by(), paced.status()),
        (None, Source::None, None)
    );
    assert_eq!(paced.wait(), Some(S(3600)));
    assert!(paced.reason().ends_with("paced"), "{paced}");
    assert_eq!(paced.signal().not_before(), Some(scene.clock.now() + S(3600)));

    let spent = Act::status(200, "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 40\r\n", "");
    let scene = Scene::playing(vec![spent], "").await;
    assert_eq!(scene.call(Allowance::worker(), "GET").await.1, 1);
    let paused = scene.call(Allowance::worker(), "GET").await.0.unwrap_err();
    assert_eq!((paused.status(), paused.told_by()), (Some(200), Source::Parser));
    assert!(paused.retry_at() >= Some(scene.clock.now() + S(40)));
}

#[tokio::test(start_paused = true)]
async fn another_status_that_is_a_limit_and_names_no_time_is_the_caller_s_after_one_call() {
    let rule = "[[providers.acme.contract.classify]]\nstatus = 403\nkind = \"short\"";
    let scene = Scene::playing(vec![Act::status(403, "", ""), done()], rule).await;
    let (refused, calls, took) = scene.call(ample(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.status(), refused.retry_at(), calls), (Some(403), None, 1));
    assert!(took < S(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn server_errors_and_broken_connections_are_tried_again_up_the_ladder() {
    let broken = Act::status(500, "", "");
    let scene = Scene::playing(vec![broken.clone(), Act::HangUp, broken, done()], "").await;
    let (answer, calls, took) = scene.call(ample(), "GET").await;
    assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 4));
    assert!(took >= S(14) && took < S(16), "1 + 3 + 10 s: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_had_its_effect_is_not_tried_again() {
    let scene = Scene::playing(vec![Act::HangUp, done()], "").await;
    let (answer, calls, _) = scene.call(ample(), "POST").await;
    assert!(matches!(answer.unwrap().outcome, Outcome::Unknown(_)));
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_their_turn_of_the_configured_rate_and_one_refusal_pauses_all() {
    let rate = "rate = { requests = 2, per_ms = 2000 }";
    let scene = Scene::playing(vec![done()], rate).await;
    let mut took = S(0);
    for _ in 0..5 {
        took += scene.call(ample(), "GET").await.2;
    }
    assert!(
        took >= S(3) && took < S(4),
        "two at once, and then one a second: {took:?}"
    );
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    assert!(refused.is_err() && calls == 0, "no turn within a second");

    let scene = Scene::playing(vec![hint(60), done()], "").await;
    assert!(scene.call(Allowance::worker(), "GET").await.0.is_err());
    let (refused, calls, _) = scene.call(Allowance::worker(), "GET").await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.status(), calls), (Some(429), 0), "the second is not even made");
    assert!(
        refused.wait() > Some(S(59)) && refused.reason().contains("paused"),
        "{refused}"
    );
    let elsewhere = scene.requester.clone().pacing(None);
    let job = HttpJob::parse(r#"{"provider":"acme","method":"GET","path":"/"}"#).unwrap();
    let answer = Allowance::worker().scope(elsewhere.call(&job, "1")).await;
    assert_eq!(answer.unwrap().outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fits_is_waited_out_whatever_jitter_the_budget_s_pause_would_have_had() {
    // Each try draws another share of the tenth, ten seconds, of which one fits.
    for _ in 0..20 {
        for status in [429, 503] {
            let asks = Act::status(status, "retry-after: 100\r\n", "");
            let scene = Scene::playing(vec![asks, done()], "").await;
            let (answer, calls, took) = scene.call(Allowance::of(S(101)), "GET").await;
            assert_eq!((answer.unwrap().outcome, calls), (Outcome::Done, 2), "{status}");
            assert!(took >= S(100) && took <= S(101) + Duration::from_millis(2), "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fits_exactly_is_waited_out_and_one_that_does_not_is_the_caller_s_at_once() {
    for (cap, expected) in [(100, 2), (99, 1)] {
        for status in [429, 503] {
            let asks = Act::status(status, "retry-after: 100\r\n", "");
            let scene = Scene::playing(vec![asks, done()], "").await;
            let (_, calls, took) = scene.call(Allowance::of(S(cap)), "GET").await;
            assert_eq!(calls, expected, "{status}, {cap} s");
            assert!(took >= S(100) || expected == 1);
            assert!(took < S(1) || expected == 2, "{took:?}");
        }
    }
}
