//! What a value means, by the unit that the provider is known to use, by its form, and by its size.

use adjourn_core::{Interpretation, Timestamp};
use chrono::{DateTime, NaiveDateTime};

use super::{
    clock::{Found, ProviderClock},
    number, retry_after, span,
};
use crate::Unit;

/// The moment that a reset names. The provider's own unit comes first; where it makes nonsense (more than 366 days off), the
/// number's size decides. None for what is no moment, and for a bare 0, which is a placeholder more often than a span.
pub(super) fn moment(text: &str, unit: Unit, clock: &ProviderClock) -> Option<Found> {
    let text = text.trim_ascii();
    let Some(thousandths) = number::scaled(text, 3) else {
        return form(text, unit, clock);
    };
    if thousandths == 0 && unit == Unit::Auto {
        return None;
    }
    // A number of ten digits and more that is a moment near now is one, whatever the documentation says that it counts.
    let large = thousandths >= 1_000_000_000_000 && matches!(unit, Unit::S | Unit::Ms | Unit::Min | Unit::H);
    let by_size = || by_size(text, thousandths, clock);
    if large {
        by_size().or_else(|| in_unit(text, thousandths, unit, clock))
    } else {
        in_unit(text, thousandths, unit, clock).or_else(by_size)
    }
}

/// A text that is no number: a date, or a span in words.
fn form(text: &str, unit: Unit, clock: &ProviderClock) -> Option<Found> {
    if let Some(found) = retry_after::date(text, clock) {
        return near(found, clock);
    }
    if let Some(told) = loose(text, unit == Unit::Date) {
        return near(clock.moment(told, Interpretation::Rfc3339), clock);
    }
    let ms = span::millis(text).filter(|&ms| clock.is_near_span(ms))?;
    Some(clock.span(ms, Interpretation::Duration))
}

fn near(found: Found, clock: &ProviderClock) -> Option<Found> {
    (found.at.since(clock.received_at) <= std::time::Duration::from_secs(366 * 86_400)).then_some(found)
}

fn in_unit(text: &str, thousandths: u64, unit: Unit, clock: &ProviderClock) -> Option<Found> {
    let times = |factor: u64| thousandths.checked_mul(factor);
    let span = |ms: Option<u64>| {
        let ms = ms.filter(|&ms| clock.is_near_span(ms))?;
        Some(clock.span(ms, Interpretation::Delay))
    };
    match unit {
        Unit::Auto | Unit::Date | Unit::Duration => None,
        Unit::S => span(Some(thousandths)),
        Unit::Ms => span(number::scaled(text, 0)),
        Unit::Min => span(times(60)),
        Unit::H => span(times(3600)),
        Unit::EpochS => epoch(thousandths, Interpretation::EpochS, clock),
        Unit::EpochMs => epoch(number::scaled(text, 0)?, Interpretation::EpochMs, clock),
        Unit::EpochUs => epoch(number::scaled(text, 0)?.div_ceil(1000), Interpretation::EpochUs, clock),
    }
}

fn epoch(ms: u64, interpretation: Interpretation, clock: &ProviderClock) -> Option<Found> {
    let told = Timestamp::from_unix_ms(i64::try_from(ms).ok()?);
    clock.is_near(told).then(|| clock.moment(told, interpretation))
}

/// Below 1e9 seconds from now, then epoch seconds, from 1e11 milliseconds, from 1e14 microseconds, from 1e17 nanoseconds.
fn by_size(text: &str, thousandths: u64, clock: &ProviderClock) -> Option<Found> {
    let whole = number::scaled(text, 0)?;
    match whole {
        0..1_000_000_000 => {
            let span = clock.span(thousandths, Interpretation::Delay);
            clock.is_near_span(thousandths).then_some(span)
        }
        1_000_000_000..100_000_000_000 => epoch(thousandths, Interpretation::EpochS, clock),
        100_000_000_000..100_000_000_000_000 => epoch(whole, Interpretation::EpochMs, clock),
        100_000_000_000_000..100_000_000_000_000_000 => epoch(whole.div_ceil(1000), Interpretation::EpochUs, clock),
        100_000_000_000_000_000.. => epoch(whole.div_ceil(1_000_000), Interpretation::EpochNs, clock),
    }
}

