//! What the plain reader makes of headers, as tables and as properties.

use std::time::Duration;

use adjourn_core::Observation;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

const NOW: &str = "2026-07-10T20:13:47Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn read_at(received_at: &str, lines: &[(&str, &str)]) -> Signal {
    let headers = headers(lines);
    let response = Response {
        status: StatusCode::TOO_MANY_REQUESTS,
        headers: &headers,
        body: b"",
        received_at: at(received_at),
    };
    let reading = PlainReader.read("acme", &response);
    assert!(reading.is_limited(), "a 429 is a refusal");
    reading.into_signal()
}

fn wait_ms(lines: &[(&str, &str)]) -> Option<u128> {
    read_at(NOW, lines).wait().map(|wait| wait.as_millis())
}

#[test]
fn retry_after_in_one_line() {
    for (value, expected) in [
        ("120", Some(120_000)),
        ("60", Some(60_000)),
        ("0000000030", Some(30_000)),
        (" \t 30 ", Some(30_000)),
        ("0", Some(0)),
        ("1.5", Some(1500)),
        ("2.0", Some(2000)),
        ("0.5", Some(500)),
        ("0.0004", Some(1)),
        ("1.0001", Some(1001)),
        ("1,5", Some(5000)),
        ("2814, 2", Some(2_814_000)),
        ("2026", Some(2_026_000)),
        ("1296000", Some(1_296_000_000)),
        ("43201", Some(43_201_000)),
        ("1783714517", Some(90_000)),
        ("1783714517000", Some(90_000)),
        ("1783714397", Some(0)),
        ("Fri, 10 Jul 2026 20:15:47 GMT", Some(120_000)),
        ("Friday, 10-Jul-26 20:15:47 GMT", Some(120_000)),
        ("Fri Jul 10 20:15:47 2026", Some(120_000)),
        ("fri, 10 jul 2026 20:15:47 gmt", Some(120_000)),
        ("Thu, 10 Jul 2026 20:15:47 GMT", Some(120_000)),
        ("Fri, 10 Jul 2026 22:15:47 +0200", Some(120_000)),
        ("2026-07-10T20:15:47Z", Some(120_000)),
        ("Fri, 10 Jul 2026 19:13:47 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
        ("30, Fri, 10 Jul 2026 20:18:47 GMT", Some(300_000)),
        ("Fri, 10 Jul 2026 20:18:47 GMT, 30", Some(300_000)),
        ("", None),
        ("   ", None),
        ("+30", None),
        ("+3", None),
        ("-3", None),
        ("-5", None),
        ("1.", None),
        (".5", None),
        ("1e3", None),
        ("1_000", None),
        ("0x10", None),
        ("0x1E", None),
        ("NaN", None),
        ("inf", None),
        ("-inf", None),
        ("soon", None),
        ("30s", None),
        ("30 seconds", None),
        ("<b>30</b>", None),
        ("rand(30)", None),
        ("rand(30),add(30)", None),
        ("Tue, 30 Feb 2027 10:00:00 GMT", None),
        ("Fri, +9 Jul 2027 20:15:47 GMT", None),
        ("2026-07-10", None),
        ("١٢٣", None),
    ] {
        assert_eq!(wait_ms(&[("Retry-After", value)]), expected, "Retry-After: {value:?}");
    }
}

#[test]
fn a_value_beyond_what_a_time_can_hold_is_clamped_and_says_so() {
    let digits = "9".repeat(200);
    for value in [
        "100000000000000000000",
        "9223372036854775807",
        "9223372037",
        "999999999999",
        &"4".repeat(40),
        &digits,
    ] {
        let signal = read_at(NOW, &[("Retry-After", value)]);
        assert_eq!(
            (signal.earliest_retry_at(), signal.is_saturated()),
            (Some(Timestamp::MAX), true),
            "{value}"
        );
    }
    let signal = read_at(NOW, &[("Retry-After", "1296000")]);
    assert!(!signal.is_saturated());
}

#[test]
fn several_lines_and_headers_give_the_latest_usable_moment() {
    for (lines, expected) in [
        (vec![("Retry-After", "60"), ("Retry-After", "10")], Some(60_000)),
        (vec![("Retry-After", "10"), ("Retry-After", "60")], Some(60_000)),
        (vec![("Retry-After", "soon"), ("Retry-After", "45")], Some(45_000)),
        (vec![("Retry-After", "-3"), ("retry-after-ms", "1500")], Some(1500)),
        (vec![("retry-after", "2"), ("retry-after-ms", "1234")], Some(2000)),
        (vec![("retry-after-ms", "1234.5")], Some(1235)),
        (vec![("retry-after-ms", "250, 700")], Some(700)),
        (vec![("retry-after-ms", "-1")], None),
        (vec![("retry-after-ms", "Fri, 10 Jul 2026 20:15:47 GMT")], None),
        (vec![], None),
    ] {
        assert_eq!(wait_ms(&lines), expected, "{lines:?}");
    }
}

#[test]
fn a_date_is_read_against_the_response_s_own_date() {
    let told = ("Retry-After", "Fri, 10 Jul 2026 20:14:47 GMT");
    for (symptom, lines, expected) in [
        (
            "our clock is five minutes ahead",
            vec![("Date", "Fri, 10 Jul 2026 20:12:47 GMT"), told],
            120_000,
        ),
        (
            "our clock is behind",
            vec![("Date", "Fri, 10 Jul 2026 20:14:17 GMT"), told],
            30_000,
        ),
        (
            "a cached response's date is old",
            vec![("Date", "Fri, 10 Jul 2026 19:23:47 GMT"), ("Age", "3000"), told],
            60_000,
        ),
        ("a date that is none", vec![("Date", "yesterday"), told], 60_000),
        ("no date", vec![told], 60_000),
        (
            "a span needs no date",
            vec![("Date", "Fri, 10 Jul 2026 20:12:47 GMT"), ("Retry-After", "7")],
            7000,
        ),
        (
            "a Unix time does",
            vec![("Date", "Fri, 10 Jul 2026 20:08:47 GMT"), ("Retry-After", "1783714187")],
            60_000,
        ),
    ] {
        assert_eq!(wait_ms(&lines), Some(expected), "{symptom}");
    }
}

#[test]
fn a_date_less_than_a_second_away_is_not_now() {
    let signal = read_at(
        "2026-07-10T20:13:47.400Z",
        &[("Retry-After", "Fri, 10 Jul 2026 20:13:48 GMT")],
    );
    assert_eq!(signal.earliest_retry_at(), Some(at("2026-07-10T20:13:48Z")));
}

#[test]
fn a_two_digit_year_is_of_the_nearest_century_that_is_not_fifty_years_ahead() {
    for (received_at, value, expected) in [
        (
            "2026-12-31T23:59:30Z",
            "Friday, 01-Jan-27 00:00:30 GMT",
            "2027-01-01T00:00:30Z",
        ),
        (
            "2026-07-10T20:13:47Z",
            "Friday, 10-Jul-76 20:13:48 GMT",
            "2076-07-10T20:13:48Z",
        ),
        (
            "2099-12-31T23:59:30Z",
            "Friday, 01-Jan-00 00:00:30 GMT",
            "2100-01-01T00:00:30Z",
        ),
        (
            "2026-11-30T23:59:30Z",
            "Tue Dec  1 00:00:30 2026",
            "2026-12-01T00:00:30Z",
        ),
    ] {
        assert_eq!(
            read_at(received_at, &[("Retry-After", value)]).earliest_retry_at(),
            Some(at(expected)),
            "{value}"
        );
    }
    assert!(read_at(NOW, &[("Retry-After", "Saturday, 10-Jul-77 20:13:48 GMT")]).is_past());
}

#[test]
fn the_observation_tells_what_was_read_and_how() {
    let signal = read_at(
        NOW,
        &[
            ("Date", "Fri, 10 Jul 2026 20:13:47 GMT"),
            ("Retry-After", "Fri, 10 Jul 2026 20:15:47 GMT"),
        ],
    );
    assert_eq!(
        *signal.observation(),
        Observation {
            status: Some(429),
            code: None,
            observed_at: at(NOW),
            raw: Some("Fri, 10 Jul 2026 20:15:47 GMT".to_string()),
            interpretation: Interpretation::HttpDate,
            earliest_retry_at: Some(at("2026-07-10T20:15:47Z")),
            clock_uncertainty_ms: 1000,
        }
    );
    assert_eq!(
        (signal.source(), signal.parser()),
        (Source::Parser, Some("retry-after"))
    );
    assert_eq!(
        signal.why(),
        "429 Too Many Requests; retry-after: Fri, 10 Jul 2026 20:15:47 GMT"
    );

    let rubbish = read_at(NOW, &[("Retry-After", "soon")]);
    assert_eq!((rubbish.source(), rubbish.earliest_retry_at()), (Source::None, None));
    assert_eq!(rubbish.observation().interpretation, Interpretation::Invalid);
    assert_eq!(rubbish.observation().raw.as_deref(), Some("soon"));

    let silent = read_at(NOW, &[]);
    assert_eq!(
        (silent.source(), silent.observation().interpretation),
        (Source::None, Interpretation::Absent)
    );
    assert_eq!(silent.why(), "429 Too Many Requests, without a time");
}

#[test]
fn only_429_is_a_refusal_and_others_may_ask_for_a_pause() {
    let with_time = headers(&[("Retry-After", "30")]);
    let without = HeaderMap::new();
    for status in [200, 301, 403, 404, 409, 500, 502, 503, 504] {
        let response = |headers| Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: b"",
            received_at: at(NOW),
        };
        let not_before = Some(at(NOW) + Duration::from_secs(30));
        let told = PlainReader.read("acme", &response(&with_time));
        let silent = PlainReader.read("acme", &response(&without));
        assert_eq!((told.is_limited(), told.not_before()), (false, not_before));
        assert_eq!((silent.is_limited(), silent.not_before()), (false, None));
    }
}

