//! Asking the integration what is to become of a refused job, whatever its handler does.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use adjourn_core::Verdict;
use tokio::task::JoinSet;

use crate::{Clock, RateLimited, RateLimitedHandler};

type Answer = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A [`RateLimitedHandler`] without its type; none where there is no handler to ask.
pub(crate) trait Answers: Send + Sync {
    fn answer(&self, event: RateLimited) -> Option<Answer>;
}

pub(crate) struct Unanswered;

impl Answers for Unanswered {
    fn answer(&self, _event: RateLimited) -> Option<Answer> {
        None
    }
}

pub(crate) struct Answered<R>(pub(crate) Arc<R>);

impl<R: RateLimitedHandler> Answers for Answered<R> {
    fn answer(&self, event: RateLimited) -> Option<Answer> {
        let handler = Arc::clone(&self.0);
        Some(Box::pin(async move { handler.rate_limited(&event).await }))
    }
}

/// The handler's verdict. One that panics or is slower than `limit` has said [`Verdict::Default`].
pub(crate) async fn ask(answers: &dyn Answers, event: &RateLimited, clock: &dyn Clock, limit: Duration) -> Verdict {
    let Some(answer) = answers.answer(event.clone()) else {
        return Verdict::Default;
    };
    let mut task = JoinSet::new();
    task.spawn(answer);
    tokio::select! {
        joined = task.join_next() => match joined {
            Some(Ok(verdict)) => verdict,
            Some(Err(error)) => {
                tracing::error!(deferral_id = %event.deferral_id, %error, "the RATE_LIMITED handler panicked; the default decides");
                Verdict::Default
            }
            None => Verdict::Default,
        },
        () = clock.sleep(limit) => {
            tracing::error!(
                deferral_id = %event.deferral_id,
                limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
                "the RATE_LIMITED handler took too long; the default decides"
            );
            Verdict::Default
        }
    }
}
