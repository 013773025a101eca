//! One wait before a further attempt: until when, how much of it is jitter, and whether it fits.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use adjourn_core::Timestamp;

/// A wait before a further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Not before this moment; jitter is in it.
    pub(crate) until: Timestamp,
    /// How long that is from now.
    pub(crate) span: Duration,
}

impl Pause {
    /// The wait from `now` to `floor`, and up to a tenth of `length` more; none if it is longer than `budget`. Jitter only
    /// adds, and never turns a wait that fits into one that does not.
    pub(crate) fn within(
        budget: Duration,
        now: Timestamp,
        floor: Timestamp,
        length: Duration,
        entropy: u64,
    ) -> Option<Self> {
        let least = floor.since(now);
        let room = budget.checked_sub(least)?;
        let span = least + share(length / 10, entropy).min(room);
        // A part of a millisecond that the budget leaves is no part of any moment.
        let span = Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        Some(Self {
            until: now + span,
            span,
        })
    }
}

/// A share of `span` from nothing to all of it, in ten-thousandths.
fn share(span: Duration, entropy: u64) -> Duration {
    let parts = u32::try_from(entropy % 10_001).unwrap_or_default();
    span.checked_mul(parts).unwrap_or_default() / 10_000
}

/// A number that no other process and no other call has: callers that are refused together shall not come back together.
pub(crate) fn entropy() -> u64 {
    static OF_PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut hasher = OF_PROCESS.build_hasher();
    hasher.write_u64(CALLS.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn jitter_only_adds_a_tenth_at_most_and_stays_within_the_budget(
            least_ms in 0u64..400_000, budget_ms in 0u64..400_000, entropy: u64, now_ms in 0i64..4_000_000_000_000,
        ) {
            let now = Timestamp::from_unix_ms(now_ms);
            let (least, budget) = (Duration::from_millis(least_ms), Duration::from_millis(budget_ms));
            match Pause::within(budget, now, now + least, least, entropy) {
                None => prop_assert!(least > budget),
                Some(pause) => {
                    prop_assert!(least <= pause.span && pause.span <= budget);
                    prop_assert!(pause.span <= least + least / 10);
                    prop_assert_eq!(pause.until, now + pause.span);
                }
            }
        }
    }

    #[test]
    fn calls_that_are_refused_together_come_back_apart() {
        let now = Timestamp::EPOCH;
        let (second, day) = (Duration::from_secs(100), Duration::from_secs(86_400));
        let spans: std::collections::BTreeSet<Duration> = (0..50)
            .filter_map(|_| Pause::within(day, now, now + second, second, entropy()))
            .map(|pause| pause.span)
            .collect();
        assert!(spans.len() > 10, "{spans:?}");
    }
}
