//! What a response tells of limits, as the counters that a worker's pacer keeps to.

use adjourn_core::Timestamp;
use adjourn_worker::Counter;

use crate::LimitState;

/// The limits that say what is left of them until a moment that is still to come. Without such a moment, nothing says when to call again.
pub(crate) fn told(limits: &[LimitState], now: Timestamp) -> impl Iterator<Item = Counter> {
    limits.iter().filter_map(move |limit| {
        Some(Counter {
            limit: limit.limit.and_then(|limit| u64::try_from(limit).ok()),
            remaining: u64::try_from(limit.remaining?.max(0)).ok()?,
            resets_at: limit.resets_at.filter(|&at| at > now)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_names_what_is_left_and_until_when_is_a_counter() {
        let now = Timestamp::from_unix_ms(1_000_000);
        let after = |seconds| now + Duration::from_secs(seconds);
        let limit = |limit, remaining, resets_in: Option<u64>| LimitState {
            name: String::new(),
            limit,
            remaining,
            resets_at: resets_in.map(after),
        };
        let limits = [
            limit(Some(10), Some(3), Some(1)),
            limit(Some(10), Some(0), None),
            limit(Some(10), Some(0), Some(0)),
            limit(Some(10), None, Some(5)),
            limit(Some(-1), Some(-3), Some(60)),
        ];
        let counter = |limit, remaining, seconds| Counter {
            limit,
            remaining,
            resets_at: after(seconds),
        };
        let counters: Vec<Counter> = told(&limits, now).collect();
        assert_eq!(
            counters,
            [counter(Some(10), 3, 1), counter(None, 0, 60)],
            "overdrawn is spent"
        );
    }
}
