//! The requester against a server on the loopback: what is sent, and what each answer means.

use std::time::Duration;

use adjourn_core::{Interpretation, Signal, Source};

use super::{
    loopback::{Act, Loopback},
    *,
};
use crate::PlainReader;

const NOW: &str = "2026-07-10T20:13:47Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn requester(url: &str, settings: &str) -> Requester {
    let text = format!("[providers.acme]\nbase_url = \"{url}/v2\"\n{settings}");
    let settings = Settings::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let environment = |name: &str| (name == "ACME_TOKEN").then(|| "s3cret-token".to_string());
    let credentials = Credentials::read(&settings, environment).unwrap();
    Requester::new(settings, credentials, Arc::new(PlainReader), Arc::new(|| at(NOW))).unwrap()
}

fn job(method: &str, rest: &str) -> HttpJob {
    HttpJob::parse(&format!(
        r#"{{"provider":"acme","method":"{method}","path":"/orders"{rest}}}"#
    ))
    .unwrap()
}

async fn perform(requester: &Requester, job: &HttpJob) -> Answer {
    requester.perform(job, "m-1", at(NOW) + Duration::from_secs(900)).await
}

/// The outcome's name, its reason, and the moment before which no further attempt is wanted.
fn told(outcome: &Outcome) -> (&'static str, String, Option<Timestamp>) {
    match outcome {
        Outcome::Done => ("done", String::new(), None),
        Outcome::Throttled(signal) => ("throttled", signal.why().to_string(), signal.earliest_retry_at()),
        Outcome::Failed(fault) => ("failed", fault.why().to_string(), fault.not_before()),
        Outcome::Unknown(fault) => ("unknown", fault.why().to_string(), fault.not_before()),
        Outcome::Rejected(fault) => ("rejected", fault.why().to_string(), fault.not_before()),
    }
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    let in_30_s = Some(at("2026-07-10T20:14:17Z"));
    for (status, headers, body, expected) in [
        (200, "", "", ("done", "", None)),
        (204, "", "", ("done", "", None)),
        (202, "retry-after: 30\r\n", "{}", ("done", "", None)),
        (
            429,
            "",
            "",
            ("throttled", "429 Too Many Requests, without a time", None),
        ),
        (
            429,
            "Retry-After: 30\r\n",
            "",
            ("throttled", "429 Too Many Requests; retry-after: 30", in_30_s),
        ),
        (
            401,
            "",
            "bad token",
            ("rejected", "unauthorized: acme answered 401 Unauthorized", None),
        ),
        (
            403,
            "",
            "",
            ("rejected", "unauthorized: acme answered 403 Forbidden", None),
        ),
        (404, "", "", ("rejected", "refused: acme answered 404 Not Found", None)),
        (410, "", "", ("rejected", "refused: acme answered 410 Gone", None)),
        (
            409,
            "retry-after: 1\r\n",
            "",
            ("rejected", "refused: acme answered 409 Conflict", None),
        ),
        (
            422,
            "",
            "no\nsku",
            (
                "rejected",
                "refused: acme answered 422 Unprocessable Entity: no sku",
                None,
            ),
        ),
        (
            304,
            "",
            "",
            ("rejected", "refused: acme answered 304 Not Modified", None),
        ),
        (408, "", "", ("failed", "acme answered 408 Request Timeout", None)),
        (425, "", "", ("failed", "acme answered 425 Too Early", None)),
        (500, "", "", ("failed", "acme answered 500 Internal Server Error", None)),
        (
            503,
            "Retry-After: 30\r\n",
            "",
            ("failed", "acme answered 503 Service Unavailable", in_30_s),
        ),
        (599, "", "", ("failed", "acme answered 599 <unknown status code>", None)),
    ] {
        let server = Loopback::playing(vec![Act::status(status, headers, body)]).await;
        for method in ["GET", "POST"] {
            let answer = perform(&requester(&server.url, ""), &job(method, "")).await;
            let (kind, words, until) = told(&answer.outcome);
            assert_eq!((kind, words.as_str(), until), expected, "{method} answered {status}");
            assert_eq!((answer.status, answer.result), (Some(status), None));
        }
    }
}

