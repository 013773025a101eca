//! How far ahead a poller takes: enough that no slot waits for the disk, and no job waits here that another could do.

use std::time::Duration;

use adjourn_core::Timestamp;

/// The most that is taken ahead, in times of the concurrency.
const MOST_AHEAD: u128 = 64;

/// How long jobs take, and how long taking takes.
#[derive(Debug, Default)]
pub(super) struct Pace {
    jobs: u32,
    busy: Duration,
    /// The mean of the jobs before the last take, for a take during which none ended.
    last_mean: Option<Duration>,
    began: Option<Timestamp>,
}

impl Pace {
    /// A job has ended after so long.
    pub(super) fn performed(&mut self, took: Duration) {
        self.jobs = self.jobs.saturating_add(1);
        self.busy = self.busy.saturating_add(took);
    }

    /// A take begins.
    pub(super) fn take_began(&mut self, now: Timestamp) {
        self.began = Some(now);
    }

    /// A take is back: how many to hold beside those that run. By Little's law as many as end while four takes are under
    /// way: the next take is asked for once half of them are used up, and the other half has to last for a take that finds
    /// a commit before it in the way, as this one may not have. None while nothing is known of the jobs.
    pub(super) fn ahead(&mut self, concurrency: usize, now: Timestamp) -> usize {
        // Clocks here count milliseconds. Over many jobs that evens out, so the mean is finer; all together took one at least.
        if let Some(mean) = self.busy.max(Duration::from_millis(1)).checked_div(self.jobs) {
            self.last_mean = Some(mean);
            self.jobs = 0;
            self.busy = Duration::ZERO;
        }
        let (Some(mean), Some(began)) = (self.last_mean, self.began) else {
            return 0;
        };
        let mean = mean.as_micros().max(1);
        let taking = now.since(began).max(Duration::from_millis(1)).as_micros();
        let slots = u128::try_from(concurrency).unwrap_or(u128::MAX);
        let ahead = slots.saturating_mul(taking).saturating_mul(4) / mean;
        usize::try_from(ahead.min(slots.saturating_mul(MOST_AHEAD))).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(job_ms: u64, take_ms: u64) -> usize {
        let mut pace = Pace::default();
        let start = Timestamp::from_unix_ms(1_000_000);
        pace.take_began(start);
        (0..10).for_each(|_| pace.performed(Duration::from_millis(job_ms)));
        pace.ahead(10, start + Duration::from_millis(take_ms))
    }

    #[test]
    fn fast_jobs_are_taken_as_far_ahead_as_the_disk_is_slow() {
        assert_eq!(ahead(10, 5), 20);
        assert_eq!(ahead(1, 5), 200);
        assert_eq!(ahead(0, 1), 400, "ten jobs within a millisecond");
        assert_eq!(ahead(1, 500), 640, "and no further");
    }

    #[test]
    fn slow_jobs_are_left_to_who_can_start_them() {
        assert_eq!(ahead(1000, 5), 0);
        assert_eq!(ahead(100, 5), 2);
    }

    #[test]
    fn nothing_is_taken_ahead_before_anything_is_known() {
        let mut pace = Pace::default();
        let start = Timestamp::from_unix_ms(1_000_000);
        pace.take_began(start);
        assert_eq!(pace.ahead(10, start + Duration::from_secs(1)), 0);
        pace.performed(Duration::from_millis(1));
        assert_eq!(pace.ahead(10, start + Duration::from_millis(4)), 160);
        assert_eq!(
            pace.ahead(10, start + Duration::from_millis(2)),
            80,
            "the last mean still holds"
        );
    }
}
