//! What people paste, and what they are told.

use adjourn_core::{Kind, Timestamp};
use serde_json::Value;

use super::*;
use crate::CatalogueEntry;

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

fn pasted(text: &str) -> Pasted {
    Pasted::read(text.as_bytes(), None, now()).unwrap_or_else(|error| panic!("{error}"))
}

fn explained(text: &str) -> Explanation {
    Explainer::default().explain(&pasted(text))
}

#[test]
fn curl_s_text_in_its_forms() {
    let head = "HTTP/2 429 \nretry-after: 30\n";
    let long = format!(
        "HTTP/1.1 429 Too Many Requests\nRetry-After: 30\n\n{}",
        "x".repeat(2_000_000)
    );
    for (form, text) in [
        ("LF", format!("{head}\nbody")),
        ("CRLF", format!("{head}\nbody").replace('\n', "\r\n")),
        ("no body", format!("{head}\n")),
        ("no empty line", head.to_string()),
        ("a body of 2 MB", long),
        ("100-continue", format!("HTTP/1.1 100 Continue\n\n{head}\n{{}}")),
        (
            "a proxy",
            format!("HTTP/1.1 200 Connection established\n\n{head}\n{{}}"),
        ),
        (
            "a redirect",
            format!("HTTP/1.1 301 Moved\nLocation: /b\nContent-Length: 0\n\n{head}\n{{}}"),
        ),
        (
            "a redirect with a body",
            format!("HTTP/1.1 302 Found\nLocation: /b\n\n<html>moved</html>{head}\n{{}}"),
        ),
        (
            "a body with a length",
            format!("HTTP/1.1 401 Unauthorized\nContent-Length: 5\n\nhello{head}\n{{}}"),
        ),
        ("a prompt before it", format!("$ curl -i https://api.example\n{head}\n")),
        (
            "verbose",
            "* Connected\n> GET / HTTP/2\n> authorization: Bearer secret\n< HTTP/2 429\n< retry-after: 30\n<\n{}"
                .to_string(),
        ),
        (
            "a folded line",
            "HTTP/1.1 429 Too Many Requests\nX-Long: a\n b\nRetry-After:\n 30\n\n".to_string(),
        ),
    ] {
        let explanation = explained(&text);
        assert_eq!(
            (explanation.status, explanation.wait_ms),
            (Some(429), Some(30_000)),
            "{form}"
        );
    }
}

#[test]
fn a_body_that_speaks_of_http_is_a_body() {
    let explanation =
        explained("HTTP/1.1 429 Too Many Requests\nRetry-After: 30\n\nWe speak HTTP/1.1 200 OK\nHTTP is fine");
    assert_eq!(explanation.status, Some(429));
}

