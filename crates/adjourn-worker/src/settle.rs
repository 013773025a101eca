//! Decisions made durable: routes chosen, ports asked, proofs collected, sinks told.

use std::{sync::Arc, time::Duration};

use adjourn_core::{
    Cause, Counter, Ending, EndingKind, Envelope, Mechanism, Plan, Reach, Refused, Route, RouteFacts, Timestamp, Wait,
    route,
};

use crate::{
    Done, Handler, Handoff, Message, Notice, NoticeDecision, POLICY_VERSION, Performed, Proof, Receipt, Settlement,
    Transition, Worker,
    perform::Step,
    port::{Accepted, Copy, DeadLetter, Deletion, Hold, PortError, ScheduledCopy},
};

/// How long all event sinks together may take for a group.
const SINK_LIMIT: Duration = Duration::from_secs(1);

/// What became of a message, with the deletion that is left to do.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The message.
    pub message: Arc<Message>,
    /// Whether it may be deleted.
    pub settlement: Settlement,
    /// The deletion to ask the queue for; none for a message that stays.
    pub deletion: Option<Deletion>,
}

/// A message on its way to a settlement.
struct Pending {
    index: usize,
    performed: Performed,
    wait: Option<Wait>,
    ending: Option<Ending>,
    refused: Refused,
}

pub(crate) async fn settle<H: Handler>(worker: &Worker<H>, performed: Vec<Performed>) -> Vec<Settled> {
    let mut settled: Vec<Option<Settled>> = Vec::new();
    settled.resize_with(performed.len(), || None);
    let mut notices = Vec::new();
    let mut pending = Vec::new();
    let now = worker.inner.clock.now();
    let mut finish = |index: usize, one: Settled| {
        if let Some(place) = settled.get_mut(index) {
            *place = Some(one);
        }
    };
    for (index, performed) in performed.into_iter().enumerate() {
        match performed.step.clone() {
            Step::Complete(done) => finish(
                index,
                deleted(
                    &performed,
                    Proof::completed(),
                    Transition::Done,
                    "done",
                    Some(done),
                    now,
                ),
            ),
            Step::Drop { reason } => {
                tracing::info!(
                    job_id = job_id(&performed),
                    reason,
                    "dropped by the integration's handler"
                );
                notices.extend(notice(&performed, "drop", Mechanism::None, None));
                finish(
                    index,
                    deleted(
                        &performed,
                        Proof::dropped(reason.clone()),
                        Transition::Dropped,
                        &reason,
                        None,
                        now,
                    ),
                );
            }
            Step::Discard(why) => {
                let words = format!("discarded: {why:?}").to_lowercase();
                finish(
                    index,
                    deleted(
                        &performed,
                        Proof::discarded(why),
                        Transition::Discarded,
                        &words,
                        None,
                        now,
                    ),
                );
            }
            Step::Leave => finish(index, kept(&performed)),
            Step::Wait(wait) => {
                pending.push(Pending {
                    index,
                    performed,
                    wait: Some(wait),
                    ending: None,
                    refused: Refused::NONE,
                });
            }
            Step::End(ending) => {
                tracing::error!(
                    job_id = job_id(&performed),
                    deferral_id = %performed.decoded.envelope.identity.id,
                    end = ending.word(),
                    status = ending.last_status(),
                    "{}", ending.why()
                );
                pending.push(Pending {
                    index,
                    performed,
                    wait: None,
                    ending: Some(ending),
                    refused: Refused::NONE,
                });
            }
        }
    }
    while !pending.is_empty() {
        let round = Round::plan(worker, std::mem::take(&mut pending));
        for (mut one, route, answer) in round.carry_out(worker).await {
            match answer {
                Some(Ok(proof)) => {
                    notices.extend(one.notice(&route));
                    finish(one.index, one.settled(&route, proof));
                }
                Some(Err(error)) => {
                    tracing::warn!(
                        job_id = job_id(&one.performed), route = ?route, %error,
                        "a port refused; the next route is tried"
                    );
                    one.refused = one.refused.with(&route);
                    pending.push(one);
                }
                None => finish(one.index, kept(&one.performed)),
            }
        }
    }
    tell(worker, &notices).await;
    settled.into_iter().flatten().collect()
}

