//! A known rate with its burst: the generic cell rate algorithm in its virtual-scheduling form.
//!
//! ITU-T I.371 (03/2004), annex A: a theoretical arrival time moves on by one emission interval with each start; a start conforms
//! while that time is no further ahead of the present than the burst tolerance. One number is the whole state, so a check is one
//! compare-exchange, and a refusal carries the moment at which the same start would conform.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::Moment;

/// How many calls a limit lets pass, in the algorithm's own terms.
///
/// With a burst of all the requests of a period, a limit that was idle lets up to twice as many pass in the first period: the ones that
/// were saved up, and those that come back meanwhile. That is the algorithm's nature; a burst of 1 spaces every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Nanoseconds; at least 1.
    interval: u64,
    /// Nanoseconds.
    tolerance: u64,
}

impl Quota {
    /// `requests` each `period`, all of them back to back if they were saved up. No requests are taken for one, since nothing would
    /// ever start; the interval is rounded up to a nanosecond, so that the rate is never exceeded.
    #[must_use]
    pub fn new(requests: u32, period: Duration) -> Self {
        let requests = requests.max(1);
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Self {
            interval: period.div_ceil(u64::from(requests)).max(1),
            tolerance: 0,
        }
        .with_burst(requests)
    }

    /// The same rate with so many calls back to back; at least 1.
    #[must_use]
    pub fn with_burst(self, burst: u32) -> Self {
        let later = u64::from(burst.max(1) - 1);
        Self {
            interval: self.interval,
            tolerance: self.interval.saturating_mul(later),
        }
    }

    /// A share of the rate, from above 0 to 1, with that share of its burst (at least 1).
    #[must_use]
    pub fn slowed(self, share: f64) -> Self {
        if !(share > 0.0 && share < 1.0) {
            return self;
        }
        let interval = Duration::from_nanos(self.interval).div_f64(share);
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        // The time in which a whole burst comes back stays the same.
        let whole = self.tolerance.saturating_add(self.interval);
        let burst = u32::try_from(whole / interval).unwrap_or(u32::MAX);
        Self { interval, tolerance: 0 }.with_burst(burst)
    }

