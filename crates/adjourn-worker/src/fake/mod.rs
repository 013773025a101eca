//! The ports in memory, for tests that move time.
//!
//! They refuse what AWS refuses, which an emulator may not, and every call of theirs is a numbered step at which [`Faults`]
//! can make it fail, lose its reply, or stop the process. What a service does on its own (a visibility timeout that ends, a
//! redrive to the dead-letter queue, a schedule that fires) follows the injected clock.
//!
//! ```
//! # async fn example() {
//! use std::sync::Arc;
//! use adjourn_core::Timestamp;
//! use adjourn_worker::{VirtualClock, fake::FakeQueue};
//!
//! let clock = Arc::new(VirtualClock::starting_at(Timestamp::EPOCH));
//! let queue = FakeQueue::standard("jobs", clock);
//! queue.send_body("{}").unwrap();
//! let batch = queue.receive(10).await.unwrap();
//! // `worker.run_batch(batch.clone(), None)` decides which stay; here none does.
//! queue.respond(&batch, &[]).await.unwrap();
//! assert!(queue.messages().is_empty());
//! # }
//! ```

mod faults;
mod gates;
mod ledger;
mod queue;
mod rules;
mod scheduler;
mod sink;
mod source;
mod store;

pub use faults::{Faults, PortFault, Process};
pub use gates::FakeGateStore;
pub use ledger::FakeLedger;
pub use queue::{Calls, FakeQueue, QueueSettings, Step};
pub use rules::Outgoing;
pub use scheduler::{FakeScheduler, ScheduleSettings};
pub use sink::RecordingSink;
pub use store::Stored;

/// A lock of a fake is never left half changed, so a poisoned one is as good as another.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
