//! What is wrong with a scenario file, all of it at once.

use std::fmt;

/// How many problems are shown; whoever has more has another file in hand.
pub(super) const SHOWN_PROBLEMS: usize = 50;

/// Everything that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

/// One thing that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    line: usize,
    key: String,
    words: String,
}

impl Problem {
    /// What a file holds is shown without control characters, which could move a terminal's cursor.
    pub(super) fn new(line: usize, key: &str, words: &str) -> Self {
        let harmless = |text: &str| {
            text.chars()
                .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
                .collect()
        };
        Self {
            line,
            key: harmless(key),
            words: harmless(words),
        }
    }

    /// The line that it stands on, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The key, with the tables around it: `limits[0].rate`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What was found and what is allowed.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.words)
    }
}

impl ScenarioError {
    /// In the order of the lines.
    pub(super) fn of(mut problems: Vec<Problem>) -> Self {
        problems.sort();
        Self { problems }
    }

    /// Each problem, in the order of the lines.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} problem(s) in the scenario", self.problems.len())?;
        let mut shown = self.problems.iter().take(SHOWN_PROBLEMS);
        shown.try_for_each(|problem| write!(f, "\n{problem}"))?;
        match self.problems.len().checked_sub(SHOWN_PROBLEMS) {
            Some(more @ 1..) => write!(f, "\nand {more} more"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}
