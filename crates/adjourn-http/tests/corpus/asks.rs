//! What people asked of other libraries, as behaviour of this reader; each test is named after the symptom.

use std::time::Duration;

use adjourn_core::{Decision, Facts, Kind, Outcome, Policy, RateLimitError, ScopeHint, Source, Verdict, decide};
use adjourn_http::{Contract, ContractReader, PlainReader, ReadResponse, Response};
use http::{HeaderMap, StatusCode};

use crate::answers::{self, NOW, at, by, plainly, wait_ms};

fn decided(reading: &adjourn_http::Reading) -> Decision {
    let outcome = Outcome::Throttled(reading.signal().clone());
    decide(
        &Policy::default(),
        &Facts::first_delivery(),
        &outcome,
        &Verdict::Default,
        at(NOW),
        0,
    )
}

#[test]
fn ask_36_a_retry_policy_cannot_see_the_header() {
    // A whole response becomes a refusal with one call, in every dialect that the catalogue knows.
    let headers = answers::headers([("Retry-After", "12")]);
    let response = Response {
        status: StatusCode::TOO_MANY_REQUESTS,
        headers: &headers,
        body: b"",
        received_at: at(NOW),
    };
    let error = RateLimitError::from(ContractReader::default().read("acme", &response).into_signal());
    assert_eq!(error.signal().wait(), Some(Duration::from_secs(12)));
}

#[test]
fn ask_37_bare_numbers_are_years_negatives_switch_the_wait_off_dates_are_dropped() {
    for (value, expected) in [
        ("30", Some(30_000)),
        ("1.5", Some(1500)),
        ("+30", None),
        ("-30", None),
        ("Fri, 10 Jul 2026 19:13:47 GMT", Some(0)),
        ("Fri, 10 Jul 2026 20:15:47 GMT", Some(120_000)),
        ("Friday, 10-Jul-26 20:15:47 GMT", Some(120_000)),
        ("Fri Jul 10 20:15:47 2026", Some(120_000)),
        ("2026", Some(2_026_000)),
        ("rubbish", None),
    ] {
        let reading = plainly(429, &[("Retry-After", value)], "");
        assert_eq!(wait_ms(&reading), expected, "{value}");
        // Rubbish takes the stated ladder, never nothing.
        assert!(
            matches!(decided(&reading), Decision::Wait(wait) if wait.until > at(NOW)),
            "{value}"
        );
    }
}

#[test]
fn ask_38_a_200_that_says_throttled_in_its_body_defers_like_a_429() {
    let body = r#"{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}"#;
    let reading = by("Shopify", 200, &[], body);
    assert!(reading.is_limited());
    assert!(matches!(decided(&reading), Decision::Wait(_)));
}

#[test]
fn ask_39_a_client_slept_for_days_on_a_header() {
    let reading = plainly(429, &[("Retry-After", "259200")], "");
    assert_eq!(wait_ms(&reading), Some(259_200_000));
    assert!(
        matches!(decided(&reading), Decision::End(_)),
        "past the cap the job ends at once"
    );
}

#[test]
fn ask_41_of_three_hints_the_latest_of_a_family_counts() {
    let lines = [
        ("Retry-After", "10"),
        ("X-Retry-After", "40"),
        ("retry-after-ms", "25000"),
    ];
    assert_eq!(wait_ms(&plainly(429, &lines, "")), Some(40_000));
    let lines = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "3s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "1m"),
    ];
    assert_eq!(wait_ms(&plainly(429, &lines, "")), Some(60_000));
}

