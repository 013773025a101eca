//! Counts the instructions of reading one response, and fails above a limit.
#![expect(
    missing_docs,
    reason = "the benchmark macros make public items without a word on them"
)]
#![expect(clippy::expect_used, reason = "a benchmark without its case has to stop")]

use std::hint::black_box;

use adjourn_http::Reading;
use adjourn_instructions::{Answer, Hostile, SHAPES};
use gungraun::{Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};

/// Read once before it is counted, since what is made at the first use alone is no cost of a response; and with a moment, or
/// the case would not be the one that its name says.
fn named(answer: Answer) -> Answer {
    let reading = answer.read();
    assert!(
        reading.is_limited() && reading.into_signal().earliest_retry_at().is_some(),
        "a refusal that names its moment"
    );
    answer
}

fn hostile(shape: &str, kilobytes: usize) -> Hostile {
    let hostile = Hostile::of(shape, kilobytes).expect("a shape that is known, and contracts that are read");
    assert!(hostile.read().iter().all(Reading::is_limited));
    hostile
}

fn four_kilobytes(shape: &str) -> Hostile {
    hostile(shape, 4)
}

fn sixty_four_kilobytes(shape: &str) -> Hostile {
    hostile(shape, 64)
}

fn headers(of_the_limit: &[(&'static str, &'static str)]) -> Answer {
    let usual = [
        ("content-type", "application/json"),
        ("server", "acme-edge"),
        ("x-request-id", "req_81"),
    ];
    named(Answer::of(
        &[&usual[..], of_the_limit].concat(),
        br#"{"error":"rate_limited"}"#.to_vec(),
    ))
}

#[library_benchmark]
#[bench::retry_after(headers(&[("retry-after", "30")]))]
#[bench::reset_headers(headers(&[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1783714487")]))]
fn header_dialect(answer: Answer) -> (Answer, Reading) {
    let reading = black_box(&answer).read();
    black_box((answer, reading))
}

#[library_benchmark]
#[bench::json_error(named(Answer::json_error()))]
fn body_that_decides(answer: Answer) -> (Answer, Reading) {
    let reading = black_box(&answer).read();
    black_box((answer, reading))
}

#[library_benchmark]
#[benches::of_4_kb(iter = SHAPES, setup = four_kilobytes)]
#[benches::of_64_kb(iter = SHAPES, setup = sixty_four_kilobytes)]
fn hostile_body(hostile: Hostile) -> (Hostile, Vec<Reading>) {
    let readings = black_box(&hostile).read();
    black_box((hostile, readings))
}

fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(
        Callgrind::default()
            .hard_limits([(EventKind::Ir, instructions)])
            .clone(),
    );
    config
}

library_benchmark_group!(
    name = headers_alone,
    config = at_most(10_000),
    benchmarks = header_dialect
);
library_benchmark_group!(name = body, config = at_most(100_000), benchmarks = body_that_decides);
library_benchmark_group!(name = hostile, benchmarks = hostile_body);
main!(library_benchmark_groups = [headers_alone, body, hostile]);
