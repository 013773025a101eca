//! What is wrong with a job, field by field.

use std::fmt;

/// Everything that is wrong with one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    problems: Vec<FieldProblem>,
}

/// Gathers what is wrong, so that a caller learns all of it at once.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<FieldProblem>);

impl Problems {
    pub(super) fn add(&mut self, field: impl Into<String>, words: impl Into<String>) {
        self.0.push(FieldProblem {
            field: field.into(),
            words: words.into(),
        });
    }

    /// The value, or nothing and one more problem.
    pub(super) fn keep<T>(&mut self, field: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|words| self.add(field, words)).ok()
    }

    /// An error if anything was wrong.
    pub(super) fn into_result(self) -> Result<(), JobError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(JobError { problems: self.0 })
        }
    }
}

/// What is wrong with one field of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    field: String,
    words: String,
}

impl FieldProblem {
    /// The field's name; empty where the whole is no job.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What was found and what is allowed.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.words)
        } else {
            write!(f, "{}: {}", self.field, self.words)
        }
    }
}

impl JobError {
    /// Each problem, in the order of the job's fields.
    #[must_use]
    pub fn problems(&self) -> &[FieldProblem] {
        &self.problems
    }

    pub(super) fn of(field: &str, words: String) -> Self {
        Self {
            problems: vec![FieldProblem {
                field: field.to_string(),
                words,
            }],
        }
    }

    pub(super) fn whole(words: String) -> Self {
        Self::of("", words)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index > 0 { " | " } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for JobError {}