#[test]
fn ask_42_a_reset_equal_to_now_was_retried_in_a_tight_loop() {
    for value in ["1783714427", "1783714400"] {
        let reading = plainly(429, &[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", value)], "");
        assert_eq!(wait_ms(&reading), Some(0));
        let Decision::Wait(wait) = decided(&reading) else {
            panic!("it waits")
        };
        assert!(wait.until >= at(NOW) + Duration::from_secs(1), "a floor");
        assert!(wait.anomaly.is_some(), "and it is recorded as odd");
    }
}

#[test]
fn ask_44_one_error_names_the_moment_and_whom_it_concerns() {
    let body = r#"{"error":{"message":"(#17) User request limit reached","code":17}}"#;
    let error = RateLimitError::from(by("Facebook Graph", 400, &[("Retry-After", "9")], body).into_signal());
    assert_eq!(
        (error.signal().wait(), error.signal().concerns()),
        (Some(Duration::from_secs(9)), ScopeHint::User)
    );
}

#[test]
fn ask_45_the_named_moment_is_a_floor_whatever_the_settings_say() {
    let mut policy = Policy::default();
    policy.deferral.ladder = vec![Duration::from_millis(1)];
    policy.deferral.min_retry_after = Duration::ZERO;
    let outcome = Outcome::Throttled(plainly(429, &[("Retry-After", "600")], "").into_signal());
    for entropy in [0, 1, u64::MAX / 2, u64::MAX] {
        let decision = decide(
            &policy,
            &Facts::first_delivery(),
            &outcome,
            &Verdict::Default,
            at(NOW),
            entropy,
        );
        assert!(matches!(decision, Decision::Wait(wait) if wait.until >= at(NOW) + Duration::from_secs(600)));
    }
}

#[test]
fn ask_60_a_wait_on_every_400_that_had_some_header() {
    let lines = [
        ("Retry-After", "30"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "30"),
    ];
    for status in [400, 404, 422] {
        assert!(
            !plainly(status, &lines, "{\"error\":\"bad field\"}").is_limited(),
            "{status}"
        );
        assert!(
            !by("AWS", status, &lines, "{\"__type\":\"ValidationException\"}").is_limited(),
            "{status}"
        );
    }
    assert!(
        by("AWS", 400, &[], "{\"__type\":\"ThrottlingException\"}").is_limited(),
        "status and hint, by dialect"
    );
}

#[test]
fn ask_79_a_known_403_defers_and_an_unknown_one_is_a_fault() {
    let body = r#"{"error":{"code":403,"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}"#;
    assert!(by("Google Calendar", 403, &[], body).is_limited());
    let body = r#"{"error":{"code":403,"errors":[{"domain":"global","reason":"insufficientPermissions"}]}}"#;
    assert!(!by("Google Calendar", 403, &[], body).is_limited());
}

#[test]
fn ask_80_a_200_is_a_refusal_only_where_the_dialect_says_so() {
    let body = r#"{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}"#;
    assert!(!plainly(200, &[], body).is_limited());
    assert!(!by("GitHub", 200, &[], body).is_limited());
    assert!(by("Shopify", 200, &[], body).is_limited());
    // What was partly done says so, and is not for repeating whole.
    let batch = r#"{"responses":[{"id":"1","status":200},{"id":"2","status":429,"headers":{"Retry-After":"10"}}]}"#;
    assert_eq!(
        by("Microsoft Graph", 200, &[], batch).executed(),
        Some(adjourn_http::Executed::Some)
    );
}

#[test]
fn ask_81_without_a_hint_no_header_is_made_up() {
    let reading = by("Stripe", 429, &[], r#"{"error":{"code":"rate_limit"}}"#);
    assert_eq!((reading.signal().source(), reading.not_before()), (Source::None, None));
    let pause = by("Airtable", 429, &[], "");
    assert_eq!(
        pause.signal().source(),
        Source::Contract,
        "a documented pause says that it is one"
    );
}

#[test]
fn ask_85_one_refusal_may_concern_more_than_one_scope() {
    let contract =
        Contract::parse("[[classify]]\nstatus = 429\nkind = \"short\"\nscope = [\"user\", \"app\"]").unwrap();
    let reading = answers::read(Some(contract), 429, &HeaderMap::new(), b"", at(NOW));
    assert_eq!(reading.scopes(), [ScopeHint::User, ScopeHint::App]);
    assert_eq!(reading.signal().concerns(), ScopeHint::User);
    // A monthly quota ends the job by default; the policy may probe instead.
    let month = plainly(429, &[], "Monthly quota exceeded");
    assert_eq!(month.signal().limit_kind(), Kind::Monthly);
    assert!(matches!(decided(&month), Decision::End(_)));
}

#[test]
fn the_plain_reader_knows_429_and_its_header_alone() {
    let headers = answers::headers([("Retry-After", "5"), ("X-Retry-After", "50")]);
    let response = Response {
        status: StatusCode::TOO_MANY_REQUESTS,
        headers: &headers,
        body: b"",
        received_at: at(NOW),
    };
    assert_eq!(wait_ms(&PlainReader.read("acme", &response)), Some(5000));
}
