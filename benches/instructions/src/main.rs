//! Prints how long the counted work takes, in nanoseconds. Reported and never asserted: what is asserted is its count of
//! instructions, by `cargo bench -p adjourn-instructions`.
//!
//! With the directory of those counts (`target/gungraun`) it prints instead how much more a hostile body of 64 KB costs than one
//! of 4 KB, and exits with 1 where that is more than its bound.

use std::{hint::black_box, path::Path, process::ExitCode, time::Duration};

use adjourn_instructions::{Refusal, attribute, growth, pass_on};

const ROUNDS: u32 = 20_000;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(counts) => growths(Path::new(&counts)),
        None => times(),
    }
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is this program's answer"
)]
fn growths(counts: &Path) -> ExitCode {
    let rows = match growth(counts) {
        Ok(rows) => rows,
        Err(missing) => {
            eprintln!("adjourn-instructions: {missing}");
            return ExitCode::from(2);
        }
    };
    println!("{:<28} {:>12} {:>12} {:>7}", "a hostile body", "4 KB", "64 KB", "times");
    for row in &rows {
        println!("{}", row.line);
    }
    if rows.iter().all(|row| row.kept) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[expect(clippy::print_stdout, reason = "the table is this program's answer")]
fn times() -> ExitCode {
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
    ExitCode::SUCCESS
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
