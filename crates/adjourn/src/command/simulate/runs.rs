//! One scenario under one strategy, in words: a line for each variant.

use std::io::{self, Write};

use adjourn_sim::pacing::Figures;

use super::played::Played;
use crate::paint::{Paint, Tone};

pub(super) fn table(out: &mut impl Write, played: &Played, seed: u64, paint: Paint) -> io::Result<()> {
    let scenario = &played.scenario;
    writeln!(out, "{}: {}", paint.words(Tone::Strong, &scenario.name), scenario.title)?;
    writeln!(out, "must: {}", scenario.must.words())?;
    if let Some(run) = played.runs().next() {
        writeln!(out, "strategy {}, seed {seed}\n", run.figures.strategy)?;
    }
    let longest = played
        .runs()
        .filter_map(|run| run.figures.variant.as_ref().map(String::len))
        .max();
    let width = longest.unwrap_or(0).max("variant".len());
    let head = format!(
        "{:<width$}  {:>9} {:>9} {:>12} {:>12} {:>6} {:>8} {:>9} {:>10} {:>10} {:>8}",
        "variant", "done", "given up", "took", "limit", "ratio", "refused", "in flight", "p50", "p99", "fairness"
    );
    writeln!(out, "{}", paint.words(Tone::Quiet, head))?;
    for run in played.runs() {
        let figures = &run.figures;
        let (tone, verdict) = match figures.missed.as_slice() {
            [] => (Tone::Good, "met"),
            _ => (Tone::Bad, "missed"),
        };
        writeln!(
            out,
            "{:<width$}  {:>9} {:>9} {:>12} {:>12} {:>6} {:>8} {:>9} {:>10} {:>10} {:>8.2}  {}",
            figures.variant.as_deref().unwrap_or("-"),
            figures.done,
            figures.failed,
            seconds(figures.makespan_ms),
            seconds(figures.limit_ms),
            figures
                .ratio
                .map_or_else(|| "-".to_string(), |ratio| format!("{ratio:.2}")),
            percent(figures),
            figures.max_in_flight,
            seconds(figures.p50_latency_ms),
            seconds(figures.p99_latency_ms),
            figures.fairness,
            paint.words(tone, verdict)
        )?;
    }
    Ok(())
}

/// Refused calls of all.
pub(super) fn percent(figures: &Figures) -> String {
    format!("{:.1} %", 100.0 * figures.refused_share)
}

/// Milliseconds as seconds.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1000, ms % 1000 / 10)
}
