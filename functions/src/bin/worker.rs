//! The worker function.
fn main() {}
