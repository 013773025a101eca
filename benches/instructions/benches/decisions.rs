//! Counts the instructions that a refused job costs, and fails above a limit.
#![expect(
    missing_docs,
    reason = "the benchmark macros make public items without a word on them"
)]

use std::hint::black_box;

use adjourn_core::{Decision, Route};
use adjourn_instructions::{Refusal, attribute, pass_on};
use gungraun::{Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};

/// Once before it is counted: what is made at the first use alone is no cost of a job. It also shows that the case is the
/// one that its name says.
fn refusal(headers: &[(&'static str, &'static str)], expected: fn(&Route) -> bool) -> Refusal {
    let refusal = Refusal::with(headers);
    let (decision, road) = refusal.answer();
    assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
    assert!(road.as_ref().is_some_and(expected), "{road:?}");
    refusal
}

fn is_delay(road: &Route) -> bool {
    matches!(road, Route::Resend { rest: Some(_), .. })
}

fn is_schedule(road: &Route) -> bool {
    matches!(road, Route::Schedule { .. })
}

#[library_benchmark]
#[bench::seconds_named(refusal(&[("retry-after", "30")], is_delay))]
#[bench::date_named(refusal(&[("retry-after", "Fri, 10 Jul 2026 23:13:45 GMT")], is_schedule))]
#[bench::nothing_named(refusal(&[], is_delay))]
fn read_decide_route(refusal: Refusal) -> (Refusal, Decision, Option<Route>) {
    let (decision, road) = black_box(&refusal).answer();
    black_box((refusal, decision, road))
}

/// An envelope that was read once before it is counted.
fn known_attribute() -> String {
    let attribute = attribute();
    assert!(pass_on(&attribute).is_some(), "{attribute}");
    attribute
}

#[library_benchmark]
#[bench::refused_twice(known_attribute())]
fn decode_encode(attribute: String) -> (String, Option<String>) {
    let next = pass_on(black_box(&attribute));
    black_box((attribute, next))
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
    name = decisions,
    config = at_most(15_000),
    benchmarks = read_decide_route
);
library_benchmark_group!(name = envelope, config = at_most(25_000), benchmarks = decode_encode);
main!(library_benchmark_groups = [decisions, envelope]);
