//! Explains one response: what was read, from which field, and what would become of the job.

mod curl;
mod explanation;
mod pasted;
#[cfg(test)]
mod tests;

use std::time::Duration;

use adjourn_core::{
    Cap, Counter, Decision, EndingKind, Facts, Mechanism, Plan, Policy, QueueKind, Reach, Refused, RouteFacts,
    ScheduleReach, Timestamp, Verdict, decide, route,
};

pub use explanation::{ExplainedDecision, ExplainedIgnored, ExplainedLimit, Explanation};
pub use pasted::{Pasted, PastedError, PastedLine};

use crate::{Contract, Response, read, requester};

/// Explains responses of one provider.
///
/// ```
/// use adjourn_http::{Explainer, Pasted};
///
/// let now = adjourn_core::Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
/// let pasted = Pasted::read(b"HTTP/2 429\r\nretry-after: 30\r\n\r\n", None, now)?;
/// let explanation = Explainer::default().explain(&pasted);
/// assert_eq!(explanation.wait_ms, Some(30_000));
/// assert_eq!(serde_json::to_value(&explanation).unwrap()["decision"]["kind"], "defer");
/// # Ok::<(), adjourn_http::PastedError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Explainer {
    provider: Option<String>,
    contract: Option<Contract>,
    policy: Policy,
}

impl Explainer {
    /// The same for a provider of that name.
    #[must_use]
    pub fn provider(mut self, name: &str) -> Self {
        self.provider = Some(name.to_string());
        self
    }

    /// The same with that provider's contract.
    #[must_use]
    pub fn contract(mut self, contract: Contract) -> Self {
        self.contract = Some(contract);
        self
    }

    /// The same with another policy than the default one.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Explains a response, as the answer to a job's first call.
    #[must_use]
    pub fn explain(&self, pasted: &Pasted) -> Explanation {
        let provider = self.provider.as_deref().unwrap_or("the provider");
        let response = Response {
            status: pasted.status,
            headers: &pasted.headers,
            body: &pasted.body,
            received_at: pasted.received_at,
        };
        let reading = read::read(provider, self.contract.as_ref(), None, &response);
        let floor = self.contract.as_ref().and_then(|contract| contract.min_retry_after_ms);
        // What was said stays out of the words: a body may hold what is nobody's business.
        let outcome = requester::meaning(provider, pasted.status, reading.clone(), floor, String::new);
        let decision = decide(
            &self.policy,
            &Facts::first_delivery(),
            &outcome,
            &Verdict::Default,
            pasted.received_at,
            0,
        );
        let hints = self.contract.as_ref().map(|contract| &contract.user_hints);
        let hint = hints.and_then(|hints| hints.get(reading.signal().why())).cloned();
        Explanation::new(
            &reading,
            self.provider.clone(),
            hint,
            self.told(decision, pasted.received_at),
        )
    }

    fn told(&self, decision: Decision, now: Timestamp) -> ExplainedDecision {
        match decision {
            Decision::Complete => ExplainedDecision::ending("complete", None),
            Decision::Drop { reason } => ExplainedDecision::ending("reject", Some(reason)),
            Decision::Wait(wait) => ExplainedDecision {
                kind: match wait.counter {
                    Counter::Deferral | Counter::Hop => "defer",
                    Counter::Failure => "retry",
                },
                mechanism: self.mechanism(wait.until, now),
                until: Some(wait.until),
                reason: None,
            },
            Decision::End(ending) => {
                let kind = match ending.kind() {
                    EndingKind::Exhausted(
                        Cap::Attempts
                        | Cap::Deferrals
                        | Cap::DeferredTime
                        | Cap::Hops
                        | Cap::MonthlyQuota
                        | Cap::UnknownTime,
                    ) => "exhaust",
                    EndingKind::Rejected
                    | EndingKind::Deadline
                    | EndingKind::Unknown
                    | EndingKind::Undecodable
                    | EndingKind::Crashed
                    | EndingKind::Unholdable => "reject",
                };
                ExplainedDecision::ending(kind, Some(ending.why().to_string()))
            }
        }
    }

    /// How a standard queue with a scheduler holds such a wait.
    fn mechanism(&self, until: Timestamp, now: Timestamp) -> Mechanism {
        let s = Duration::from_secs;
        let reach = Reach {
            kind: QueueKind::Standard,
            max_delay: s(900),
            delay_step: s(1),
            schedule: Some(ScheduleReach {
                step: s(60),
                lead: s(60),
            }),
            max_visibility: s(43_200),
            visibility_timeout: s(30),
            retention: s(14 * 86_400),
            max_receive_count: None,
        };
        let facts = RouteFacts {
            sent_at: now,
            received_at: now,
            receive_count: 1,
            has_room: true,
            schedulable: true,
            holds_are_recorded: false,
            repeatable: true,
        };
        route(&self.policy, &reach, Plan::Wait { until }, &facts, Refused::NONE, now).mechanism()
    }
}