proptest! {
    #[test]
    fn no_bytes_panic_the_reader(
        status in 100_u16..1000,
        values in prop::collection::vec((0_usize..4, prop::collection::vec(prop_oneof![32_u8..127, 128_u8..=255, Just(9)], 0..60)), 0..6),
        body in prop::collection::vec(any::<u8>(), 0..100),
        received in any::<i64>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            let name = ["retry-after", "retry-after-ms", "date", "age"][name];
            headers.append(name, HeaderValue::from_bytes(&value).unwrap());
        }
        let received_at = Timestamp::from_unix_ms(received);
        let response = Response { status: StatusCode::from_u16(status).unwrap(), headers: &headers, body: &body, received_at };
        let at = PlainReader.read("acme", &response).not_before();
        prop_assert!(at.is_none_or(|at| at >= received_at), "a moment before the response");
    }

    #[test]
    fn never_earlier_than_told_in_seconds(whole in 0_u64..9_000_000, fraction in "[0-9]{0,9}", received in 0_i64..4_000_000_000_000) {
        let value = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
        let received_at = Timestamp::from_unix_ms(received);
        let signal = read_at(&received_at.to_string(), &[("Retry-After", &value)]);
        let nanos: u64 = format!("{fraction:0<9}").parse().unwrap();
        let told = Duration::from_secs(whole) + Duration::from_nanos(nanos);
        let wait = signal.wait().unwrap();
        // A number that may be a Unix time is read as one, which these are too small for at any later year.
        prop_assume!(received > 86_400_000 + 9_000_000_000);
        prop_assert!(wait >= told && wait < told + Duration::from_millis(1), "{wait:?} for {value}");
    }

    #[test]
    fn never_earlier_than_told_by_a_date(
        server_ms in 100_000_000_000_i64..4_000_000_000_000,
        skew_ms in -600_000_i64..600_000,
        ahead_s in 0_i64..1_000_000,
        form in 0_usize..3,
        dated: bool,
    ) {
        // What the server means, and what it can say: whole seconds.
        let told_s = server_ms / 1000 + ahead_s;
        let date_s = server_ms / 1000;
        let chrono = |s: i64| chrono::DateTime::from_timestamp(s, 0).unwrap();
        let form = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"][form];
        let (told, date) = (chrono(told_s).format(form).to_string(), chrono(date_s).format(form).to_string());
        let skew = if dated { skew_ms } else { 0 };
        let received_at = Timestamp::from_unix_ms(server_ms + skew);
        let mut lines = vec![("Retry-After", told.as_str())];
        if dated {
            lines.push(("Date", date.as_str()));
        }
        let at = read_at(&received_at.to_string(), &lines).earliest_retry_at().unwrap().as_unix_ms();
        // By the server's clock.
        let at = at - skew;
        prop_assert!(at >= told_s * 1000, "{} ms early", told_s * 1000 - at);
        prop_assert!(at <= (told_s * 1000).max(server_ms) + 1000, "{} ms late", at - told_s * 1000);
    }
}