#[tokio::test]
async fn a_refusal_carries_what_was_read() {
    let server = Loopback::playing(vec![Act::status(429, "Retry-After: 1.5\r\n", "")]).await;
    let answer = perform(&requester(&server.url, ""), &job("GET", "")).await;
    let expected = Signal::new("acme", at(NOW))
        .status(429)
        .read_by(Source::Parser, "retry-after", "1.5", Interpretation::Delay)
        .retry_at(at("2026-07-10T20:13:48.500Z"))
        .reason("429 Too Many Requests; retry-after: 1.5");
    assert_eq!(answer.outcome, Outcome::Throttled(expected));
}

#[tokio::test]
async fn what_is_sent() {
    let server = Loopback::playing(vec![Act::status(200, "", "")]).await;
    let requester = requester(
        &server.url,
        "idempotency_header = \"Idempotency-Key\"\ncredential = { header = \"Authorization\", prefix = \"Bearer \", env = \"ACME_TOKEN\" }",
    );
    let rest = r#","query":{"a":"1 &","b":["x","y"]},"headers":{"X-One":"1","Content-Type":"application/vnd.acme+json"},"body":{"n": 12345678901234567890123},"id":"order-7""#;
    assert_eq!(perform(&requester, &job("POST", rest)).await.outcome, Outcome::Done);
    perform(&requester, &job("PUT", r#","bodyText":"é""#)).await;
    perform(
        &requester,
        &job("PATCH", r#","bodyBase64":"AAH/","idempotencyKey":"mine""#),
    )
    .await;
    perform(&requester, &job("DELETE", "")).await;
    let asked = server.asked();
    let [post, put, patch, delete] = asked.as_slice() else {
        panic!("{asked:?}")
    };

    assert_eq!(post.request_line(), "POST /v2/orders?a=1+%26&b=x&b=y HTTP/1.1");
    assert_eq!(post.header("x-one"), ["1"]);
    assert_eq!(post.header("content-type"), ["application/vnd.acme+json"]);
    assert_eq!(post.header("authorization"), ["Bearer s3cret-token"]);
    assert_eq!(post.header("idempotency-key"), ["order-7"]);
    assert_eq!(
        post.header("user-agent"),
        [concat!("adjourn/", env!("CARGO_PKG_VERSION"))]
    );
    assert_eq!(
        post.body, br#"{"n": 12345678901234567890123}"#,
        "JSON goes out byte for byte"
    );

    assert_eq!(
        (put.header("content-type"), put.body.as_slice()),
        (vec!["text/plain; charset=utf-8"], "é".as_bytes())
    );
    assert_eq!(
        put.header("idempotency-key"),
        ["m-1"],
        "without an id, made from the message's lasting name"
    );
    assert_eq!(patch.header("content-type"), ["application/octet-stream"]);
    assert_eq!(
        (patch.header("idempotency-key"), patch.body.as_slice()),
        (vec!["mine"], &[0, 1, 255][..])
    );
    assert_eq!(
        (delete.request_line(), delete.body.as_slice()),
        ("DELETE /v2/orders HTTP/1.1", &[][..])
    );
}

#[tokio::test]
async fn no_answer_is_unknown_unless_the_call_may_be_repeated() {
    let header = "idempotency_header = \"Idempotency-Key\"";
    for (method, settings, expected) in [
        ("POST", "", "unknown"),
        ("PATCH", "", "unknown"),
        ("GET", "", "failed"),
        ("HEAD", "", "failed"),
        ("PUT", "", "failed"),
        ("DELETE", "", "failed"),
        ("POST", header, "failed"),
        ("PATCH", header, "failed"),
        ("POST", "repeat_unknown = true", "failed"),
    ] {
        let server = Loopback::playing(vec![Act::HangUp]).await;
        let answer = perform(&requester(&server.url, settings), &job(method, "")).await;
        let (kind, words, _) = told(&answer.outcome);
        assert_eq!(kind, expected, "{method} with {settings:?}: {words}");
        assert!(words.starts_with("acme did not answer: "), "{words}");
        assert_eq!(server.asked().len(), 1, "nobody but the policy repeats a call");
    }
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_a_failure_of_any_call() {
    let url = Loopback::nobody().await;
    let answer = perform(&requester(&url, ""), &job("POST", "")).await;
    let (kind, words, _) = told(&answer.outcome);
    assert_eq!(kind, "failed", "{words}");
    assert!(
        words.starts_with("acme did not answer: ") && words.contains("refused"),
        "{words}"
    );
}

#[tokio::test]
async fn a_call_ends_with_the_provider_s_timeout_and_with_the_invocation_s() {
    let server = Loopback::playing(vec![Act::Hang]).await;
    let by_provider = requester(&server.url, "timeout_ms = 200");
    let (kind, words, _) = told(&perform(&by_provider, &job("POST", "")).await.outcome);
    assert_eq!(kind, "unknown", "{words}");
    assert!(words.starts_with("acme did not answer: timed out"), "{words}");

    // Ten minutes by the provider's own timeout.
    let by_invocation = requester(&server.url, "timeout_ms = 600000");
    let answer = by_invocation
        .perform(&job("GET", ""), "m-1", at(NOW) + Duration::from_millis(200))
        .await;
    assert_eq!(told(&answer.outcome).0, "failed");

    let answer = by_invocation.perform(&job("POST", ""), "m-1", at(NOW)).await;
    assert_eq!(
        told(&answer.outcome),
        (
            "failed",
            "there was no time left for its call; it was not sent".to_string(),
            None
        )
    );
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn redirects_are_followed_under_the_base_url_alone() {
    let elsewhere = Loopback::playing(vec![Act::status(200, "", "")]).await;
    let to = |status, location: &str| Act::status(status, &format!("location: {location}\r\n"), "");
    let credential = "credential = { header = \"X-Key\", env = \"ACME_TOKEN\" }";
    for (method, first, expected, lines) in [
        (
            "GET",
            to(302, "/v2/moved?x=1"),
            "done",
            vec!["GET /v2/orders", "GET /v2/moved?x=1"],
        ),
        ("GET", to(301, "moved"), "done", vec!["GET /v2/orders", "GET /v2/moved"]),
        (
            "POST",
            to(307, "/v2/moved"),
            "done",
            vec!["POST /v2/orders", "POST /v2/moved"],
        ),
        (
            "DELETE",
            to(308, "/v2/moved"),
            "done",
            vec!["DELETE /v2/orders", "DELETE /v2/moved"],
        ),
        ("POST", to(303, "/v2/moved"), "rejected", vec!["POST /v2/orders"]),
        ("GET", to(302, "/v1/moved"), "rejected", vec!["GET /v2/orders"]),
        ("GET", to(302, "/v2/%2e%2e/v1"), "rejected", vec!["GET /v2/orders"]),
        (
            "GET",
            to(302, &format!("{}/v2/moved", elsewhere.url)),
            "rejected",
            vec!["GET /v2/orders"],
        ),
        ("GET", Act::status(302, "", ""), "rejected", vec!["GET /v2/orders"]),
    ] {
        let server = Loopback::playing(vec![first.clone(), Act::status(200, "", "")]).await;
        let answer = perform(&requester(&server.url, credential), &job(method, r#","bodyText":"hi""#)).await;
        let (kind, words, _) = told(&answer.outcome);
        assert_eq!(kind, expected, "{first:?}: {words}");
        let asked = server.asked();
        let seen: Vec<&str> = asked
            .iter()
            .map(|asked| asked.request_line().trim_end_matches(" HTTP/1.1"))
            .collect();
        assert_eq!(seen, lines);
        assert!(
            asked
                .iter()
                .all(|asked| asked.header("x-key") == ["s3cret-token"] && asked.body == b"hi")
        );
        assert!(
            kind == "done" || words.starts_with("refused: acme answered 30"),
            "{words}"
        );
    }
    assert!(
        elsewhere.asked().is_empty(),
        "a credential never leaves for another origin"
    );

    let circle = Loopback::playing(vec![to(302, "/v2/orders")]).await;
    let answer = perform(&requester(&circle.url, ""), &job("GET", "")).await;
    assert_eq!((told(&answer.outcome).0, circle.asked().len()), ("rejected", 6));
}

#[tokio::test]
async fn a_result_is_stored_whole_or_not_at_all() {
    let long = "x".repeat(READ_BYTES * 2);
    for (settings, act, expected) in [
        ("", Act::status(200, "", "yes"), None),
        (
            "results = \"store\"",
            Act::status(200, "", "yes"),
            Some("yes".to_string()),
        ),
        ("results = \"store\"", Act::status(200, "", &long), Some(long.clone())),
        ("results = \"store\"", Act::status(404, "", "no"), None),
        (
            "results = \"store\"",
            Act::status(200, "", &"x".repeat(MAX_RESULT_BYTES + 1)),
            None,
        ),
        (
            "results = \"store\"",
            Act::Answer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut".to_vec()),
            None,
        ),
    ] {
        let status = if matches!(&act, Act::Answer(bytes) if bytes.starts_with(b"HTTP/1.1 404")) {
            "rejected"
        } else {
            "done"
        };
        let server = Loopback::playing(vec![act]).await;
        let answer = perform(&requester(&server.url, settings), &job("POST", "")).await;
        assert_eq!(
            told(&answer.outcome).0,
            status,
            "an answer that breaks off was still an answer"
        );
        assert_eq!(answer.result, expected);
    }
}

#[tokio::test]
async fn a_compressed_answer_is_read() {
    // gzip of "yes"
    const YES: [u8; 23] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 171, 76, 45, 6, 0, 169, 53, 231, 117, 3, 0, 0, 0,
    ];
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        YES.len()
    )
    .into_bytes();
    bytes.extend(YES);
    let server = Loopback::playing(vec![Act::Answer(bytes)]).await;
    let answer = perform(&requester(&server.url, "results = \"store\""), &job("GET", "")).await;
    assert_eq!(answer.result.as_deref(), Some("yes"));
    assert_eq!(server.asked()[0].header("accept-encoding"), ["gzip"]);
}

#[tokio::test]
async fn a_credential_that_the_provider_repeats_is_not_kept() {
    let server = Loopback::playing(vec![Act::status(400, "", "no such key: s3cret-token")]).await;
    let requester = requester(
        &server.url,
        "credential = { header = \"X-Key\", prefix = \"Key \", env = \"ACME_TOKEN\" }",
    );
    let answer = perform(&requester, &job("GET", "")).await;
    let words = told(&answer.outcome).1;
    assert_eq!(
        words,
        "refused: acme answered 400 Bad Request: no such key: [credential]"
    );
    assert!(!format!("{requester:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_job_that_the_settings_do_not_cover_is_not_sent() {
    let server = Loopback::playing(vec![Act::status(200, "", "")]).await;
    let requester = requester(&server.url, "");
    let stranger = HttpJob::parse(r#"{"provider":"acmee","method":"GET","path":"/"}"#).unwrap();
    let (kind, words, _) = told(&perform(&requester, &stranger).await.outcome);
    assert_eq!(kind, "rejected");
    assert!(words.contains("the nearest known is \"acme\""), "{words}");
    assert!(server.asked().is_empty());
}
