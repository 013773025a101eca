//! A moment of the pacing: nanoseconds since an origin that the caller chose.

use std::{
    ops::{Add, AddAssign, Sub},
    time::Duration,
};

/// Nanoseconds since an origin of the caller's own (the start of a process, of a simulation). It never steps back.
///
/// Finer than [the engine's timestamps](https://docs.rs/adjourn-core), whose millisecond is the whole interval of a limit of 1,000 a
/// second. Arithmetic saturates: 584 years after the origin time stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The origin.
    pub const ORIGIN: Self = Self(0);
    /// The last moment there is.
    pub const MAX: Self = Self(u64::MAX);

    /// So many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// So long after the origin.
    #[must_use]
    pub fn after(span: Duration) -> Self {
        Self::ORIGIN + span
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` until this moment; zero where that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Moment {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}