    /// The emission interval: the time that one call takes from the rate.
    #[must_use]
    pub fn interval(self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// How many calls may start back to back.
    #[must_use]
    pub fn burst(self) -> u32 {
        u32::try_from(self.tolerance / self.interval)
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    /// What `cost` starts take.
    fn span(self, cost: u32) -> u64 {
        self.interval.saturating_mul(u64::from(cost))
    }
}

/// A start that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The theoretical arrival time before it.
    before: u64,
    /// The same, not earlier than the moment of the start.
    base: u64,
    after: u64,
}

/// One limit's state: its theoretical arrival time. Shared between threads without a lock.
#[derive(Debug, Default)]
pub struct Gcra {
    arrival: AtomicU64,
}

impl Gcra {
    /// A limit whose whole burst is saved up.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arrival: AtomicU64::new(0),
        }
    }

    /// Takes a start that costs as much as `cost` calls.
    ///
    /// # Errors
    /// The moment at which it would conform if nobody else took one; [`Moment::MAX`] for what costs more than the burst, which never
    /// does.
    pub fn start(&self, quota: Quota, cost: u32, now: Moment) -> Result<Taken, Moment> {
        let (present, span) = (now.as_nanos(), quota.span(cost));
        let mut before = self.arrival.load(Ordering::Relaxed);
        loop {
            let base = before.max(present);
            let after = base.saturating_add(span);
            // After it, the theoretical arrival time may be ahead by the tolerance and the interval of the last of its calls.
            let earliest = after.saturating_sub(quota.tolerance).saturating_sub(quota.interval);
            if earliest > present {
                return Err(Self::conforming(quota, span, earliest));
            }
            match self
                .arrival
                .compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(Taken { before, base, after }),
                Err(changed) => before = changed,
            }
        }
    }

    /// When a start of that cost conforms: `now` or later.
    #[must_use]
    pub fn next_start(&self, quota: Quota, cost: u32, now: Moment) -> Moment {
        let span = quota.span(cost);
        let after = self
            .arrival
            .load(Ordering::Relaxed)
            .max(now.as_nanos())
            .saturating_add(span);
        let earliest = after.saturating_sub(quota.tolerance).saturating_sub(quota.interval);
        Self::conforming(quota, span, earliest).max(now)
    }

    /// When the last of calls that cost so much together conforms, each of them taken as soon as it does; `now` or later.
    #[must_use]
    pub fn due(&self, quota: Quota, costs: u64, now: Moment) -> Moment {
        let span = quota.interval.saturating_mul(costs);
        let after = self
            .arrival
            .load(Ordering::Relaxed)
            .max(now.as_nanos())
            .saturating_add(span);
        let whole = quota.tolerance.saturating_add(quota.interval);
        Moment::from_nanos(after.saturating_sub(whole)).max(now)
    }

    fn conforming(quota: Quota, span: u64, earliest: u64) -> Moment {
        if span > quota.tolerance.saturating_add(quota.interval) {
            Moment::MAX
        } else {
            Moment::from_nanos(earliest)
        }
    }

    /// A start that made no call gives back what it took: all of it when nobody started since, otherwise as much as leaves no
    /// window with more starts than the limit allows.
    pub fn give_back(&self, taken: Taken, now: Moment) {
        let untouched = self
            .arrival
            .compare_exchange(taken.after, taken.before, Ordering::Relaxed, Ordering::Relaxed);
        if untouched.is_ok() {
            return;
        }
        // Without it, those who started since might have started from an idle limit, whose time does not count: at the worst at this
        // very moment.
        let idle = now.as_nanos().saturating_sub(taken.base);
        let back = taken.after.saturating_sub(taken.base).saturating_sub(idle);
        self.move_on(|arrival| arrival.saturating_sub(back));
    }

    /// A call that was started cost more than it took.
    pub fn charge(&self, quota: Quota, cost: u32, now: Moment) {
        self.move_on(|arrival| arrival.max(now.as_nanos()).saturating_add(quota.span(cost)));
    }

    /// A call that was started cost so much less than it took.
    pub fn refund(&self, quota: Quota, cost: u32) {
        self.move_on(|arrival| arrival.saturating_sub(quota.span(cost)));
    }

    /// How many calls are saved up.
    #[must_use]
    pub fn saved(&self, quota: Quota, now: Moment) -> u32 {
        let ahead = self.arrival.load(Ordering::Relaxed).saturating_sub(now.as_nanos());
        let whole = quota.tolerance.saturating_add(quota.interval);
        u32::try_from(whole.saturating_sub(ahead) / quota.interval).unwrap_or(u32::MAX)
    }

    /// At `from`, no more than so many calls are saved up.
    pub fn keep_at_most(&self, quota: Quota, saved: u32, from: Moment) {
        let whole = quota.tolerance.saturating_add(quota.interval);
        let least = from.as_nanos().saturating_add(whole.saturating_sub(quota.span(saved)));
        self.move_on(|arrival| arrival.max(least));
    }

    /// The limit changes: what is spent of the old one is spent of the new one, at most all of it.
    pub fn change(&self, old: Quota, new: Quota, now: Moment) {
        let present = now.as_nanos();
        self.move_on(|arrival| {
            let ahead = arrival.saturating_sub(present);
            // The same number of calls takes another time.
            let calls = u128::from(ahead) * u128::from(new.interval);
            let spent = u64::try_from(calls.div_ceil(u128::from(old.interval))).unwrap_or(u64::MAX);
            let whole = new.tolerance.saturating_add(new.interval);
            present.saturating_add(spent.min(whole))
        });
    }

    /// Whether the whole burst is saved up: a new limit would know no less.
    #[must_use]
    pub fn is_idle(&self, now: Moment) -> bool {
        self.arrival.load(Ordering::Relaxed) <= now.as_nanos()
    }

    fn move_on(&self, to: impl Fn(u64) -> u64) {
        let moved = self
            .arrival
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |arrival| Some(to(arrival)));
        // The closure always answers.
        debug_assert!(moved.is_ok());
    }
}
