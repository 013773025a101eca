//! The last answers: which share of them was refused.

/// The last thirty answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recent {
    refused: u32,
    known: u32,
}

impl Recent {
    const KEPT: u32 = (1 << 30) - 1;

    pub(super) fn push(&mut self, refused: bool) {
        self.refused = ((self.refused << 1) | u32::from(refused)) & Self::KEPT;
        self.known = ((self.known << 1) | 1) & Self::KEPT;
    }

    pub(super) fn refusals(self) -> u32 {
        self.refused.count_ones()
    }

    pub(super) fn known(self) -> u32 {
        self.known.count_ones()
    }

    /// From 0 to 1.
    pub(super) fn share(self) -> f64 {
        f64::from(self.refusals()) / f64::from(self.known().max(1))
    }

    /// Whether so many answers are known at least, and this share of them or more are refusals.
    pub(super) fn says(self, (known, share): (u32, f64)) -> bool {
        self.known() >= known && self.share() >= share
    }

    /// Whether the last `count` answers were refusals, all of them.
    pub(super) fn ends_with(self, count: u32) -> bool {
        let mask = (1 << count) - 1;
        self.refused & mask == mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let mut recent = Recent::default();
        assert_eq!((recent.share(), recent.ends_with(1)), (0.0, false));
        recent.push(true);
        recent.push(true);
        assert_eq!((recent.refusals(), recent.known(), recent.share()), (2, 2, 1.0));
        assert!(recent.ends_with(2) && !recent.ends_with(3));
        (0..28).for_each(|_| recent.push(false));
        assert_eq!((recent.refusals(), recent.known()), (2, 30));
        recent.push(false);
        assert_eq!((recent.refusals(), recent.known()), (1, 30));
    }
}
