//! Reads a provider's response: is it a refusal, which limit, whom does it concern, and what moment does it name?

mod body;
mod bucket;
mod classify;
mod clock;
mod contract_reader;
mod fields;
mod header_names;
mod http_date;
mod ietf;
mod number;
mod phrases;
mod plain;
mod reading;
mod recognise;
mod reset_headers;
mod retry_after;
mod scan;
mod span;
mod time;
mod value;
mod vendor;
mod word_set;
mod words;
mod xml;

use std::fmt::Debug;

use adjourn_core::{Interpretation, Signal, Source, Timestamp};
use http::{HeaderMap, StatusCode};

pub use classify::{Classified, Classify};
pub use contract_reader::ContractReader;
pub(crate) use contract_reader::read;
pub use reading::{Ignored, LimitState, Reading};

use clock::ProviderClock;

/// A response as a reader sees it.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The first part of its body, at most [`READ_BYTES`](crate::READ_BYTES), decompressed.
    pub body: &'a [u8],
    /// When its head was received, by our clock.
    pub received_at: Timestamp,
}

/// Decides whether a response is a refusal and reads the moment that it names.
///
/// Total: no status, header or body makes it panic. A moment that it gives is never earlier than the one that the
/// response names.
pub trait ReadResponse: Send + Sync + Debug + 'static {
    /// Reads one response of `provider`.
    fn read(&self, provider: &str, response: &Response<'_>) -> Reading;
}

/// The plainest reader: 429 is a refusal, and `Retry-After` or `retry-after-ms` names the moment, the later of them where
/// both do. [`ContractReader`] knows more.
///
/// ```
/// use adjourn_http::{PlainReader, ReadResponse, Response};
/// use http::{HeaderMap, HeaderValue, StatusCode};
///
/// let received_at = adjourn_core::Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("30"));
/// let response = Response { status: StatusCode::TOO_MANY_REQUESTS, headers: &headers, body: b"", received_at };
/// let reading = PlainReader.read("acme", &response);
/// assert!(reading.is_limited());
/// assert_eq!(reading.signal().wait().unwrap().as_secs(), 30);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainReader;

impl ReadResponse for PlainReader {
    fn read(&self, provider: &str, response: &Response<'_>) -> Reading {
        let clock = ProviderClock::of(response.headers, response.received_at);
        let kin = retry_after::Kin {
            seconds: true,
            millis: true,
            relatives: false,
        };
        let mut ignored = Vec::new();
        let signal = Signal::new(provider, response.received_at).status(response.status.as_u16());
        let title = reading::title(response.status);
        let signal = match retry_after::named(response.headers, &clock, kin, &mut ignored) {
            Some(moment) => time::Told::by_header(moment).onto(signal, &title),
            None => match ignored.first() {
                Some(first) => first.onto(signal, &title),
                None => signal.reason(&[&*title, ", without a time"].concat()),
            },
        };
        Reading::new(response.status == StatusCode::TOO_MANY_REQUESTS, signal).ignoring(ignored)
    }
}

/// A date as a `Date` header has it.
pub(crate) fn date(text: &str, now: Timestamp) -> Option<Timestamp> {
    http_date::parse(text, now)
}

impl Ignored {
    /// A signal that says what stood there instead of a time.
    fn onto(&self, signal: Signal, title: &str) -> Signal {
        signal
            .read_by(Source::None, self.field(), self.raw(), Interpretation::Invalid)
            .reason(&[title, "; its ", self.field(), " is no time: ", self.raw()].concat())
    }
}

#[cfg(test)]
mod tests;
