//! How the cost of a body grows with its size, out of the counts that the benchmarks left.

use std::path::Path;

use crate::SHAPES;

/// The most times that a body of 64 KB may cost what one of 4 KB does. In proportion it is 16; what grows as the square of
/// the size is 256.
const MOST: u64 = 20;

/// One line for each shape of [`SHAPES`]: what it is full of, both counts, and their ratio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The line.
    pub line: String,
    /// Whether the larger body costs at most 20 times as much.
    pub kept: bool,
}

/// What the counts in the benchmarks' directory say.
///
/// # Errors
/// In words, where a count is missing.
pub fn growth(counts: &Path) -> Result<Vec<Growth>, String> {
    let rows = SHAPES.iter().enumerate().map(|(index, shape)| {
        let (small, large) = (count(counts, "of_4_kb", index)?, count(counts, "of_64_kb", index)?);
        let tenths = large * 10 / small.max(1);
        let kept = large <= small * MOST;
        let verdict = if kept { "ok" } else { "MISSED" };
        Ok(Growth {
            line: format!(
                "{shape:<28} {small:>12} {large:>12} {:>5}.{}  <= {MOST}  {verdict}",
                tenths / 10,
                tenths % 10
            ),
            kept,
        })
    });
    rows.collect()
}

fn count(counts: &Path, size: &str, index: usize) -> Result<u64, String> {
    let bench = format!("hostile_body.{size}_{index}");
    let file = counts
        .join("adjourn-instructions/reading/hostile")
        .join(&bench)
        .join(format!("callgrind.{bench}.out"));
    let text = std::fs::read_to_string(&file).map_err(|error| {
        format!(
            "{}: {error}; `cargo bench -p adjourn-instructions` writes it",
            file.display()
        )
    })?;
    // The first of the totals is the one of instructions.
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ")?.split(' ').next()?.parse().ok());
    total.ok_or_else(|| format!("{}: has no totals", file.display()))
}
