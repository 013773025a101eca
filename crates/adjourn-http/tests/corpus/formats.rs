//! The reader's rules as tables: families and their order, the IETF fields in each generation, bodies of every sort.

use adjourn_core::{Kind, ScopeHint};

use crate::answers::{plainly, wait_ms};

fn waits(lines: &[(&str, &str)]) -> Option<u128> {
    wait_ms(&plainly(429, lines, ""))
}

#[test]
fn families_have_precedence_and_inside_one_the_latest_counts() {
    let reset = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "300")];
    let ietf = ("RateLimit", "\"a\";r=0;t=60");
    for (lines, expected) in [
        (vec![("Retry-After", "5"), ietf, reset[0], reset[1]], 5000),
        (vec![ietf, reset[0], reset[1]], 60_000),
        (vec![reset[0], reset[1]], 300_000),
        // A family that yields nothing valid passes on to the next.
        (vec![("Retry-After", "soon"), ietf, reset[0], reset[1]], 60_000),
        (
            vec![("Retry-After", "soon"), ("RateLimit", "garbage;;"), reset[0], reset[1]],
            300_000,
        ),
        (
            vec![
                ("Retry-After", "5"),
                ("RateLimit-Retry-After", "8"),
                ("retry-after-ms", "9500"),
            ],
            9500,
        ),
        (vec![reset[0], reset[1], ("X-RateLimit-Reset-After", "301.5")], 301_500),
    ] {
        assert_eq!(waits(&lines), Some(expected), "{lines:?}");
    }
}

#[test]
fn what_remains_of_a_limit_beyond_all_numbers_is_no_panic() {
    let lines = [
        ("X-RateLimit-Limit", "99999999999999999999"),
        ("X-RateLimit-Used", "-3"),
    ];
    let reading = plainly(429, &lines, "");
    let remaining: Vec<_> = reading.limits().iter().map(|limit| limit.remaining).collect();
    assert_eq!(remaining, [Some(i64::MAX)]);
}

#[test]
fn the_ietf_fields_tell_of_requests_before_other_headers_do() {
    let bytes = ("RateLimit-Policy", "\"bytes\";q=1000;w=60;qu=\"content-bytes\"");
    let spent = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "60")];
    for (lines, remaining, wait) in [
        (
            vec![("RateLimit", "\"default\";r=5;t=9"), spent[0], spent[1]],
            vec![Some(5)],
            None,
        ),
        // Bytes are no requests; when they come back is still the moment for a call that was refused for them.
        (
            vec![("RateLimit", "\"bytes\";r=7;t=9"), bytes, spent[0], spent[1]],
            vec![Some(0)],
            Some(60_000),
        ),
        (
            vec![("RateLimit", "\"bytes\";r=0;t=50, \"calls\";r=0;t=9"), bytes],
            vec![Some(0)],
            Some(9000),
        ),
        (
            vec![("RateLimit", "\"default\";r=-1;t=9"), spent[0], spent[1]],
            vec![Some(0)],
            Some(60_000),
        ),
    ] {
        let success = plainly(200, &lines, "");
        let told: Vec<_> = success.limits().iter().map(|limit| limit.remaining).collect();
        assert_eq!(told, remaining, "{lines:?}");
        let named = success.signal().wait().map(|wait| wait.as_millis());
        assert_eq!(named, wait, "{lines:?}");
    }
    let lines = [("RateLimit", "\"bytes\";r=0;t=50"), bytes];
    assert_eq!(waits(&lines), Some(50_000), "never early");
    assert!(plainly(429, &lines, "").limits().is_empty());
    assert_eq!(plainly(200, &lines, "").not_before(), None);
}

