//! What is wrong with a contract, all of it at once.

use std::fmt;

use crate::Problem;

/// Everything that is wrong with a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractError {
    problems: Vec<Problem>,
}

impl ContractError {
    /// An error if anything is wrong; in the order of the lines.
    pub(super) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
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

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} problem(s) in the contract", self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for ContractError {}
