//! Whole systems in virtual time: providers that limit, workers that die, ports that fail at a chosen step.
//!
//! A [`World`] is a queue with its scheduler and stores in memory, some [`Provider`]s and some workers that poll. It runs
//! to its end on tokio's paused clock, hours in milliseconds, and the same [`Setup`] always runs the same way. What happened
//! is counted on the providers' side and by a census of every job, never by the engine's own books. That is the feature `world`, on by
//! default; without it there is [`pacing`] alone, which needs no worker and no fakes.
//!
//! ```
//! use std::time::Duration;
//! use adjourn_sim::{Hint, Limit, Provider, Setup, SimJob, simulate};
//! use adjourn_worker::fake::Faults;
//!
//! let provider = Provider::new("acme", Limit::RefuseFirst { calls: 1, wait: Duration::from_secs(30) }, Hint::Seconds);
//! let setup = Setup::new(7).provider(provider).jobs((0..3).map(|n| SimJob::new(&format!("job-{n}"), "acme")));
//! let report = simulate(&setup, &Faults::none());
//! assert_eq!((report.done, report.lost(), report.early, report.duplicates), (3, 0, 0, 0));
//! ```

#[cfg(feature = "world")]
mod handler;
#[cfg(feature = "world")]
mod job;
pub mod pacing;
#[cfg(feature = "world")]
mod provider;
#[cfg(feature = "world")]
mod report;
#[cfg(feature = "world")]
mod world;

#[cfg(feature = "world")]
pub use job::{Act, SimJob};
#[cfg(feature = "world")]
pub use provider::{Books, CallRecord, Hint, Limit, Provider, Reply};
#[cfg(feature = "world")]
pub use report::{Fate, Report};
#[cfg(feature = "world")]
pub use world::{Settle, Setup, World, simulate};
