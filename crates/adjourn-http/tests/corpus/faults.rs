//! What went wrong in other people's readers, one fault a test: the lines of faults.jsonl about headers, classification and
//! clocks. Each test is named after its line and the symptom.

use std::{collections::BTreeSet, path::Path, time::Duration};

use adjourn_core::{
    Decision, Facts, Interpretation, Outcome, Plan, Policy, QueueKind, Reach, Refused, Route, RouteFacts, Timestamp,
    Verdict, Wait, decide, route,
};
use adjourn_http::{Contract, Reading};
use serde_json::Value;

use crate::answers::{self, NOW, at, by, plainly, wait_ms};

fn retry_after(value: &str) -> Option<u128> {
    wait_ms(&plainly(429, &[("Retry-After", value)], ""))
}

/// What becomes of a job that was answered so on its first call.
fn decision(reading: &Reading, now: Timestamp) -> Decision {
    let outcome = Outcome::Throttled(reading.signal().clone());
    decide(
        &Policy::default(),
        &Facts::first_delivery(),
        &outcome,
        &Verdict::Default,
        now,
        0,
    )
}

fn waits_until(reading: &Reading) -> Timestamp {
    let decided = decision(reading, at(NOW));
    let Decision::Wait(Wait { until, .. }) = decided else {
        panic!("{decided:?} is no wait")
    };
    until
}

#[test]
fn every_line_about_reading_has_its_test() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/faults.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let source = include_str!("faults.rs");
    let mut lines = 0;
    for line in text.lines() {
        let fault: Value = serde_json::from_str(line).unwrap();
        if !["header-parsing", "classification", "clock-skew"].contains(&fault["category"].as_str().unwrap()) {
            continue;
        }
        lines += 1;
        let name = fault["id"].as_str().unwrap().replace('-', "_");
        assert!(source.contains(&format!("fn {name}_")), "{name} has no test");
    }
    assert_eq!(lines, 26);
}

#[test]
fn bug_001_numbers_that_are_no_whole_seconds_became_years() {
    assert_eq!(retry_after("-3"), None);
    assert_eq!(retry_after("+3"), None);
    assert_eq!(retry_after("1."), None);
    assert_eq!(retry_after("1.5"), Some(1500));
    let second_signal = plainly(
        429,
        &[
            ("Retry-After", "-3"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "20"),
        ],
        "",
    );
    assert_eq!(wait_ms(&second_signal), Some(20_000));
}

#[test]
fn bug_002_dates_were_ignored_and_negative_values_waited_negatively() {
    assert_eq!(retry_after("Fri, 10 Jul 2026 20:15:47 GMT"), Some(120_000));
    assert_eq!(retry_after("-5"), None);
    let refused = plainly(429, &[("Retry-After", "-5")], "");
    assert!(waits_until(&refused) > at(NOW), "the ladder waits");
}

#[test]
fn bug_004_one_parser_reads_seconds_years_and_dates_everywhere() {
    for (value, expected) in [
        ("120", 120_000),
        ("2026", 2_026_000),
        ("Fri, 10 Jul 2026 20:15:47 GMT", 120_000),
    ] {
        assert_eq!(retry_after(value), Some(expected), "{value}");
        let in_body = format!("{{\"retry_after\":\"{value}\"}}");
        assert_eq!(
            wait_ms(&plainly(429, &[], &in_body)),
            Some(expected),
            "{value} in a body"
        );
        assert_eq!(
            wait_ms(&plainly(429, &[("X-Retry-After", value)], "")),
            Some(expected),
            "{value} in its kin"
        );
    }
}

#[test]
fn bug_005_large_seconds_wrapped_and_the_call_was_repeated_at_once() {
    for value in ["9223372037", "9223372036854775807"] {
        let reading = plainly(429, &[("Retry-After", value)], "");
        assert!(reading.signal().is_saturated(), "{value}");
        assert_eq!(reading.not_before(), Some(Timestamp::MAX), "{value}");
        assert!(
            matches!(decision(&reading, at(NOW)), Decision::End(_)),
            "{value}: the caps end the job, with words"
        );
    }
}

#[test]
fn bug_008_fractions_were_dropped_and_nothing_bounded_the_rest() {
    assert_eq!(retry_after("0.5"), Some(500));
    for value in ["999999999999", &"7".repeat(200)] {
        let reading = plainly(429, &[("Retry-After", value)], "");
        assert!(reading.signal().is_saturated(), "{value}");
    }
}