/// Dates that come close to RFC 3339: cut to the minute, with a blank, with `UTC` (behind an offset too, as Go prints it), with
/// an offset without its colon, with the month's name; and, where it is known that they are dates in UTC, without a zone.
fn loose(text: &str, utc: bool) -> Option<Timestamp> {
    let begins = text
        .get(..4)
        .is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
        && text.as_bytes().get(4) == Some(&b'-');
    if !begins || text.len() > 40 {
        return None;
    }
    let spaced = text.replacen(" at ", " ", 1);
    let text = spaced.as_str();
    const ZONED: [&str; 5] = [
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f%#z",
        "%Y-%m-%dT%H:%M%#z",
        "%Y-%m-%d %H:%M%#z",
        "%Y-%b-%d %H:%M:%S%.f%#z",
    ];
    const LOCAL: [&str; 4] = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    let bare = ["UTC", "GMT", "Z"]
        .iter()
        .find_map(|zone| text.strip_suffix(zone))
        .map(str::trim_ascii_end);
    let zoned = |text: &str| {
        let text = text.replace(" +", "+").replace(" -", "-");
        ZONED
            .iter()
            .find_map(|form| DateTime::parse_from_str(&text, form).ok())
            .map(|at| at.to_utc())
    };
    let local = |text: &str| {
        LOCAL
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
            .map(|at| at.and_utc())
    };
    let at = match bare {
        Some(bare) => local(bare).or_else(|| zoned(bare))?,
        None => zoned(text).or_else(|| if utc { local(text) } else { None })?,
    };
    let nanos = at.timestamp_nanos_opt()?;
    let ms = i64::try_from((i128::from(nanos) + 999_999).div_euclid(1_000_000)).ok()?;
    Some(Timestamp::from_unix_ms(ms))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn wait(text: &str, unit: Unit) -> Option<u64> {
        let received_at = Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
        let clock = ProviderClock::of(&HeaderMap::new(), received_at);
        let found = moment(text, unit, &clock)?;
        Some(u64::try_from(found.at.since(received_at).as_millis()).unwrap())
    }

    #[test]
    fn by_size() {
        for (text, expected) in [
            ("37", Some(37_000)),
            ("3600", Some(3_600_000)),
            ("0.4", Some(400)),
            ("344.0", Some(344_000)),
            ("1783714457", Some(30_000)),
            ("1783714457.5", Some(30_500)),
            ("1783714457000", Some(30_000)),
            ("1783714457000000", Some(30_000)),
            ("1783714457000000000", Some(30_000)),
            ("1783714397", Some(0)),
            // More than 366 days off, whatever it is counted in.
            ("999999999", None),
            ("1500000000", None),
            ("2000000000", None),
            ("123456789012345", None),
            ("99999999999999999999999999999999999999999", None),
            ("0", None),
            ("-3", None),
            ("+3", None),
            ("1e3", None),
            ("", None),
        ] {
            assert_eq!(wait(text, Unit::Auto), expected, "{text:?}");
        }
    }

    #[test]
    fn the_provider_s_unit_comes_first_unless_it_makes_nonsense() {
        for (text, unit, expected) in [
            ("600000", Unit::Ms, Some(600_000)),
            ("600000.1", Unit::Ms, Some(600_001)),
            ("19", Unit::Min, Some(1_140_000)),
            ("2", Unit::H, Some(7_200_000)),
            ("5", Unit::S, Some(5000)),
            ("0", Unit::S, Some(0)),
            ("1783714457", Unit::Ms, Some(30_000)),
            ("1783714457", Unit::S, Some(30_000)),
            ("1783714457000", Unit::EpochS, Some(30_000)),
            ("60", Unit::EpochS, Some(60_000)),
            ("1783714457000001", Unit::EpochUs, Some(30_001)),
        ] {
            assert_eq!(wait(text, unit), expected, "{text:?} in {unit:?}");
        }
    }

    #[test]
    fn dates_and_spans() {
        for (text, unit, expected) in [
            ("2026-07-10T20:14:32Z", Unit::Auto, Some(45_000)),
            ("2026-07-10T20:38:49.9856571Z", Unit::Auto, Some(1_502_986)),
            ("2026-07-10T22:14:32+02:00", Unit::Auto, Some(45_000)),
            ("2026-07-10T20:27Z", Unit::Auto, Some(793_000)),
            ("2026-07-10 20:14:32 UTC", Unit::Auto, Some(45_000)),
            ("2026-07-10 20:14:32 +0000", Unit::Auto, Some(45_000)),
            ("2026-07-10T22:14:32+0200", Unit::Auto, Some(45_000)),
            ("2026-07-10 22:14:32 +0200 UTC", Unit::Auto, Some(45_000)),
            ("2026-Jul-10 20:14:32+0000 UTC", Unit::Auto, Some(45_000)),
            (
                "Fri Jul 10 2026 22:14:32 GMT+0200 (Central European Summer Time)",
                Unit::Auto,
                Some(45_000),
            ),
            ("2026-07-10 at 20:15 UTC", Unit::Auto, Some(73_000)),
            ("2026-07-10 20:14:32", Unit::Date, Some(45_000)),
            ("2026-07-10 20:14:32", Unit::Auto, None),
            ("Fri, 10 Jul 2026 20:14:32 GMT", Unit::Auto, Some(45_000)),
            ("1h2m3.5s", Unit::Auto, Some(3_723_500)),
            ("9999d", Unit::Auto, None),
            ("2031-07-10T20:14:32Z", Unit::Auto, None),
            ("2026-07-10", Unit::Auto, None),
            ("soon", Unit::Auto, None),
        ] {
            assert_eq!(wait(text, unit), expected, "{text:?} in {unit:?}");
        }
    }
}
