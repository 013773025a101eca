//! Spans in words and units: `1h2m3.5s`, `41.724s`, `2 minutes`, `PT30S`; and as a clock shows them: `22.14:18:12`.

/// The units, in milliseconds as a fraction (per, of), longest names first.
const UNITS: [(&str, u64, u64); 31] = [
    ("milliseconds", 1, 1),
    ("microseconds", 1, 1000),
    ("millisecond", 1, 1),
    ("microsecond", 1, 1000),
    ("nanoseconds", 1, 1_000_000),
    ("seconds", 1000, 1),
    ("minutes", 60_000, 1),
    ("second", 1000, 1),
    ("minute", 60_000, 1),
    ("millis", 1, 1),
    ("hours", 3_600_000, 1),
    ("msecs", 1, 1),
    ("hour", 3_600_000, 1),
    ("weeks", 604_800_000, 1),
    ("days", 86_400_000, 1),
    ("week", 604_800_000, 1),
    ("secs", 1000, 1),
    ("mins", 60_000, 1),
    ("hrs", 3_600_000, 1),
    ("day", 86_400_000, 1),
    ("sec", 1000, 1),
    ("min", 60_000, 1),
    ("hr", 3_600_000, 1),
    ("ms", 1, 1),
    ("us", 1, 1000),
    ("µs", 1, 1000),
    ("μs", 1, 1000),
    ("ns", 1, 1_000_000),
    ("s", 1000, 1),
    ("m", 60_000, 1),
    ("h", 3_600_000, 1),
];

/// The milliseconds of a span, rounded up; none unless all of the text is one.
pub(super) fn millis(text: &str) -> Option<u64> {
    if let Some(iso) = text.strip_prefix("PT").or_else(|| text.strip_prefix("pt")) {
        return millis(iso).filter(|_| iso.ends_with(|last: char| last.is_ascii_alphabetic()));
    }
    let (mut rest, mut sum, mut parts) = (text, 0_u64, 0);
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end)?;
        let after = after.trim_ascii_start();
        let (unit, tail) = unit(after)?;
        sum = sum.saturating_add(part(number, unit)?);
        parts += 1;
        rest = tail.trim_ascii_start();
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_ascii_start();
            rest = rest.strip_prefix("and ").unwrap_or(rest).trim_ascii_start();
            if rest.is_empty() {
                return None;
            }
        }
    }
    (parts > 0).then_some(sum)
}

/// The milliseconds of `hours:minutes:seconds`, with days before a point as .NET prints them; none unless all of the text is
/// one. Only where it is known that the text is no time of day.
pub(super) fn clock(text: &str) -> Option<u64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    // Only the seconds may be broken.
    if hours.contains('.') || minutes.contains('.') {
        return None;
    }
    let parts = [
        (days, (86_400_000, 1)),
        (hours, (3_600_000, 1)),
        (minutes, (60_000, 1)),
        (seconds, (1000, 1)),
    ];
    let mut sum = 0_u64;
    for (number, unit) in parts {
        sum = sum.saturating_add(part(number, unit)?);
    }
    Some(sum)
}

/// The unit that a text begins with, and what follows; a letter after it would make it another word.
fn unit(text: &str) -> Option<((u64, u64), &str)> {
    let end = text
        .find(|c: char| !c.is_alphabetic() && c != char::REPLACEMENT_CHARACTER)
        .unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    // A micro sign in Latin-1 is no UTF-8 and arrives as a replacement.
    let lower = word.to_ascii_lowercase().replace(char::REPLACEMENT_CHARACTER, "µ");
    if lower == "d" {
        return Some(((86_400_000, 1), rest));
    }
    let known = UNITS.iter().find(|(name, ..)| *name == lower);
    known.map(|&(_, per, of)| ((per, of), rest))
}

fn part(number: &str, (per, of): (u64, u64)) -> Option<u64> {
    // Billionths of the unit are kept, what is finer rounds up; so many that they overflow are a span beyond all caps.
    let billionths = super::number::scaled(number, 9)?;
    if billionths == u64::MAX {
        return Some(u64::MAX);
    }
    let scaled = u128::from(billionths).saturating_mul(u128::from(per));
    let divisor = 1_000_000_000 * u128::from(of);
    Some(u64::try_from(scaled.div_ceil(divisor)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_units_and_words() {
        for (text, expected) in [
            ("1h2m3.5s", Some(3_723_500)),
            ("7m12s", Some(432_000)),
            ("41.724s", Some(41_724)),
            ("34.074824224s", Some(34_075)),
            ("486ms", Some(486)),
            ("850µs", Some(1)),
            ("850\u{fffd}s", Some(1)),
            ("1ns", Some(1)),
            ("0s", Some(0)),
            ("1d", Some(86_400_000)),
            ("2 weeks", Some(1_209_600_000)),
            ("2 minutes", Some(120_000)),
            ("1 hour, 2 minutes and 3 seconds", Some(3_723_000)),
            ("30 Seconds", Some(30_000)),
            ("PT30S", Some(30_000)),
            ("PT1H30M", Some(5_400_000)),
            ("99999999999999999999999h", Some(u64::MAX)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-3s", None),
            ("30 sheep", None),
            ("3s and", None),
            ("3s later", None),
            ("1e3s", None),
            ("PT", None),
        ] {
            assert_eq!(millis(text), expected, "{text:?}");
        }
    }

    #[test]
    fn spans_as_a_clock_shows_them() {
        for (text, expected) in [
            ("00:00:17", Some(17_000)),
            ("5:03:23.5", Some(18_203_500)),
            ("22.14:18:12", Some(1_952_292_000)),
            ("99999999999.00:00:00", Some(u64::MAX)),
            ("14:18", None),
            ("1.2.14:18:12", None),
            ("-1:00:00", None),
            ("::", None),
            ("", None),
        ] {
            assert_eq!(clock(text), expected, "{text:?}");
        }
    }
}