#[test]
fn bug_010_seconds_were_slept_as_milliseconds() {
    let reading = plainly(429, &[("Retry-After", "60")], "");
    let until = waits_until(&reading);
    assert_eq!(until, at(NOW) + Duration::from_secs(60));
    let s = Duration::from_secs;
    let reach = Reach {
        kind: QueueKind::Standard,
        max_delay: s(900),
        delay_step: s(1),
        schedule: None,
        max_visibility: s(43_200),
        visibility_timeout: s(30),
        retention: s(345_600),
        max_receive_count: Some(5),
    };
    let facts = RouteFacts {
        sent_at: at(NOW),
        received_at: at(NOW),
        receive_count: 1,
        has_room: true,
        schedulable: true,
        holds_are_recorded: false,
        repeatable: true,
    };
    let road = route(
        &Policy::default(),
        &reach,
        Plan::Wait { until },
        &facts,
        Refused::NONE,
        at(NOW),
    );
    assert!(
        matches!(road, Route::Resend { delay, .. } if delay == s(60)),
        "{road:?}"
    );
}

#[test]
fn bug_011_a_decimal_header_was_no_integer() {
    assert_eq!(retry_after("2.0"), Some(2000));
    assert_eq!(wait_ms(&by("Shopify", 429, &[("Retry-After", "2.0")], "")), Some(2000));
}

#[test]
fn bug_012_a_template_that_was_not_filled_in_killed_the_caller() {
    let reading = by("Webex", 429, &[("Retry-After", "rand(30),add(30)")], "");
    assert_eq!((reading.is_limited(), wait_ms(&reading)), (true, None));
    assert_eq!(reading.ignored()[0].raw(), "rand(30),add(30)");
}

#[test]
fn bug_013_two_header_lines_joined_by_a_comma_were_no_number() {
    assert_eq!(retry_after("2814, 2"), Some(2_814_000));
    assert_eq!(
        wait_ms(&plainly(429, &[("Retry-After", "2814"), ("Retry-After", "2")], "")),
        Some(2_814_000)
    );
}

#[test]
fn bug_014_nan_and_infinity_were_floats() {
    for value in ["NaN", "inf", "-inf", "Infinity", "nan"] {
        assert_eq!(retry_after(value), None, "{value}");
        assert_eq!(
            wait_ms(&plainly(429, &[], &format!("{{\"retry_after\":\"{value}\"}}"))),
            None,
            "{value} in a body"
        );
    }
}

