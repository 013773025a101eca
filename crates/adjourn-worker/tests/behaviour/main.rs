//! What a worker does with a batch: given these messages and these answers, expect these settlements.
//!
//! On the ports in memory and in virtual time.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod admission;
mod answers;
mod batches;
mod counting;
mod noting;
mod pacing;
mod refusals;
mod routes;
mod stage;
