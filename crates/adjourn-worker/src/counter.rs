//! A limit's own count, as a provider tells it with its answers.

use adjourn_core::Timestamp;

/// What is left of a limit until it starts anew: `X-RateLimit-Remaining` and its kin. It counts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Calls of a whole window, where the provider says so.
    pub limit: Option<u64>,
    /// Calls that are left of this one.
    pub remaining: u64,
    /// When the next one begins.
    pub resets_at: Timestamp,
}
