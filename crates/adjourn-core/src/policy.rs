//! The caps and tiers that an operator sets.

use alloc::{vec, vec::Vec};
use core::time::Duration;

/// Everything that [`decide`](crate::decide()), [`route`](crate::route()) and [`admit`](crate::admit()) take from configuration.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Policy {
    /// How refusals are waited out.
    pub deferral: DeferralPolicy,
    /// How failures are retried.
    pub retry: RetryPolicy,
}

/// The default handler of refusals: tiers and caps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferralPolicy {
    /// How often one job may be deferred.
    pub max_deferrals: u32,
    /// From the first deferral to the due time of the newest one; equal is allowed.
    pub max_deferred: Duration,
    /// How often a job may be handed on without having been called: a cap against loops of our own.
    pub max_hops: u32,
    /// The waits of consecutive refusals that name no time; the last one repeats.
    pub ladder: Vec<Duration>,
    /// How long refusals that name no time may go on in all.
    pub unknown_max: Duration,
    /// The wait where a daily limit names no time, and where a status that is no 429 is a limit without a time.
    pub probe_interval: Duration,
    /// What a monthly quota means that names no reset.
    pub monthly: Monthly,
    /// What serves a long wait where no schedule can be made.
    pub fallback: Fallback,
    /// What a FIFO queue gives up for a wait that one hold cannot cover.
    pub fifo: Fifo,
    /// The least wait after a refusal, whatever it says.
    pub min_retry_after: Duration,
    /// By how much this worker's clock may run ahead of a scheduler's or another worker's.
    pub clock_skew: Duration,
    /// How long a worker may wait in process rather than hand on; a wait of under a second just before a call is none.
    pub max_in_process_wait: Duration,
    /// What a second delivery means for a job that cannot be repeated, where nothing records that it was started.
    pub unsafe_redelivery: UnsafeRedelivery,
}

impl Default for DeferralPolicy {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            max_deferrals: 30,
            max_deferred: s(26 * 3600),
            max_hops: 500,
            ladder: vec![s(2), s(5), s(15), s(60), s(180), s(600)],
            unknown_max: s(3600),
            probe_interval: s(3600),
            monthly: Monthly::Exhaust,
            fallback: Fallback::Visibility,
            fifo: Fifo::Hold,
            min_retry_after: Duration::ZERO,
            clock_skew: Duration::ZERO,
            max_in_process_wait: Duration::ZERO,
            unsafe_redelivery: UnsafeRedelivery::Unknown,
        }
    }
}

/// How failures, which are no waits by anybody's wish, are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts a job has in all.
    pub max_attempts: u32,
    /// The wait before each further attempt, plus up to a quarter; the last one repeats.
    pub backoff: Vec<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            max_attempts: 5,
            backoff: vec![s(1), s(3), s(10), s(30)],
        }
    }
}

/// What a monthly quota means that names no reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Monthly {
    /// The job ends at once: no wait under the caps would help.
    #[default]
    Exhaust,
    /// Asked again every probe interval.
    Probe,
}

/// What serves a wait of more than one queue delay where no schedule can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fallback {
    /// One change of visibility where it covers the whole wait, otherwise hops.
    #[default]
    Visibility,
    /// A chain of the longest queue delays.
    Hops,
}

/// What a FIFO queue gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fifo {
    /// Nothing: order is kept, and a wait that one hold cannot cover ends the job.
    #[default]
    Hold,
    /// Order: such a wait becomes a schedule, and later messages of the group may overtake.
    Relaxed,
}

/// What a second delivery of an unrepeatable job means where nothing records its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnsafeRedelivery {
    /// It may have had its effect: the job ends as `unknown`.
    #[default]
    Unknown,
    /// It is called again.
    Repeat,
}
