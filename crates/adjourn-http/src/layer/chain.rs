//! One call through a layer that retries: attempts, and the waits between them.

use std::{error::Error, future::Future};

use adjourn_core::{RateLimitError, Signal, Timestamp};

use super::{LayerRequest, LayerResponse, retry::Retrying, sight::Meaning};
use crate::{
    Allowance, Feedback,
    waiting::{self, Pause, Setback, Waits, entropy},
};

/// What makes one attempt: the client below.
pub(super) trait Attempts<Q> {
    type Response: LayerResponse;
    type Error: Send;

    fn make(&mut self, request: Q) -> impl Future<Output = Result<Self::Response, Self::Error>> + Send;
    /// The error as something whose causes can be looked at.
    fn causes(error: &Self::Error) -> &(dyn Error + 'static);
}

/// Why there is no response.
pub(super) enum Broken<E> {
    Refused(RateLimitError),
    Failed(E),
}

/// An attempt that may be followed by another one, and what the caller gets if none follows.
enum Missed<P, E> {
    Refused(Box<Signal>, Option<Timestamp>),
    Answered(P, Option<Timestamp>, Option<Timestamp>),
    Broke(E),
}

impl<P, E> Missed<P, E> {
    fn setback(&self) -> Setback<'_> {
        match self {
            Self::Refused(signal, resumes_at) => Setback::Refused(signal, *resumes_at),
            Self::Answered(_, not_before, resumes_at) => Setback::Failed(*not_before, *resumes_at),
            Self::Broke(_) => Setback::Failed(None, None),
        }
    }
}

/// Makes the call, and again as far as the allowance goes.
pub(super) async fn call<Q: LayerRequest, A: Attempts<Q>>(
    retrying: &Retrying,
    allowance: &Allowance,
    attempts: &mut A,
    mut request: Q,
) -> Result<<A::Response as LayerResponse>::Seen, Broken<A::Error>> {
    let sight = &retrying.sight;
    let timeout = request.timeout().unwrap_or(sight.timeout);
    let repeats = retrying.repeats(&request);
    let mut waits = Waits::under(&retrying.waits);
    waiting::in_time(allowance, &sight.now).map_err(|too_late| Broken::Refused(sight.too_late(too_late)))?;
    loop {
        let copy = request.again();
        let mut heard_at = None;
        // Nor may a layer below wait for a turn where nothing is to be waited for.
        let made = if retrying.waits.backoff.is_empty() {
            let allowance = allowance.clone().under(&retrying.waits);
            Box::pin(allowance.scope(attempts.make(request))).await
        } else {
            attempts.make(request).await
        };
        let missed = match made {
            Ok(response) => {
                let status = response.status();
                let (seen, told) = sight.read(response, false, |_| Feedback::default()).await;
                heard_at = Some(told.heard_at);
                match sight.meaning(status, &told) {
                    Meaning::Refused(signal, resumes_at) => Missed::Refused(signal, resumes_at),
                    Meaning::Failed(not_before, resumes_at) if repeats => {
                        Missed::Answered(seen, not_before, resumes_at)
                    }
                    Meaning::Failed(..) | Meaning::Passes => return Ok(seen),
                }
            }
            Err(error) => {
                let causes = A::causes(&error);
                let again = RateLimitError::find_in(causes).is_none() && (repeats || never_sent(causes));
                if !again {
                    return Err(Broken::Failed(error));
                }
                Missed::Broke(error)
            }
        };
        // A budget that pauses has cut the pause to what fits at that moment.
        let now = heard_at.unwrap_or_else(|| (sight.now)());
        let pause = waits.next(missed.setback(), allowance.budget(now, timeout), now, entropy());
        let (Some(again), Some(pause)) = (copy, pause) else {
            return match missed {
                Missed::Refused(signal, _) => Err(Broken::Refused(sight.refusal(*signal))),
                Missed::Answered(seen, ..) => Ok(seen),
                Missed::Broke(error) => Err(Broken::Failed(error)),
            };
        };
        told(&sight.provider, &missed, pause);
        // Its connection is free for others while the call waits.
        drop(missed);
        let asleep = allowance.asleep(&sight.now);
        tokio::time::sleep(pause.span).await;
        drop(asleep);
        request = again;
    }
}

fn told<P, E>(provider: &str, missed: &Missed<P, E>, pause: Pause) {
    match missed {
        Missed::Refused(signal, _) => waiting::told_refusal(provider, signal, pause),
        Missed::Answered(_, named, _) => {
            waiting::told_failure(provider, "the server failed", named.is_some(), pause);
        }
        Missed::Broke(_) => waiting::told_failure(provider, "no answer came", false, pause),
    }
}

/// Whether the call is known not to have reached the provider.
fn never_sent(error: &(dyn Error + 'static)) -> bool {
    let mut link = Some(error);
    while let Some(error) = link {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return error.is_connect() || error.is_builder();
        }
        link = error.source();
    }
    false
}
