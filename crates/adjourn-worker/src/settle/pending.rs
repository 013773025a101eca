//! A message on its way to a settlement: the route that it takes next, and what the port is given for it.

use std::{sync::Arc, time::Duration};

use adjourn_core::{
    Cause, Counter, Ending, EndingKind, Envelope, Mechanism, Plan, Reach, Refused, Route, RouteFacts, Timestamp, Wait,
    route,
};

use super::{Settled, job_id, notice, round::Carried};
use crate::{
    Handler, Notice, POLICY_VERSION, Performed, Proof, Receipt, Settlement, Transition, Worker, port::Deletion,
};

/// A message on its way to a settlement.
pub(super) struct Pending {
    pub(super) index: usize,
    pub(super) performed: Performed,
    pub(super) wait: Option<Wait>,
    pub(super) ending: Option<Ending>,
    pub(super) refused: Refused,
}
impl Pending {
    pub(super) fn route<H: Handler>(&mut self, worker: &Worker<H>, reach: &Reach, now: Timestamp) -> Route {
        let message = &self.performed.decoded.message;
        let inner = &worker.inner;
        let plan = match &self.wait {
            None => Plan::End,
            Some(wait) if wait.cause == Cause::OutOfTime => Plan::GiveBack,
            Some(wait) => Plan::Wait { until: wait.until },
        };
        let facts = RouteFacts {
            sent_at: message.sent_at,
            received_at: message.received_at,
            receive_count: message.receive_count,
            has_room: message.has_room(inner.queue.max_message_bytes()),
            schedulable: inner
                .scheduler
                .as_ref()
                .is_some_and(|scheduler| scheduler.carries(message)),
            holds_are_recorded: inner.ledger.is_some(),
            repeatable: self
                .performed
                .decoded
                .terms
                .as_ref()
                .is_ok_and(|terms| terms.repeatable),
        };
        let route = route(&inner.policy, reach, plan, &facts, self.refused, now);
        if let (Route::DeadLetter { unholdable: Some(why) }, None) = (&route, &self.ending) {
            tracing::error!(job_id = job_id(&self.performed), end = "unholdable", "{why}");
            self.ending = Some(Ending::new(EndingKind::Unholdable, why));
        }
        route
    }

    pub(super) fn receipt(&self, mechanism: Mechanism, now: Timestamp) -> Receipt {
        let decoded = &self.performed.decoded;
        let terms = decoded.terms.as_ref().ok();
        let observation = self
            .performed
            .refusal
            .as_ref()
            .map(|refusal| refusal.0.observation().clone());
        let (transition, cause, until, jitter) = match (&self.ending, &self.wait) {
            (Some(ending), _) => (
                Transition::Ended,
                format!("{}: {}", ending.word(), ending.why()),
                None,
                Duration::ZERO,
            ),
            (None, Some(wait)) => (
                Transition::of(wait.cause),
                wait.reason.clone(),
                Some(wait.until),
                wait.jitter,
            ),
            (None, None) => (Transition::Parked, String::new(), None, Duration::ZERO),
        };
        Receipt {
            at: now,
            transition,
            cause,
            until,
            mechanism,
            sequence: decoded.envelope.identity.sequence.saturating_add(1),
            gate: terms.map(|terms| terms.scope.to_string()),
            policy_version: POLICY_VERSION,
            jitter_ms: u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX),
            observation,
        }
    }

    /// The envelope of the next step.
    pub(super) fn envelope<H: Handler>(&self, worker: &Worker<H>, rest: Option<Duration>, now: Timestamp) -> Envelope {
        let decoded = &self.performed.decoded;
        let facts = decoded.facts(worker);
        let mut next = decoded.envelope.clone();
        next.identity = decoded.envelope.identity.next();
        next.rest = rest;
        // A copy starts again at receive count 1, so what the receives stood for moves into the envelope.
        next.counters.deferrals = facts.deferrals();
        next.first_deferred_at = facts.first_deferred_at;
        if let Some(ending) = &self.ending {
            next.due = now;
            next.reason = ending.why().to_string();
            next.end = Some(ending.word().to_string());
            return next;
        }
        let Some(wait) = &self.wait else { return next };
        // The wait of an early arrival has the clock's skew in it; its due time stays what it was, or a chain of hops would
        // add the skew once for each of them.
        if wait.cause != Cause::NotDue {
            next.due = wait.until;
        }
        next.reason.clone_from(&wait.reason);
        match wait.counter {
            Counter::Deferral => {
                next.counters.deferrals = next.counters.deferrals.saturating_add(1);
                next.first_deferred_at = next.first_deferred_at.or(Some(now));
                if wait.cause == Cause::Refused {
                    next.counters.unnamed = next.counters.unnamed.saturating_add(1);
                    next.unnamed_since = next.unnamed_since.or(Some(now));
                } else {
                    next.counters.unnamed = 0;
                    next.unnamed_since = None;
                }
            }
            Counter::Hop => next.counters.hops = next.counters.hops.saturating_add(1),
            Counter::Failure => {
                next.counters.failures = next.counters.failures.saturating_add(1);
                next.counters.unnamed = 0;
                next.unnamed_since = None;
            }
        }
        next
    }

    pub(super) fn notice(&self, route: &Route) -> Option<Notice> {
        match (&self.ending, &self.wait) {
            (Some(ending), _) => {
                let kind = match ending.kind() {
                    EndingKind::Exhausted(_) => "exhaust",
                    EndingKind::Rejected => "reject",
                    EndingKind::Deadline => "deadline",
                    EndingKind::Unknown => "unknown",
                    EndingKind::Undecodable => "undecodable",
                    EndingKind::Crashed => "crashed",
                    EndingKind::Unholdable => "unholdable",
                };
                notice(&self.performed, kind, Mechanism::None, None)
            }
            (None, Some(wait)) => {
                let kind = if wait.counter == Counter::Failure {
                    "retry"
                } else {
                    "defer"
                };
                notice(&self.performed, kind, route.mechanism(), Some(wait.until))
            }
            (None, None) => None,
        }
    }

    pub(super) fn settled(&self, route: &Route, carried: Carried) -> Settled {
        let message = Arc::clone(&self.performed.decoded.message);
        if let (Some(wait), None) = (&self.wait, &self.ending) {
            tracing::info!(
                job_id = job_id(&self.performed),
                deferral_id = %self.performed.decoded.envelope.identity.id,
                sequence = self.performed.decoded.envelope.identity.sequence.saturating_add(1),
                mechanism = route.mechanism().as_str(),
                until = %wait.until,
                cause = ?wait.cause,
                "{}", wait.reason
            );
        }
        match carried {
            Carried::Hidden => Settled {
                message,
                settlement: Settlement::Keep,
                deletion: None,
            },
            Carried::Away(handoff) => {
                let proof = Proof::handoff(handoff);
                Settled {
                    message: Arc::clone(&message),
                    settlement: Settlement::Delete(proof.clone()),
                    deletion: Some(Deletion {
                        original: message,
                        proof,
                        done: None,
                        receipt: None,
                    }),
                }
            }
        }
    }
}
