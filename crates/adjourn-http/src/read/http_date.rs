//! The date forms of HTTP (RFC 9110, section 5.6.7), and the near misses that providers send.

use std::time::UNIX_EPOCH;

use adjourn_core::Timestamp;
use chrono::{DateTime, Datelike, NaiveDate};

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
    if let Some(at) = preferred(text) {
        return Some(at);
    }
    // A dash stands in the one form whose year has two digits, which needs to know the century.
    let two_digits = if text.contains('-') { rfc_850(text, now) } else { None };
    two_digits
        .or_else(|| standard(text))
        .or_else(|| loose(text))
        .or_else(|| javascript(text))
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

/// `Sun, 06 Nov 1994 08:49:37 GMT`, which nearly every date is, read at a glance. What differs is left to the other forms.
fn preferred(text: &str) -> Option<Timestamp> {
    let form: &[u8; 29] = text.as_bytes().try_into().ok()?;
    #[rustfmt::skip]
    let [
        w1, w2, w3, b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ',
        h1, h2, b':', n1, n2, b':', s1, s2, b' ', b'G', b'M', b'T',
    ] = *form else {
        return None;
    };
    let month = match &[m1, m2, m3] {
        b"Jan" => 1,
        b"Feb" => 2,
        b"Mar" => 3,
        b"Apr" => 4,
        b"May" => 5,
        b"Jun" => 6,
        b"Jul" => 7,
        b"Aug" => 8,
        b"Sep" => 9,
        b"Oct" => 10,
        b"Nov" => 11,
        b"Dec" => 12,
        _ => return None,
    };
    // Whether it is that day's own name is no matter: the other forms forgive it too.
    if !matches!(
        &[w1, w2, w3],
        b"Mon" | b"Tue" | b"Wed" | b"Thu" | b"Fri" | b"Sat" | b"Sun"
    ) {
        return None;
    }
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let two = |tens, ones| Some(digit(tens)? * 10 + digit(ones)?);
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, two(d1, d2)?)?;
    let at = day.and_hms_opt(two(h1, h2)?, two(n1, n2)?, two(s1, s2)?)?;
    (year >= 1970).then(|| Timestamp::from_unix_ms(at.and_utc().timestamp_millis()))
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
    if !is_weekday(day) {
        return None;
    }
    let rest = rest.trim_ascii();
    // That standard knows the zone by its older name alone.
    match rest.strip_suffix("UTC") {
        Some(bare) => rfc_2822(&[bare, "GMT"].concat()),
        None => rfc_2822(rest),
    }
}

/// `Fri Jul 10 2026 22:13:49 GMT+0200 (Central European Summer Time)`, which a date of JavaScript is as text.
fn javascript(text: &str) -> Option<Timestamp> {
    let (text, _) = text.split_once(" (").unwrap_or((text, ""));
    let at = DateTime::parse_from_str(text, "%a %b %d %Y %H:%M:%S GMT%z").ok()?;
    Some(Timestamp::from_unix_ms(at.timestamp_millis()))
}

fn rfc_2822(text: &str) -> Option<Timestamp> {
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some(Timestamp::from_unix_ms(at.timestamp_millis()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
    }

    #[test]
    fn the_preferred_form_and_what_differs_from_it() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some("1994-11-06T08:49:37Z")),
            ("Mon, 29 Feb 2016 00:00:00 GMT", Some("2016-02-29T00:00:00Z")),
            // Another day's name.
            ("Mon, 06 Nov 1994 08:49:37 GMT", Some("1994-11-06T08:49:37Z")),
            ("Mon, 29 Feb 2026 00:00:00 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 06 Nov 1994 08:49:60 GMT", None),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("Any, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 nov 1994 08:49:37 GMT", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, +6 Nov 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(preferred(text), expected.and_then(Timestamp::parse), "{text}");
        }
    }

    #[test]
    fn forms_that_are_no_http_date() {
        for (text, expected) in [
            ("Fri, 10 Jul 2026 21:10:00 UTC", Some("2026-07-10T21:10:00Z")),
            ("Fri, 10 Jul 2026 23:10:00 +0200", Some("2026-07-10T21:10:00Z")),
            (
                "Fri Jul 10 2026 23:10:00 GMT+0200 (Central European Summer Time)",
                Some("2026-07-10T21:10:00Z"),
            ),
            ("Fri Jul 10 2026 21:10:00 GMT+0000", Some("2026-07-10T21:10:00Z")),
            ("Fri Jul 10 2026 21:10:00", None),
            ("Fri, 10 Jul 2026 21:10:00 XUTC", None),
        ] {
            assert_eq!(parse(text, now()), expected.and_then(Timestamp::parse), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_at_a_glance_is_what_the_other_forms_read(
            day in prop::sample::select(vec!["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "mon"]),
            dom in 0_u8..33,
            month in prop::sample::select(vec!["Jan", "Feb", "Mar", "Apr", "Jun", "Aug", "Sep", "Nov", "Dec", "Foo"]),
            year in prop_oneof![1960_u16..2110, 9990_u16..10_000],
            (hour, minute, second) in (0_u8..26, 0_u8..62, 0_u8..62),
        ) {
            let text = format!("{day}, {dom:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
            if let Some(at) = preferred(&text) {
                prop_assert_eq!(Some(at), standard(&text).or_else(|| loose(&text)));
            }
            prop_assert_eq!(parse(&text, now()), standard(&text).or_else(|| loose(&text)));
        }
    }
}