#[test]
fn the_ietf_fields_in_all_generations() {
    for (generation, lines, wait, kind) in [
        (
            "-03",
            vec![
                ("RateLimit-Limit", "100, 100;w=10"),
                ("RateLimit-Remaining", "0"),
                ("RateLimit-Reset", "7"),
            ],
            Some(7000),
            Kind::Short,
        ),
        (
            "-06",
            vec![
                ("RateLimit-Limit", "100"),
                ("RateLimit-Remaining", "0"),
                ("RateLimit-Reset", "7"),
                ("RateLimit-Policy", "100;w=86400"),
            ],
            Some(7000),
            Kind::Daily,
        ),
        (
            "-07",
            vec![
                ("RateLimit", "limit=100, remaining=0, reset=5"),
                ("RateLimit-Policy", "100;w=10"),
            ],
            Some(5000),
            Kind::Short,
        ),
        (
            "-08",
            vec![
                ("RateLimit", "\"default\";r=0;t=30"),
                ("RateLimit-Policy", "\"default\";q=100;w=10;qu=\"requests\";pk=:YWJj:"),
            ],
            Some(30_000),
            Kind::Short,
        ),
        (
            "a token for a name",
            vec![("RateLimit", "default;r=0;t=30")],
            Some(30_000),
            Kind::Unknown,
        ),
        (
            "without what remains",
            vec![("RateLimit", "\"quota\";t=1")],
            Some(1000),
            Kind::Unknown,
        ),
        (
            "two policies, one spent",
            vec![
                ("RateLimit", "\"burst\";r=9;t=2, \"day\";r=0;t=3600"),
                ("RateLimit-Policy", "\"burst\";q=10;w=2, \"day\";q=50;w=86400"),
            ],
            Some(3_600_000),
            Kind::Daily,
        ),
        (
            "two lines",
            vec![("RateLimit", "\"burst\";r=9;t=2"), ("RateLimit", "\"day\";r=0;t=3600")],
            Some(3_600_000),
            Kind::Unknown,
        ),
        (
            "something remains",
            vec![("RateLimit", "\"default\";r=5;t=30")],
            None,
            Kind::Unknown,
        ),
        (
            "malformed",
            vec![("RateLimit", "\"default;r=0;t=30")],
            None,
            Kind::Unknown,
        ),
        (
            "negative",
            vec![("RateLimit", "\"default\";r=0;t=-30")],
            None,
            Kind::Unknown,
        ),
        (
            "no integers",
            vec![
                ("RateLimit", "\"default\";r=0;t=1.5"),
                ("RateLimit", "\"day\";r=-1;t=30"),
            ],
            None,
            Kind::Unknown,
        ),
        (
            "out of a cache",
            vec![("RateLimit", "\"default\";r=0;t=30"), ("Age", "12")],
            None,
            Kind::Unknown,
        ),
        (
            "fresh, and a proxy says so",
            vec![("RateLimit", "\"default\";r=0;t=30"), ("Age", "0")],
            Some(30_000),
            Kind::Unknown,
        ),
    ] {
        let reading = plainly(429, &lines, "");
        assert_eq!(
            (wait_ms(&reading), reading.signal().limit_kind()),
            (wait, kind),
            "{generation}"
        );
    }
}

#[test]
fn a_reset_that_stands_alone_belongs_to_the_limit_that_is_spent() {
    for (lines, wait, kind) in [
        // Where the limit's own headers name no reset.
        (
            vec![
                ("X-Rate-Limit-Requests-Left", "0"),
                ("X-Rate-Limit-Requests-Quota", "150"),
                ("X-Rate-Limit-Time-Reset-Ms", "15000"),
                ("X-Rate-Limit-Time-Window-Ms", "30000"),
            ],
            Some(15_000),
            Kind::Unknown,
        ),
        (
            vec![
                ("X-Contentful-RateLimit-Hour-Remaining", "35883"),
                ("X-Contentful-RateLimit-Second-Remaining", "0"),
                ("X-Contentful-RateLimit-Reset", "1"),
            ],
            Some(1000),
            Kind::Short,
        ),
        // Not another limit's, by its name or by what remains of it.
        (
            vec![("X-RateLimit-Day-Remaining", "0"), ("X-RateLimit-Minute-Reset", "30")],
            None,
            Kind::Daily,
        ),
        (
            vec![
                ("X-App-Limit-Remaining", "0"),
                ("X-RateLimit-Remaining", "5"),
                ("X-RateLimit-Reset", "30"),
            ],
            None,
            Kind::Unknown,
        ),
        // Which of two it is, cannot be told.
        (
            vec![
                ("X-Limit-A-Remaining", "0"),
                ("X-Limit-B-Reset", "30"),
                ("X-Limit-C-Reset", "40"),
            ],
            None,
            Kind::Unknown,
        ),
    ] {
        let reading = plainly(429, &lines, "");
        assert_eq!(
            (wait_ms(&reading), reading.signal().limit_kind()),
            (wait, kind),
            "{lines:?}"
        );
    }
}