fn job_id(performed: &Performed) -> &str {
    performed
        .decoded
        .terms
        .as_ref()
        .map_or(performed.decoded.message.id.as_str(), |terms| terms.job_id.as_str())
}

fn kept(performed: &Performed) -> Settled {
    Settled {
        message: Arc::clone(&performed.decoded.message),
        settlement: Settlement::Keep,
        deletion: None,
    }
}

fn deleted(
    performed: &Performed,
    proof: Proof,
    transition: Transition,
    words: &str,
    done: Option<Done>,
    now: Timestamp,
) -> Settled {
    let receipt = Receipt {
        at: now,
        transition,
        cause: words.to_string(),
        until: None,
        mechanism: Mechanism::None,
        sequence: performed.decoded.envelope.identity.sequence,
        gate: None,
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: performed
            .refusal
            .as_ref()
            .map(|refusal| refusal.0.observation().clone()),
    };
    let message = Arc::clone(&performed.decoded.message);
    Settled {
        message: Arc::clone(&message),
        settlement: Settlement::Delete(proof.clone()),
        deletion: Some(Deletion {
            original: message,
            proof,
            done,
            receipt: Some(receipt),
        }),
    }
}

fn notice(performed: &Performed, kind: &'static str, mechanism: Mechanism, until: Option<Timestamp>) -> Option<Notice> {
    let refusal = performed.refusal.as_ref()?;
    Some(refusal.1.clone().decided(NoticeDecision { kind, mechanism, until }))
}

/// What a port's answer is worth: a proof that the original may go, or nothing to prove because it stays hidden.
enum Carried {
    Away(Handoff),
    Hidden,
}

