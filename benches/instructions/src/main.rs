//! Prints how long the counted work takes, in nanoseconds. Reported and never asserted: what is asserted is its count of
//! instructions, by `cargo bench -p adjourn-instructions`.

use std::{hint::black_box, time::Duration};

use adjourn_instructions::{Refusal, attribute, pass_on};

const ROUNDS: u32 = 20_000;

#[expect(clippy::print_stdout, reason = "the table is this program's answer")]
fn main() {
    let named = Refusal::with(&[("retry-after", "30")]);
    let dated = Refusal::with(&[("retry-after", "Fri, 10 Jul 2026 23:13:45 GMT")]);
    let unnamed = Refusal::with(&[]);
    let attribute = attribute();
    println!("{:<44} {:>9}", "work", "ns");
    for (work, took) in [
        ("read + decide + route, seconds named", time(|| named.answer())),
        ("read + decide + route, a date named", time(|| dated.answer())),
        ("read + decide + route, no time named", time(|| unnamed.answer())),
        ("envelope, decode + encode", time(|| pass_on(&attribute))),
    ] {
        println!("{work:<44} {:>9}", took.as_nanos());
    }
}

/// The least of several means, which is what the work takes when nobody disturbs it.
#[expect(clippy::disallowed_methods, reason = "what is measured here is real time")]
fn time<T>(work: impl Fn() -> T) -> Duration {
    let mean = || {
        let started = std::time::Instant::now();
        for _ in 0..ROUNDS {
            black_box(work());
        }
        started.elapsed() / ROUNDS
    };
    (0..7).map(|_| mean()).min().unwrap_or_default()
}
