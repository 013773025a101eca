//! What is wrong with the settings, all of it at once.

use std::fmt;

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    problems: Vec<Problem>,
}

/// One thing that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    line: usize,
    key: String,
    words: String,
}

impl Problem {
    pub(crate) fn new(line: usize, key: &str, words: String) -> Self {
        Self {
            line,
            key: key.to_string(),
            words,
        }
    }

    /// The line that it stands on, from 1; 0 for the file as a whole.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The key, with the tables around it: `providers.acme.timeout_ms`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What was found and what is allowed; never a credential.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.words)
    }
}

impl SettingsError {
    /// An error if anything is wrong; in the order of the lines.
    pub(crate) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        problems.sort();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Each problem, in the order of the lines.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} problem(s) in the settings", self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for SettingsError {}
