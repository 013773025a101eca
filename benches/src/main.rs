//! Measures what adjourn costs, each figure beside the same work done without it, and prints one table.
//!
//! `adjourn-bench` measures everything; `adjourn-bench SECTION...` only these sections. Exit 1 when a bound is missed. Both
//! sides of a ratio run in alternation within one run, so that a busy machine slows both; times are reported and never
//! asserted.

mod budgets;
mod calls;
mod children;
mod engine;
mod enqueue;
mod explain;
mod function;
mod jobs;
mod pairs;
mod processes;
mod provider;
mod requester;
mod runtime_api;
mod table;
mod taking;

use std::process::ExitCode;

use table::Table;

/// What stops a measurement; the only place for words is the end of the program.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const SECTIONS: [&str; 8] = [
    "budgets",
    "engine",
    "enqueue",
    "explain",
    "taking",
    "processes",
    "requester",
    "function",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        [children::PROVIDER, takes] => provider::serve(takes).map(|()| true),
        [children::POLLER, store, url] => processes::poll(store, url).map(|()| true),
        [requester::CALLS_OF, side, calls] => requester::count(side, calls).map(|()| true),
        sections => measure(sections),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            table::complain(&format!("adjourn-bench: {failure}"));
            ExitCode::from(2)
        }
    }
}

/// Whether every bound was kept.
fn measure(sections: &[&str]) -> Result<bool, Failure> {
    if let Some(stranger) = sections.iter().find(|section| !SECTIONS.contains(section)) {
        return Err(format!("no section {stranger:?}; there are {}", SECTIONS.join(", ")).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut table = Table::default();
    for section in SECTIONS {
        if !sections.is_empty() && !sections.contains(&section) {
            continue;
        }
        table::complain(&format!("measuring: {section}"));
        runtime.block_on(async {
            match section {
                "budgets" => budgets::measure(&mut table).await,
                "engine" => engine::measure(&mut table).await,
                "enqueue" => enqueue::measure(&mut table).await,
                "explain" => explain::measure(&mut table).await,
                "taking" => taking::measure(&mut table).await,
                "processes" => processes::measure(&mut table).await,
                "requester" => requester::measure(&mut table).await,
                _ => function::measure(&mut table).await,
            }
        })?;
    }
    table.print();
    Ok(table.is_kept())
}
