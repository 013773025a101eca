//! How long a run took beside what its scenario compares with, or why that says nothing.

use std::fmt;

use adjourn_sim::pacing::{Figures, Must};

/// A run's time, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Took {
    /// There is nothing to compare with: the limits need no time, or let nothing pass.
    Incomparable,
    /// So many times as long.
    Times(f64),
    /// More jobs were given up than may be, so that the time is that of a part.
    GaveUp,
    /// Some jobs came to no end.
    NoEnd,
}

impl Took {
    pub(super) fn of(figures: &Figures, must: &Must) -> Self {
        match figures.reference_ratio() {
            _ if figures.lost > 0 => Self::NoEnd,
            _ if figures.failed > must.given_up => Self::GaveUp,
            Some(ratio) => Self::Times(ratio),
            None => Self::Incomparable,
        }
    }

    pub(super) fn worse(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomparable => f.write_str("-"),
            Self::Times(ratio) if *ratio >= 100.0 => write!(f, "{ratio:.0}"),
            Self::Times(ratio) => write!(f, "{ratio:.2}"),
            Self::GaveUp => f.write_str("gave up"),
            Self::NoEnd => f.write_str("no end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_is_told() {
        let all = [
            Took::Incomparable,
            Took::Times(0.5),
            Took::Times(123.4),
            Took::GaveUp,
            Took::NoEnd,
        ];
        assert!(all.is_sorted());
        assert_eq!(
            all.map(|took| took.to_string()),
            ["-", "0.50", "123", "gave up", "no end"]
        );
        assert_eq!(Took::Times(2.0).worse(Took::Times(1.0)), Took::Times(2.0));
        assert_eq!(Took::Times(2.0).worse(Took::GaveUp), Took::GaveUp);
    }
}
