//! Axes: how far they go, where their marks stand, and how those are written.

use std::time::Duration;

/// The unit of an axis of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

const MILLISECOND: Unit = Unit {
    name: "ms",
    seconds: 1e-3,
};
const SECOND: Unit = Unit {
    name: "s",
    seconds: 1.0,
};
const MINUTE: Unit = Unit {
    name: "min",
    seconds: 60.0,
};
const HOUR: Unit = Unit {
    name: "h",
    seconds: 3600.0,
};
const DAY: Unit = Unit {
    name: "days",
    seconds: 86_400.0,
};

/// The unit in which a span is a handy number.
pub(super) fn unit(span: Duration) -> Unit {
    let seconds = span.as_secs_f64();
    [(2.0, MILLISECOND), (600.0, SECOND), (7200.0, MINUTE), (259_200.0, HOUR)]
        .iter()
        .find(|(below, _)| seconds < *below)
        .map_or(DAY, |(_, unit)| *unit)
}

/// 1, 2 or 5 times a power of ten: the smallest that is no less than `least`.
pub(super) fn handy(least: f64) -> f64 {
    if least.is_nan() || least <= 0.0 || least.is_infinite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Marks from 0 up to `most`, some `count` of them.
pub(super) fn marks(most: f64, count: u32) -> Vec<f64> {
    let step = handy(most / f64::from(count.max(1)));
    // Counted rather than added up, so that 0.3 does not become 0.30000000000000004.
    (0..=count.saturating_mul(3))
        .map(|place| f64::from(place) * step)
        .take_while(|mark| *mark <= most * (1.0 + 1e-9))
        .collect()
}

/// A number as an axis shows it.
pub(super) fn written(number: f64) -> String {
    let text = format!("{number:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, rest) = short
        .split_once('.')
        .map_or((short, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let digits = whole.len();
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (digits - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_handy_numbers() {
        assert_eq!(marks(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(marks(0.7, 3), [0.0, 0.5]);
        assert_eq!(marks(99.0, 4), [0.0, 50.0]);
        assert_eq!(marks(3000.0, 3), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(handy(0.0), 1.0);
        assert_eq!(handy(f64::NAN), 1.0);
    }

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (1000.0, "1,000"),
            (1_234_567.25, "1,234,567.25"),
            (100.0, "100"),
        ] {
            assert_eq!(written(number), expected);
        }
    }

    #[test]
    fn the_unit_fits_the_span() {
        for (seconds, expected) in [
            (1, "ms"),
            (99, "s"),
            (712, "min"),
            (9600, "h"),
            (90_000, "h"),
            (600_000, "days"),
        ] {
            assert_eq!(unit(Duration::from_secs(seconds)).name, expected, "{seconds}");
        }
    }
}
