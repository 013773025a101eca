//! A bucket that saves tokens up: what a refusal and the successes after it say of its rate.
//!
//! At a refusal the bucket holds less than one token. If it refuses again `span` later and let `n` calls through between, then
//!
//! ```text
//! (n - 1) / span  <  rate  <  (n + 1) / span
//! ```
//!
//! whatever its burst is, as long as it did not run over in between, and it does not while the pace is near the rate or above. The further
//! back the first refusal, the sharper the bound. The best pace is a hair above it: then one call in fifty is refused and keeps the evidence fresh.

use std::{collections::VecDeque, time::Duration};

use crate::Moment;

/// How many moments of an empty bucket are kept.
const KEPT: usize = 32;
/// How far above the bound the pace is, where the evidence is short.
const OVER: f64 = 0.02;
/// And where it is long.
const LEAST_OVER: f64 = 0.01;
/// So much above the bound without a refusal, and the bound is given up.
const BROKEN: f64 = 1.3;
/// Successes that make a lower bound worth having.
const MANY: f64 = 8.0;
/// Tokens that a bucket of the proven rate would hold at a refusal that is none of its own.
const UNEXPLAINED: f64 = 2.0;

/// What is known of the rate, in calls a second.
#[derive(Clone, Debug)]
pub(super) struct Bracket {
    empties: VecDeque<Empty>,
    /// The rate is below this, as far as the bucket did not run over.
    upper: f64,
    /// The rate is at least this.
    lower: f64,
    /// The successes that the upper bound rests on.
    depth: f64,
    /// Successes since the last refusal.
    since: u32,
}

/// A moment at which the bucket was empty, and how many calls had passed until then.
#[derive(Clone, Copy, Debug)]
struct Empty {
    at: Moment,
    passed: u64,
}

pub(super) fn count(calls: u64) -> f64 {
    f64::from(u32::try_from(calls).unwrap_or(u32::MAX))
}

impl Bracket {
    pub(super) fn unknown() -> Self {
        Self {
            empties: VecDeque::new(),
            upper: f64::INFINITY,
            lower: 0.0,
            depth: 0.0,
            since: 0,
        }
    }

    /// Starts again from a rate that is no more than a guess.
    pub(super) fn guess(&mut self, rate: f64) {
        self.upper = rate;
        self.depth = 1.0;
        self.since = 0;
    }

    /// The bucket was empty when `passed` calls had passed.
    pub(super) fn empty(&mut self, at: Moment, passed: u64) {
        self.empties.push_back(Empty { at, passed });
        if self.empties.len() > KEPT {
            self.empties.pop_front();
        }
    }

    /// All that was known before may be wrong.
    pub(super) fn forget(&mut self) {
        self.empties.clear();
        self.lower = 0.0;
    }

    /// Calls that have passed since the first known moment of an empty bucket.
    pub(super) fn passed_since_first(&self, passed: u64) -> u64 {
        self.empties
            .front()
            .map_or(0, |first| passed.saturating_sub(first.passed))
    }

    /// What a refusal now bounds the rate by, and the successes that this rests on; none where nothing is to compare it with.
    pub(super) fn measure(&self, now: Moment, passed: u64) -> Option<(f64, f64)> {
        let bounds = self.empties.iter().filter_map(|empty| {
            let span = now.since(empty.at);
            let between = count(passed.saturating_sub(empty.passed));
            (span > Duration::from_nanos(1)).then(|| ((between + 1.0) / span.as_secs_f64(), between))
        });
        bounds.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The bucket refused at a pace near its own: what it is known to stay below now.
    pub(super) fn refused(&mut self, pace: f64, now: Moment, passed: u64) {
        let (upper, depth) = self.measure(now, passed).unwrap_or((pace, 1.0));
        for empty in &self.empties {
            let span = now.since(empty.at).as_secs_f64();
            let between = count(passed.saturating_sub(empty.passed));
            if between >= MANY && span > 0.0 {
                self.lower = self.lower.max((between - 1.0) / span);
            }
        }
        self.upper = upper.min(pace);
        self.depth = depth;
        self.since = 0;
        self.empty(now, passed);
    }

    /// What was measured may be bent by tokens that were saved up before: it is doubted earlier.
    pub(super) fn doubt(&mut self, now: Moment, passed: u64) {
        self.depth = self.depth.min(2.0);
        self.forget();
        self.empty(now, passed);
    }

    /// A call passed that was sent after the last change.
    pub(super) fn pass(&mut self) {
        self.since = self.since.saturating_add(1);
    }

    /// The pace to keep: a hair above the bound, and more where a refusal is overdue.
    pub(super) fn pace(&mut self, now: Moment, passed: u64) -> f64 {
        let over = (2.0 / self.depth.max(1.0)).clamp(LEAST_OVER, OVER);
        // At that pace a bucket of the bound's own rate is empty after so many calls; a bound that rests on few is doubted earlier.
        let due = (1.0 / over).min(2.0 * self.depth + 3.0);
        let late = (f64::from(self.since) - due).max(0.0) / (due / 5.0);
        let factor = 1.0 + (over * 1.5_f64.powf(late)).min(1.0);
        let pace = self.upper * factor;
        if factor > BROKEN {
            // No bucket of that bound would have let so much pass: it ran over, or the limit has risen.
            self.upper = pace;
            self.depth = 1.0;
            self.since = 3;
            self.forget();
            self.empty(now, passed);
        }
        pace
    }

    /// Whether a refusal is overdue, so that the pace is growing.
    pub(super) fn overdue(&self) -> bool {
        let over = (2.0 / self.depth.max(1.0)).clamp(LEAST_OVER, OVER);
        f64::from(self.since) > (1.0 / over).min(2.0 * self.depth + 3.0)
    }

    /// Whether no bucket of the proven rate can have refused now.
    pub(super) fn unexplained(&self, now: Moment, passed: u64) -> bool {
        self.lower > 0.0
            && self.empties.iter().any(|empty| {
                let held = self.lower * now.since(empty.at).as_secs_f64() - count(passed.saturating_sub(empty.passed));
                held >= UNEXPLAINED
            })
    }

    /// The limit has fallen: only the latest evidence counts.
    pub(super) fn fallen(&mut self) {
        while self.empties.len() > 2 {
            self.empties.pop_front();
        }
        self.lower = 0.0;
    }
}
