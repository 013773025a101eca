//! Until when nothing starts, and which status asked for that, in one word.

use std::sync::atomic::{AtomicU64, Ordering};

use adjourn_pace::Moment;

/// The lowest bits have the status, which is below 1000; so a pause ends within a microsecond of its moment, and never before it.
const STATUS: u64 = (1 << 10) - 1;

/// A pause that several answers may prolong at once: the latest moment stands, with the status that asked for that one.
#[derive(Debug, Default)]
pub(super) struct Pause(AtomicU64);

impl Pause {
    /// Whether it is surely over; within its last microsecond, [`Pause::read`] knows it exactly.
    #[inline]
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.0.load(Ordering::Acquire) <= now.as_nanos()
    }

    pub(super) fn read(&self) -> (Moment, Option<u16>) {
        let word = self.0.load(Ordering::Acquire);
        let status = u16::try_from(word & STATUS).unwrap_or_default();
        (Moment::from_nanos(word & !STATUS), (status != 0).then_some(status))
    }

    /// No call before that moment. Answers with the end of the pause, which may have been later already.
    pub(super) fn prolong(&self, until: Moment, status: Option<u16>) -> Moment {
        let until = until.as_nanos().saturating_add(STATUS) & !STATUS;
        let word = until | u64::from(status.unwrap_or_default()).min(STATUS);
        let before = self.0.fetch_max(word, Ordering::AcqRel);
        Moment::from_nanos(before.max(word) & !STATUS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_moment_stands_with_its_status_and_never_ends_early() {
        let pause = Pause::default();
        assert_eq!(pause.read(), (Moment::ORIGIN, None));
        let at = Moment::from_nanos(5_000_001);
        let until = pause.prolong(at, Some(429));
        assert!(until >= at && until.since(at).as_nanos() < 1024);
        assert_eq!(pause.read(), (until, Some(429)));
        assert_eq!(pause.prolong(Moment::from_nanos(4_000_000), Some(503)), until);
        assert_eq!(pause.read(), (until, Some(429)));
        let later = pause.prolong(Moment::from_nanos(9_000_000), Some(200));
        assert_eq!(pause.read(), (later, Some(200)));
        assert_eq!(pause.prolong(Moment::MAX, None).as_nanos(), !STATUS);
    }
}
