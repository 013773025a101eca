//! adjourn on the command line.
//!
//! The commands are in the binary. This library has what tests and benches share with them: [`demo`], a provider that
//! limits its callers and keeps books of what they did.
pub mod demo;
