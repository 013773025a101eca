//! The tests that need more than one crate, in one binary.

mod conformance;
mod corpus;
mod emulator;
mod scenarios;
mod walls;
