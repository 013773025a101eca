//! Reads a provider's response: is it a refusal, and what moment does it name?

mod http_date;
mod moment;

use std::fmt::Debug;

use adjourn_core::{Interpretation, Observation, Signal, Source, Timestamp};
use http::{HeaderMap, StatusCode};

use moment::Moment;

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

/// What a response says about limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The provider refused: "not now".
    Limited(Signal),
    /// It is no refusal of that kind; it may still ask for a pause, as a 503 does.
    Unlimited {
        /// The moment before which it asks for no further call.
        not_before: Option<Timestamp>,
    },
}

/// Decides whether a response is a refusal and reads the moment that it names.
///
/// Total: no status, header or body makes it panic. A moment that it gives is never earlier than the one that the
/// response names.
pub trait ReadResponse: Send + Sync + Debug + 'static {
    /// Reads one response of `provider`.
    fn read(&self, provider: &str, response: &Response<'_>) -> Reading;
}

/// The reader for a provider of which nothing is known: 429 is a refusal, and `Retry-After` or `retry-after-ms` names the
/// moment, the later of them where both do.
///
/// ```
/// use adjourn_http::{PlainReader, ReadResponse, Reading, Response};
/// use http::{HeaderMap, HeaderValue, StatusCode};
///
/// let received_at = adjourn_core::Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("30"));
/// let response = Response { status: StatusCode::TOO_MANY_REQUESTS, headers: &headers, body: b"", received_at };
/// let Reading::Limited(signal) = PlainReader.read("acme", &response) else { panic!("429 is a refusal") };
/// assert_eq!(signal.wait().unwrap().as_secs(), 30);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainReader;

impl ReadResponse for PlainReader {
    fn read(&self, provider: &str, response: &Response<'_>) -> Reading {
        let moment = moment::named(response.headers, response.received_at);
        if response.status != StatusCode::TOO_MANY_REQUESTS {
            return Reading::Unlimited {
                not_before: moment.map(|moment| moment.at),
            };
        }
        let signal = Signal::new(provider, response.received_at).status(response.status.as_u16());
        Reading::Limited(match moment {
            Some(moment) => with_moment(signal, &moment),
            None => match moment::raw(response.headers) {
                Some((header, raw)) => signal
                    .read_by(Source::None, header, &raw, Interpretation::Invalid)
                    .reason(&format!(
                        "429 Too Many Requests; its {header} is no time: {}",
                        shown(&raw)
                    )),
                None => signal.reason("429 Too Many Requests, without a time"),
            },
        })
    }
}

fn with_moment(signal: Signal, moment: &Moment) -> Signal {
    let Moment {
        at,
        header,
        raw,
        interpretation,
        uncertainty,
        saturated,
    } = moment;
    let signal = signal
        .read_by(Source::Parser, header, raw, *interpretation)
        .clock_uncertainty(*uncertainty)
        .retry_at(*at)
        .reason(&format!("429 Too Many Requests; {header}: {}", shown(raw)));
    if *saturated { signal.saturated() } else { signal }
}

/// As much of a header's value as a reason repeats.
fn shown(raw: &str) -> &str {
    raw.get(..raw.floor_char_boundary(Observation::MAX_RAW_BYTES))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
