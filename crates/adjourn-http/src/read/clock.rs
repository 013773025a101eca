//! The provider's clock, and moments by ours.

use std::time::Duration;

use adjourn_core::{Interpretation, Timestamp};
use http::{HeaderMap, header};

use super::http_date;

/// The longest span that is believed: what a 64-bit count of nanoseconds holds, some 292 years.
const LONGEST_SPAN_MS: u64 = i64::MAX.unsigned_abs() / 1_000_000;
/// A date is told in whole seconds.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// Without a usable `Date`, two clocks that nobody compared are involved; synchronised ones are seldom further apart.
const TWO_CLOCKS: Duration = Duration::from_secs(5);
/// Windows and resets are shorter than a year; a number that means more was meant otherwise.
const FAR: Duration = Duration::from_secs(366 * 86_400);

/// A moment by our clock, never before the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) at: Timestamp,
    pub(super) interpretation: Interpretation,
    pub(super) uncertainty: Duration,
    pub(super) saturated: bool,
}

/// Whether a response comes out of a cache: its `Age` says that it has aged, or says nothing that can be read.
pub(super) fn is_cached(headers: &HeaderMap) -> bool {
    headers
        .get(header::AGE)
        .is_some_and(|age| age.as_bytes().trim_ascii() != b"0")
}

/// What the provider's clock showed when it answered, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProviderClock {
    pub(super) received_at: Timestamp,
    date: Option<Timestamp>,
}

impl ProviderClock {
    pub(super) fn of(headers: &HeaderMap, received_at: Timestamp) -> Self {
        // A response out of a cache was dated when it was made, not when it was sent.
        let date = headers
            .get(header::DATE)
            .filter(|_| !is_cached(headers))
            .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
            .filter(|text| text.is_ascii());
        Self {
            received_at,
            date: date.and_then(|text| http_date::parse(text.trim_ascii(), received_at)),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.date.unwrap_or(self.received_at)
    }

    pub(super) fn span(&self, ms: u64, interpretation: Interpretation) -> Found {
        let saturated = ms > LONGEST_SPAN_MS;
        let at = if saturated {
            Timestamp::MAX
        } else {
            self.received_at + Duration::from_millis(ms)
        };
        Found {
            at,
            interpretation,
            uncertainty: Duration::ZERO,
            saturated: saturated || at == Timestamp::MAX,
        }
    }

    /// A moment of the provider's clock, by ours. The provider's `Date` is cut to whole seconds, so the wait comes out up to
    /// a second long and never short.
    pub(super) fn moment(&self, told: Timestamp, interpretation: Interpretation) -> Found {
        let (at, uncertainty) = match self.date {
            Some(date) => (self.received_at + told.since(date), WHOLE_SECOND),
            None => (told.max(self.received_at), TWO_CLOCKS),
        };
        Found {
            at,
            interpretation,
            uncertainty,
            saturated: at == Timestamp::MAX,
        }
    }

    /// Whether a moment of the provider's clock lies within a year of its answer, before or after.
    pub(super) fn is_near(&self, told: Timestamp) -> bool {
        told <= self.now() + FAR && told >= self.now() - FAR
    }

    /// Whether a span is one that a reset may name.
    pub(super) fn is_near_span(&self, ms: u64) -> bool {
        u128::from(ms) <= FAR.as_millis()
    }
}
