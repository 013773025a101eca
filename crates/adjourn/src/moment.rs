//! Moments and spans as people read them: in local time and in UTC.

use std::time::Duration;

use adjourn_core::Timestamp;
use chrono::{DateTime, Local, Offset, Utc};

/// A moment in local time and in UTC; once, where both are the same. A part of a second counts as a whole one.
pub(crate) fn both(at: Timestamp) -> String {
    let at = at.ceil_to(Duration::from_secs(1));
    let Some(utc) = DateTime::<Utc>::from_timestamp_millis(at.as_unix_ms()) else {
        return at.to_string();
    };
    let universal = utc.format("%Y-%m-%d %H:%M:%S UTC");
    let local = utc.with_timezone(&Local);
    if local.offset().fix().local_minus_utc() == 0 {
        return universal.to_string();
    }
    format!("{} ({universal})", local.format("%a %-d %b %Y, %H:%M:%S %:z"))
}

/// A span in its two largest units, rounded up to whole seconds, or in milliseconds below one.
pub(crate) fn span(ms: u64) -> String {
    if ms > 0 && ms < 1000 {
        return format!("{ms} ms");
    }
    let seconds = ms.div_ceil(1000);
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let told: Vec<String> = parts
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if told.is_empty() {
        "0 s".to_string()
    } else {
        told.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most_and_are_not_cut_short() {
        for (ms, expected) in [
            (0, "0 s"),
            (850, "850 ms"),
            (1001, "2 s"),
            (60_000, "1 min"),
            (1_200_500, "20 min 1 s"),
            (3_600_000, "1 h"),
            (86_400_000, "1 d"),
            (93_600_000, "1 d 2 h"),
            (3_605_000, "1 h"),
        ] {
            assert_eq!(span(ms), expected, "{ms}");
        }
    }
}
