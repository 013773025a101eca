//! How a command ends: what it returns, what stderr says, and the exit status.

use std::{fmt, io};

/// Why a command did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The answer is no, or some failed: exit 1.
    No(String),
    /// Bad usage or bad input: exit 2.
    Bad(String),
    /// Whoever read our output has gone: a quiet end.
    ClosedPipe,
    /// Ended at once by this signal, as a shell counts it.
    Interrupted(Signal),
}

/// A signal that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// What a service's supervisor sends.
    Terminate,
}

/// What a command answers.
pub(crate) type Ended = Result<(), Failure>;

impl Failure {
    /// The exit status. A reader that has gone has read what it wanted.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::No(_) => 1,
            Self::Bad(_) => 2,
            Self::ClosedPipe => 0,
            // 128 and the signal's number.
            Self::Interrupted(Signal::Interrupt) => 130,
            Self::Interrupted(Signal::Terminate) => 143,
        }
    }

    /// What stderr says; nothing for a closed pipe.
    pub(crate) fn words(&self) -> Option<&str> {
        match self {
            Self::No(words) | Self::Bad(words) => Some(words),
            Self::ClosedPipe | Self::Interrupted(_) => None,
        }
    }

    /// Bad input, with what to do about it.
    pub(crate) fn bad(what: impl fmt::Display) -> Self {
        Self::Bad(what.to_string())
    }

    /// The answer is no.
    pub(crate) fn no(what: impl fmt::Display) -> Self {
        Self::No(what.to_string())
    }
}

/// An error of writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::No(format!("cannot write to stdout: {error}"))
        }
    }
}
