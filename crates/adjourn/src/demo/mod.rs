//! A provider that limits, the jobs that call it, and the books by which the outcome is judged.
//!
//! `adjourn demo` plays them on a terminal; tests and benches use the same provider.
//!
//! ```
//! use std::sync::Arc;
//! use adjourn::demo::{Behaviour, Provider, Workload};
//! use adjourn_worker::SystemClock;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let provider = Provider::open(Behaviour::default(), Arc::new(SystemClock)).await?;
//! let jobs = Workload::new(200, 1);
//! // Send jobs.lines() to a worker whose provider "demo" is at provider.base_url(), and then:
//! let tally = provider.books().tally(jobs.ids());
//! assert_eq!(tally.lost, 200, "nobody has called yet");
//! # std::io::Result::Ok(())
//! # })?;
//! # std::io::Result::Ok(())
//! ```

mod books;
mod limit;
mod provider;
mod random;
mod workload;

pub use books::{Books, Call, Tally};
pub use limit::Limit;
pub use provider::{Behaviour, IDEMPOTENCY_HEADER, Provider, RetryAfter};
pub use workload::{PROVIDER_NAME, Workload};
