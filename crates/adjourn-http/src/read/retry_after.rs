//! `Retry-After` and its kin: the moment that a refusal itself names.

use std::{borrow::Cow, time::Duration};

use adjourn_core::{Interpretation, Timestamp};
use http::{HeaderMap, HeaderName};

use super::{
    Ignored,
    clock::{Found, ProviderClock},
    http_date, number,
};

/// Not in any standard; sent by several providers beside `Retry-After`, in milliseconds.
const RETRY_AFTER_MS: &str = "retry-after-ms";
const RETRY_AFTER: &str = "retry-after";

/// How far before and after the response a bare number has to lie as a Unix time to be one: a day and 400 days. As a span
/// such a number would be half a century.
const EPOCH_BEFORE: Duration = Duration::from_secs(86_400);
const EPOCH_AFTER: Duration = Duration::from_secs(400 * 86_400);

/// Which headers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kin {
    /// `Retry-After`.
    pub(super) seconds: bool,
    /// `retry-after-ms`.
    pub(super) millis: bool,
    /// And those that end in the same words.
    pub(super) relatives: bool,
}

/// A moment with the header that named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment<'h> {
    pub(super) found: Found,
    pub(super) header: &'h str,
    pub(super) raw: Cow<'h, str>,
    pub(super) millis: bool,
}

/// The latest moment that the headers name: whoever obeys it obeys the others as well. What names none is `ignored`.
pub(super) fn named<'h>(
    headers: &'h HeaderMap,
    clock: &ProviderClock,
    kin: Kin,
    ignored: &mut Vec<Ignored>,
) -> Option<Moment<'h>> {
    let mut latest: Option<Moment<'h>> = None;
    for (name, value) in headers {
        let Some(millis) = counts_millis(name, kin) else {
            continue;
        };
        let raw = text(value.as_bytes());
        let found = if millis {
            let each = raw.split(',').filter_map(|token| number::scaled(token.trim_ascii(), 0));
            each.map(|ms| clock.span(ms, Interpretation::Delay))
                .max_by_key(|found| found.at)
        } else {
            tokens(&raw)
                .filter_map(|token| seconds_or_date(token, clock))
                .max_by_key(|found| found.at)
        };
        match found {
            None => ignored.push(Ignored::new(name.as_str(), &raw, "is no time that can be believed")),
            Some(found) if latest.as_ref().is_none_or(|latest| latest.found.at < found.at) => {
                if let Some(earlier) = latest.replace(Moment {
                    found,
                    header: name.as_str(),
                    raw,
                    millis,
                }) {
                    ignored.push(Ignored::new(
                        earlier.header,
                        &earlier.raw,
                        "names an earlier moment than another of its kind",
                    ));
                }
            }
            Some(_) => ignored.push(Ignored::new(
                name.as_str(),
                &raw,
                "names an earlier moment than another of its kind",
            )),
        }
    }
    latest
}

/// Whether a header is one of them, and whether it counts milliseconds.
fn counts_millis(name: &HeaderName, kin: Kin) -> Option<bool> {
    let name = name.as_str();
    let millis = match name {
        RETRY_AFTER => false,
        RETRY_AFTER_MS => true,
        _ if !kin.relatives || name.len() < 8 || !ends_like_retry(name) => return None,
        _ if name.ends_with("-retry-after") || name.ends_with("retry-after-seconds") || name.ends_with("-retry-in") => {
            false
        }
        _ if name.ends_with("-retry-after-ms") || name.ends_with("retry-after-milliseconds") => true,
        _ => return None,
    };
    (if millis { kin.millis } else { kin.seconds }).then_some(millis)
}

/// A look at the end of a name that rules nearly every header out at once.
fn ends_like_retry(name: &str) -> bool {
    ["after", "ms", "seconds", "in"].iter().any(|end| name.ends_with(end)) && name.contains("retry")
}

/// A header's value as text; bytes that are no UTF-8 are replaced.
pub(super) fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text.trim_ascii()),
        Err(_) => Cow::Owned(String::from_utf8_lossy(value).trim_ascii().to_string()),
    }
}

/// A date of HTTP, or one by RFC 3339.
pub(super) fn date(token: &str, clock: &ProviderClock) -> Option<Found> {
    let told = http_date::parse(token, clock.received_at)?;
    let by_rfc3339 = token.starts_with(|first: char| first.is_ascii_digit());
    let interpretation = if by_rfc3339 {
        Interpretation::Rfc3339
    } else {
        Interpretation::HttpDate
    };
    Some(clock.moment(told, interpretation))
}

/// Seconds from now or a date, as `Retry-After` has them; a number that is a Unix time near now is one.
pub(super) fn seconds_or_date(token: &str, clock: &ProviderClock) -> Option<Found> {
    let Some(ms) = number::scaled(token, 3) else {
        return date(token, clock);
    };
    if token.bytes().all(|byte| byte.is_ascii_digit())
        && let Some((told, interpretation)) = unix_time(ms, clock.now())
    {
        return Some(clock.moment(told, interpretation));
    }
    Some(clock.span(ms, Interpretation::Delay))
}

/// A number of seconds, here in milliseconds, that is a Unix time in seconds or in milliseconds near `now`.
fn unix_time(ms: u64, now: Timestamp) -> Option<(Timestamp, Interpretation)> {
    let near = |ms: u64| {
        let at = Timestamp::from_unix_ms(i64::try_from(ms).ok()?);
        (at >= now - EPOCH_BEFORE && at <= now + EPOCH_AFTER).then_some(at)
    };
    let seconds = near(ms).map(|at| (at, Interpretation::EpochS));
    seconds.or_else(|| near(ms / 1000).map(|at| (at, Interpretation::EpochMs)))
}

/// The members of a list; the comma after a date's weekday is no separator.
pub(super) fn tokens(raw: &str) -> impl Iterator<Item = &str> {
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
