//! A limit as people state it: so many requests each so long.

use std::{fmt, time::Duration};

use adjourn_pace::Quota;

/// So many requests, or points, each so long.
///
/// Up to `requests` start back to back, then one each `period / requests`. A budget that was idle has all of them saved up, so that in
/// its first period up to twice as many start: those, and the ones that come back meanwhile. That is the nature of the generic cell
/// rate algorithm. A provider that counts strictly by windows is asked with half the requests, or with
/// `Rate::new(1, period / requests)`, which spaces every start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    requests: u32,
    period: Duration,
    in_points: bool,
}

impl Rate {
    /// `requests` each `period`. None are taken for one, and a shorter period than a nanosecond for each request for that.
    #[must_use]
    pub const fn new(requests: u32, period: Duration) -> Self {
        let requests = if requests == 0 { 1 } else { requests };
        Self {
            requests,
            period,
            in_points: false,
        }
    }

    /// So many a second.
    #[must_use]
    pub const fn per_second(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(1))
    }

    /// So many a minute.
    #[must_use]
    pub const fn per_minute(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(60))
    }

    /// So many an hour.
    #[must_use]
    pub const fn per_hour(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(3600))
    }

    /// The same number of points instead of requests: each call costs what the provider's contract says ([`Costs`](crate::Costs)), and
    /// is set right by what its response says that it cost. A call of which nothing is said costs one.
    #[must_use]
    pub const fn in_points(self) -> Self {
        Self {
            in_points: true,
            ..self
        }
    }

    /// Whether it counts points, and not requests.
    #[must_use]
    pub const fn counts_points(self) -> bool {
        self.in_points
    }

    /// How many requests, and how many may start back to back.
    #[must_use]
    pub const fn requests(self) -> u32 {
        self.requests
    }

    /// Each how long.
    #[must_use]
    pub const fn period(self) -> Duration {
        self.period
    }

    /// The time that one request takes from the rate, rounded up to a nanosecond.
    #[must_use]
    pub fn interval(self) -> Duration {
        self.quota().interval()
    }

    pub(super) fn quota(self) -> Quota {
        Quota::new(self.requests, self.period)
    }

    /// One each `1 / per_second`; none for what is no rate.
    pub(super) fn of_float(per_second: f64) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(per_second.recip()).ok()?;
        (per_second > 0.0).then_some(Self::new(1, interval))
    }

    /// The same requests in a longer period.
    pub(super) fn slowed(self, share: f64) -> Self {
        let period = if share > 0.0 && share < 1.0 {
            Duration::try_from_secs_f64(self.period.as_secs_f64() / share).unwrap_or(Duration::MAX)
        } else {
            self.period
        };
        Self { period, ..self }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.in_points { " points" } else { "" };
        write!(f, "{}{unit} each {:?}", self.requests, self.period)
    }
}
