//! When a window starts anew: by the calendar of a zone, or rolling.

use std::time::Duration;

use adjourn_core::Timestamp;
use chrono::{DateTime, Datelike, Days, LocalResult, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};
use chrono_tz::Tz;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// When a window starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resets {
    /// It has no fixed start: after its whole length at the latest there is room again.
    Rolling,
    /// At a moment of the calendar.
    At {
        /// Which one.
        at: Calendar,
        /// In which zone; none where nobody outside the provider knows it, and then no moment can be computed.
        zone: Option<Tz>,
    },
}

/// A moment of the calendar that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calendar {
    /// The next full minute.
    Minute,
    /// The next of :00, :15, :30 and :45.
    QuarterHour,
    /// The next full hour.
    Hour,
    /// The next midnight.
    Day,
    /// The midnight that begins the next Monday.
    Week,
    /// The midnight that begins the next month.
    Month,
}

impl Resets {
    /// The first moment after `now` at which a window of `length` has room again; none where nobody can know it.
    #[must_use]
    pub fn next(self, length: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Rolling => length.map(|length| now + length),
            Self::At { at, zone } => at.next(zone?, now),
        }
    }
}

impl Calendar {
    /// The first such moment after `now`, as clocks in `zone` show it.
    #[must_use]
    pub fn next(self, zone: Tz, now: Timestamp) -> Option<Timestamp> {
        let here = DateTime::from_timestamp_millis(now.as_unix_ms())?.with_timezone(&zone);
        let local = here.naive_local();
        let date = local.date();
        let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN);
        let next = match self {
            Self::Minute => return Some(step(now, 60)),
            Self::QuarterHour => quarter(local, 15)?,
            Self::Hour => quarter(local, 60)?,
            Self::Day => midnight(date.checked_add_days(Days::new(1))?),
            Self::Week => {
                let ahead = 7 - u64::from(date.weekday().num_days_from_monday());
                midnight(date.checked_add_days(Days::new(ahead))?)
            }
            Self::Month => midnight(date.with_day(1)?.checked_add_months(Months::new(1))?),
        };
        // A local time that the clocks skip exists a little later; of one that they show twice, the later keeps the law.
        (0..=8).find_map(|quarters| {
            let local = next.checked_add_signed(chrono::TimeDelta::minutes(15 * quarters))?;
            let at = match zone.from_local_datetime(&local) {
                LocalResult::Single(at) | LocalResult::Ambiguous(_, at) => at,
                LocalResult::None => return None,
            };
            let at = Timestamp::from_unix_ms(at.timestamp_millis());
            (at > now).then_some(at)
        })
    }
}

fn step(now: Timestamp, seconds: u64) -> Timestamp {
    let step = Duration::from_secs(seconds);
    now.floor_to(step) + step
}

/// The next local time whose minutes are a multiple of `minutes`.
fn quarter(local: NaiveDateTime, minutes: u32) -> Option<NaiveDateTime> {
    let past = local.minute() % minutes;
    let floor = local.with_second(0)?.with_nanosecond(0)?;
    floor.checked_add_signed(chrono::TimeDelta::minutes(i64::from(minutes - past)))
}

impl Serialize for Resets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Rolling => serializer.serialize_str("rolling"),
            Self::At { at, zone } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("at", at)?;
                if let Some(zone) = zone {
                    map.serialize_entry("tz", zone.name())?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(at: Calendar, zone: &str, now: &str) -> String {
        at.next(zone.parse().unwrap(), Timestamp::parse(now).unwrap())
            .unwrap()
            .to_string()
            .replace(".000", "")
    }

    #[test]
    fn the_next_moment_of_the_calendar() {
        for (at, zone, now, expected) in [
            (Calendar::Minute, "UTC", "2026-07-10T20:13:47Z", "2026-07-10T20:14:00Z"),
            (
                Calendar::QuarterHour,
                "UTC",
                "2026-07-10T20:13:47Z",
                "2026-07-10T20:15:00Z",
            ),
            (
                Calendar::QuarterHour,
                "UTC",
                "2026-07-10T23:45:00Z",
                "2026-07-11T00:00:00Z",
            ),
            (Calendar::Hour, "UTC", "2026-07-10T20:13:47Z", "2026-07-10T21:00:00Z"),
            (
                Calendar::Hour,
                "Asia/Kolkata",
                "2026-07-10T20:13:47Z",
                "2026-07-10T20:30:00Z",
            ),
            (Calendar::Day, "UTC", "2026-07-10T20:13:47Z", "2026-07-11T00:00:00Z"),
            (Calendar::Day, "UTC", "2026-07-11T00:00:00Z", "2026-07-12T00:00:00Z"),
            (
                Calendar::Day,
                "America/Los_Angeles",
                "2026-07-10T20:13:47Z",
                "2026-07-11T07:00:00Z",
            ),
            (
                Calendar::Day,
                "America/Los_Angeles",
                "2026-12-10T20:13:47Z",
                "2026-12-11T08:00:00Z",
            ),
            (Calendar::Week, "UTC", "2026-07-10T20:13:47Z", "2026-07-13T00:00:00Z"),
            (Calendar::Week, "UTC", "2026-07-13T00:00:00Z", "2026-07-20T00:00:00Z"),
            (Calendar::Month, "UTC", "2026-07-31T20:13:47Z", "2026-08-01T00:00:00Z"),
            (Calendar::Month, "UTC", "2026-12-31T20:13:47Z", "2027-01-01T00:00:00Z"),
            (
                Calendar::Month,
                "Europe/Berlin",
                "2026-07-31T22:30:00Z",
                "2026-08-31T22:00:00Z",
            ),
        ] {
            assert_eq!(next(at, zone, now), expected, "{at:?} in {zone} after {now}");
        }
    }

    #[test]
    fn a_day_that_summer_time_shortens_or_lengthens() {
        // Los Angeles: 23 hours on 8 March 2026, 25 hours on 1 November 2026.
        assert_eq!(
            next(Calendar::Day, "America/Los_Angeles", "2026-03-08T08:00:00Z"),
            "2026-03-09T07:00:00Z"
        );
        assert_eq!(
            next(Calendar::Day, "America/Los_Angeles", "2026-11-01T07:00:00Z"),
            "2026-11-02T08:00:00Z"
        );
        // The clocks of Santiago skip the midnight of 6 September 2026: the day begins at one.
        assert_eq!(
            next(Calendar::Day, "America/Santiago", "2026-09-05T20:00:00Z"),
            "2026-09-06T04:00:00Z"
        );
        // The hour that Los Angeles shows twice: the second of both, never the first.
        assert_eq!(
            next(Calendar::Hour, "America/Los_Angeles", "2026-11-01T07:30:00Z"),
            "2026-11-01T09:00:00Z"
        );
    }

    #[test]
    fn a_zone_that_nobody_knows_gives_no_moment() {
        let at = Resets::At {
            at: Calendar::Day,
            zone: None,
        };
        assert_eq!(at.next(None, Timestamp::EPOCH), None);
        assert_eq!(Resets::Rolling.next(None, Timestamp::EPOCH), None);
    }
}
