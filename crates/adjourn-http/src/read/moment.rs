//! `Retry-After` and `retry-after-ms`: the moment that a response names.

use std::time::Duration;

use adjourn_core::{Interpretation, Timestamp};
use http::{HeaderMap, header};

use super::http_date;

/// Not in any standard; sent by several providers beside `Retry-After`, in milliseconds.
const RETRY_AFTER_MS: &str = "retry-after-ms";
const RETRY_AFTER: &str = "retry-after";

/// The longest span that is believed: what a 64-bit count of nanoseconds holds, some 292 years.
const LONGEST_SPAN_MS: u64 = i64::MAX.unsigned_abs() / 1_000_000;

/// How far before and after the response a bare number has to lie as a Unix time to be one: a day and 400 days. As a span
/// such a number would be half a century.
const EPOCH_BEFORE: Duration = Duration::from_secs(86_400);
const EPOCH_AFTER: Duration = Duration::from_secs(400 * 86_400);

/// A date is told in whole seconds.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// Without a usable `Date`, two clocks that nobody compared are involved; synchronised ones are seldom further apart.
const TWO_CLOCKS: Duration = Duration::from_secs(5);

/// A moment with how it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// By our clock, never before the response.
    pub(super) at: Timestamp,
    pub(super) header: &'static str,
    pub(super) raw: String,
    pub(super) interpretation: Interpretation,
    pub(super) uncertainty: Duration,
    pub(super) saturated: bool,
}

/// The latest moment that the response names: whoever obeys it obeys the others as well.
pub(super) fn named(headers: &HeaderMap, received_at: Timestamp) -> Option<Moment> {
    let clock = ProviderClock::of(headers, received_at);
    let delays = values(headers, RETRY_AFTER).flat_map(|raw| {
        tokens(&raw)
            .filter_map(|token| seconds_or_date(token, &clock))
            .map(|found| (RETRY_AFTER, raw.clone(), found))
            .collect::<Vec<_>>()
    });
    let millis = values(headers, RETRY_AFTER_MS).flat_map(|raw| {
        let each = raw
            .split(',')
            .filter_map(|token| number(token.trim_ascii(), 0).map(|ms| clock.span(ms)));
        each.map(|found| (RETRY_AFTER_MS, raw.clone(), found))
            .collect::<Vec<_>>()
    });
    let (header, raw, found) = delays.chain(millis).max_by_key(|(.., found)| found.at)?;
    let Found {
        at,
        interpretation,
        uncertainty,
        saturated,
    } = found;
    Some(Moment {
        at,
        header,
        raw,
        interpretation,
        uncertainty,
        saturated,
    })
}

/// The first of the two headers that stands in the response, whatever it says.
pub(super) fn raw(headers: &HeaderMap) -> Option<(&'static str, String)> {
    [RETRY_AFTER, RETRY_AFTER_MS]
        .into_iter()
        .find_map(|name| values(headers, name).next().map(|raw| (name, raw)))
}

fn values(headers: &HeaderMap, name: &'static str) -> impl Iterator<Item = String> {
    headers
        .get_all(name)
        .into_iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim_ascii().to_string())
}

struct Found {
    at: Timestamp,
    interpretation: Interpretation,
    uncertainty: Duration,
    saturated: bool,
}

/// What the provider's clock showed when it answered, as far as that is known.
struct ProviderClock {
    received_at: Timestamp,
    date: Option<Timestamp>,
}

impl ProviderClock {
    fn of(headers: &HeaderMap, received_at: Timestamp) -> Self {
        // A response out of a cache was dated when it was made, not when it was sent.
        let fresh = !headers.contains_key(header::AGE);
        let date = headers
            .get(header::DATE)
            .filter(|_| fresh)
            .and_then(|value| value.to_str().ok());
        Self {
            received_at,
            date: date.and_then(|text| http_date::parse(text.trim_ascii(), received_at)),
        }
    }

    fn now(&self) -> Timestamp {
        self.date.unwrap_or(self.received_at)
    }

    fn span(&self, ms: u64) -> Found {
        let saturated = ms > LONGEST_SPAN_MS;
        let at = if saturated {
            Timestamp::MAX
        } else {
            self.received_at + Duration::from_millis(ms)
        };
        Found {
            at,
            interpretation: Interpretation::Delay,
            uncertainty: Duration::ZERO,
            saturated: saturated || at == Timestamp::MAX,
        }
    }

    /// A moment of the provider's clock, by ours. The provider's `Date` is cut to whole seconds, so the wait comes out up to
    /// a second long and never short.
    fn moment(&self, told: Timestamp, interpretation: Interpretation) -> Found {
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
}

fn seconds_or_date(token: &str, clock: &ProviderClock) -> Option<Found> {
    let Some(ms) = number(token, 3) else {
        return http_date::parse(token, clock.received_at).map(|told| clock.moment(told, Interpretation::HttpDate));
    };
    if token.bytes().all(|byte| byte.is_ascii_digit())
        && let Some((told, interpretation)) = unix_time(ms, clock.now())
    {
        return Some(clock.moment(told, interpretation));
    }
    Some(clock.span(ms))
}

/// A whole number of seconds, here in milliseconds, that is a Unix time in seconds or in milliseconds near `now`.
fn unix_time(ms: u64, now: Timestamp) -> Option<(Timestamp, Interpretation)> {
    let near = |ms: u64| {
        let at = Timestamp::from_unix_ms(i64::try_from(ms).ok()?);
        (at >= now - EPOCH_BEFORE && at <= now + EPOCH_AFTER).then_some(at)
    };
    let seconds = near(ms).map(|at| (at, Interpretation::EpochS));
    seconds.or_else(|| near(ms / 1000).map(|at| (at, Interpretation::EpochMs)))
}

/// A decimal number times ten to the power of `scale`, a rest rounded up; digits before and after the point, nothing else:
/// no sign, no exponent, no `NaN`. One beyond 64 bits is the largest.
fn number(token: &str, scale: usize) -> Option<u64> {
    let (whole, fraction) = match token.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (token, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return None;
    }
    let fraction = fraction.unwrap_or_default();
    let scaled = whole
        .bytes()
        .chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(scale));
    let value = scaled.fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    let rest = fraction.bytes().skip(scale).any(|digit| digit != b'0');
    Some(value.saturating_add(u64::from(rest)))
}

/// The members of a list; the comma after a date's weekday is no separator.
fn tokens(raw: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(raw);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut end = text.find(',');
        if let Some(comma) = end
            && text
                .get(..comma)
                .is_some_and(|before| http_date::is_weekday(before.trim_ascii()))
        {
            end = text
                .get(comma + 1..)
                .and_then(|after| after.find(','))
                .map(|next| comma + 1 + next);
        }
        rest = end.and_then(|end| text.get(end + 1..));
        Some(text.get(..end.unwrap_or(text.len())).unwrap_or_default().trim_ascii())
    })
}
