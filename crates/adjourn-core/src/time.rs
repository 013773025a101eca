//! The one representation of a moment.

use alloc::string::String;
use core::{fmt, ops, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment of wall time: milliseconds since the Unix epoch, from 1970 to the end of the year 9999.
///
/// Arithmetic saturates at both ends, so that no value that a provider or a message names can overflow or fail to
/// print. Wall time, because instances share state and a sandbox freezes between invocations: a monotonic clock means
/// nothing outside its process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const EPOCH: Self = Self(0);
    /// 9999-12-31T23:59:59.999Z, the last moment that RFC 3339 can write.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// The moment `ms` milliseconds after the Unix epoch, clamped to the representable range.
    #[must_use]
    pub const fn from_unix_ms(ms: i64) -> Self {
        if ms < 0 {
            Self::EPOCH
        } else if ms > Self::MAX.0 {
            Self::MAX
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_unix_ms(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 time with any offset; a fraction finer than a millisecond is rounded up, since a wait may be
    /// longer than told and never shorter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?;
        let rest = at.timestamp_subsec_nanos() % 1_000_000;
        Some(Self::from_unix_ms(
            at.timestamp_millis().saturating_add(i64::from(rest > 0)),
        ))
    }

    /// How long after `earlier` this moment is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The last moment at or before this one that is a whole multiple of `step` since the epoch.
    #[must_use]
    pub fn floor_to(self, step: Duration) -> Self {
        let step = i64::try_from(step.as_millis()).unwrap_or(i64::MAX).max(1);
        Self(self.0.saturating_sub(self.0.checked_rem(step).unwrap_or(0)))
    }

    /// The first moment at or after this one that is a whole multiple of `step` since the epoch.
    #[must_use]
    pub fn ceil_to(self, step: Duration) -> Self {
        let floor = self.floor_to(step);
        if floor == self { self } else { floor + step }
    }
}

impl ops::Add<Duration> for Timestamp {
    type Output = Self;
    /// Saturating; a part of a millisecond counts as a whole one.
    fn add(self, span: Duration) -> Self {
        Self::from_unix_ms(self.0.saturating_add(millis_up(span)))
    }
}

impl ops::Sub<Duration> for Timestamp {
    type Output = Self;
    /// Saturating; a part of a millisecond is dropped.
    fn sub(self, span: Duration) -> Self {
        Self::from_unix_ms(
            self.0
                .saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

/// A span in milliseconds, a part of one rounded up.
pub(crate) fn millis_up(span: Duration) -> i64 {
    let whole = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    whole.saturating_add(i64::from(!span.subsec_nanos().is_multiple_of(1_000_000)))
}

impl fmt::Display for Timestamp {
    /// RFC 3339, UTC, milliseconds: `2026-07-10T20:13:47.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Timestamp {
    fn to_rfc3339(self) -> String {
        DateTime::<Utc>::from_timestamp_millis(self.0)
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &"an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn prints_utc_with_milliseconds() {
        assert_eq!(at("2026-07-10T22:13:47+02:00").to_string(), "2026-07-10T20:13:47.000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_unix_ms(-5), Timestamp::EPOCH);
    }

    #[test]
    fn a_finer_fraction_is_rounded_up() {
        assert_eq!(at("2026-07-10T20:13:47.0000001Z"), at("2026-07-10T20:13:47.001Z"));
        assert_eq!(
            at("2026-07-10T20:13:47Z") + Duration::from_nanos(1),
            at("2026-07-10T20:13:47.001Z")
        );
    }

    #[test]
    fn sums_saturate_and_differences_stop_at_zero() {
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH - Duration::MAX, Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
    }

    #[test]
    fn minutes_round_both_ways() {
        let minute = Duration::from_secs(60);
        assert_eq!(
            at("2026-07-10T20:13:47.5Z").floor_to(minute),
            at("2026-07-10T20:13:00Z")
        );
        assert_eq!(
            at("2026-07-10T20:13:00.001Z").ceil_to(minute),
            at("2026-07-10T20:14:00Z")
        );
        assert_eq!(at("2026-07-10T20:13:00Z").ceil_to(minute), at("2026-07-10T20:13:00Z"));
        assert_eq!(
            at("2026-07-10T20:13:00Z").floor_to(Duration::ZERO),
            at("2026-07-10T20:13:00Z")
        );
    }

    #[test]
    fn serde_is_rfc3339() {
        let json = serde_json::to_string(&at("2026-07-10T20:13:47Z")).unwrap();
        assert_eq!(json, r#""2026-07-10T20:13:47.000Z""#);
        assert_eq!(
            serde_json::from_str::<Timestamp>(&json).unwrap(),
            at("2026-07-10T20:13:47Z")
        );
        assert!(serde_json::from_str::<Timestamp>(r#""tomorrow""#).is_err());
    }

    #[test]
    fn odd_times_are_read_or_refused_and_never_too_early() {
        for (text, read) in [
            ("2026-07-10t20:13:47z", Some("2026-07-10T20:13:47.000Z")),
            ("2026-06-30T23:59:60Z", Some("2026-07-01T00:00:00.000Z")),
            ("2026-06-30T23:59:60.9999Z", Some("2026-07-01T00:00:01.000Z")),
            ("1969-12-31T23:59:59Z", Some("1970-01-01T00:00:00.000Z")),
            ("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.999Z")),
            ("9999-12-31T23:59:59-23:59", Some("9999-12-31T23:59:59.999Z")),
            ("2026-02-30T00:00:00Z", None),
            ("2026-07-10T24:00:00Z", None),
            ("2026-07-10T20:13:47", None),
            ("+12026-07-10T20:13:47Z", None),
            ("1783714427", None),
            ("", None),
        ] {
            assert_eq!(
                Timestamp::parse(text).map(|at| at.to_string()).as_deref(),
                read,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(ms: i64) {
            let at = Timestamp::from_unix_ms(ms);
            prop_assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9TtZz:.+ -]{0,40}") {
            let _ = Timestamp::parse(&text);
        }

        #[test]
        fn a_step_down_is_never_later_and_a_step_up_never_earlier(ms: i64, step in prop_oneof![0u64..100_000_000, any::<u64>()], nanos in 0u32..1_000_000_000) {
            let (at, step) = (Timestamp::from_unix_ms(ms), Duration::from_millis(step).saturating_add(Duration::from_nanos(u64::from(nanos))));
            let (floor, ceil) = (at.floor_to(step), at.ceil_to(step));
            prop_assert!(floor <= at && at <= ceil);
            prop_assert_eq!(floor.floor_to(step), floor);
            prop_assert!(at.since(floor) <= step && ceil.since(at) <= step.max(Duration::from_millis(1)));
        }

        #[test]
        fn a_sum_is_never_early(ms in 0i64..=253_402_300_799_999, span in any::<(u64, u32)>()) {
            let span = Duration::new(span.0, span.1 % 1_000_000_000);
            let at = Timestamp::from_unix_ms(ms);
            prop_assert!((at + span).since(at) >= span || at + span == Timestamp::MAX);
            prop_assert!(at - span <= at);
        }
    }
}
