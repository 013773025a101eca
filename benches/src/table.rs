//! The table: one row for each figure, with its bound where it has one.

/// What a ratio has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Only told.
    Reported,
}

impl Bound {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Reported => true,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(bound) => format!(">= {bound:.2}"),
            Self::AtMost(bound) => format!("<= {bound:.2}"),
            Self::Reported => "reported".to_string(),
        }
    }
}

struct Row {
    cells: [String; 6],
    kept: bool,
}

/// The rows so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A figure and what it is compared with, as words, and the number that the bound is on.
    pub(crate) fn add(&mut self, what: &str, ours: String, other: String, value: f64, bound: Bound) {
        let kept = bound.is_kept(value);
        let verdict = match (kept, bound) {
            (_, Bound::Reported) => "",
            (true, _) => "ok",
            (false, _) => "MISSED",
        };
        let value = format!("{value:.2}");
        let cells = [what.to_string(), ours, other, value, bound.words(), verdict.to_string()];
        self.rows.push(Row { cells, kept });
    }

    /// Whether every bound was kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.rows.iter().all(|row| row.kept)
    }

    #[expect(clippy::print_stdout, reason = "the table is this program's answer")]
    pub(crate) fn print(&self) {
        let head = ["what", "ours", "the other", "ratio", "bound", ""].map(str::to_string);
        let lines = || std::iter::once(&head).chain(self.rows.iter().map(|row| &row.cells));
        let mut widths = [0; 6];
        for line in lines() {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        for line in lines() {
            let padded = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}

/// What a person may know while it runs, beside the table.
#[expect(clippy::print_stderr, reason = "a command line program's words to who watches it")]
pub(crate) fn complain(words: &str) {
    eprintln!("{words}");
}

/// So many of something in a time, as a rate.
pub(crate) fn rate(count: u32, took: f64) -> String {
    format!("{:.0}/s", f64::from(count) / took)
}

/// Seconds as a span in the unit that reads best.
pub(crate) fn span(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.1} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}