#[test]
fn bug_017_epoch_milliseconds_were_multiplied_again() {
    let reading = plainly(429, &[], r#"{"error":{"limit":{"reset":1783718027000}}}"#);
    assert_eq!(reading.not_before(), Some(at("2026-07-10T21:13:47Z")));
}

#[test]
fn bug_018_the_documentation_said_milliseconds_and_seconds_were_sent() {
    let contract = Contract::parse(
        "[[headers]]\nremaining = \"x-rate-limit-remaining\"\nreset = \"x-rate-limit-reset\"\nunit = \"ms\"",
    )
    .unwrap();
    let lines = [("X-Rate-Limit-Remaining", "0"), ("X-Rate-Limit-Reset", "1783714487")];
    let reading = answers::read(Some(contract), 429, &answers::headers(lines), b"", at(NOW));
    assert_eq!(reading.not_before(), Some(at("2026-07-10T20:14:47Z")));
}

#[test]
fn bug_021_an_hour_as_a_span_was_a_moment_in_1970() {
    assert_eq!(
        wait_ms(&plainly(429, &[("X-RateLimit-Reset", "3600")], "")),
        Some(3_600_000)
    );
}

#[test]
fn bug_022_a_span_by_the_documentation_was_a_moment() {
    let contract = Contract::parse("parsers = [{ header = \"x-ratelimit-reset\", unit = \"ms\" }]").unwrap();
    let reading = answers::read(
        Some(contract),
        429,
        &answers::headers([("X-RateLimit-Reset", "1783714487")]),
        b"",
        at(NOW),
    );
    assert_eq!(reading.not_before(), Some(at("2026-07-10T20:14:47Z")));
}

#[test]
fn bug_023_a_span_was_read_as_a_moment_in_the_past() {
    assert_eq!(wait_ms(&plainly(429, &[("X-RateLimit-Reset", "37")], "")), Some(37_000));
}

#[test]
fn bug_024_a_date_half_a_second_away_was_now() {
    let lines = answers::headers([("Retry-After", "Fri, 10 Jul 2026 20:13:48 GMT")]);
    let reading = answers::read(None, 429, &lines, b"", at("2026-07-10T20:13:47.400Z"));
    assert_eq!(reading.not_before(), Some(at("2026-07-10T20:13:48Z")));
}

#[test]
fn bug_025_retry_after_is_a_lower_bound_and_0_is_no_end() {
    let zero = plainly(429, &[("Retry-After", "0")], "");
    assert!(
        waits_until(&zero) >= at(NOW) + Duration::from_secs(1),
        "0 waits the floor"
    );
    let ten = plainly(429, &[("Retry-After", "10")], "");
    assert!(waits_until(&ten) >= at(NOW) + Duration::from_secs(10));
}

#[test]
fn bug_027_header_names_were_compared_with_their_case() {
    for name in [
        "x-ratelimit-reset-after",
        "X-RateLimit-Reset-After",
        "X-RATELIMIT-RESET-AFTER",
    ] {
        assert_eq!(wait_ms(&plainly(429, &[(name, "7.5")], "")), Some(7500), "{name}");
    }
}

#[test]
fn bug_029_a_secondary_limit_without_the_header_was_missed() {
    let body =
        r#"{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}"#;
    let reading = by("GitHub", 403, &[("x-ratelimit-remaining", "4100")], body);
    assert!(reading.is_limited());
    // The reader borrows the body, so whoever asked still has it; and jitter spreads the parked ones, after the moment.
    let outcome = Outcome::Throttled(reading.signal().clone());
    let moments: BTreeSet<Timestamp> = (0..50_u64)
        .filter_map(|job| {
            let entropy = job.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            match decide(
                &Policy::default(),
                &Facts::first_delivery(),
                &outcome,
                &Verdict::Default,
                at(NOW),
                entropy,
            ) {
                Decision::Wait(wait) => Some(wait.until),
                Decision::Complete | Decision::Drop { .. } | Decision::End(_) => None,
            }
        })
        .collect();
    assert!(moments.len() > 25, "fifty jobs come back at {} moments", moments.len());
    assert!(
        moments.iter().all(|&moment| moment >= reading.not_before().unwrap()),
        "and none early"
    );
}

#[test]
fn bug_030_a_403_with_a_time_and_calls_left_was_a_missing_permission() {
    let lines = [
        ("Retry-After", "30"),
        ("x-ratelimit-remaining", "4000"),
        ("x-ratelimit-reset", "1783717528"),
    ];
    for reading in [plainly(403, &lines, "{}"), by("GitHub", 403, &lines, "{}")] {
        assert_eq!((reading.is_limited(), wait_ms(&reading)), (true, Some(30_000)));
    }
}

#[test]
fn bug_031_every_403_was_a_bad_token() {
    let body = r#"{"message":"You have exceeded a secondary rate limit."}"#;
    let reading = by("GitHub", 403, &[], body);
    assert!(
        matches!(decision(&reading, at(NOW)), Decision::Wait(_)),
        "deferred, and no dead letter"
    );
}

#[test]
fn bug_033_a_bare_429_was_no_limit_without_a_known_code() {
    for entry in ["AWS", "GitHub", "Stripe", "Google"] {
        assert!(by(entry, 429, &[], "").is_limited(), "{entry}");
    }
    assert!(plainly(429, &[], "").is_limited());
}

#[test]
fn bug_034_the_header_never_reached_the_caller() {
    let error = adjourn_core::RateLimitError::from(plainly(429, &[("Retry-After", "30")], "").into_signal());
    assert_eq!(error.signal().wait(), Some(Duration::from_secs(30)));
}

#[test]
fn bug_115_a_reset_was_read_by_a_local_clock_that_ran_ahead() {
    let date = ("Date", "Fri, 10 Jul 2026 20:08:47 GMT");
    let absolute = plainly(
        429,
        &[
            date,
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "1783714187"),
        ],
        "",
    );
    assert_eq!(wait_ms(&absolute), Some(60_000));
    let relative = plainly(
        429,
        &[date, ("Retry-After", "7"), ("X-RateLimit-Reset", "1783714187")],
        "",
    );
    assert_eq!(wait_ms(&relative), Some(7000), "a span needs no clock");
}

#[test]
fn bug_116_the_date_of_a_cached_answer_was_trusted() {
    let lines = [
        ("Date", "Fri, 10 Jul 2026 19:23:47 GMT"),
        ("Age", "3000"),
        ("Retry-After", "Fri, 10 Jul 2026 20:14:47 GMT"),
    ];
    let reading = plainly(429, &lines, "");
    assert_eq!(reading.not_before(), Some(at("2026-07-10T20:14:47Z")));
}

#[test]
fn bug_118_a_clock_that_is_behind_met_an_absolute_reset() {
    // Ours shows 20:13:47, the provider's 20:14:17: by ours the reset at 20:14:47 is half a minute away, not a whole one, and
    // never earlier than the provider means.
    let lines = [
        ("Date", "Fri, 10 Jul 2026 20:14:17 GMT"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1783714487"),
    ];
    let reading = plainly(429, &lines, "");
    assert_eq!(wait_ms(&reading), Some(30_000));
    assert_eq!(reading.signal().observation().interpretation, Interpretation::EpochS);
    assert_eq!(reading.signal().observation().clock_uncertainty_ms, 1000);
}
