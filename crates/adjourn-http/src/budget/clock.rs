//! The one place where budgets read a clock and sleep, and layers a clock.

use std::{fmt, sync::LazyLock, time::Duration};

use adjourn_core::Timestamp;
use adjourn_pace::Moment;
use tokio::time::Instant;

use crate::Now;

/// How long before the first reading the moments of this process begin: a paused clock may show less than another one did.
const BEFORE_FIRST: Duration = Duration::from_secs(366 * 86_400);

/// Where moments are counted from.
static ORIGIN: LazyLock<Instant> = LazyLock::new(|| {
    let first = instant();
    first.checked_sub(BEFORE_FIRST).unwrap_or(first)
});

/// tokio's clock for pacing, which tests pause and move, and a wall clock for the dates in a provider's answers.
#[derive(Clone)]
pub(super) struct Clock {
    wall: Option<Now>,
    /// A copy of [`ORIGIN`], which need not be asked whether it is there yet.
    origin: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            wall: None,
            origin: *ORIGIN,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where budgets read the clock")]
#[inline]
fn instant() -> Instant {
    Instant::now()
}

/// The present, for who has no budget at hand yet.
#[inline]
pub(super) fn now() -> Moment {
    moment(instant(), *ORIGIN)
}

#[inline]
fn moment(read: Instant, origin: Instant) -> Moment {
    let since = read.saturating_duration_since(origin);
    // Short of `Duration::as_nanos`, which counts in 128 bits.
    let seconds = since.as_secs().saturating_mul(1_000_000_000);
    Moment::from_nanos(seconds.saturating_add(u64::from(since.subsec_nanos())))
}

/// The machine's wall clock, for who was given no other.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where budgets and layers read the wall clock"
)]
pub(crate) fn wall() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Clock {
    pub(super) fn with_wall(wall: Now) -> Self {
        Self {
            wall: Some(wall),
            ..Self::default()
        }
    }

    #[inline]
    pub(super) fn now(&self) -> Moment {
        moment(instant(), self.origin)
    }

    pub(super) fn wall(&self) -> Timestamp {
        self.wall.as_ref().map_or_else(wall, |now| now())
    }

    /// Returns at that moment or a little later, never before.
    pub(super) async fn sleep_until(&self, at: Moment) {
        tokio::time::sleep(at.since(self.now())).await;
    }
}
