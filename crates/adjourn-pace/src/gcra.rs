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

    /// The theoretical arrival time after a start at `present`; an error when that does not conform yet.
    fn after(self, before: u64, span: u64, present: u64) -> Result<u64, Moment> {
        let after = before.max(present).saturating_add(span);
        // It may be ahead by the tolerance and by the interval of the last of its calls.
        let earliest = after.saturating_sub(self.tolerance).saturating_sub(self.interval);
        if earliest > present {
            return Err(self.conforming(span, earliest));
        }
        Ok(after)
    }

    fn conforming(self, span: u64, earliest: u64) -> Moment {
        if span > self.tolerance.saturating_add(self.interval) {
            Moment::MAX
        } else {
            Moment::from_nanos(earliest)
        }
    }
}

/// A start that was taken and has made no call yet: it is kept or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a start is kept by `Gcra::keep` or given back by `Gcra::give_back`"]
pub struct Taken {
    span: u64,
    /// The theoretical arrival time without this start and without those that were open when it was taken; not before its moment.
    floor: u64,
}

/// One limit's state: its theoretical arrival time. Shared between threads without a lock.
#[derive(Debug, Default)]
pub struct Gcra {
    arrival: AtomicU64,
    /// What starts have taken that may still be given back.
    open: AtomicU64,
}

