//! Why a call through a layer has no response.

use std::{error::Error, fmt};

use adjourn_core::RateLimitError;

/// Why a call through a layer has no response.
///
/// It becomes a worker's interrupt by `?`: the refusal is found in its source chain, also where a client wraps it in an error of
/// its own.
#[derive(Debug)]
pub enum CallError {
    /// The provider refused, or our own budget had no turn for the call, and a wait did not fit.
    Refused(RateLimitError),
    /// The client below failed.
    Failed(Box<dyn Error + Send + Sync>),
}

impl CallError {
    /// The refusal, also where a layer below has made an error of its own of it.
    #[must_use]
    pub fn refusal(&self) -> Option<RateLimitError> {
        RateLimitError::find_in(self)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "the call was refused for a limit",
            Self::Failed(_) => "the call failed",
        })
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(error) => Some(error.as_ref()),
        }
    }
}

/// What the layers above a client make of its errors, as tower's `BoxError`; a refusal in it is found.
impl From<Box<dyn Error + Send + Sync>> for CallError {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(error) => Self::Failed(error),
        }
    }
}
