//! Anything at all: no panic, never earlier than the plain reading, and no look at more of a body than its bounds allow.

use std::time::Duration;

use adjourn_core::{Kind, Timestamp};
use adjourn_http::{
    CatalogueEntry, Contract, ContractReader, Explainer, Pasted, PlainReader, READ_BYTES, ReadResponse, Reading,
    Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

use crate::answers;

/// Headers that the reader looks at, in several spellings.
const NAMES: [&str; 22] = [
    "retry-after",
    "retry-after-ms",
    "x-retry-after",
    "date",
    "age",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-rate-limit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-usage",
    "x-ratelimit-day-remaining",
    "x-ratelimit-day-reset",
    "x-business-use-case-usage",
    "content-type",
    "server",
    "x-rate-limit-problem",
];

/// Texts that mean something in one dialect or another.
fn telling() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec![
            "0", "1", "30", "-3", "1.5", "2814, 2", "1783714457", "1783714457000", "99999999999999999999",
            "Fri, 10 Jul 2026 20:15:47 GMT", "30, Fri, 10 Jul 2026 20:18:47 GMT", "2026-07-10T20:15:47Z", "1h2m3.5s",
            "\"default\";r=0;t=30", "limit=100, remaining=0, reset=5", "100;w=10", "text/html", "cloudflare", "day",
            "{\"1\":[{\"estimated_time_to_regain_access\":19}]}", "",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(prop_oneof![32_u8..127, 128_u8..=255, Just(9)], 0..40),
    ]
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec![
            r#"{"error":{"code":4,"message":"Rate limit reached, try again in 7m12s","retry_after":64.57}}"#,
            r#"[{"body":"{\"error\":{\"code\":4}}"}]"#,
            r#"{"responses":[{"status":429,"headers":{"Retry-After":"10"}}]}"#,
            r#"{"retry_after":1e308,"retryAfterMs":"5","reset_at":"2026-07-10T20:15:47Z"}"#,
            "<Error><Code>SlowDown</Code></Error>", "<html>error code: 1015</html>", "error code: 1015",
            "quota exceeded! Try again in 55 seconds.", "{\"error\":", "",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ]
}

