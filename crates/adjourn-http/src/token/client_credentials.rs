//! One token for many callers: kept while it is good, asked for by one of them when it is not.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjourn_core::Timestamp;
use async_trait::async_trait;

use super::{Token, TokenError, TokenSource, endpoint::Endpoint};
use crate::Allowance;

/// A token is asked for anew so long before its end, or a tenth of its time where that is less: a call that carries it has to arrive.
const EARLY: Duration = Duration::from_secs(60);

/// The client credentials grant (RFC 6749, section 4.4).
#[derive(Debug)]
pub(crate) struct ClientCredentials {
    endpoint: Endpoint,
    kept: Mutex<Kept>,
    /// Held by whoever asks.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    token: Option<Token>,
    renew_at: Option<Timestamp>,
    /// How often the endpoint has answered, and what it said the last time where that was no token.
    answers: u64,
    error: Option<TokenError>,
}

impl Kept {
    fn good(&self, now: Timestamp) -> Option<&Token> {
        let token = self.token.as_ref()?;
        self.renew_at.is_none_or(|at| now < at).then_some(token)
    }
}

impl ClientCredentials {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            kept: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the endpoint, unless somebody who began before has its answer meanwhile: that answer is everybody's, also where it
    /// is no token.
    async fn ask(&self, seen: u64, within: Duration) -> Result<Token, TokenError> {
        let ends_at = self.endpoint.now() + within;
        self.endpoint.open().await?;
        let asleep = Allowance::current().asleep(&self.endpoint.now);
        let asking = tokio::time::timeout(within, self.asking.lock()).await;
        drop(asleep);
        let Ok(_asking) = asking else {
            return Err(self.endpoint.out_of_time().await);
        };
        {
            let kept = self.kept();
            if kept.answers > seen {
                return match (&kept.token, &kept.error) {
                    (_, Some(error)) => Err(error.clone()),
                    (Some(token), None) => Ok(token.clone()),
                    (None, None) => Err(self.endpoint.silent()),
                };
            }
        }
        let answer = self.endpoint.ask(ends_at.since(self.endpoint.now())).await;
        let mut kept = self.kept();
        kept.answers = kept.answers.saturating_add(1);
        match &answer {
            Ok(token) => {
                let now = self.endpoint.now();
                kept.renew_at = token.good_until().map(|until| until - EARLY.min(until.since(now) / 10));
                kept.token = Some(token.clone());
                kept.error = None;
            }
            Err(error) => kept.error = Some(error.clone()),
        }
        answer
    }
}

#[async_trait]
impl TokenSource for ClientCredentials {
    async fn token(&self, within: Duration) -> Result<Token, TokenError> {
        let seen = {
            let kept = self.kept();
            if let Some(token) = kept.good(self.endpoint.now()) {
                return Ok(token.clone());
            }
            kept.answers
        };
        self.ask(seen, within).await
    }

    async fn renewed(&self, refused: &Token, within: Duration) -> Result<Token, TokenError> {
        let seen = {
            let mut kept = self.kept();
            match &kept.token {
                // Somebody else was refused with the same one, and has another already.
                Some(token) if !token.is(refused) => return Ok(token.clone()),
                _ => kept.token = None,
            }
            kept.answers
        };
        self.ask(seen, within).await
    }

    fn pause_remaining(&self) -> Option<Duration> {
        self.endpoint.pause_remaining()
    }
}
