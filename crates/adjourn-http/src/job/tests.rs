//! The job's JSON, field by field, and files of jobs.

use proptest::prelude::*;

use super::*;
use crate::Settings;

fn settings() -> Settings {
    Settings::parse(
        r#"
        [providers.acme]
        base_url = "https://api.acme.example/v2"
        idempotency_header = "Idempotency-Key"
        credential = { header = "X-Key", env = "ACME_TOKEN" }
        [providers.other]
        base_url = "https://other.example"
        "#,
    )
    .unwrap()
}

/// A job with these further fields.
fn with(rest: &str) -> Result<HttpJob, JobError> {
    HttpJob::parse(&format!(
        r#"{{"provider":"acme","method":"POST","path":"/orders"{rest}}}"#
    ))
}

/// What is wrong with a job that has these further fields.
fn wrong(rest: &str) -> Vec<String> {
    with(rest)
        .unwrap_err()
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn every_field() {
    let job = HttpJob::parse(
        r#" {"provider":"acme","method":"PATCH","path":"/orders/7","query":{"a":"1","b":["2","3"],"c":[]},
            "headers":{"X-One":"1"},"body":{"n": 1},"id":"order-7","tenant":"t","run":"r","scope":{"entity":"7"},
            "idempotencyKey":"k","notBefore":"2026-07-10T22:13:47+02:00","deadline":"2026-07-11T00:00:00Z",
            "priority":"status","revision":3} "#,
    )
    .unwrap();
    let owned = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(a, b)| (a.to_string(), b.to_string()))
            .collect::<Vec<_>>()
    };
    let expected = HttpJob {
        provider: "acme".to_string(),
        method: Method::PATCH,
        path: JobPath::new("/orders/7").unwrap(),
        query: owned(&[("a", "1"), ("b", "2"), ("b", "3")]),
        headers: vec![(HeaderName::from_static("x-one"), HeaderValue::from_static("1"))],
        body: Some(Body::Json(r#"{"n": 1}"#.to_string())),
        id: Some("order-7".to_string()),
        tenant: Some("t".to_string()),
        run: Some("r".to_string()),
        scope: Some(Scope::Entity("7".to_string())),
        own_key: Some("k".to_string()),
        not_before: Timestamp::parse("2026-07-10T20:13:47Z"),
        deadline: Timestamp::parse("2026-07-11T00:00:00Z"),
        priority: Priority::Status,
        revision: 3,
    };
    assert_eq!(job, expected);
    assert_eq!(
        with(r#","body":null"#).unwrap().body,
        Some(Body::Json("null".to_string()))
    );
    assert_eq!(
        with(r#","bodyText":"é""#).unwrap().body,
        Some(Body::Text("é".to_string()))
    );
    assert_eq!(
        with(r#","bodyBase64":"AAH/""#).unwrap().body,
        Some(Body::Bytes(vec![0, 1, 255]))
    );
}

#[test]
fn each_bad_field_says_what_was_found_and_what_is_allowed() {
    for (rest, expected) in [
        (
            r#","pirority":"normal""#,
            "pirority: is not known; the nearest known is \"priority\"; allowed: provider, method",
        ),
        (
            r#","idempotency_key":"x""#,
            "idempotency_key: is not known; the nearest known is \"idempotencyKey\"",
        ),
        (
            r#","tenant":"a","tenant":"a""#,
            "tenant: stands there twice; allowed: once",
        ),
        (
            r#","tenant":null"#,
            "tenant: found null; allowed: a string of 1 to 256 bytes without control characters",
        ),
        (
            r#","tenant":"""#,
            "tenant: found \"\"; allowed: a string of 1 to 256 bytes",
        ),
        (
            r#","id":"a\nb""#,
            "id: found \"a\\nb\"; allowed: a string of 1 to 256 bytes without control characters",
        ),
        (r#","id":7"#, "id: found 7; allowed: a string"),
        (r#","run":{}"#, "run: found an object; allowed: a string"),
        (
            r#","query":[]"#,
            "query: found a list; allowed: an object of strings or lists of strings",
        ),
        (
            r#","query":{"n":1}"#,
            "query.n: found 1; allowed: a string or a list of strings",
        ),
        (
            r#","query":{"n":["a",1]}"#,
            "query.n: found a list; allowed: a string or a list of strings",
        ),
        (r#","query":{"n":"1","n":"2"}"#, "query: found \"n\" twice"),
        (
            r#","headers":{"Host":"evil"}"#,
            "headers.Host: belongs to the connection; allowed: any header but Host",
        ),
        (
            r#","headers":{"content-length":"3"}"#,
            "headers.content-length: belongs to the connection",
        ),
        (
            r#","headers":{"Transfer-Encoding":"chunked"}"#,
            "headers.Transfer-Encoding: belongs to the connection",
        ),
        (
            r#","headers":{"Connection":"close"}"#,
            "headers.Connection: belongs to the connection",
        ),
        (r#","headers":{"a b":"c"}"#, "headers.a b: is no header name"),
        (
            r#","headers":{"a\r\nHost":"c"}"#,
            "headers.a\\r\\nHost: is no header name",
        ),
        (
            r#","headers":{"x":"a\r\nHost: evil"}"#,
            "headers.x: found a line break, a control or a non-ASCII character",
        ),
        (
            r#","headers":{"x":"a\u0000"}"#,
            "headers.x: found a line break, a control or a non-ASCII character",
        ),
        (r#","headers":{"x":1}"#, "headers.x: found no string; allowed: a string"),
        (
            r#","headers":{"x":"1","X":"2"}"#,
            "headers.X: stands there twice, since case makes no difference",
        ),
        (
            r#","body":1,"bodyText":"1""#,
            "body, bodyText: stand there together; allowed: at most one of body, bodyText",
        ),
        (r#","bodyText":{}"#, "bodyText: found an object; allowed: a string"),
        (r#","bodyBase64":"a_b-""#, "bodyBase64: Invalid symbol"),
        (
            r#","scope":"entity""#,
            "scope: found \"entity\"; allowed: one of {\"entity\": ID}",
        ),
        (
            r#","scope":{}"#,
            "scope: found 0 fields; allowed: one of {\"entity\": ID}",
        ),
        (
            r#","scope":{"entity":"1","custom":"2"}"#,
            "scope: found 2 fields; allowed: one of",
        ),
        (
            r#","scope":{"entiti":"1"}"#,
            "scope: entiti is not known; the nearest known is \"entity\"",
        ),
        (
            r#","scope":{"entity":7}"#,
            "scope: entity: found 7; allowed: a string of 1 to 1024 bytes",
        ),
        (
            r#","idempotencyKey":"a b""#,
            "idempotencyKey: found \"a b\"; allowed: a string of 1 to 255 visible ASCII",
        ),
        (
            r#","notBefore":"tomorrow""#,
            "notBefore: found \"tomorrow\"; allowed: an RFC 3339 time, such as",
        ),
        (
            r#","deadline":1783714427"#,
            "deadline: found 1783714427; allowed: an RFC 3339 time",
        ),
        (
            r#","priority":"high""#,
            "priority: found \"high\"; allowed: \"normal\", \"status\"",
        ),
        (
            r#","revision":-1"#,
            "revision: found -1; allowed: a whole number from 0",
        ),
        (
            r#","revision":1.5"#,
            "revision: found 1.5; allowed: a whole number from 0",
        ),
        (
            r#","statusQuery":{"method":"GET","path":"/x"}"#,
            "statusQuery: is not built yet",
        ),
    ] {
        let found = wrong(rest);
        assert_eq!(found.len(), 1, "{rest}: {found:?}");
        assert!(
            found[0].starts_with(expected),
            "{rest}\n  says   {}\n  not    {expected}",
            found[0]
        );
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error = HttpJob::parse(r#"{"method":"get","path":"/../x","hedaers":{},"revision":"1"}"#).unwrap_err();
    let fields: Vec<&str> = error.problems().iter().map(FieldProblem::field).collect();
    assert_eq!(fields, ["method", "path", "hedaers", "revision", "provider"]);
    assert!(
        error
            .to_string()
            .starts_with("method: found \"get\"; allowed: GET, HEAD, POST, PUT, PATCH, DELETE | path: ")
    );
}

#[test]
fn what_is_no_object_is_no_job() {
    for (text, expected) in [
        ("", "found nothing; allowed: one JSON object"),
        ("  \n", "found nothing; allowed: one JSON object"),
        (
            "7",
            "is not a job: invalid type: integer `7`, expected one JSON object at line 1 column 1",
        ),
        ("[]", "is not a job: invalid type: sequence, expected one JSON object"),
        (
            "{\"provider\":",
            "is not a job: EOF while parsing a value at line 1 column 12",
        ),
        ("{} {}", "is not a job: trailing characters at line 1 column 4"),
    ] {
        let error = HttpJob::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?} says {error}");
    }
}

#[test]
fn a_job_has_the_size_that_a_message_leaves_it() {
    let body = "x".repeat(MAX_JOB_BYTES);
    let empty = r#"{"provider":"acme","method":"POST","path":"/","bodyText":""}"#;
    let fits = empty.replace("\"\"}", &format!("\"{}\"}}", &body[empty.len()..]));
    assert_eq!(fits.len(), MAX_JOB_BYTES);
    HttpJob::parse(&fits).unwrap();
    let error = HttpJob::parse(&format!("{fits} ")).unwrap_err().to_string();
    assert_eq!(error, "found a job of 1046529 bytes; allowed: at most 1046528");
}

#[test]
fn the_scope_s_key() {
    for (scope, key) in [
        ("", "acme"),
        (r#","scope":{"entity":"7"}"#, "acme:entity:7"),
        (r#","scope":{"credential":"k"}"#, "acme:credential:k"),
        (r#","scope":{"custom":"eu"}"#, "acme:custom:eu"),
    ] {
        assert_eq!(with(scope).unwrap().scope_key().as_str(), key);
    }
}

#[test]
fn the_idempotency_key_is_the_same_on_every_attempt() {
    for (rest, expected) in [
        ("", "m-1"),
        (r#","id":"order-7""#, "order-7"),
        (r#","id":"order-7","revision":2"#, "order-7.r2"),
        (r#","id":"order-7","idempotencyKey":"mine","revision":2"#, "mine"),
    ] {
        assert_eq!(with(rest).unwrap().idempotency_key("m-1"), expected);
    }
    let odd = with(r#","id":"Rechnung Nr. 7 ü""#).unwrap().idempotency_key("m-1");
    assert!(odd.starts_with("h-") && odd.len() == 34, "{odd}");
    assert_ne!(odd, with(r#","id":"Rechnung Nr. 8 ü""#).unwrap().idempotency_key("m-1"));
}

#[test]
fn the_settings_have_their_say() {
    let settings = settings();
    let check = |rest: &str| {
        with(rest)
            .unwrap()
            .check(&settings)
            .map(|provider| provider.name().to_string())
    };
    assert_eq!(check("").unwrap(), "acme");
    let stranger = HttpJob::parse(r#"{"provider":"acne","method":"GET","path":"/"}"#).unwrap();
    assert_eq!(
        stranger.check(&settings).unwrap_err().to_string(),
        "provider: \"acne\" is not known; the nearest known is \"acme\"; allowed: acme, other"
    );
    assert_eq!(
        check(r#","headers":{"x-key":"mine","idempotency-key":"k","x":"1"}"#)
            .unwrap_err()
            .to_string(),
        "headers.x-key: is the credential's header; adjourn sets it from the settings | \
         headers.idempotency-key: is the idempotency header; use the field idempotencyKey"
    );
}

mod lines {
    use super::*;

    fn read(text: &str) -> Result<JobLines, LinesError> {
        read_lines(text.as_bytes(), &settings(), 1000)
    }

    fn bad(text: &[u8]) -> Vec<String> {
        match read_lines(text, &settings(), 1000).unwrap_err() {
            LinesError::Bad(problems) => problems.iter().map(ToString::to_string).collect(),
            LinesError::Io(error) => panic!("{error}"),
        }
    }

    const A: &str = r#"{"provider":"acme","method":"GET","path":"/a","id":"a"}"#;
    const B: &str = r#"{"provider":"other","method":"GET","path":"/b","id":"b"}"#;
    const NAMELESS: &str = r#"{"provider":"acme","method":"GET","path":"/a"}"#;

    #[test]
    fn a_file_without_jobs_is_no_job() {
        for text in ["", "\n", "\r\n  \n\n"] {
            assert_eq!(read(text).unwrap(), JobLines::default());
        }
    }

    #[test]
    fn jobs_keep_their_order_line_and_text() {
        let read = read(&format!("\u{feff}{A}\r\n\n  {B}  \n{NAMELESS}\n{NAMELESS}")).unwrap();
        let found: Vec<(usize, &str)> = read.jobs.iter().map(|line| (line.line, line.text.as_str())).collect();
        assert_eq!(found, [(1, A), (3, B), (4, NAMELESS), (5, NAMELESS)]);
        assert_eq!(read.jobs[1].job.id.as_deref(), Some("b"));
    }

    #[test]
    fn the_same_job_twice_is_one() {
        let spaced = A.replace(',', ", ");
        let read = read(&format!("{A}\n{B}\n{spaced}\n")).unwrap();
        assert_eq!(read.jobs.len(), 2);
        assert_eq!(
            read.repeats,
            [Repeat {
                id: "a".to_string(),
                line: 3,
                first: 1
            }]
        );
    }

    #[test]
    fn every_bad_line_is_told_at_once() {
        let other = A.replace("/a", "/other");
        let long = format!(r#"{{"bodyText":"{}"}}"#, "x".repeat(5000));
        let text = format!(
            "{A}\nnonsense\n{B}\n{other}\n{{\"provider\":\"acme\",\"method\":\"GET\",\"path\":\"/..\"}}\n{long}\n\u{e9}\n{A}"
        );
        let mut bytes = text.into_bytes();
        bytes.extend(b"\n{\"provider\":\"nobody\",\"method\":\"GET\",\"path\":\"/\"}\n\xff\n");
        let found = bad(&bytes);
        let expected = [
            "line 2: is not a job: expected ident at line 1 column 2",
            "line 4: id: lines 1 and 4 are two different jobs of the id \"a\"; allowed: one job for each id",
            "line 5: path: \"/..\": found \"..\"; a path may not leave the provider's base_url",
            "line 6: found a job of more than 1000 bytes",
            "line 7: is not a job: expected value at line 1 column 1",
            "line 9: provider: \"nobody\" is not known",
            "line 10: found a byte that is no UTF-8 after 0 bytes",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\n  not {expected}");
        }
    }

    #[test]
    fn a_reader_that_fails_is_no_file_of_jobs() {
        struct Broken;
        impl std::io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("unplugged"))
            }
        }
        let error = read_lines(std::io::BufReader::new(Broken), &settings(), 1000).unwrap_err();
        assert_eq!(error.to_string(), "the jobs cannot be read: unplugged");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader_of_lines(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..300)) {
            if let Ok(read) = read_lines(bytes.as_slice(), &settings(), 50) {
                prop_assert!(read.jobs.is_empty());
            }
        }
    }
}

/// JSON that is nearly a job: known fields with values of every kind.
fn nearly() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("null".to_string()),
        Just("\"acme\"".to_string()),
        Just("\"GET\"".to_string()),
        "-?[0-9]{1,25}(\\.[0-9]+)?(e[0-9]{1,4})?",
        "\"(/|\\.\\.|%2e|%25|[a-z]|\\\\\\\\|\\\\u[0-9a-f]{4}|\u{e9}){0,8}\"",
        Just("{\"entity\":\"7\"}".to_string()),
        Just("{\"x\":[\"1\",{}]}".to_string()),
        Just("[[[{}]]]".to_string()),
    ];
    let name = prop::sample::select(vec![
        "provider",
        "method",
        "path",
        "query",
        "headers",
        "body",
        "bodyText",
        "bodyBase64",
        "id",
        "tenant",
        "run",
        "scope",
        "idempotencyKey",
        "notBefore",
        "deadline",
        "priority",
        "statusQuery",
        "revision",
        "odd",
    ]);
    let field = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    prop::collection::vec(field, 0..12).prop_map(|fields| format!("{{{}}}", fields.join(",")))
}

proptest! {
    #[test]
    fn no_text_panics_the_parser(text in prop_oneof![nearly(), "\\PC{0,80}", "[{}\\[\\]\",:0-9a-z\\\\]{0,60}"]) {
        match HttpJob::parse(&text) {
            Ok(job) => prop_assert!(job.path.under(&url::Url::parse("https://x.example/v2").unwrap()).is_some()),
            Err(error) => prop_assert!(!error.to_string().is_empty() && !error.problems().is_empty()),
        }
    }
}
