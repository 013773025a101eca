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
/// How much the first raise adds where the bound rests on one success; less where it rests on more.
const DOUBTED: f64 = 0.1;
/// Successes between two raises, at least: tokens that were saved up let a few calls pass at any pace.
const LEAST_STEP: f64 = 3.0;
/// Each raise adds so many times what the one before added.
const STEEPER: f64 = 1.5;
/// The same where the limit is not one bucket for all that is known.
const UNSURE: f64 = 0.3;
const UNSURE_STEEPER: f64 = 2.0;
/// So much above the bound without a refusal, and the bound is given up.
const BROKEN: f64 = 1.19;
/// From the second bound on that is given up without a refusal, raises are so many times as large each time.
const BOLDER: f64 = 2.0;
const BOLDEST: u32 = 8;
/// Successes after which a bound that was given up is doubted again.
const DOUBTED_AFTER: u32 = 5;
/// So many times the usual run of successes, and a refusal is overdue.
const LONG_RUN: f64 = 4.0;
/// The run that is expected before there was one, and the weight of the newest.
const FIRST_RUN: f64 = 20.0;
const NEWEST: f64 = 0.2;
/// A bracket as narrow as a small raise makes it counts as so many successes at most.
const DEEPEST: f64 = 100.0;
/// Where a refusal costs its job a long wait: how far below a bound the pace is that rests on so many successes, and after how many more it is
/// doubted.
const BELOW: f64 = 0.04;
const KNOWN: f64 = 15.0;
const SPARING_DUE: f64 = 1_000.0;
/// Successes that make a lower bound worth having.
const MANY: f64 = 4.0;
/// Tokens that a bucket of the proven rate would hold at a refusal that is none of its own.
const UNEXPLAINED: f64 = 2.0;

/// What is known of the rate, in calls a second.
#[derive(Clone, Debug)]
pub(super) struct Bracket {
    marks: VecDeque<Mark>,
    /// The rate is below this, as far as the bucket did not run over.
    upper: f64,
    /// The rate is at least this.
    lower: f64,
    /// The successes that the upper bound rests on.
    depth: f64,
    /// Successes since the last refusal.
    since: u32,
    /// Successes between two refusals, averaged.
    run: f64,
    /// Whether a refusal costs its job a long wait: then the pace stays below the bound.
    dear: bool,
    /// How often the pace was raised since then, as no refusal came.
    raises: u32,
    /// The successes at the last raise.
    raised_at: u32,
    /// Bounds that were given up since the last refusal.
    broken: u32,
    /// Successes since the last refusal, whatever became of the bound meanwhile.
    quiet: u32,
    /// Whether what was seen may be others' doing.
    unsure: bool,
}

/// A moment, and how many calls had passed until then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Moment,
    passed: u64,
    /// Whether the bucket was empty then: only from such a moment on can its rate be bounded from below.
    empty: bool,
}

pub(super) fn count(calls: u64) -> f64 {
    f64::from(u32::try_from(calls).unwrap_or(u32::MAX))
}

impl Bracket {
    pub(super) fn unknown() -> Self {
        Self {
            marks: VecDeque::new(),
            upper: f64::INFINITY,
            lower: 0.0,
            depth: 0.0,
            since: 0,
            run: FIRST_RUN,
            dear: false,
            raises: 0,
            raised_at: 0,
            broken: 0,
            quiet: 0,
            unsure: false,
        }
    }

    /// The rate is below this.
    pub(super) fn upper(&self) -> f64 {
        self.upper
    }

    /// Starts again from a rate that is no more than a guess.
    pub(super) fn guess(&mut self, rate: f64) {
        self.upper = rate;
        self.depth = 1.0;
        self.restart();
    }

    fn restart(&mut self) {
        self.run += (f64::from(self.since) - self.run) * NEWEST;
        (self.since, self.raises, self.raised_at) = (0, 0, 0);
        (self.broken, self.quiet) = (0, 0);
    }

    /// The bucket was empty when `passed` calls had passed.
    pub(super) fn empty(&mut self, at: Moment, passed: u64) {
        self.mark(at, passed, true);
    }

    /// From this moment on calls are counted.
    pub(super) fn begin(&mut self, at: Moment, passed: u64) {
        self.mark(at, passed, false);
    }

    fn mark(&mut self, at: Moment, passed: u64, empty: bool) {
        self.marks.push_back(Mark { at, passed, empty });
        if self.marks.len() > KEPT {
            self.marks.pop_front();
        }
    }