fn headers(lines: &[(usize, Vec<u8>)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_static(NAMES[*name]);
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

/// Everybody in the catalogue, and nobody.
fn contracts() -> Vec<Option<Contract>> {
    let entries = CatalogueEntry::all().map(|entry| Some(answers::contract(entry.name())));
    entries.chain([None]).collect()
}

proptest! {
    // As many cases as PROPTEST_CASES says, by default 256.
    #[test]
    fn no_response_panics_any_reader_and_none_is_early(
        status in prop_oneof![Just(429_u16), Just(403), Just(503), Just(200), Just(400), 100_u16..1000],
        lines in prop::collection::vec((0..NAMES.len(), telling()), 0..8),
        body in bodies(),
        received in prop_oneof![Just(1_783_714_427_000_i64), 0_i64..4_000_000_000_000, any::<i64>()],
        which in any::<prop::sample::Index>(),
    ) {
        static CONTRACTS: std::sync::LazyLock<Vec<Option<Contract>>> = std::sync::LazyLock::new(contracts);
        let headers = headers(&lines);
        let received_at = Timestamp::from_unix_ms(received);
        let response = Response { status: StatusCode::from_u16(status).unwrap(), headers: &headers, body: &body, received_at };
        let reader = match which.get(&CONTRACTS) {
            Some(contract) => ContractReader::default().with_contract("p", contract.clone()),
            None => ContractReader::default(),
        };
        let reading = reader.read("p", &response);
        prop_assert!(reading.not_before().is_none_or(|at| at >= received_at), "a moment before the response");
        prop_assert!(!reading.scopes().is_empty());
        prop_assert!(reading.signal().observation().raw.as_ref().is_none_or(|raw| raw.len() <= 200));
        // A header that a rule says to pass over, or another place that it names, is its provider's own word.
        let plain = PlainReader.read("p", &response);
        let generic = ContractReader::default().read("p", &response);
        if let (Some(told), true) = (plain.not_before(), status == 429 && generic.is_limited()) {
            prop_assert!(generic.not_before().is_some_and(|at| at >= told), "{:?} is earlier than {told}", generic.not_before());
        }
    }
}

proptest! {
    #[test]
    fn no_pasted_text_panics_and_no_credential_comes_back(
        status in 0_u16..1000,
        lines in prop::collection::vec(("[A-Za-z-]{1,14}", "[ -~]{0,30}"), 0..6),
        ending in prop::sample::select(vec!["\n", "\r\n"]),
        body in bodies(),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let secret = "s3cr3tPassw0rdThatIsLong";
        let mut text = noise;
        text.extend_from_slice(format!("HTTP/1.1 {status:03} X{ending}Authorization: Bearer {secret}{ending}Retry-After: {secret}{ending}").as_bytes());
        for (name, value) in lines {
            text.extend_from_slice(format!("{name}: {value}{ending}").as_bytes());
        }
        text.extend_from_slice(ending.as_bytes());
        text.extend_from_slice(&body);
        let now = answers::at(answers::NOW);
        for text in [text.as_slice(), &text[..cut.index(text.len())]] {
            if let Ok(pasted) = Pasted::read(text, None, now) {
                let told = serde_json::to_string(&Explainer::default().explain(&pasted)).unwrap();
                prop_assert!(!told.contains(secret), "{told}");
            }
        }
    }

    #[test]
    fn no_json_panics(text in "[\\[\\]{}\":,a-z0-9. -]{0,80}", status in 100_u16..1000) {
        let now = answers::at(answers::NOW);
        for text in [text.clone(), format!("{{\"status\":{status},\"headers\":{{\"a\":\"b\"}},\"body\":{text}}}")] {
            if let Ok(pasted) = Pasted::read(text.as_bytes(), None, now) {
                std::hint::black_box(Explainer::default().explain(&pasted));
            }
        }
    }
}

/// Bodies that are as bad as they can be for a size, filled up with blanks.
fn hostile(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let fill = |part: &str| part.repeat(bytes / part.len());
    let list = format!("[{}1]", "1,".repeat(bytes / 2 - 2));
    let object = format!("{{{}\"z\":1}}", "\"retry_after\":\"x\",".repeat(bytes / 18 - 1));
    let shapes = [
        ("letters", fill("a")),
        ("words of limits", fill("rate limit per minute ")),
        ("digits", fill("9")),
        ("waits", fill("try again in 5 ")),
        ("spans", fill("wait 1m ")),
        ("brackets", fill("[")),
        ("a list", list),
        ("members", object),
        ("elements", fill("<a>")),
        ("pairs of elements", fill("<a></a>")),
        ("entities", fill("<a>&amp;")),
    ];
    shapes
        .into_iter()
        .map(|(what, text)| {
            let mut body = text.into_bytes();
            body.resize(bytes, b' ');
            (what, body)
        })
        .collect()
}

/// With two contracts whose rules look into bodies, and with none.
fn read_by_all(body: &[u8]) -> Vec<Reading> {
    static CONTRACTS: std::sync::LazyLock<[Option<Contract>; 3]> = std::sync::LazyLock::new(|| {
        [
            Some(answers::contract("monday.com")),
            Some(answers::contract("NetSuite")),
            None,
        ]
    });
    let by_each = CONTRACTS.iter().map(|contract| {
        answers::read(
            contract.clone(),
            429,
            &HeaderMap::new(),
            body,
            answers::at(answers::NOW),
        )
    });
    by_each.collect()
}

/// What such a body costs is counted by `cargo bench -p adjourn-instructions`. Here is why it cannot grow: what stands behind
/// the part that is read changes nothing, and each such part is followed by what would tell a day and seven seconds.
#[test]
fn what_stands_behind_the_part_of_a_body_that_is_read_is_not_looked_at() {
    const TELLING: &str = " <b>per day, try again in 7 s</b>";
    for (what, whole) in hostile(READ_BYTES) {
        let longer = [&whole[..], TELLING.as_bytes()].concat();
        assert_eq!(read_by_all(&longer), read_by_all(&whole), "{what}");
        // Words are looked for in the first 16 KB.
        let words = [&whole[..16 * 1024], TELLING.as_bytes()].concat();
        assert_eq!(read_by_all(&words), read_by_all(&whole[..16 * 1024]), "{what}");
    }
    for seen in [
        TELLING.to_string(),
        format!("{}{TELLING}", "a".repeat(16 * 1024 - TELLING.len())),
    ] {
        let readings = read_by_all(seen.as_bytes());
        assert_eq!(
            readings.last().map(|generic| generic.signal().limit_kind()),
            Some(Kind::Daily)
        );
        assert_eq!(
            readings.last().and_then(|generic| generic.signal().wait()),
            Some(Duration::from_secs(7))
        );
    }
}

/// Of JSON the first 2,000 members and elements are looked through, eight deep, and a table is not read at all.
#[test]
fn a_field_behind_the_members_that_are_looked_at_names_no_moment() {
    let wait = |body: String| {
        read_by_all(body.as_bytes())
            .pop()
            .and_then(|reading| reading.signal().wait())
    };
    let list = |before: usize| format!("[{}{{\"retry_after\":7}}]", "1,".repeat(before));
    let deep = |depth: usize| format!("{}{{\"retry_after\":7}}{}", "[".repeat(depth), "]".repeat(depth));
    for (body, expected) in [
        (list(0), true),
        (list(1990), true),
        (list(2000), false),
        (list(9000), false),
        (deep(8), true),
        (deep(9), false),
        (deep(200), false),
    ] {
        let begin: String = body.chars().take(20).collect();
        assert_eq!(wait(body), expected.then_some(Duration::from_secs(7)), "{begin}");
    }
}