impl Pending {
    fn route<H: Handler>(&mut self, worker: &Worker<H>, reach: &Reach, now: Timestamp) -> Route {
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

    fn receipt(&self, mechanism: Mechanism, now: Timestamp) -> Receipt {
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
    fn envelope<H: Handler>(&self, worker: &Worker<H>, rest: Option<Duration>, now: Timestamp) -> Envelope {
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

    fn notice(&self, route: &Route) -> Option<Notice> {
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

    fn settled(&self, route: &Route, carried: Carried) -> Settled {
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

/// One round of asking: each message with the route it takes, grouped by port.
struct Round {
    resend: Vec<(Pending, Route, Copy)>,
    schedule: Vec<(Pending, Route, ScheduledCopy)>,
    hold: Vec<(Pending, Route, Hold)>,
    dead_letter: Vec<(Pending, Route, DeadLetter)>,
    leave: Vec<(Pending, Route)>,
}

type Answer = Option<Result<Carried, PortError>>;

impl Round {
    fn plan<H: Handler>(worker: &Worker<H>, pending: Vec<Pending>) -> Self {
        let now = worker.inner.clock.now();
        let reach = worker.reach();
        let mut round = Self {
            resend: vec![],
            schedule: vec![],
            hold: vec![],
            dead_letter: vec![],
            leave: vec![],
        };
        for mut one in pending {
            let route = one.route(worker, &reach, now);
            let receipt = one.receipt(route.mechanism(), now);
            let original = Arc::clone(&one.performed.decoded.message);
            match &route {
                Route::Resend { delay, rest } => {
                    let copy = Copy {
                        original,
                        envelope: one.envelope(worker, *rest, now),
                        delay: *delay,
                        receipt,
                    };
                    round.resend.push((one, route, copy));
                }
                Route::Schedule { at } => {
                    let copy = ScheduledCopy {
                        original,
                        envelope: one.envelope(worker, None, now),
                        at: *at,
                        receipt,
                    };
                    round.schedule.push((one, route, copy));
                }
                Route::Hold { visibility } => {
                    let hold = Hold {
                        original,
                        envelope: one.envelope(worker, None, now),
                        visibility: *visibility,
                        until: now + *visibility,
                        receipt,
                    };
                    round.hold.push((one, route, hold));
                }
                Route::DeadLetter { .. } => {
                    let ending = one
                        .ending
                        .clone()
                        .unwrap_or_else(|| Ending::new(EndingKind::Unholdable, "nothing could hold the wait"));
                    let envelope = one.envelope(worker, None, now);
                    let letter = DeadLetter {
                        original,
                        envelope,
                        ending,
                        receipt,
                    };
                    round.dead_letter.push((one, route, letter));
                }
                Route::Leave => round.leave.push((one, route)),
            }
        }
        round
    }

    async fn carry_out<H: Handler>(self, worker: &Worker<H>) -> Vec<(Pending, Route, Answer)> {
        let queue = &worker.inner.queue;
        let scheduler = worker.inner.scheduler.as_deref();
        let (resent, scheduled, held, lettered) = tokio::join!(
            ask(
                self.resend,
                |copy| &copy.envelope,
                Carried::Away,
                async |copies| queue.resend(copies).await
            ),
            ask(
                self.schedule,
                |copy| &copy.envelope,
                Carried::Away,
                async |copies| match scheduler {
                    Some(scheduler) => scheduler.schedule(copies).await,
                    None => Vec::new(),
                }
            ),
            ask(
                self.hold,
                |hold| &hold.envelope,
                |_| Carried::Hidden,
                async |holds| queue.hold(holds).await
            ),
            ask(
                self.dead_letter,
                |letter| &letter.envelope,
                Carried::Away,
                async |letters| { queue.dead_letter(letters).await }
            ),
        );
        let left = self.leave.into_iter().map(|(one, route)| (one, route, None));
        resent
            .into_iter()
            .chain(scheduled)
            .chain(held)
            .chain(lettered)
            .chain(left)
            .collect()
    }
}

/// Asks a port for a whole group. Only an answer that names the very step makes a proof.
async fn ask<R>(
    asked: Vec<(Pending, Route, R)>,
    envelope: fn(&R) -> &Envelope,
    carried: fn(Handoff) -> Carried,
    port: impl AsyncFnOnce(&[R]) -> Vec<Result<Accepted, PortError>>,
) -> Vec<(Pending, Route, Answer)> {
    if asked.is_empty() {
        return Vec::new();
    }
    let (owners, requests): (Vec<_>, Vec<_>) = asked
        .into_iter()
        .map(|(one, route, request)| ((one, route), request))
        .unzip();
    let mut answers = port(&requests).await;
    answers.resize_with(requests.len(), || {
        Err(PortError::transient("the port gave no answer for this message"))
    });
    let proven = requests.iter().zip(answers).map(|(request, answer)| {
        let accepted = answer?;
        let name = accepted.name.clone();
        Handoff::proven(&envelope(request).identity, accepted)
            .map(carried)
            .ok_or_else(|| PortError::transient(format!("the port accepted another step than was asked ({name})")))
    });
    owners
        .into_iter()
        .zip(proven)
        .map(|((one, route), answer)| (one, route, Some(answer)))
        .collect()
}

/// Tells the event sinks, once the waits are durable. They change nothing: a failure is a warning.
async fn tell<H: Handler>(worker: &Worker<H>, notices: &[Notice]) {
    let all = async {
        for notice in notices {
            for sink in &worker.inner.sinks {
                if let Err(error) = sink.emit(notice).await {
                    tracing::warn!(%error, "an event sink did not take a RATE_LIMITED event");
                }
            }
        }
    };
    tokio::select! {
        () = all => {}
        () = worker.inner.clock.sleep(SINK_LIMIT) => tracing::warn!("the event sinks took too long; the rest of the group was not told"),
    }
}