    /// All that was known before may be wrong.
    pub(super) fn forget(&mut self) {
        self.marks.clear();
        self.lower = 0.0;
    }

    /// Calls that have passed since the first known moment of an empty bucket.
    pub(super) fn passed_since_first(&self, passed: u64) -> u64 {
        self.marks
            .front()
            .map_or(0, |first| passed.saturating_sub(first.passed))
    }

    /// What a refusal now bounds the rate by, and the successes that this rests on; none where nothing is to compare it with.
    pub(super) fn measure(&self, now: Moment, passed: u64) -> Option<(f64, f64)> {
        let bounds = self.marks.iter().filter_map(|mark| {
            let span = now.since(mark.at);
            let between = count(passed.saturating_sub(mark.passed));
            (span > Duration::from_nanos(1)).then(|| ((between + 1.0) / span.as_secs_f64(), between))
        });
        bounds.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The bucket refused at a pace near its own: what it is known to stay below now.
    pub(super) fn refused(&mut self, pace: f64, now: Moment, passed: u64) {
        let (upper, depth) = self.measure(now, passed).unwrap_or((pace, 1.0));
        // Raised to here, and the last pace but one was not too fast: it lies between.
        let pace = pace / self.last_raise().sqrt();
        for mark in self.marks.iter().filter(|mark| mark.empty) {
            let span = now.since(mark.at).as_secs_f64();
            let between = count(passed.saturating_sub(mark.passed));
            if between >= MANY && span > 0.0 {
                self.lower = self.lower.max((between - 1.0) / span);
            }
        }
        self.upper = upper.min(pace);
        // A small raise leaves a narrow bracket, as many successes do.
        let raise = self.last_raise() - 1.0;
        self.depth = if raise > 0.0 {
            depth.max((1.0 / raise).min(DEEPEST))
        } else {
            depth
        };
        self.restart();
        self.empty(now, passed);
    }

    /// What was measured may be bent by tokens that were saved up before: it is doubted earlier.
    pub(super) fn doubt(&mut self, now: Moment, passed: u64) {
        self.depth = self.depth.min(2.0);
        self.forget();
        self.empty(now, passed);
    }

    /// The successes at which a refusal is overdue: at the pace that is kept, a bucket of the bound's own rate is empty after so many
    /// calls. A bound that rests on few is doubted earlier.
    fn due(&self) -> f64 {
        if self.spares() {
            return SPARING_DUE;
        }
        let by_pace = 1.0 / self.over();
        by_pace
            .min(2.0 * self.depth + 3.0)
            .min((LONG_RUN * self.run).max(LEAST_STEP))
    }

    /// Whether refusals are avoided: they are dear, and the bound is good enough to stay below it.
    fn spares(&self) -> bool {
        self.dear && self.depth >= KNOWN
    }

    /// A refusal costs its job a long wait, or does not.
    pub(super) fn set_dear(&mut self, dear: bool) {
        self.dear = dear;
    }

    /// What was seen may be others' doing, or is not.
    pub(super) fn set_unsure(&mut self, unsure: bool) {
        self.unsure = unsure;
    }

    /// Successes since the last refusal.
    pub(super) fn quiet(&self) -> u32 {
        self.quiet
    }

    fn over(&self) -> f64 {
        if self.spares() {
            return -BELOW;
        }
        (1.0 / self.depth.max(1.0)).clamp(LEAST_OVER, OVER)
    }

    /// A call passed that was sent after the last slowing down. `news`: and after the last raise. Says whether the pace is to be raised,
    /// as a refusal is overdue.
    pub(super) fn pass(&mut self, news: bool, now: Moment, passed: u64) -> bool {
        self.since = self.since.saturating_add(1);
        self.quiet = self.quiet.saturating_add(1);
        let since = f64::from(self.since);
        let step = (self.due().min(1.0 / OVER) / 5.0).max(LEAST_STEP);
        let again = self.raises == 0 || since >= f64::from(self.raised_at) + step;
        if !news || since <= self.due() || !again {
            return false;
        }
        self.raises += 1;
        self.raised_at = self.since;
        // While a refusal is overdue, the bucket runs over: no earlier moment bounds its rate from above.
        self.marks.clear();
        self.begin(now, passed);
        if self.raised() > BROKEN {
            // No bucket of that bound would have let so much pass: it ran over, or the limit has risen.
            self.upper = self.pace();
            self.depth = 1.0;
            self.broken = self.broken.saturating_add(1);
            (self.since, self.raises, self.raised_at) = (DOUBTED_AFTER, 0, 0);
        }
        true
    }

    fn last_raise(&self) -> f64 {
        self.raised() / self.raised_by(self.raises.saturating_sub(1))
    }

    fn raised(&self) -> f64 {
        self.raised_by(self.raises)
    }

    fn raised_by(&self, raises: u32) -> f64 {
        if raises == 0 {
            1.0
        } else {
            let (first, steeper) = if self.unsure {
                (UNSURE, UNSURE_STEEPER)
            } else {
                (DOUBTED, STEEPER)
            };
            let bolder = BOLDER.powf(f64::from(self.broken.saturating_sub(1).min(BOLDEST)));
            let first = (first * bolder / self.depth.max(1.0)).max(OVER);
            1.0 + (first * steeper.powf(f64::from(raises - 1))).min(1.0)
        }
    }

    /// The pace to keep: a hair above the bound, and more where a refusal is overdue.
    pub(super) fn pace(&self) -> f64 {
        self.upper * (1.0 + self.over()) * self.raised()
    }

    /// Whether no bucket of the proven rate can have refused now.
    pub(super) fn unexplained(&self, now: Moment, passed: u64) -> bool {
        self.lower > 0.0
            && self.marks.iter().any(|mark| {
                let held = self.lower * now.since(mark.at).as_secs_f64() - count(passed.saturating_sub(mark.passed));
                held >= UNEXPLAINED
            })
    }

    /// The limit has fallen: only the latest evidence counts.
    pub(super) fn fallen(&mut self) {
        while self.marks.len() > 2 {
            self.marks.pop_front();
        }
        self.lower = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A bucket that is asked as fast as the times say: refusals are told to the bracket, as its successes are counted.
    fn play(rate: f64, burst: f64, gaps: &[f64]) -> (Bracket, bool) {
        let mut bracket = Bracket::unknown();
        let (mut tokens, mut now, mut passed, mut ran_over) = (0.0_f64, Moment::ORIGIN, 0, false);
        bracket.empty(now, 0);
        for &gap in gaps {
            now += Duration::from_secs_f64(gap);
            tokens += gap * rate;
            ran_over |= tokens > burst;
            tokens = tokens.min(burst);
            if tokens >= 1.0 {
                tokens -= 1.0;
                passed += 1;
            } else {
                bracket.refused(f64::INFINITY, now, passed);
            }
        }
        (bracket, ran_over)
    }

    proptest! {
        #[test]
        fn the_bounds_hold_for_every_bucket_that_does_not_run_over(
            rate in 0.2..50.0_f64,
            burst in 1.0..20.0_f64,
            gaps in prop::collection::vec(0.01..1.2_f64, 5..200),
        ) {
            let gaps: Vec<f64> = gaps.iter().map(|gap| gap / rate).collect();
            let (bracket, ran_over) = play(rate, burst, &gaps);
            prop_assert!(bracket.lower < rate * (1.0 + 1e-9), "{} {rate}", bracket.lower);
            if !ran_over {
                prop_assert!(bracket.upper > rate * (1.0 - 1e-9), "{} {rate}", bracket.upper);
                prop_assert!(!bracket.unexplained(Moment::ORIGIN, 0));
            }
        }
    }

    #[test]
    fn the_pace_is_a_hair_above_the_bound_and_grows_when_a_refusal_is_overdue() {
        // Ten a second, a hundred calls: 101/10 bounds it.
        let mut bracket = Bracket::unknown();
        bracket.empty(Moment::ORIGIN, 0);
        let now = Moment::after(Duration::from_secs(10));
        bracket.refused(f64::INFINITY, now, 100);
        assert!((bracket.pace() / 10.1 - 1.01).abs() < 1e-6, "{}", bracket.pace());
        let kept = bracket.pace();
        let raised = (0..200).position(|call| bracket.pass(true, now, 100 + call));
        // Twenty in a row are expected at first, of which a refusal after none takes a fifth; four times that is overdue.
        assert_eq!(raised, Some(64));
        assert!(bracket.pace() > kept);
    }

    #[test]
    fn where_a_refusal_is_dear_the_pace_stays_below_the_bound() {
        let mut bracket = Bracket::unknown();
        bracket.empty(Moment::ORIGIN, 0);
        bracket.set_dear(true);
        bracket.refused(f64::INFINITY, Moment::after(Duration::from_secs(10)), 100);
        assert!((bracket.pace() / 10.1 - 0.96).abs() < 1e-6, "{}", bracket.pace());
    }
}
