//! Tokens that are asked for: where they come from, and why there is none.

mod client_credentials;
mod endpoint;
#[cfg(test)]
mod tests;

use std::{error, fmt, sync::Arc, time::Duration};

use adjourn_core::{Fault, Outcome, RateLimitError, Timestamp};
use async_trait::async_trait;
use secrecy::SecretString;

pub(crate) use client_credentials::ClientCredentials;
pub(crate) use endpoint::{Endpoint, scope};

/// Gives the tokens that a provider's calls carry.
///
/// [`Requester`](crate::Requester) has one for each provider with `credential = { oauth2 = ... }`, which asks by the client
/// credentials grant; [`Requester::tokens`](crate::Requester::tokens) takes one of another kind.
#[async_trait]
pub trait TokenSource: Send + Sync + fmt::Debug + 'static {
    /// A token that is good for now, within that time: what the caller may be kept waiting, and one request.
    ///
    /// # Errors
    /// When there is none.
    async fn token(&self, within: Duration) -> Result<Token, TokenError>;

    /// Another token than this one, which the provider did not take.
    ///
    /// # Errors
    /// When there is none.
    async fn renewed(&self, refused: &Token, within: Duration) -> Result<Token, TokenError>;

    /// How long the source wants no call, where it was refused: a call that has no token for that is repeated at that moment, and for
    /// nothing before it. None where it knows no more than what the refusal says.
    fn pause_remaining(&self) -> Option<Duration> {
        None
    }
}

/// A token. It is not printed, and is wiped when it is dropped.
#[derive(Clone)]
pub struct Token {
    value: Arc<SecretString>,
    good_until: Option<Timestamp>,
}

impl Token {
    /// A token, and until when it is good where that is known.
    #[must_use]
    pub fn new(value: SecretString, good_until: Option<Timestamp>) -> Self {
        Self {
            value: Arc::new(value),
            good_until,
        }
    }

    /// Until when it is good, where that is known.
    #[must_use]
    pub fn good_until(&self) -> Option<Timestamp> {
        self.good_until
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.value
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("good_until", &self.good_until)
            .finish_non_exhaustive()
    }
}

/// Why there is no token. It is the token endpoint's affair, and says nothing about the job.
#[derive(Clone, Debug)]
pub enum TokenError {
    /// The token endpoint said "not now", under a scope of its own.
    Refused(RateLimitError),
    /// It gave none, and may be asked again.
    Failed(Fault),
}

impl TokenError {
    pub(crate) fn into_outcome(self) -> Outcome {
        match self {
            Self::Refused(refusal) => Outcome::Throttled(refusal.into_signal()),
            Self::Failed(fault) => Outcome::Failed(fault),
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => refusal.status(),
            Self::Failed(fault) => fault.last_status(),
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the token endpoint refused for a limit"),
            Self::Failed(fault) => f.write_str(fault.why()),
        }
    }
}

impl error::Error for TokenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) => None,
        }
    }
}