impl Gcra {
    /// A limit whose whole burst is saved up.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arrival: AtomicU64::new(0),
            open: AtomicU64::new(0),
        }
    }

    /// Spends a start that costs as much as `cost` calls.
    ///
    /// # Errors
    /// The moment at which it would conform if nobody else took one; [`Moment::MAX`] for what costs more than the burst, which never
    /// does.
    pub fn start(&self, quota: Quota, cost: u32, now: Moment) -> Result<(), Moment> {
        let (present, span) = (now.as_nanos(), quota.span(cost));
        let mut before = self.arrival.load(Ordering::Acquire);
        loop {
            let after = quota.after(before, span, present)?;
            match self
                .arrival
                .compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(changed) => before = changed,
            }
        }
    }

    /// As [`Gcra::start`] for one call, which most of them are.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn start_one(&self, quota: Quota, now: Moment) -> Result<(), Moment> {
        let present = now.as_nanos();
        let latest = present.saturating_add(quota.tolerance);
        let mut before = self.arrival.load(Ordering::Acquire);
        loop {
            let base = before.max(present);
            if base > latest {
                return Err(Moment::from_nanos(base.saturating_sub(quota.tolerance)));
            }
            let after = base.saturating_add(quota.interval);
            match self
                .arrival
                .compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(changed) => before = changed,
            }
        }
    }

    /// Takes a start that is kept or given back later.
    ///
    /// # Errors
    /// As [`Gcra::start`].
    pub fn take(&self, quota: Quota, cost: u32, now: Moment) -> Result<Taken, Moment> {
        let (present, span) = (now.as_nanos(), quota.span(cost));
        let mut before = self.arrival.load(Ordering::Acquire);
        loop {
            let after = quota.after(before, span, present)?;
            // Whoever moved the arrival on announced itself before; so nobody is missed here.
            let open = self.open.fetch_add(span, Ordering::AcqRel);
            match self
                .arrival
                .compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    let floor = before.saturating_sub(open).max(present);
                    return Ok(Taken { span, floor });
                }
                Err(changed) => {
                    self.open.fetch_sub(span, Ordering::AcqRel);
                    before = changed;
                }
            }
        }
    }

    /// The start makes its call.
    pub fn keep(&self, taken: Taken) {
        self.open.fetch_sub(taken.span, Ordering::AcqRel);
    }

    /// The start made no call: it gives back what it took. Where others started meanwhile, as much as leaves no window with more
    /// starts than the limit allows: without it the limit might have been idle for a while, and idle time does not count.
    pub fn give_back(&self, taken: Taken, now: Moment) {
        let idle = now.as_nanos().saturating_sub(taken.floor);
        let back = taken.span.saturating_sub(idle);
        self.move_on(|arrival| arrival.saturating_sub(back));
        self.open.fetch_sub(taken.span, Ordering::AcqRel);
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
        quota.conforming(span, earliest).max(now)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// Well after the origin, where a new limit has its whole burst.
    fn at(nanos: u64) -> Moment {
        Moment::after(DAY * 400) + Duration::from_nanos(nanos)
    }

    fn second(requests: u32) -> Quota {
        Quota::new(requests, Duration::from_secs(1))
    }

    /// Starts of 1 until one is refused.
    fn starts_now(gcra: &Gcra, quota: Quota, now: Moment) -> u32 {
        let mut count = 0;
        while count < 10_000 && gcra.start(quota, 1, now).is_ok() {
            count += 1;
        }
        count
    }

    #[test]
    fn a_full_burst_then_one_interval_and_not_the_whole_of_it_again() {
        let (gcra, quota) = (Gcra::new(), second(10));
        assert_eq!(starts_now(&gcra, quota, at(0)), 10);
        let next = gcra.start(quota, 1, at(0)).unwrap_err();
        assert_eq!(next, at(0) + Duration::from_millis(100));
        assert_eq!(next, gcra.next_start(quota, 1, at(0)));
        assert!(gcra.start(quota, 1, next).is_ok());
        assert!(gcra.start(quota, 1, next).is_err());
    }

    #[test]
    fn five_in_a_day_have_a_burst_and_all_five_are_usable() {
        let (gcra, quota) = (Gcra::new(), Quota::new(5, DAY));
        assert!(quota.burst() >= 1);
        assert_eq!(starts_now(&gcra, quota, at(0)), 5);
        let spaced = quota.with_burst(1);
        let (gcra, mut made, mut now) = (Gcra::new(), 0, at(0));
        while now < at(0) + DAY {
            made += u32::from(gcra.start(spaced, 1, now).is_ok());
            now = gcra.next_start(spaced, 1, now);
        }
        assert_eq!(made, 5);
    }

    #[test]
    fn an_idle_limit_lets_twice_as_many_pass_in_its_first_period() {
        let (gcra, quota) = (Gcra::new(), second(10));
        let mut made = starts_now(&gcra, quota, at(0));
        for tenth in 1..=10 {
            made += starts_now(&gcra, quota, at(tenth * 100_000_000));
        }
        assert_eq!(made, 20, "ten that were saved up and ten that came back");
    }

    #[test]
    fn what_costs_more_than_the_burst_never_starts_and_is_told_so() {
        let (gcra, quota) = (Gcra::new(), second(300));
        assert_eq!(gcra.start(quota, 301, at(0)), Err(Moment::MAX));
        assert_eq!(gcra.next_start(quota, 301, at(0)), Moment::MAX);
        assert!(gcra.start(quota, 300, at(0)).is_ok(), "and it spent nothing");
    }

    #[test]
    fn a_start_that_made_no_call_gives_everything_back_when_nobody_started_since() {
        let (gcra, quota) = (Gcra::new(), second(1));
        let taken = gcra.take(quota, 1, at(0)).unwrap();
        gcra.give_back(taken, at(900_000_000));
        assert!(gcra.start(quota, 1, at(900_000_000)).is_ok());
    }

    #[test]
    fn another_limit_holds_from_the_next_start_and_keeps_what_is_spent() {
        let (day, fast) = (Quota::new(5, DAY), second(100));
        let gcra = Gcra::new();
        assert_eq!(starts_now(&gcra, day, at(0)), 5);
        gcra.change(day, fast, at(0));
        assert_eq!(starts_now(&gcra, fast, at(0)), 95, "five of a hundred are spent");
        gcra.change(fast, day, at(0));
        assert_eq!(gcra.next_start(day, 1, at(0)), at(0) + day.interval());
    }

    #[test]
    fn a_share_of_the_rate_is_a_share_of_the_burst() {
        let half = second(10).slowed(0.5);
        assert_eq!((half.interval(), half.burst()), (Duration::from_millis(200), 5));
        let least = second(1).slowed(0.1);
        assert_eq!((least.interval(), least.burst()), (Duration::from_secs(10), 1));
        for none in [1.0, 1.5, 0.0, -1.0, f64::NAN] {
            assert_eq!(second(10).slowed(none), second(10));
        }
    }

    #[test]
    fn threads_share_one_burst() {
        let (gcra, quota) = (Gcra::new(), Quota::new(1000, DAY));
        let made: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..500)
                            .map(|_| u32::from(gcra.start(quota, 1, at(0)).is_ok()))
                            .sum::<u32>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(made, 1000);
    }

    /// What is done to a limit.
    #[derive(Clone, Copy, Debug)]
    enum Deed {
        /// A start after a while, of that cost; with the second number, that many deeds later it turns out to have made no call.
        Start(u64, u32, Option<usize>),
        /// The counter of a response says that so many are left.
        KeepAtMost(u64, u32),
    }

    fn deed() -> impl Strategy<Value = Deed> {
        let gap = prop_oneof![3 => Just(0_u64), 3 => 0..2_000_u64, 1 => 0..100_000_u64];
        prop_oneof![
            8 => (gap.clone(), 1..4_u32, prop::option::of(0..6_usize)).prop_map(|(gap, cost, back)| Deed::Start(gap, cost, back)),
            1 => (gap, 0..30_u32).prop_map(|(gap, left)| Deed::KeepAtMost(gap, left)),
        ]
    }

    proptest! {
        #[test]
        fn no_window_has_more_starts_than_the_burst_and_what_came_back(
            requests in 1..20_u32,
            period in 1..30_000_u64,
            deeds in prop::collection::vec(deed(), 1..120),
        ) {
            let quota = Quota::new(requests, Duration::from_nanos(period));
            let gcra = Gcra::new();
            let mut now = 0;
            let mut made: Vec<(u64, u64)> = Vec::new();
            let mut unmade: Vec<(usize, Taken)> = Vec::new();
            for (index, deed) in deeds.iter().enumerate() {
                for (_, taken) in unmade.extract_if(.., |(when, _)| *when <= index) {
                    gcra.give_back(taken, at(now));
                }
                match *deed {
                    Deed::Start(gap, cost, back) => {
                        now += gap;
                        let Ok(taken) = gcra.take(quota, cost, at(now)) else {
                            continue;
                        };
                        match back {
                            Some(later) => unmade.push((index + 1 + later, taken)),
                            None => {
                                gcra.keep(taken);
                                made.push((now, u64::from(cost)));
                            }
                        }
                    }
                    Deed::KeepAtMost(gap, left) => {
                        now += gap;
                        gcra.keep_at_most(quota, left, at(now));
                        prop_assert!(gcra.saved(quota, at(now)) <= left.min(quota.burst()));
                    }
                }
            }
            let interval = u64::try_from(quota.interval().as_nanos()).unwrap();
            for (index, (from, _)) in made.iter().enumerate() {
                let mut cost = 0;
                for (to, each) in &made[index..] {
                    cost += each;
                    let allowed = u64::from(quota.burst()) + (to - from) / interval;
                    prop_assert!(cost <= allowed, "{cost} from {from} to {to}, allowed {allowed}");
                }
            }
        }

        #[test]
        fn whoever_comes_back_at_the_moment_that_was_told_starts(
            requests in 1..50_u32,
            period in 1..1_000_000_u64,
            gaps in prop::collection::vec(0..50_000_u64, 1..60),
        ) {
            let (gcra, quota) = (Gcra::new(), Quota::new(requests, Duration::from_nanos(period)));
            let mut now = at(0);
            for gap in gaps {
                now += Duration::from_nanos(gap);
                let twin = Gcra::new();
                twin.arrival.store(gcra.arrival.load(Ordering::Relaxed), Ordering::Relaxed);
                let (one, general) = (twin.start_one(quota, now), gcra.start(quota, 1, now));
                prop_assert_eq!(one, general, "the short way is the same way");
                prop_assert_eq!(twin.arrival.load(Ordering::Relaxed), gcra.arrival.load(Ordering::Relaxed));
                if let Err(next) = general {
                    prop_assert!(next > now);
                    prop_assert!(gcra.start(quota, 1, next - Duration::from_nanos(1)).is_err());
                    prop_assert!(gcra.start(quota, 1, next).is_ok());
                    now = next;
                }
            }
        }

        #[test]
        fn a_backlog_drains_at_the_rate(requests in 1..2_000_u32, period_ms in 1..86_400_000_u64, jobs in 1..3_000_u32) {
            let period = Duration::from_millis(period_ms);
            let (gcra, quota) = (Gcra::new(), Quota::new(requests, period));
            let mut now = at(0);
            let last = gcra.due(quota, u64::from(jobs), now);
            for _ in 0..jobs {
                now = gcra.next_start(quota, 1, now);
                prop_assert!(gcra.start(quota, 1, now).is_ok());
            }
            prop_assert_eq!(now, last, "the last one's moment was known at the start");
            let at_the_rate = period.mul_f64(f64::from(jobs) / f64::from(requests));
            prop_assert!(now.since(at(0)) <= at_the_rate.mul_f64(1.2) + Duration::from_nanos(u64::from(jobs)));
        }
    }
}
