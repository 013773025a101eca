//! Which of the found paces are written down for who looks, and how often: news, and seldom.

use std::time::Duration;

use adjourn_core::Timestamp;

/// No more writes than one in this time, whatever has changed.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// After so long a pace that has not changed is said again: what was said long before is a process's that is gone.
const AGAIN: Duration = Duration::from_secs(60);
/// The same pace: it has changed by less than one part in so many.
const SAME: u32 = 20;

/// A pace as it was last written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    interval: Duration,
    at: Timestamp,
}

impl Noted {
    /// Written down now.
    pub(crate) fn of(interval: Option<Duration>, at: Timestamp) -> Option<Self> {
        interval.map(|interval| Self { interval, at })
    }

    /// Whether what is found now, or that nothing is any more, is worth a write.
    pub(crate) fn is_news(noted: Option<Self>, interval: Option<Duration>, now: Timestamp) -> bool {
        match (noted, interval) {
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
            (Some(noted), Some(interval)) => {
                let change = interval.abs_diff(noted.interval);
                change.saturating_mul(SAME) > noted.interval || now.since(noted.at) >= AGAIN
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_more_than_a_twentieth_is_news_and_so_is_what_was_said_a_minute_ago() {
        let at = |seconds| Timestamp::EPOCH + Duration::from_secs(seconds);
        let ms = |ms| Some(Duration::from_millis(ms));
        let noted = Noted::of(ms(1000), at(0));
        for (noted, interval, seconds, news) in [
            (None, None, 0, false),
            (None, ms(1000), 0, true),
            (noted, None, 0, true),
            (noted, ms(1050), 59, false),
            (noted, ms(1051), 0, true),
            (noted, ms(950), 59, false),
            (noted, ms(949), 0, true),
            (noted, ms(1000), 60, true),
        ] {
            assert_eq!(
                Noted::is_news(noted, interval, at(seconds)),
                news,
                "{interval:?} after {seconds} s"
            );
        }
    }
}
