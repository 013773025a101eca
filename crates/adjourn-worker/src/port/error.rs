//! The error of a port: opaque, with the questions that a caller may ask.

use std::{error::Error, fmt};

/// Why a port did not do what it was asked. The port's own error is the source.
#[derive(Debug)]
pub struct PortError {
    kind: Kind,
    source: Box<dyn Error + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Refused,
    Throttled,
    Transient,
}

impl PortError {
    /// It will not be done, now or later.
    pub fn refused(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: Kind::Refused,
            source: source.into(),
        }
    }

    /// Too many requests; later it may be done.
    pub fn throttled(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: Kind::Throttled,
            source: source.into(),
        }
    }

    /// A passing fault, or a reply that was lost: it may have been done.
    pub fn transient(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: Kind::Transient,
            source: source.into(),
        }
    }

    /// Whether the service asked for fewer requests.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.kind == Kind::Throttled
    }

    /// Whether the same request may succeed later, or may even have succeeded.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind != Kind::Refused
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
