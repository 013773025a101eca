//! adjourn on one machine: a queue, its schedules, gates and ledger in one SQLite file.
//!
//! Who has one server wants no cloud queue, and still wants a throttled job to come back when its provider said, to survive
//! a power cut, and to be seen while it waits. A [`Store`] is every port of a worker at once, so a hand-off is one
//! transaction that moves the job's row: there is never a second wake-up. A [`Poller`] plays the part that an event source
//! mapping has in the cloud: it takes jobs in fair turns, has the worker perform them, and settles them in groups.
//!
//! ```
//! # use std::sync::Arc;
//! use adjourn_local::{NewJob, Poller, PollerOptions, Store};
//! use adjourn_worker::{Done, Handler, Interrupt, Job, SystemClock};
//!
//! struct Invoices;
//! impl Handler for Invoices {
//!     async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
//!         println!("{}", job.body());
//!         Ok(Done::new())
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("adjourn.db");
//! let store = Store::open(path, Arc::new(SystemClock))?;
//! store.send(vec![NewJob::new("invoice-7", "acme", r#"{"amount":12}"#)], false).await?;
//! let worker = store.worker(Invoices).build();
//! Poller::run(worker, store.clone(), PollerOptions::default().until_idle(), std::future::pending()).await?;
//! assert_eq!(store.status().await?.done, 1);
//! # Ok(())
//! # }
//! ```
//!
//! The map: `store` the handle · `connection`, `schema` the file · `writer` one transaction for all that is pending ·
//! `send`, `take`, `lease`, `settle` a job's way · `gates` · `cancel`, `redrive` what a person does · `view`, `history` what
//! a person sees · `ports` the worker's traits · `poller` the loop.

mod cancel;
mod connection;
mod failure;
#[cfg(test)]
mod fixture;
mod gates;
mod history;
mod lease;
mod poller;
mod ports;
mod redrive;
mod schema;
mod send;
mod settle;
mod state;
mod store;
mod take;
mod view;
mod writer;

use std::time::Duration;

pub use cancel::{AlreadyEnded, CancelReport, Prevented, Selection};
pub use failure::StoreError;
pub use gates::GateView;
pub use lease::{LEASE, Lease, RENEWAL};
pub use poller::{Poller, PollerOptions, Progress};
pub use redrive::{Redrive, RedriveReport, Redriven};
pub use send::{NewJob, SendOutcome, Sent};
pub use state::{State, UnknownState};
pub use store::Store;
pub use take::Taken;
pub use view::{JobDetail, JobFilter, JobView, Status};

/// The queue's name on messages and in envelopes.
pub const QUEUE: &str = "local";
/// The longest wait that is shown as a delay; what is longer is a schedule. The same tiers as in the cloud.
pub const MAX_DELAY: Duration = Duration::from_secs(900);
/// The most bytes of a message, attributes included.
pub const MAX_MESSAGE_BYTES: usize = 1_048_576;
/// The most bytes of a job as it is sent: a message less 2 KiB for what is ours.
pub const MAX_JOB_BYTES: usize = MAX_MESSAGE_BYTES - 2048;
/// After how many receives without a settlement a job is given up as crashed.
pub const MAX_RECEIVE_COUNT: u32 = 5;
