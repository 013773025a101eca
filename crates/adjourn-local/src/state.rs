//! A job's state, as people see it and as a row stores it.

use std::{fmt, str::FromStr};

use adjourn_core::Mechanism;
use serde::{Deserialize, Serialize};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It can be taken.
    Ready,
    /// It is being done.
    Running,
    /// It has a moment, a reason and somebody who named it.
    Waiting,
    /// It had its effect.
    Done,
    /// It ended without success.
    Failed,
    /// It ended at a cap on waits.
    Exhausted,
    /// It was left to a person.
    Review,
    /// A person cancelled it, or the handler dropped it.
    Cancelled,
}

impl State {
    /// Every state, in the order in which `status` shows them.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Running,
        Self::Waiting,
        Self::Done,
        Self::Failed,
        Self::Exhausted,
        Self::Review,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::Review => "review",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job is still to be done.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::Ready | Self::Running | Self::Waiting => true,
            Self::Done | Self::Failed | Self::Exhausted | Self::Review | Self::Cancelled => false,
        }
    }

    /// Whether a person may bring the job back.
    #[must_use]
    pub fn is_redrivable(self) -> bool {
        match self {
            Self::Failed | Self::Exhausted | Self::Review => true,
            Self::Ready | Self::Running | Self::Waiting | Self::Done | Self::Cancelled => false,
        }
    }

    /// The number that stands for it in the file; the partial indexes of the schema name 0.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Ready => 0,
            Self::Running => 1,
            Self::Waiting => 2,
            Self::Done => 3,
            Self::Failed => 4,
            Self::Exhausted => 5,
            Self::Review => 6,
            Self::Cancelled => 7,
        }
    }

    pub(crate) fn of_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownState(String);

impl fmt::Display for UnknownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = State::ALL.into_iter().map(State::as_str).collect();
        write!(f, "{:?} is no state; allowed are {}", self.0, words.join(", "))
    }
}

impl std::error::Error for UnknownState {}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == word)
            .ok_or_else(|| UnknownState(word.to_string()))
    }
}

/// The number that stands for a mechanism in the file.
pub(crate) const fn mechanism_code(mechanism: Mechanism) -> i64 {
    match mechanism {
        Mechanism::None => 0,
        Mechanism::Delay => 1,
        Mechanism::Schedule => 2,
        Mechanism::Visibility => 3,
    }
}

pub(crate) const fn mechanism_of_code(code: i64) -> Mechanism {
    match code {
        1 => Mechanism::Delay,
        2 => Mechanism::Schedule,
        3 => Mechanism::Visibility,
        _ => Mechanism::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_own_word_and_number() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
            assert_eq!(State::of_code(state.code()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(
            "asleep".parse::<State>().unwrap_err().to_string(),
            "\"asleep\" is no state; allowed are ready, running, waiting, done, failed, exhausted, review, cancelled"
        );
    }

    #[test]
    fn every_mechanism_survives_the_file() {
        for mechanism in [
            Mechanism::None,
            Mechanism::Delay,
            Mechanism::Schedule,
            Mechanism::Visibility,
        ] {
            assert_eq!(mechanism_of_code(mechanism_code(mechanism)), mechanism);
        }
    }
}
