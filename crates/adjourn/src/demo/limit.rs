//! The demo provider's limit: a token bucket, in whole numbers.

use std::time::Duration;

use adjourn_core::Timestamp;

/// Thousandths of a token, so that a millisecond's refill is a whole number at every rate.
const UNIT: u64 = 1000;

/// A token bucket: `burst` calls at once, then `per_second` calls each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many calls a full bucket lets through at once; at least one.
    pub burst: u32,
    /// How many calls each second brings; at least one.
    pub per_second: u32,
}

impl Limit {
    /// The time that this limit alone needs for `calls` calls: what the bucket does not hold comes at the bucket's rate.
    #[must_use]
    pub fn least_time(self, calls: u32) -> Duration {
        let beyond = u64::from(calls.saturating_sub(self.burst.max(1)));
        let rate = u64::from(self.per_second.max(1));
        Duration::from_millis(beyond.saturating_mul(UNIT).div_ceil(rate))
    }
}

/// The bucket itself.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    limit: Limit,
    level: u64,
    at: Timestamp,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(limit: Limit, now: Timestamp) -> Self {
        Self {
            limit,
            level: u64::from(limit.burst.max(1)).saturating_mul(UNIT),
            at: now,
        }
    }

    /// Takes a token, or says how long until there is one.
    pub(super) fn take(&mut self, now: Timestamp) -> Result<(), Duration> {
        let full = u64::from(self.limit.burst.max(1)).saturating_mul(UNIT);
        let rate = u64::from(self.limit.per_second.max(1));
        let elapsed = u64::try_from(now.since(self.at).as_millis()).unwrap_or(u64::MAX);
        self.level = self.level.saturating_add(elapsed.saturating_mul(rate)).min(full);
        self.at = self.at.max(now);
        match self.level.checked_sub(UNIT) {
            Some(rest) => {
                self.level = rest;
                Ok(())
            }
            None => Err(Duration::from_millis(UNIT.saturating_sub(self.level).div_ceil(rate))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit {
        burst: 3,
        per_second: 4,
    };

    #[test]
    fn a_full_bucket_lets_its_burst_through_and_names_the_wait_for_the_next_token() {
        let start = Timestamp::from_unix_ms(1_000);
        let mut bucket = Bucket::full(LIMIT, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(Duration::from_millis(250)));
        assert_eq!(
            bucket.take(start + Duration::from_millis(249)),
            Err(Duration::from_millis(1))
        );
        assert_eq!(bucket.take(start + Duration::from_millis(250)), Ok(()));
    }

    #[test]
    fn a_bucket_holds_no_more_than_its_burst_and_ignores_a_clock_that_steps_back() {
        let start = Timestamp::from_unix_ms(100_000);
        let mut bucket = Bucket::full(LIMIT, start);
        let later = start + Duration::from_secs(60);
        for _ in 0..3 {
            assert_eq!(bucket.take(later), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(Duration::from_millis(250)));
        assert_eq!(bucket.take(later), Err(Duration::from_millis(250)));
    }

    #[test]
    fn the_least_time_is_what_the_rate_needs_beyond_the_burst() {
        assert_eq!(LIMIT.least_time(3), Duration::ZERO);
        assert_eq!(LIMIT.least_time(4), Duration::from_millis(250));
        assert_eq!(LIMIT.least_time(103), Duration::from_secs(25));
    }
}
