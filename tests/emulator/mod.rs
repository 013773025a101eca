//! The real worker binary on a local AWS: deployed, fed through its queues, and judged by what comes out of them and by
//! what the provider saw.
//!
//! What is green here proves the wiring: the event source mapping, the SDK's requests, the partial batch response. What AWS
//! refuses and this emulator accepts is proved by the ports' own tests. Each test has an account of its own, and what it has to
//! wait for it waits for by long polling.

mod account;
mod binary;
mod dead_letters;
mod deadlines;
mod delays;
mod deployed;
mod fifo;
mod holds;
mod provider;
mod pump;
mod schedules;
mod template;
mod unsent;
