//! A bucket that saves nothing up: what single gaps between calls say.
//!
//! With a burst of one, a call passes when the gap since the last one that passed is long enough, and is refused when it is not. So each
//! refusal bounds the interval from below and each success from above, and a few of them find it by bisection. A success after a gap that was
//! too short before, or a refusal after one that was long enough, says that the bucket is of another kind.

/// How well the interval has to be known, as a share of it.
const SURE: f64 = 0.03;
/// The same where each refusal costs its job a long wait.
const DEAR_SURE: f64 = 0.06;
/// Successes at the same gap after which a shorter one is tried, and the first time a much shorter one, which tells another kind of limit.
const PATIENCE: u32 = 80;
const FIRST_PATIENCE: u32 = 20;
const MUCH_SHORTER: f64 = 0.5;
/// How much longer than one that was refused against expectation a gap has to be.
const ODD: f64 = 1.1;
/// Successes in a row that excuse a refusal against expectation.
const SETTLED: u32 = 3;
/// A gap of less than this share is one that was tried to tell another kind of limit, and one that passed far behind what was refused.
const TRIED: f64 = 0.9;
const FAR_BEHIND: f64 = 0.8;
/// Gaps that differ by less are the same.
const SAME: f64 = 0.005;

/// The bracket around the interval, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gaps {
    /// The longest gap that was refused.
    refused: f64,
    /// The shortest gap that passed.
    passed: f64,
    /// Successes since either changed.
    since: u32,
    /// Refusals that do not fit.
    odd: u32,
    /// Whether the next shorter gap is a much shorter one, and how many of those were refused.
    leaps: bool,
    leapt: u32,
    /// Whether tokens were saved up before, so that this tells of an empty bucket only.
    renewed: bool,
}

impl Gaps {
    pub(super) fn between(refused: f64, passed: f64) -> Self {
        Self {
            refused,
            passed: passed.max(refused * (1.0 + SURE)),
            since: 0,
            odd: 0,
            leaps: true,
            leapt: 0,
            renewed: false,
        }
    }

    /// The same for a bucket in which tokens were saved up until it closed.
    pub(super) fn renewed(refused: f64, passed: f64) -> Self {
        Self {
            renewed: true,
            ..Self::between(refused, passed)
        }
    }

    /// Whether tokens were saved up before.
    pub(super) fn is_renewed(&self) -> bool {
        self.renewed
    }

    /// Whether a gap is so much shorter than one that was refused that no late packet explains its success.
    pub(super) fn leaves_far_behind(&self, gap: f64) -> bool {
        gap < self.refused * FAR_BEHIND
    }

    /// The gap to keep before the next call.
    pub(super) fn next(&self, dear: bool) -> f64 {
        if dear && self.passed <= self.refused * (1.0 + DEAR_SURE) {
            return self.passed;
        }
        if self.passed.is_infinite() {
            self.safe()
        } else if self.passed > self.refused * (1.0 + SURE) {
            f64::midpoint(self.refused, self.passed)
        } else if self.leaps && self.since >= self.patience() {
            self.passed * MUCH_SHORTER
        } else if self.since >= PATIENCE {
            self.passed * (1.0 - SURE)
        } else {
            self.passed
        }
    }

    fn patience(&self) -> u32 {
        if self.leapt == 0 { FIRST_PATIENCE } else { PATIENCE }
    }

    /// The shortest gap that is known to be long enough.
    pub(super) fn safe(&self) -> f64 {
        if self.passed.is_infinite() {
            // None has passed yet that tells: twice what was too short.
            self.refused * 2.0
        } else {
            self.passed
        }
    }

    /// A call passed after this gap. Says whether that still fits a bucket that saves nothing up.
    pub(super) fn pass(&mut self, gap: f64) -> bool {
        if gap <= self.refused * (1.0 - SAME) {
            return false;
        }
        if gap < self.passed * (1.0 - SAME) {
            self.passed = gap.max(self.refused * (1.0 + SAME));
            self.since = 0;
        } else {
            self.since += 1;
            if self.since >= SETTLED {
                self.odd = 0;
            }
        }
        true
    }

    /// A call was refused after this gap. Says whether that still fits.
    pub(super) fn refuse(&mut self, gap: f64) -> bool {
        if self.since >= FIRST_PATIENCE && gap < self.passed * TRIED {
            (self.leaps, self.leapt) = (false, self.leapt + 1);
        } else if self.since >= PATIENCE && gap < self.passed * (1.0 - SAME) {
            self.leaps = true;
        }
        self.since = 0;
        if gap < self.passed * (1.0 - SAME) {
            self.refused = self.refused.max(gap);
            return true;
        }
        // Once it may have been a late packet; twice in a row it is another kind of limit.
        self.odd += 1;
        self.refused = self.refused.max(gap);
        self.passed = gap * ODD;
        self.odd < 2
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_few_refusals_find_the_interval(interval in 0.01..100.0_f64, below in 0.02..0.9_f64, above in 1.1..20.0_f64) {
            let mut gaps = Gaps::between(interval * below, interval * above);
            let mut refusals = 0;
            for _ in 0..40 {
                let gap = gaps.next(false);
                if gap >= interval {
                    prop_assert!(gaps.pass(gap));
                } else {
                    refusals += 1;
                    prop_assert!(gaps.refuse(gap));
                }
            }
            prop_assert!(gaps.safe() >= interval && gaps.safe() <= interval * 1.03, "{gaps:?}");
            prop_assert!(refusals <= 12, "{refusals}");
        }
    }

    #[test]
    fn saved_up_tokens_do_not_fit() {
        let mut gaps = Gaps::between(1.0, 2.0);
        assert!(!gaps.pass(0.5), "a shorter gap than one that was refused");
        let mut gaps = Gaps::between(1.0, 2.0);
        assert!(gaps.refuse(2.5), "once it may have been a late packet");
        assert!(!gaps.refuse(3.0));
    }

    #[test]
    fn successes_excuse_a_late_packet() {
        let mut gaps = Gaps::between(1.0, 1.02);
        assert!(gaps.refuse(1.02));
        (0..SETTLED).for_each(|_| assert!(gaps.pass(1.2)));
        assert!(gaps.refuse(1.2));
    }

    #[test]
    fn where_a_refusal_is_dear_no_shorter_gap_is_tried() {
        let mut gaps = Gaps::between(1.0, 1.05);
        assert!(gaps.next(false) < gaps.safe());
        (0..PATIENCE * 2).for_each(|_| assert!(gaps.pass(1.05)));
        assert!((gaps.next(true) - gaps.safe()).abs() < 1e-9);
    }
}
