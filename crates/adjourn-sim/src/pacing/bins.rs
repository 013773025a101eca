//! What happens in a run, counted in equal stretches of time: a few hundred of them, however long the run and however many its calls.

use std::time::Duration;

use adjourn_pace::{Moment, Outcome};

use super::Seen;

/// The most bins; one more, and each two become one.
const MOST: usize = 512;
/// The first length of a bin.
const FINEST: Duration = Duration::from_millis(1);

/// One stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Calls that passed.
    pub passed: u32,
    /// Calls that a limit refused.
    pub refused: u32,
    /// Calls that failed.
    pub failed: u32,
    /// Jobs that were wanted and had not ended, at the end of the stretch.
    pub backlog: u32,
}

/// The bins of a run, from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    width: Duration,
    bins: Vec<Bin>,
    backlog: u32,
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            width: FINEST,
            bins: Vec::new(),
            backlog: 0,
        }
    }
}

impl Bins {
    /// Takes note of what was seen.
    pub fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Wanted { at, jobs } => {
                self.backlog = self.backlog.saturating_add(jobs);
                self.note(at, |_| {});
            }
            Seen::Called(call) => self.note(call.at, |bin| match call.outcome {
                Outcome::Passed => bin.passed += 1,
                Outcome::Refused => bin.refused += 1,
                Outcome::Failed => bin.failed += 1,
            }),
            Seen::Ended { at, .. } => {
                self.backlog = self.backlog.saturating_sub(1);
                self.note(at, |_| {});
            }
        }
    }

    fn note(&mut self, at: Moment, count: impl FnOnce(&mut Bin)) {
        while self.place(at) >= MOST {
            *self = self.coarser();
        }
        let place = self.place(at);
        let before = self.bins.last().copied().unwrap_or_default();
        while self.bins.len() <= place {
            // What nothing happened in keeps the backlog.
            self.bins.push(Bin {
                backlog: before.backlog,
                ..Bin::default()
            });
        }
        if let Some(bin) = self.bins.get_mut(place) {
            count(bin);
        }
        // An ideal client's call is seen as it leaves, so what is seen next may lie a little before.
        if let Some(bin) = self.bins.last_mut() {
            bin.backlog = self.backlog;
        }
    }

    fn place(&self, at: Moment) -> usize {
        let nanos = at.since(Moment::ORIGIN).as_nanos() / self.width.as_nanos().max(1);
        usize::try_from(nanos).unwrap_or(usize::MAX)
    }

    /// How long each bin is.
    #[must_use]
    pub fn width(&self) -> Duration {
        self.width
    }

    /// The bins in their order.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The same in bins of twice the length.
    #[must_use]
    pub fn coarser(&self) -> Self {
        let joined = self.bins.chunks(2).map(|pair| {
            pair.iter().fold(Bin::default(), |sum, bin| Bin {
                passed: sum.passed.saturating_add(bin.passed),
                refused: sum.refused.saturating_add(bin.refused),
                failed: sum.failed.saturating_add(bin.failed),
                backlog: bin.backlog,
            })
        });
        Self {
            width: self.width.saturating_mul(2),
            bins: joined.collect(),
            backlog: self.backlog,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Traced;

    fn called(ms: u64, outcome: Outcome) -> Seen {
        Seen::Called(Traced {
            at: Moment::after(Duration::from_millis(ms)),
            job: 0,
            outcome,
            in_flight: 1,
        })
    }

    fn ended(ms: u64) -> Seen {
        Seen::Ended {
            at: Moment::after(Duration::from_millis(ms)),
            done: true,
        }
    }

    #[test]
    fn nothing_is_lost_when_bins_grow() {
        let mut bins = Bins::default();
        bins.see(Seen::Wanted {
            at: Moment::ORIGIN,
            jobs: 3000,
        });
        for n in 0..3000 {
            bins.see(called(
                n * 7,
                if n % 3 == 0 { Outcome::Refused } else { Outcome::Passed },
            ));
            bins.see(ended(n * 7));
        }
        // 21 s in at most 512 bins of a power of two milliseconds.
        assert_eq!(bins.width(), Duration::from_millis(64));
        assert_eq!(bins.bins().len(), 20_993_usize.div_ceil(64));
        assert_eq!(bins.bins().iter().map(|bin| bin.passed).sum::<u32>(), 2000);
        assert_eq!(bins.bins().iter().map(|bin| bin.refused).sum::<u32>(), 1000);
        assert!(bins.bins().is_sorted_by(|one, two| one.backlog >= two.backlog));
        assert_eq!(bins.bins().last().unwrap().backlog, 0);
    }

    #[test]
    fn a_silent_stretch_keeps_the_backlog() {
        let mut bins = Bins::default();
        bins.see(Seen::Wanted {
            at: Moment::ORIGIN,
            jobs: 2,
        });
        bins.see(ended(1));
        bins.see(ended(9));
        let backlogs: Vec<u32> = bins.bins().iter().map(|bin| bin.backlog).collect();
        assert_eq!(backlogs, [2, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }
}
