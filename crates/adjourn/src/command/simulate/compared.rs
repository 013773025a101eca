//! Every strategy beside every other, in words: a line for each scenario, or for each variant of one.

use std::{
    fmt,
    io::{self, Write},
};

use adjourn_sim::pacing::Must;

use super::{
    played::{Played, PlayedVariant, Run},
    took::Took,
};
use crate::paint::{Paint, Tone};

/// How wide a strategy's column is.
const CELL: usize = 16;

/// What one strategy made of one line's runs: the worst of each figure.
pub(super) struct Cell {
    took: Took,
    refused_share: f64,
    missed: bool,
}

impl Cell {
    pub(super) fn of<'r>(runs: impl Iterator<Item = &'r Run>, must: &Must) -> Self {
        let none = Self {
            took: Took::Incomparable,
            refused_share: 0.0,
            missed: false,
        };
        runs.fold(none, |cell, run| Self {
            took: cell.took.worse(Took::of(&run.figures, must)),
            refused_share: cell.refused_share.max(run.figures.refused_share),
            missed: cell.missed || !run.figures.missed.is_empty(),
        })
    }

    pub(super) fn is_missed(&self) -> bool {
        self.missed
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.missed { '!' } else { ' ' };
        write!(f, "{} {:>5.1} %{mark}", self.took, 100.0 * self.refused_share)
    }
}

/// The worst variant of each scenario in a line; of one scenario alone, a line for each variant.
pub(super) fn table(out: &mut impl Write, played: &[Played], each_variant: bool, paint: Paint) -> io::Result<()> {
    let Some(first) = played.first() else { return Ok(()) };
    if each_variant {
        writeln!(
            out,
            "{}: {}",
            paint.words(Tone::Strong, &first.scenario.name),
            first.scenario.title
        )?;
        writeln!(out, "must: {}\n", first.scenario.must.words())?;
    }
    let lines: Vec<(String, Vec<Cell>)> = if each_variant {
        played.iter().flat_map(variants).collect()
    } else {
        played.iter().map(whole).collect()
    };
    let longest = lines.iter().map(|(name, _)| name.len()).max();
    let width = longest.unwrap_or(0).max("scenario".len());
    let names = first.variants.first().into_iter().flat_map(|variant| &variant.runs);
    let mut head = format!("{:<width$}", if each_variant { "variant" } else { "scenario" });
    for run in names {
        head = format!("{head} {:>CELL$}", run.figures.strategy);
    }
    writeln!(out, "{}  against", paint.words(Tone::Strong, head))?;
    let against = played.iter().flat_map(|played| {
        let count = if each_variant { played.variants.len() } else { 1 };
        std::iter::repeat_n(played.scenario.must.against.name(), count)
    });
    for ((name, cells), against) in lines.iter().zip(against) {
        write!(out, "{name:<width$}")?;
        for cell in cells {
            let words = format!("{:>CELL$}", cell.to_string());
            let shown = if cell.is_missed() {
                paint.words(Tone::Bad, words)
            } else {
                words
            };
            write!(out, " {shown}")?;
        }
        writeln!(out, "  {against}")?;
    }
    writeln!(
        out,
        "\nEach cell: the time that it took over the time of what stands under \"against\", and the share of calls that were refused;\n\
         of a scenario's variants the worst. ! where the scenario's must was missed. gave up: more jobs than it may, so that the time would\n\
         be that of a part; no end: some jobs came to none."
    )
}

pub(super) fn whole(played: &Played) -> (String, Vec<Cell>) {
    let count = played.variants.first().map_or(0, |variant| variant.runs.len());
    let of = |place: usize| {
        let runs = played
            .variants
            .iter()
            .filter_map(move |variant| variant.runs.get(place));
        Cell::of(runs, &played.scenario.must)
    };
    (played.scenario.name.clone(), (0..count).map(of).collect())
}

fn variants(played: &Played) -> Vec<(String, Vec<Cell>)> {
    let of = |variant: &PlayedVariant| {
        let name = variant.runs.first().and_then(|run| run.figures.variant.clone());
        let cell = |run| Cell::of(std::iter::once(run), &played.scenario.must);
        (
            name.unwrap_or_else(|| "-".to_string()),
            variant.runs.iter().map(cell).collect(),
        )
    };
    played.variants.iter().map(of).collect()
}
