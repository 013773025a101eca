//! Successes that say nothing of limits: most answers are such ones, and they are told before anything is read.

use super::{Response, classify};
use crate::Contract;

/// Whether nobody would find anything in a response: it is a success, the contract has neither a rule for its status nor headers of
/// its own, and no header has a name that anything is read from.
pub(super) fn says_nothing(contract: Option<&Contract>, response: &Response<'_>) -> bool {
    let status = response.status;
    let by_contract = |contract: &Contract| {
        let mut rules = contract.classify.iter();
        !contract.headers.is_empty() || rules.any(|rule| classify::has_status(rule, status.as_u16()))
    };
    status.is_success()
        && !contract.is_some_and(by_contract)
        && !response.headers.keys().any(|name| may_tell(name.as_str()))
}

/// Whether a header may tell of a limit, or of a moment to come back at: every name of one has such a word.
fn may_tell(name: &str) -> bool {
    let mut words = name.as_bytes().windows(5);
    words.any(|word| matches!(word, b"limit" | b"quota" | b"throt" | b"retry"))
}

#[cfg(test)]
mod tests {
    use adjourn_core::Timestamp;
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
    use proptest::prelude::*;

    use super::*;
    use crate::read::contract_reader::{read, read_whole};

    const NOW: Timestamp = Timestamp::from_unix_ms(1_783_714_427_000);

    fn names() -> impl Strategy<Value = String> {
        let word = prop::sample::select(vec![
            "x",
            "limit",
            "ratelimit",
            "rate",
            "quota",
            "throttle",
            "retry",
            "after",
            "ms",
            "seconds",
            "in",
            "reset",
            "resets",
            "at",
            "remaining",
            "used",
            "wait",
            "next",
            "policy",
            "date",
            "age",
            "content",
            "type",
            "request",
            "id",
            "backoff",
            "day",
        ]);
        prop_oneof![
            4 => prop::collection::vec(word, 1..5).prop_map(|words| words.join("-")),
            1 => Just("date".to_string()),
            1 => "[a-z][a-z0-9_-]{0,24}",
        ]
    }

    fn values() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "0",
            "1",
            "30",
            "1783714487",
            "\"default\";r=0;t=30",
            "limit=10, remaining=0, reset=5",
            "Fri, 10 Jul 2026 20:13:45 GMT",
            "2026-07-10T20:14:47Z",
            "no number",
            "",
        ])
    }

    proptest! {
        #[test]
        fn what_says_nothing_is_read_as_the_whole_reader_reads_it(
            lines in prop::collection::vec((names(), values()), 0..6),
            status in prop::sample::select(vec![200_u16, 201, 202, 204, 206, 299, 304, 400, 503]),
            body in prop::sample::select(vec!["", "{\"ok\":false}", "{\"retry_after\":30}", "slow down"]),
            rules in prop::sample::select(vec![
                "",
                "[[classify]]\nstatus = [200]\nfields = { \"/ok\" = \"false\" }\nkind = \"short\"\nexecuted = \"none\"",
                "[[classify]]\nstatus = [503]\nkind = \"short\"",
                "[[headers]]\nremaining = \"x-used\"\nreset = \"x-reset\"",
            ]),
        ) {
            let headers: HeaderMap = lines
                .iter()
                .filter_map(|(name, value)| {
                    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
                })
                .collect();
            let response = Response {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                body: body.as_bytes(),
                received_at: NOW,
            };
            let contract = Contract::parse(rules).unwrap();
            for contract in [None, Some(&contract)] {
                prop_assert_eq!(read("acme", contract, None, &response), read_whole("acme", contract, None, &response));
            }
        }
    }

    #[test]
    fn a_success_of_every_day_says_nothing_and_others_may() {
        let says = |status: u16, name: &'static str, contract: Option<&Contract>| {
            let headers = HeaderMap::from_iter([
                (
                    http::header::DATE,
                    HeaderValue::from_static("Fri, 10 Jul 2026 20:13:45 GMT"),
                ),
                (http::header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
                (HeaderName::from_static(name), HeaderValue::from_static("0")),
            ]);
            let response = Response {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                body: b"",
                received_at: NOW,
            };
            !says_nothing(contract, &response)
        };
        let of_200 = Contract::parse(
            "[[classify]]\nstatus = [200]\nfields = { \"/ok\" = \"false\" }\nkind = \"short\"\nexecuted = \"none\"",
        )
        .unwrap();
        let of_503 = Contract::parse("[[classify]]\nstatus = [503]\nkind = \"short\"").unwrap();
        let listed = Contract::parse("[[headers]]\nremaining = \"x-left\"").unwrap();
        assert!(!says(200, "x-request-id", None));
        assert!(!says(201, "server", Some(&of_503)));
        assert!(says(200, "x-request-id", Some(&of_200)));
        assert!(says(200, "x-request-id", Some(&listed)));
        assert!(says(429, "x-request-id", None));
        assert!(says(503, "x-request-id", None));
        for name in [
            "retry-after",
            "ratelimit",
            "x-ratelimit-remaining",
            "x-quota-used",
            "throttle-reset",
        ] {
            assert!(says(200, name, None), "{name}");
        }
    }
}
