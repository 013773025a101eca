//! What responses teach a budget: pauses, whose moment they are, and the counters of limits.

use std::time::Duration;

use adjourn_http::{Rate, RateBudget, WaitReason};

use crate::calls::{MS, S, Watch, crowd, headers, refused, send, settle, try_send, wall};

const NOW: &str = "2026-07-10T20:13:47Z";

fn budget() -> RateBudget {
    RateBudget::new(Rate::per_second(100)).wall_clock(wall(NOW))
}

/// Whether a response makes a pause of so many seconds, or up to a tenth longer.
async fn pauses_for(status: u16, lines: &[(&str, &str)], expected: Option<u64>) -> bool {
    let budget = budget();
    let feedback = send(&budget, "/").await.answered(status, &headers(lines));
    let pause = budget.pause_remaining();
    assert_eq!(
        pause, feedback.retry_after,
        "one moment for the call and for the budget"
    );
    match (pause, expected.map(Duration::from_secs)) {
        (None, None) => true,
        (Some(pause), Some(expected)) => pause >= expected && pause <= expected.mul_f64(1.1) + MS,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[tokio::test(start_paused = true)]
async fn every_way_to_ask_for_a_pause_in_its_precedence() {
    let epoch = ("X-RateLimit-Reset", "1783714457");
    for (status, lines, expected) in [
        (429, vec![("Retry-After", "120")], Some(120)),
        (429, vec![("retry-after-ms", "90000")], Some(90)),
        (503, vec![("Retry-After", "120")], Some(120)),
        (503, vec![], None),
        (500, vec![("Retry-After", "120")], None),
        (502, vec![], None),
        (429, vec![], None),
        (202, vec![("Retry-After", "120")], None),
        (200, vec![], None),
        // Retry-After before the counters.
        (
            429,
            vec![("Retry-After", "60"), ("RateLimit", "\"default\";r=0;t=300")],
            Some(60),
        ),
        // RateLimit: r=0 is spent, on whatever status, and t the wait.
        (200, vec![("RateLimit", "\"default\";r=0;t=50")], Some(50)),
        (201, vec![("RateLimit", "\"default\";r=0;t=50")], Some(50)),
        (404, vec![("RateLimit", "\"default\";r=0;t=50")], Some(50)),
        (200, vec![("RateLimit", "\"default\";r=1;t=50")], None),
        (
            200,
            vec![("RateLimit", "\"second\";r=5;t=1, \"day\";r=0;t=70")],
            Some(70),
        ),
        (200, vec![("RateLimit", "limit=100, remaining=0, reset=40")], Some(40)),
        (
            200,
            vec![
                ("RateLimit-Limit", "100"),
                ("RateLimit-Remaining", "0"),
                ("RateLimit-Reset", "30"),
            ],
            Some(30),
        ),
        // Bytes and concurrent requests are no requests.
        (
            200,
            vec![
                ("RateLimit", "\"bytes\";r=0;t=50"),
                ("RateLimit-Policy", "\"bytes\";q=1000;w=60;qu=\"content-bytes\""),
            ],
            None,
        ),
        (
            200,
            vec![
                ("RateLimit", "\"bytes\";r=0;t=50, \"calls\";r=0;t=20"),
                (
                    "RateLimit-Policy",
                    "\"bytes\";q=1000;w=60;qu=\"content-bytes\", \"calls\";q=10;w=60;qu=\"requests\"",
                ),
            ],
            Some(20),
        ),
        // Whatever the status, and which of them lasts longer.
        (
            429,
            vec![
                ("RateLimit", "\"bytes\";r=0;t=50, \"calls\";r=0;t=9"),
                (
                    "RateLimit-Policy",
                    "\"bytes\";q=1000;w=60;qu=\"content-bytes\", \"calls\";q=10;w=60",
                ),
            ],
            Some(9),
        ),
        (
            429,
            vec![
                ("RateLimit", "\"bytes\";r=0;t=50, \"calls\";r=3;t=9"),
                ("RateLimit-Policy", "\"calls\";q=10;w=60"),
                ("RateLimit-Policy", "\"bytes\";q=1000;w=60;qu=content-bytes"),
            ],
            None,
        ),
        (
            429,
            vec![
                ("RateLimit", "\"bytes\";r=0;t=50"),
                ("RateLimit-Policy", "\"bytes\";q=1000;w=60;qu=\"content-bytes\""),
            ],
            None,
        ),
        // Where RateLimit tells of requests, nobody asks X-RateLimit.
        (
            200,
            vec![
                ("RateLimit", "\"default\";r=5;t=9"),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "60"),
            ],
            None,
        ),
        (
            200,
            vec![
                ("RateLimit", "\"default\";r=0;t=9"),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "60"),
            ],
            Some(9),
        ),
        (
            200,
            vec![
                ("RateLimit", "\"bytes\";r=7;t=50"),
                ("RateLimit-Policy", "\"bytes\";q=1000;w=60;qu=\"content-bytes\""),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "60"),
            ],
            Some(60),
        ),
        // What is malformed says nothing.
        (200, vec![("RateLimit", "\"default\";r=-1;t=50")], None),
        (200, vec![("RateLimit", "\"default\";r=0;t=-5")], None),
        (200, vec![("RateLimit", "\"default\";r=0;t=1.5")], None),
        (200, vec![("RateLimit", "\"default\";r=0.0;t=50")], None),
        (200, vec![("RateLimit", "\"default\";r=\"0\";t=50")], None),
        (200, vec![("RateLimit", "limit=10, remaining=-1, reset=50")], None),
        (429, vec![("RateLimit", "\"default\";r=-1;t=50")], None),
        (
            200,
            vec![("RateLimit", "\"second\";r=-1;t=90, \"day\";r=0;t=70")],
            Some(70),
        ),
        (
            200,
            vec![
                ("RateLimit", "\"default\";r=-5;t=9"),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "60"),
            ],
            Some(60),
        ),
        (200, vec![("RateLimit", "\"default\";r=;t=50")], None),
        (200, vec![("RateLimit", "r=0 t=50")], None),
        (429, vec![("Retry-After", "soon")], None),
        (200, vec![("RateLimit", "\"default\";r=0;t=50"), ("Age", "7")], None),
        // X-RateLimit, by seconds and by the epoch.
        (
            200,
            vec![("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "45")],
            Some(45),
        ),
        (200, vec![("X-RateLimit-Remaining", "0"), epoch], Some(30)),
        (200, vec![("X-RateLimit-Remaining", "3"), epoch], None),
        (429, vec![("X-RateLimit-Remaining", "0"), epoch], Some(30)),
    ] {
        assert!(
            pauses_for(status, &lines, expected).await,
            "{status} {lines:?}: {expected:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_only_gets_longer_by_jitter_and_not_by_more_than_a_tenth() {
    for named_ms in [1_u64, 50, 1_000, 30_000, 3_600_000, 86_400_000, 400 * 86_400_000] {
        let named = Duration::from_millis(named_ms);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let budget = budget();
            let feedback = refused(&budget, &[("retry-after-ms", &named_ms.to_string())]).await;
            assert!(feedback.refused);
            let pause = feedback.retry_after.unwrap();
            // The end of a pause is kept to the microsecond.
            let most = named.mul_f64(1.1) + Duration::from_micros(2);
            assert!(pause >= named && pause <= most, "{pause:?} for {named:?}");
            pauses.push(pause);
        }
        pauses.sort_unstable();
        pauses.dedup();
        assert!(
            pauses.len() > 20,
            "{named:?}: nobody comes back together with everybody: {pauses:?}"
        );
        let spread = *pauses.last().unwrap() - pauses[0];
        assert!(spread >= named / 40, "{named:?}: spread over {spread:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_refusals_of_one_moment_make_one_pause() {
    let budget = budget();
    let mut in_flight = Vec::new();
    for _ in 0..20 {
        in_flight.push(send(&budget, "/").await);
    }
    let told: Vec<Duration> = in_flight
        .iter()
        .map(|call| {
            call.answered(429, &headers(&[("Retry-After", "30")]))
                .retry_after
                .unwrap()
        })
        .collect();
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    assert_eq!(budget.pause_remaining(), Some(told[0]));
}

#[tokio::test(start_paused = true)]
async fn nobody_starts_before_the_pause_is_over_and_then_one_by_one() {
    let (budget, watch) = (budget(), Watch::start());
    let pause = refused(&budget, &[("Retry-After", "30")]).await.retry_after.unwrap();
    let log = crowd(&budget, 40, watch).await;
    let moments = log.moments();
    assert!(
        moments[0] >= pause - MS && moments[0] >= 30 * S,
        "{:?} for {pause:?}",
        moments[0]
    );
    for pair in moments.windows(2) {
        assert!(
            pair[1] > pair[0],
            "what was saved up during the pause is not spent at once: {moments:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_shorter_pause_does_not_end_a_longer_one() {
    let budget = budget();
    let first = send(&budget, "/").await;
    let long = refused(&budget, &[("Retry-After", "300")]).await.retry_after.unwrap();
    let feedback = first.answered(429, &headers(&[("Retry-After", "1")]));
    assert_eq!(budget.pause_remaining(), Some(long));
    assert_eq!(feedback.retry_after, Some(long));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_ends_before_the_pause_fails_at_once_with_the_time_left_and_the_status() {
    for status in [429, 503, 200] {
        let (budget, watch) = (budget(), Watch::start());
        let told = [("Retry-After", "60"), ("RateLimit", "\"d\";r=0;t=60")];
        send(&budget, "/").await.answered(status, &headers(&told));
        tokio::time::advance(10 * S).await;
        let error = try_send(&budget, "/", Some(20 * S)).await.unwrap_err();
        assert_eq!((error.reason, error.status), (WaitReason::Paused, Some(status)));
        assert!(error.is_retryable());
        assert!(error.retry_after >= 50 * S && error.retry_after <= 56 * S, "{error:?}");
        assert_eq!(watch.read(), 10 * S, "at once");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        drop(try_send(&budget, "/", Some(60 * S)).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_begins_while_calls_wait_fails_those_that_have_less_time() {
    let (budget, watch) = (
        RateBudget::new(Rate::new(1, 5 * S)).wall_clock(wall(NOW)),
        Watch::start(),
    );
    let first = send(&budget, "/").await;
    let mut tasks = Vec::new();
    for within in [30 * S, 3600 * S] {
        let budget = budget.clone();
        tasks.push(tokio::spawn(async move {
            let sent = try_send(&budget, "/", Some(within)).await;
            (sent.map(drop), watch.read())
        }));
        settle().await;
    }
    first.answered(429, &headers(&[("Retry-After", "60")]));
    settle().await;
    let long = tasks.pop().unwrap().await.unwrap();
    let short = tasks.pop().unwrap().await.unwrap();
    assert_eq!(short.0.unwrap_err().status, Some(429));
    assert_eq!(short.1, Duration::ZERO, "at once");
    assert!(long.0.is_ok() && long.1 >= 60 * S);
}

#[tokio::test(start_paused = true)]
async fn a_plain_503_touches_no_pace_and_a_hinted_one_only_pauses() {
    let budget = budget();
    let feedback = send(&budget, "/").await.answered(503, &headers(&[]));
    assert_eq!((feedback.refused, feedback.retry_after), (false, None));
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(100)));
    assert_eq!(budget.pause_remaining(), None);
    let feedback = send(&budget, "/")
        .await
        .answered(503, &headers(&[("Retry-After", "5")]));
    assert!(!feedback.refused && feedback.retry_after.unwrap() >= 5 * S);
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(100)));
}

#[tokio::test(start_paused = true)]
async fn what_remains_by_the_provider_s_count_is_all_that_starts_at_once() {
    let budget = RateBudget::new(Rate::per_hour(100)).wall_clock(wall(NOW));
    let in_flight = send(&budget, "/").await;
    in_flight.answered(
        200,
        &headers(&[("X-RateLimit-Remaining", "3"), ("X-RateLimit-Reset", "600")]),
    );
    drop(in_flight);
    let starts = (0..100).filter(|_| budget.check("/").is_ok()).count();
    assert_eq!(starts, 3, "another client has used the rest");

    // A higher count than ours is no gift.
    let budget = RateBudget::new(Rate::per_hour(10)).wall_clock(wall(NOW));
    let in_flight = send(&budget, "/").await;
    in_flight.answered(
        200,
        &headers(&[("X-RateLimit-Remaining", "5000"), ("X-RateLimit-Reset", "600")]),
    );
    let starts = (0..100).filter(|_| budget.check("/").is_ok()).count();
    assert_eq!(starts, 9);
}

#[tokio::test(start_paused = true)]
async fn the_pushback_of_a_call_is_waited_out_within_its_deadline() {
    let (budget, watch) = (budget(), Watch::start());
    let wait = refused(&budget, &[("Retry-After", "7")]).await.retry_after.unwrap();
    let error = budget.pushback(wait, Some(7 * S)).await.unwrap_err();
    assert_eq!(
        (error.reason, error.status, error.retry_after),
        (WaitReason::Pushback, Some(429), wait)
    );
    assert_eq!(watch.read(), Duration::ZERO);
    budget.pushback(wait, Some(60 * S)).await.unwrap();
    assert!(watch.read() + MS >= wait);
    drop(try_send(&budget, "/", Some(2 * MS)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_later_in_the_precedence_lowers_no_rate() {
    let budget = budget();
    send(&budget, "/").await.answered(
        200,
        &headers(&[
            ("RateLimit", "\"default\";r=5;t=9"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "60"),
        ]),
    );
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(100)));
    let starts = (0..100).filter(|_| budget.check("/").is_ok()).count();
    assert_eq!(starts, 5, "what RateLimit says is left, this call being answered");
}
