//! Numbers from a seed, so that a run can be played again.

use std::{ops::Range, time::Duration};

use adjourn_pace::Chance;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(Chance);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(Chance::of(seed))
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`; zero for a bound of zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// A span of whole microseconds within `range`; its start where the range is empty.
    pub(super) fn span(&mut self, range: &Range<Duration>) -> Duration {
        let width = u64::try_from(range.end.saturating_sub(range.start).as_micros()).unwrap_or(u64::MAX);
        range.start.saturating_add(Duration::from_micros(self.below(width)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first three outputs of SplitMix64 for seed 1234567, as its reference implementation prints them.
        let mut random = Random::seeded(1_234_567);
        let first = [random.number(), random.number(), random.number()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn a_span_stays_in_its_range() {
        let mut random = Random::seeded(7);
        let range = Duration::from_millis(5)..Duration::from_millis(25);
        assert!((0..1000).all(|_| range.contains(&random.span(&range))));
        assert_eq!(random.span(&(range.end..range.end)), range.end);
    }
}
