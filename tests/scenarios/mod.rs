//! Whole systems in virtual time: the laws by name, and a fault at every step.

mod cost;
mod faithful;
mod faults;
mod laws;
mod pacing;
mod seen;
