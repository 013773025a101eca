//! A response that somebody pasted: `curl -i`, JSON, or JSON Lines.

use std::{borrow::Cow, fmt};

use adjourn_core::Timestamp;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::curl;

/// A response as it was pasted.
#[derive(Clone, Debug)]
pub struct Pasted {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) received_at: Timestamp,
}

/// What is wrong with what was pasted; nothing of it is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedError(pub(super) String);

impl fmt::Display for PastedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PastedError {}

/// A line of JSON Lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PastedLine {
    /// Its number, from 1.
    pub number: usize,
    /// The response, or what is wrong with it.
    pub response: Result<Pasted, PastedError>,
}

#[derive(Deserialize)]
struct Json<'a> {
    status: Option<u16>,
    headers: Option<Map<String, Value>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(alias = "receivedAt")]
    received_at: Option<Cow<'a, str>>,
}

impl Pasted {
    /// Reads one response, `curl -i` text or a JSON object.
    ///
    /// It counts as received at `received_at`; without that, when it says itself (`received_at` in JSON, otherwise its `Date`
    /// header unless it comes out of a cache), and otherwise `now`.
    ///
    /// # Errors
    /// In words that repeat nothing of the text.
    pub fn read(text: &[u8], received_at: Option<Timestamp>, now: Timestamp) -> Result<Self, PastedError> {
        let start = text.trim_ascii_start();
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        if start.first() == Some(&b'{') {
            return Self::read_json(start, received_at, now);
        }
        let (status, headers, body) = curl::read(start)?;
        Ok(Self {
            received_at: received_at.or_else(|| dated(&headers, now)).unwrap_or(now),
            status,
            headers,
            body: bounded(body).to_vec(),
        })
    }

    /// Reads a response as JSON.
    fn read_json(text: &[u8], received_at: Option<Timestamp>, now: Timestamp) -> Result<Self, PastedError> {
        let json: Json<'_> = serde_json::from_slice(text).map_err(|error| PastedError(says(&error)))?;
        let status = json
            .status
            .ok_or_else(|| PastedError("status: is missing; allowed: a number from 100 to 999".to_string()))?;
        let status = StatusCode::from_u16(status)
            .map_err(|_| PastedError(format!("status: found {status}; allowed: a number from 100 to 999")))?;
        let headers = headers(json.headers.unwrap_or_default())?;
        let stated = match json.received_at.as_deref() {
            None => None,
            Some(text) => Some(Timestamp::parse(text).ok_or_else(|| {
                PastedError("received_at: is no time; allowed: RFC 3339, \"2026-07-10T20:13:47Z\"".to_string())
            })?),
        };
        let raw = json.body.map(RawValue::get).unwrap_or("null");
        let body = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<String>(raw)
                .map(String::into_bytes)
                .unwrap_or_default(),
            Some(b'n') | None => Vec::new(),
            Some(_) => bounded(raw.as_bytes()).to_vec(),
        };
        Ok(Self {
            received_at: received_at.or(stated).or_else(|| dated(&headers, now)).unwrap_or(now),
            status,
            headers,
            body,
        })
    }

    /// Whether a text is JSON Lines: more than one line, each a JSON object.
    #[must_use]
    pub fn is_json_lines(text: &[u8]) -> bool {
        let mut lines = text
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty());
        let whole = |line: &[u8]| line.first() == Some(&b'{') && line.last() == Some(&b'}');
        matches!((lines.next(), lines.next()), (Some(first), Some(second)) if whole(first) && whole(second))
    }

    /// Each response of JSON Lines, in order; blank lines are passed over.
    pub fn read_lines(
        text: &[u8],
        received_at: Option<Timestamp>,
        now: Timestamp,
    ) -> impl Iterator<Item = PastedLine> + '_ {
        let lines = text.split(|&byte| byte == b'\n').enumerate();
        lines
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(move |(index, line)| PastedLine {
                number: index + 1,
                response: Self::read_json(line.trim_ascii(), received_at, now),
            })
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// When it counts as received.
    #[must_use]
    pub fn received_at(&self) -> Timestamp {
        self.received_at
    }
}

/// The part of a body that is read.
fn bounded(body: &[u8]) -> &[u8] {
    body.get(..crate::READ_BYTES).unwrap_or(body)
}

/// When a response says that it was made. One out of a cache was made earlier than it was received.
fn dated(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    if headers.contains_key(header::AGE) {
        return None;
    }
    let date = headers.get(header::DATE)?.to_str().ok()?;
    crate::read::date(date.trim(), now)
}

fn headers(map: Map<String, Value>) -> Result<HeaderMap, PastedError> {
    let mut headers = HeaderMap::with_capacity(map.len());
    for (name, value) in map {
        let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) else {
            return Err(PastedError(
                "headers: found a name that is no header's name".to_string(),
            ));
        };
        let refused = || {
            PastedError(format!(
                "headers.{name}: allowed: a text, or a list of texts, without line breaks"
            ))
        };
        let values = match value {
            Value::Array(values) => values,
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                vec![value]
            }
        };
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return Err(refused()),
            };
            let value = HeaderValue::from_maybe_shared(text.into_bytes()).map_err(|_| refused())?;
            headers.append(&name, value);
        }
    }
    Ok(headers)
}

/// What is wrong with JSON, without what stood there.
fn says(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "is not JSON",
        serde_json::error::Category::Data => "is not a response",
    };
    format!(
        "{what} (line {}, column {}); allowed: {{\"status\":429,\"headers\":{{\"Retry-After\":\"3\"}},\"body\":...,\"received_at\":\"2026-07-10T20:13:47Z\"}}",
        error.line(),
        error.column()
    )
}
