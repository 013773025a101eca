//! What adjourn decides, without a clock and without I/O.
//!
//! A worker that calls somebody else's API has to answer three questions when the provider says "not now": *until when*
//! does the job wait, *by which road* does it come back, and *when is it enough*. This crate answers them as total
//! functions over plain values: `now` and `entropy` are arguments, every input has an answer, nothing panics. What reads
//! clocks, queues and sockets lives in the crates around it.
//!
//! ```
//! use adjourn_core::{decide, Decision, Facts, Kind, Outcome, Policy, Signal, Timestamp, Verdict};
//!
//! let now = Timestamp::parse("2026-07-10T20:13:47Z").expect("a valid time");
//! let refusal = Signal::new("acme", now).kind(Kind::Short).retry_at(now + core::time::Duration::from_secs(30));
//! let decision = decide(&Policy::default(), &Facts::first_delivery(), &Outcome::Throttled(refusal), &Verdict::Default, now, 0);
//! let Decision::Wait(wait) = decision else { panic!("a refusal with a time is a wait") };
//! assert!(wait.until >= now + core::time::Duration::from_secs(30), "never early");
//! ```
//!
//! The map: `time` the one clock value · `signal` what a refusal says · `rate_limit_error` the same as an error · `policy` caps
//! and tiers · `envelope` the one attribute that a message carries · `admit` what happens before a job runs · `outcome` what
//! its run came to · `decide` what that means · `ending` the named ends · `route` which road a wait takes · `gate` what one
//! refusal teaches the others.
#![no_std]
#![deny(clippy::float_arithmetic, clippy::arithmetic_side_effects)]
#![cfg_attr(
    test,
    expect(
        clippy::arithmetic_side_effects,
        reason = "a test's sums are small and an overflow would fail it"
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod admit;
mod decide;
mod ending;
mod envelope;
mod gate;
mod outcome;
mod policy;
mod rate_limit_error;
mod route;
mod signal;
mod time;

pub use admit::{Admission, AdmissionFacts, Discarded, Standing, admit};
pub use decide::{Cause, Counter, Decision, Facts, Wait, decide, hop};
pub use ending::{Cap, Ending, EndingKind};
pub use envelope::{Content, Counters, DeferralId, Envelope, EnvelopeProblem, Identity, MAX_ENVELOPE_BYTES, Reading};
pub use gate::{Gate, Pace, Passage};
pub use outcome::{Fault, Outcome, Verdict};
pub use policy::{DeferralPolicy, Fallback, Fifo, Monthly, Policy, RetryPolicy, UnsafeRedelivery};
pub use rate_limit_error::RateLimitError;
pub use route::{Mechanism, Plan, QueueKind, Reach, Refused, Route, RouteFacts, ScheduleReach, route};
pub use signal::{Interpretation, Kind, Observation, ScopeHint, ScopeKey, Signal, Source};
pub use time::Timestamp;