#[test]
fn resets_in_other_spellings() {
    for (name, value, wait) in [
        ("X-RateLimit-Reset-Seconds", "17", 17_000),
        ("X-RateLimit-Reset-Minutes", "2", 120_000),
        ("X-RateLimit-Next", "2026-07-10T20:14:30.372Z", 43_372),
        ("X-MWS-Quota-ResetsOn", "2026-07-10T21:14:00.000Z", 3_613_000),
        ("X-Throttle-Wait-Seconds", "120", 120_000),
        (
            "X-RateLimit-Reset",
            "Fri Jul 10 2026 22:13:49 GMT+0200 (Central European Summer Time)",
            2000,
        ),
    ] {
        assert_eq!(waits(&[(name, value)]), Some(wait), "{name}: {value}");
    }
}

#[test]
fn bodies_of_every_sort() {
    for (body, wait, kind) in [
        (r#"{"retry_after":30}"#, Some(30_000), Kind::Unknown),
        (r#"{"retryAfter":"30.5"}"#, Some(30_500), Kind::Unknown),
        (r#"{"error":{"retry_after_ms":1500}}"#, Some(1500), Kind::Unknown),
        (r#"{"parameters":{"retry_after":35}}"#, Some(35_000), Kind::Unknown),
        (
            r#"{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.0000001s"}]}}"#,
            Some(34_001),
            Kind::Unknown,
        ),
        (
            r#"{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Please retry in 12 seconds"}"#,
            Some(12_000),
            Kind::Unknown,
        ),
        ("Rate limit reached. try again in 2m3.5s", Some(123_500), Kind::Unknown),
        ("Daily quota exceeded", None, Kind::Daily),
        ("You have used this month's requests", None, Kind::Monthly),
        ("Too many concurrent requests", None, Kind::Concurrency),
        ("Limit of 10 requests per second exceeded", None, Kind::Short),
        (
            "<Error><Code>Throttled</Code><RetryAfter>9</RetryAfter></Error>",
            Some(9000),
            Kind::Unknown,
        ),
        (
            r#"{"error":{"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1783728000000"}}}}"#,
            Some(13_573_000),
            Kind::Unknown,
        ),
        (
            r#"{"limit":{"remaining":0,"reset":1783714457,"resetMs":1783714457563}}"#,
            Some(30_563),
            Kind::Unknown,
        ),
        (
            r#"{"details":[{"retry_delay":{"seconds":12,"nanos":500000000}}]}"#,
            Some(12_500),
            Kind::Unknown,
        ),
        (
            r#"{"code":-1003,"msg":"IP banned until 1783714727228."}"#,
            Some(300_228),
            Kind::Unknown,
        ),
        (
            "<fault><nextAccessTime>2026-Jul-10 20:15:00+0000 UTC</nextAccessTime></fault>",
            Some(73_000),
            Kind::Unknown,
        ),
        (r#"{"retry_after":-1}"#, None, Kind::Unknown),
        (r#"{"retry_after":null}"#, None, Kind::Unknown),
        (r#"{"retry_after":"#, None, Kind::Unknown),
        (r#"{"limit":600,"max":5000,"status":429}"#, None, Kind::Unknown),
    ] {
        let reading = plainly(429, &[], body);
        assert_eq!(
            (wait_ms(&reading), reading.signal().limit_kind()),
            (wait, kind),
            "{body}"
        );
        // Whatever the body is, the header is read.
        assert_eq!(
            wait_ms(&plainly(429, &[("Retry-After", "4")], body)),
            Some(4000),
            "{body}"
        );
    }
}

#[test]
fn a_page_from_the_edge_is_the_edge_s_limit() {
    let page = "<!DOCTYPE html><html><title>Access denied | 1015</title></html>";
    let reading = plainly(
        429,
        &[
            ("Server", "cloudflare"),
            ("Content-Type", "text/html"),
            ("Retry-After", "60"),
        ],
        page,
    );
    assert_eq!(
        (reading.signal().concerns(), wait_ms(&reading)),
        (ScopeHint::Global, Some(60_000))
    );
    let own = plainly(
        429,
        &[("Server", "cloudflare"), ("Content-Type", "application/json")],
        "{}",
    );
    assert_eq!(
        own.signal().concerns(),
        ScopeHint::Unknown,
        "JSON behind an edge is the provider's own"
    );
    assert!(!plainly(403, &[("Server", "cloudflare"), ("Content-Type", "text/html")], page).is_limited());
    // The edge's own error as JSON is the edge's too, and its field names the moment.
    let edge = r#"{"title":"Error 1015: You are being rate limited","retry_after":30,"cloudflare_error":true}"#;
    let json = ("Content-Type", "application/problem+json");
    let reading = plainly(429, &[("Server", "cloudflare"), json], edge);
    assert_eq!(
        (reading.signal().concerns(), wait_ms(&reading)),
        (ScopeHint::Global, Some(30_000))
    );
    assert_eq!(plainly(429, &[json], edge).signal().concerns(), ScopeHint::Unknown);
}

#[test]
fn a_page_says_by_its_title_that_it_is_a_limit() {
    let page =
        |title: &str| format!("<!DOCTYPE html><html><head><title>{title}</title></head><body>per day</body></html>");
    for (title, limited) in [
        ("SEC.gov | Request Rate Threshold Exceeded", true),
        ("429 Too Many Requests", true),
        ("The Daily Herald | Forbidden", false),
        ("Just a moment...", false),
    ] {
        let reading = plainly(403, &[], &page(title));
        assert_eq!(
            (reading.is_limited(), reading.signal().limit_kind()),
            (limited, Kind::Unknown),
            "{title}"
        );
    }
}

#[test]
fn words_of_a_limit_where_the_status_says_none() {
    for (status, body, limited, wait) in [
        (
            403,
            r#"{"message":"Out of call volume quota. Quota will be replenished in 22.14:18:12."}"#,
            true,
            Some(1_952_292_000),
        ),
        (
            503,
            "<Error><Code>ServerBusy</Code><Message>Operations per second is over the account limit.</Message></Error>",
            true,
            None,
        ),
        (
            420,
            r#"{"errors":[{"message":"Exceed Sending Limit (daily)"}]}"#,
            true,
            None,
        ),
        (
            403,
            r#"{"message":"Record quota exceeded, change plan or delete records."}"#,
            false,
            None,
        ),
        (403, r#"{"error":"insufficient_scope"}"#, false, None),
    ] {
        let reading = plainly(status, &[], body);
        assert_eq!(
            (reading.is_limited(), wait_ms(&reading)),
            (limited, wait),
            "{status} {body}"
        );
    }
}

#[test]
fn a_conflict_is_for_a_moment_unless_the_thing_is_there_already() {
    for (body, kind) in [
        (r#"{"error":"locked"}"#, Kind::Concurrency),
        (r#"{"error":"idempotency_key_in_use"}"#, Kind::Concurrency),
        (r#"{"message":"A user with this email already exists"}"#, Kind::Unknown),
        (r#"{"code":"ALREADY_EXISTS"}"#, Kind::Unknown),
        (r#"{"message":"Duplicate entry"}"#, Kind::Unknown),
    ] {
        let reading = plainly(409, &[], body);
        assert_eq!(
            (reading.is_limited(), reading.signal().limit_kind()),
            (false, kind),
            "{body}"
        );
    }
}

#[test]
fn what_is_no_limit_may_still_ask_for_a_pause() {
    for (status, lines, wait) in [
        (202, vec![("Retry-After", "30")], Some(30_000)),
        (301, vec![("Retry-After", "5")], Some(5000)),
        (413, vec![("Retry-After", "60")], Some(60_000)),
        (503, vec![("Retry-After", "120")], Some(120_000)),
        (500, vec![], None),
        (
            404,
            vec![("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "30")],
            None,
        ),
        (
            200,
            vec![("X-RateLimit-Remaining", "5"), ("X-RateLimit-Reset", "30")],
            None,
        ),
        (
            200,
            vec![("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "30")],
            Some(30_000),
        ),
        (999, vec![], None),
    ] {
        let reading = plainly(status, &lines, "");
        assert_eq!(
            (reading.is_limited(), wait_ms(&reading)),
            (false, wait),
            "{status} {lines:?}"
        );
    }
}

#[test]
fn no_wait_helps_where_the_account_is_the_trouble() {
    for (status, body) in [
        (429, r#"{"error":{"code":"insufficient_quota"}}"#),
        (429, "Your organization has reached its monthly spend limit."),
        (403, r#"{"code":"not_enough_credits"}"#),
        (403, "Your account has been suspended"),
        (402, ""),
        (403, r#"{"error":"billing_not_active"}"#),
    ] {
        let reading = plainly(status, &[], body);
        assert_eq!(
            (reading.is_limited(), reading.signal().limit_kind()),
            (false, Kind::AccountDisabled),
            "{status} {body}"
        );
    }
    let named = plainly(429, &[("Retry-After", "60")], "Your account is temporarily blocked");
    assert!(named.is_limited(), "a refusal that names a moment is a wait");
}
