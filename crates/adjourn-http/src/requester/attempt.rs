//! One attempt at a job's call: what is checked first, its token, its turn, and then the request.

use std::time::Duration;

use adjourn_core::{Fault, Outcome, Timestamp};
use http::StatusCode;

use super::{
    Answer, Requester,
    outgoing::{Call, Order},
    paced::{Pacing, Unmade},
};
use crate::{Allowance, HttpJob, TokenError, TokenSource, waiting::TooLate};

/// One call's answer, and the moment at which its budget's pause ends.
pub(super) struct Attempt {
    pub(super) answer: Answer,
    pub(super) resumes_at: Option<Timestamp>,
    /// When that was read off the caller's time.
    pub(super) heard_at: Option<Timestamp>,
}

impl From<Answer> for Attempt {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            resumes_at: None,
            heard_at: None,
        }
    }
}

impl Attempt {
    /// The call was not made, for want of a token; until the source's pause ends, there is none.
    fn without_token(error: TokenError, now: Timestamp, pause: Option<Duration>) -> Self {
        let status = error.status();
        let answer = Answer {
            status,
            ..Answer::of(error.into_outcome())
        };
        Self {
            resumes_at: pause.map(|left| now + left),
            heard_at: Some(now),
            answer,
        }
    }
}

impl Requester {
    /// As [`perform`](Self::perform); without `must_end_by`, within the provider's timeout alone. With `pacing`, each of its requests
    /// takes a turn.
    pub(super) async fn attempt(
        &self,
        job: &HttpJob,
        lasting_id: &str,
        must_end_by: Option<Timestamp>,
        pacing: Option<Pacing<'_>>,
    ) -> Result<Attempt, Unmade> {
        let provider = match job.check(&self.inner.settings) {
            Ok(provider) => provider,
            Err(error) => return Ok(Answer::of(Outcome::Rejected(Fault::new(&format!("refused: {error}")))).into()),
        };
        let order = Order {
            job,
            provider,
            credentials: &self.inner.credentials,
            lasting_id,
            must_end_by,
            pacing,
        };
        if self.is_late(&order) {
            return self.no_time(&order);
        }
        let Some(call) = order.call() else {
            let fault = Fault::new("refused: its path would leave the provider's base_url");
            return Ok(Answer::of(Outcome::Rejected(fault)).into());
        };
        let Some(source) = self.tokens.get(provider.name()) else {
            let started = self.turn(&order, job.path.as_str(), None).await?;
            let (sent, ends_at) = self.sent(&order, call);
            return self.follow(&order, sent, ends_at, None, started).await;
        };
        // Seldom, and large: what every call would have to carry along otherwise.
        Box::pin(self.with_token(&order, call, source.as_ref())).await
    }

    /// Sends a call, and once more with a fresh token where the first was not taken. Its turn comes after the token: while that is
    /// waited for, nothing is in flight, and whatever pause begins holds.
    async fn with_token(&self, order: &Order<'_>, call: Call, source: &dyn TokenSource) -> Result<Attempt, Unmade> {
        let (provider, path) = (order.provider, order.job.path.as_str());
        let allowance = order
            .pacing
            .map_or_else(Allowance::current, |pacing| pacing.allowance.clone());
        let within = self.token_within(order, &allowance);
        let token = match allowance.clone().scope(source.token(within)).await {
            Ok(token) => token,
            Err(error) => return Ok(self.without_token(source, error)),
        };
        if self.is_late(order) {
            return self.no_time(order);
        }
        let started = self.turn(order, path, None).await?;
        let (sent, ends_at) = self.sent(order, call.with_token(provider, &token));
        let attempt = self.follow(order, sent, ends_at, Some(&token), started).await?;
        if attempt.answer.status != Some(401) || !matches!(attempt.answer.outcome, Outcome::Rejected(_)) {
            return Ok(attempt);
        }
        // A token may end before its time. One that is fresh and not taken either is what the provider means.
        let waits_since = (self.inner.now)();
        let within = self.token_within(order, &allowance);
        match allowance.scope(source.renewed(&token, within)).await {
            Ok(fresh) => {
                let Some(call) = order.call().filter(|_| !self.is_late(order)) else {
                    return Ok(attempt);
                };
                let started = self.turn(order, path, Some(StatusCode::UNAUTHORIZED)).await?;
                let ends_at = self.ends_later(order, ends_at, waits_since);
                let left = ends_at.since((self.inner.now)());
                let sent = self.send(provider, call.with_token(provider, &fresh), left);
                self.follow(order, sent, ends_at, Some(&fresh), started).await
            }
            Err(error) => Ok(self.without_token(source, error)),
        }
    }

    fn without_token(&self, source: &dyn TokenSource, error: TokenError) -> Attempt {
        let pause = source.pause_remaining();
        Attempt::without_token(error, (self.inner.now)(), pause)
    }

    /// Sends the first request of a call, and says when that has to be over.
    fn sent(
        &self,
        order: &Order<'_>,
        call: Call,
    ) -> (
        impl Future<Output = Result<reqwest::Response, reqwest::Error>> + use<>,
        Timestamp,
    ) {
        let now = (self.inner.now)();
        let ends_at = order.ends_at(now);
        (self.send(order.provider, call, ends_at.since(now)), ends_at)
    }

    /// Whether the time by which the call had to be over is past.
    fn is_late(&self, order: &Order<'_>) -> bool {
        order.must_end_by.is_some_and(|at| at <= (self.inner.now)())
    }

    /// The call was not made: it is past its time.
    fn no_time(&self, order: &Order<'_>) -> Result<Attempt, Unmade> {
        if order.pacing.is_some() {
            return Err(self.unmade(order, TooLate::Deadline));
        }
        let fault = Fault::new("there was no time left for its call; it was not sent");
        Ok(Answer::of(Outcome::Failed(fault)).into())
    }
}
