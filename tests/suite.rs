//! The tests that need more than one crate, in one binary.
//!
//! `cfg(test)` is always on here. It is written down so that the lints know these modules, helpers and all, for tests.

#[cfg(test)]
mod asks;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod emulator;
#[cfg(test)]
mod entry_points;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod walls;
