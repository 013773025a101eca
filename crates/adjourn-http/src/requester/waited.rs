//! A call that waits in process where that fits: refusals until the provider's moment, failures up the ladder.

use adjourn_core::{Outcome, RateLimitError};

use super::{Answer, Requester, paced::Pacing};
use crate::{
    Allowance, HttpJob, Provider, scope,
    waiting::{Pause, Setback, Waits, entropy, told_failure, told_refusal},
};

impl Requester {
    /// Makes the job's call and says what its answer means, as [`Requester::perform`] does, and waits in process as far as
    /// the task's [`Allowance`] goes: until the moment that a refusal names (at least a second, plus up to a tenth, ten times at
    /// most), up the [`WaitPolicy`](crate::WaitPolicy)'s ladder after a bare 429 and after a failure that may be tried again.
    ///
    /// The call is over by the allowance's deadline, or within the provider's timeout where that has none. `lasting_id` is
    /// a name that stays the same when the whole is repeated; the idempotency key is made from it where the job has neither
    /// a key nor an id.
    ///
    /// # Errors
    /// A refusal whose wait does not fit, or that names no time and is no bare 429: at once. So is a call whose turn of its
    /// [`Budgets`](crate::Budgets) would come too late; it was not made.
    pub async fn call(&self, job: &HttpJob, lasting_id: &str) -> Result<Answer, RateLimitError> {
        let provider = self.inner.settings.provider(&job.provider);
        let timeout = provider.map(Provider::timeout).unwrap_or_default();
        let contract = provider.and_then(Provider::contract).map(AsRef::as_ref);
        let scope = scope::of_job(job, contract);
        let budget = self.budgets.as_ref().map(|budgets| budgets.budget(&scope));
        let allowance = Allowance::current().under(&self.waits);
        let mut waits = Waits::under(&self.waits);
        loop {
            let pacing = budget.as_ref().map(|budget| Pacing {
                budget,
                allowance: &allowance,
            });
            let attempt = self.attempt(job, lasting_id, allowance.deadline(), pacing).await;
            let attempt = attempt.map_err(|unmade| RateLimitError::from(*unmade.signal).in_scope(scope.clone()))?;
            let outcome = &attempt.answer.outcome;
            let setback = match outcome {
                Outcome::Throttled(signal) => Setback::Refused(signal, attempt.resumes_at),
                Outcome::Failed(fault) => Setback::Failed(fault.not_before(), attempt.resumes_at),
                Outcome::Done | Outcome::Unknown(_) | Outcome::Rejected(_) => return Ok(attempt.answer),
            };
            // A budget that pauses has cut the pause to what fits at that moment.
            let now = attempt.heard_at.unwrap_or_else(|| (self.inner.now)());
            if let Some(pause) = waits.next(setback, allowance.budget(now, timeout), now, entropy()) {
                told(&job.provider, outcome, pause);
                let asleep = allowance.asleep(&self.inner.now);
                tokio::time::sleep(pause.span).await;
                drop(asleep);
                continue;
            }
            return match attempt.answer.outcome {
                Outcome::Throttled(signal) => Err(RateLimitError::from(signal).in_scope(scope)),
                Outcome::Done | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Rejected(_) => Ok(attempt.answer),
            };
        }
    }
}

fn told(provider: &str, outcome: &Outcome, pause: Pause) {
    match outcome {
        Outcome::Throttled(signal) => told_refusal(provider, signal, pause),
        Outcome::Failed(fault) | Outcome::Unknown(fault) | Outcome::Rejected(fault) => {
            told_failure(provider, fault.why(), fault.not_before().is_some(), pause);
        }
        Outcome::Done => {}
    }
}
