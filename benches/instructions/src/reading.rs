//! Responses whose reading alone is counted, by the reader of a provider of which nothing is known.

use adjourn_core::Timestamp;
use adjourn_http::{ContractReader, ReadResponse as _, Reading, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// 2026-07-10T20:13:47Z.
const NOW: Timestamp = Timestamp::from_unix_ms(1_783_714_427_000);

/// A response with its reader.
#[derive(Debug)]
pub struct Answer {
    reader: ContractReader,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    /// A 429 with these headers and this body.
    #[must_use]
    pub fn of(headers: &[(&'static str, &'static str)], body: Vec<u8>) -> Self {
        let headers = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        Self {
            reader: ContractReader::default(),
            headers: headers.collect(),
            body,
        }
    }

    /// A JSON error of about two kilobytes, as APIs send them, whose `retry_after` decides.
    #[must_use]
    pub fn json_error() -> Self {
        let details: Vec<String> = (0..10)
            .map(|n| {
                format!(
                    r#"{{"domain":"usage","reason":"limit_{n}","message":"The limit of this resource was reached by the account, see the documentation.","location":"/resources/{n}/items"}}"#
                )
            })
            .collect();
        let body = format!(
            r#"{{"error":{{"code":429,"status":"TOO_MANY_REQUESTS","message":"Too many requests","details":[{}],"retry_after":12}}}}"#,
            details.join(",")
        );
        Self::of(&[("content-type", "application/json")], body.into_bytes())
    }

    /// Reads it.
    #[must_use]
    pub fn read(&self) -> Reading {
        let response = Response {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: &self.headers,
            body: &self.body,
            received_at: NOW,
        };
        self.reader.read("acme", &response)
    }
}
