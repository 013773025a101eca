//! Numbers from a seed, so that a run can be played again. SplitMix64 (Steele, Lea, Flood, 2014).

use std::{ops::Range, time::Duration};

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