#[test]
fn json_with_lists_and_bodies_of_both_kinds() {
    let explanation = explained(
        r#"{"status":429,"headers":{"Retry-After":["10","60"]},"body":null,"received_at":"2026-07-10T20:00:00Z"}"#,
    );
    assert_eq!(explanation.wait_ms, Some(60_000));
    assert_eq!(explanation.retry_at, Timestamp::parse("2026-07-10T20:01:00Z"));
    for body in [r#"{"error":{"retry_after":7}}"#, r#""{\"error\":{\"retry_after\":7}}""#] {
        assert_eq!(
            explained(&format!(r#"{{"status":429,"body":{body}}}"#)).wait_ms,
            Some(7000),
            "{body}"
        );
    }
}

#[test]
fn when_it_counts_as_received() {
    let dated = "HTTP/2 429\nDate: Thu, 09 Jul 2026 10:00:00 GMT\nRetry-After: 30\n\n";
    assert_eq!(
        pasted(dated).received_at(),
        Timestamp::parse("2026-07-09T10:00:00Z").unwrap()
    );
    let told = Timestamp::parse("2026-07-01T00:00:00Z");
    assert_eq!(
        Some(Pasted::read(dated.as_bytes(), told, now()).unwrap().received_at()),
        told
    );
    assert_eq!(pasted("HTTP/2 429\n\n").received_at(), now());
    assert_eq!(
        pasted("HTTP/2 429\nAge: 3\nDate: Thu, 09 Jul 2026 10:00:00 GMT\n\n").received_at(),
        now()
    );
}

#[test]
fn what_is_no_response_is_refused_in_words_that_repeat_nothing() {
    for (text, expected) in [
        ("secret-token", "no response was found"),
        ("", "no response was found"),
        ("{\"status\":", "ends too early (line 1"),
        ("{\"headers\":{}}", "status: is missing"),
        ("{\"status\":42}", "status: found 42; allowed: a number from 100 to 999"),
        ("{\"status\":\"secret\"}", "is not a response (line 1"),
        (
            "{\"status\":429,\"headers\":{\"a b\":\"secret\"}}",
            "headers: found a name",
        ),
        (
            "{\"status\":429,\"headers\":{\"a\":{\"secret\":1}}}",
            "headers.a: allowed: a text",
        ),
        ("{\"status\":429,\"received_at\":\"secret\"}", "received_at: is no time"),
    ] {
        let error = Pasted::read(text.as_bytes(), None, now()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn json_lines_give_one_answer_a_line_and_a_bad_line_hurts_itself_alone() {
    let text = "{\"status\":429,\"headers\":{\"Retry-After\":\"3\"}}\n\n{\"status\":1}\n{\"status\":200}\n";
    assert!(Pasted::is_json_lines(text.as_bytes()));
    assert!(!Pasted::is_json_lines(b"{\"status\":429}\n"));
    assert!(!Pasted::is_json_lines(b"{\n  \"status\": 429\n}\n"));
    let lines: Vec<PastedLine> = Pasted::read_lines(text.as_bytes(), None, now()).collect();
    let found: Vec<(usize, bool)> = lines.iter().map(|line| (line.number, line.response.is_ok())).collect();
    assert_eq!(found, [(1, true), (3, false), (4, true)]);
}

#[test]
fn what_would_become_of_the_job() {
    for (text, kind, mechanism, until) in [
        (
            r#"{"status":429,"headers":{"Retry-After":"30"}}"#,
            "defer",
            "delay",
            Some("2026-07-10T20:14:17.000Z"),
        ),
        (
            r#"{"status":429,"headers":{"Retry-After":"3600"}}"#,
            "defer",
            "schedule",
            Some("2026-07-10T21:13:47.000Z"),
        ),
        (r#"{"status":429}"#, "defer", "delay", Some("2026-07-10T20:13:49.000Z")),
        (
            r#"{"status":429,"headers":{"Retry-After":"99999999999999999999"}}"#,
            "exhaust",
            "none",
            None,
        ),
        (
            r#"{"status":429,"body":"Monthly quota exceeded"}"#,
            "exhaust",
            "none",
            None,
        ),
        (
            r#"{"status":429,"body":{"error":{"code":"insufficient_quota"}}}"#,
            "reject",
            "none",
            None,
        ),
        (r#"{"status":404}"#, "reject", "none", None),
        (r#"{"status":401}"#, "reject", "none", None),
        (r#"{"status":503}"#, "retry", "delay", Some("2026-07-10T20:13:48.000Z")),
        (r#"{"status":200}"#, "complete", "none", None),
    ] {
        let json: Value = serde_json::to_value(explained(text)).unwrap();
        let decision = &json["decision"];
        assert_eq!(
            (
                decision["kind"].as_str().unwrap(),
                decision["mechanism"].as_str().unwrap(),
                decision["until"].as_str()
            ),
            (kind, mechanism, until),
            "{text}"
        );
    }
}

#[test]
fn a_contract_explains_with_its_hint_and_says_what_it_ignored() {
    let contract = CatalogueEntry::find("GitHub").unwrap().contract().unwrap();
    let explainer = Explainer::default().provider("github").contract(contract);
    let explanation = explainer.explain(&pasted(
        r#"{"status":403,"headers":{"x-ratelimit-limit":"5000","x-ratelimit-remaining":"0","x-ratelimit-reset":"1783716120"},"body":{"message":"API rate limit exceeded for user ID 1."}}"#,
    ));
    assert_eq!((explanation.rate_limited, explanation.kind), (true, Kind::Short));
    assert_eq!(explanation.reason, "primary");
    assert_eq!(explanation.field.as_deref(), Some("x-ratelimit-reset"));
    assert!(explanation.hint.unwrap().text.contains("each user"));
    assert_eq!(explanation.limits[0].remaining, Some(0));

    let explanation =
        explained(r#"{"status":429,"headers":{"x-ratelimit-remaining":"7","x-ratelimit-reset":"1783716120"}}"#);
    assert_eq!(explanation.wait_ms, None);
    let [ignored] = explanation.ignored.try_into().unwrap();
    assert_eq!(
        (ignored.field.as_str(), ignored.why),
        ("x-ratelimit-reset", "belongs to a limit of which something remains")
    );
}

#[test]
fn credentials_are_never_echoed() {
    let text = r#"{"status":429,"headers":{"Authorization":"Bearer SECRET0123456789abcdefgh","Set-Cookie":"sid=SECRET","Retry-After":"Bearer SECRET","x-ratelimit-reset":"SECRET0123456789abcdefghi","x-ratelimit-remaining":"0"},"body":{"token":"SECRET","retry_after":"sk_SECRET_0123456789abcdef"}}"#;
    let json = serde_json::to_string(&explained(text)).unwrap();
    assert!(!json.contains("SECRET"), "{json}");
}
