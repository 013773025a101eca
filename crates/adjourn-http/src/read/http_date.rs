//! The date forms of HTTP (RFC 9110, section 5.6.7), and the near misses that providers send.

use std::time::UNIX_EPOCH;

use adjourn_core::Timestamp;
use chrono::{DateTime, Datelike};

/// Reads the preferred form, the two obsolete ones, and what differs from them in case, weekday or zone alone; also RFC
/// 3339. What begins like a number is never a date unless all of it is RFC 3339.
///
/// `now` settles the century of a two-digit year.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return Timestamp::parse(text);
    }
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    // A dash stands in the one form whose year has two digits, which needs to know the century.
    let two_digits = if text.contains('-') { rfc_850(text, now) } else { None };
    two_digits.or_else(|| standard(text)).or_else(|| loose(text))
}

/// Whether a text is a weekday's name, whole or in three letters.
pub(super) fn is_weekday(text: &str) -> bool {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let text = text.to_ascii_lowercase();
    DAYS.iter()
        .any(|day| text == *day || Some(text.as_str()) == day.get(..3))
}

fn standard(text: &str) -> Option<Timestamp> {
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(at.as_millis()).ok().map(Timestamp::from_unix_ms)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`: a year that would lie more than 50 years ahead is of the century before.
fn rfc_850(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (day, rest) = text.split_once(',')?;
    let (date, clock) = rest.trim_ascii().split_once(' ')?;
    let [dom, month, year] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    if !is_weekday(day) || year.len() != 2 {
        return None;
    }
    let this_year = DateTime::from_timestamp_millis(now.as_unix_ms())?.year();
    let year = year.parse::<u16>().ok().map(i32::from)?;
    let ahead = this_year - this_year.rem_euclid(100) + 100 + year;
    let year = (0..3)
        .map(|centuries| ahead - 100 * centuries)
        .find(|year| *year <= this_year + 50)?;
    rfc_2822(&format!("{dom} {month} {year} {clock}"))
}

fn loose(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.split_once(',')?;
    if is_weekday(day) {
        rfc_2822(rest.trim_ascii())
    } else {
        None
    }
}

fn rfc_2822(text: &str) -> Option<Timestamp> {
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some(Timestamp::from_unix_ms(at.timestamp_millis()))
}
