//! One job up to its decision: admission, the call, the outcome, the verdict.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adjourn_core::{
    Admission, AdmissionFacts, Cause, Decision, Discarded, Ending, EndingKind, Facts, Fault, Kind, Outcome, Passage,
    Policy, QueueKind, Signal, Standing, Timestamp, Verdict, Wait, admit, decide, hop,
};
use tokio::task::JoinSet;

use crate::{
    Counter, Done, Handler, InProcess, Interrupt, Job, Message, RateLimited, Terms, Worker, decode::Decoded,
    gates::Started, port::Closing, verdict,
};

/// The most that is kept back for settling at the end of an invocation.
const SETTLING_RESERVE: Duration = Duration::from_secs(2);
/// How long a job waits in process for one of its scope to end, before it is parked.
const SCOPE_FULL_PATIENCE: Duration = Duration::from_secs(1);

/// A job with its decision, not yet durable. [`Worker::settle`] makes it so.
#[derive(Clone, Debug)]
pub struct Performed {
    pub(crate) decoded: Decoded,
    pub(crate) step: Step,
    /// The refusal, for the history and for the event sinks.
    pub(crate) refusal: Option<Box<(Signal, RateLimited)>>,
}

impl Performed {
    /// The message whose job this is.
    #[must_use]
    pub fn message(&self) -> &Arc<Message> {
        &self.decoded.message
    }
}

/// What is to become of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Complete(Done),
    Drop {
        reason: String,
    },
    Wait(Wait),
    End(Ending),
    Discard(Discarded),
    /// It stays as it is.
    Leave,
}

/// The time that an invocation has.
#[derive(Debug)]
pub(crate) struct Invocation {
    settle_by: Option<Timestamp>,
    nothing_started: AtomicBool,
}

impl Invocation {
    pub(crate) fn new(now: Timestamp, ends_at: Option<Timestamp>) -> Self {
        let settle_by = ends_at.map(|end| {
            let left = end.since(now);
            end - SETTLING_RESERVE.min(left / 2)
        });
        Self {
            settle_by,
            nothing_started: AtomicBool::new(true),
        }
    }

    fn fits(&self, now: Timestamp, timeout: Duration) -> bool {
        self.settle_by.is_none_or(|by| now + timeout <= by) || self.nothing_started.load(Ordering::Relaxed)
    }

    /// When a call that starts now has to be over. The first of an invocation always starts, its timeout clamped: a job
    /// whose timeout is longer than the invocation would otherwise never run.
    fn must_end_by(&self, now: Timestamp, timeout: Duration) -> Timestamp {
        self.nothing_started.store(false, Ordering::Relaxed);
        let own = now + timeout;
        match self.settle_by {
            Some(by) if by < own => {
                tracing::error!(
                    timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                    left_ms = u64::try_from(by.since(now).as_millis()).unwrap_or(u64::MAX),
                    "the job's timeout (timeout_ms of its provider) is longer than what the invocation leaves (the function's Timeout less the reserve for settling); it is clamped"
                );
                by
            }
            _ => own,
        }
    }
}

pub(crate) async fn perform<H: Handler>(
    worker: &Worker<H>,
    message: Arc<Message>,
    standing: Standing,
    ends_at: Option<Timestamp>,
) -> Performed {
    let decoded = Decoded::read(worker, message);
    let invocation = Invocation::new(worker.inner.clock.now(), ends_at);
    perform_decoded(worker, decoded, standing, &invocation).await
}

pub(crate) async fn perform_decoded<H: Handler>(
    worker: &Worker<H>,
    decoded: Decoded,
    standing: Standing,
    invocation: &Invocation,
) -> Performed {
    let terms = match &decoded.terms {
        Ok(terms) => Arc::clone(terms),
        Err(undecodable) => {
            let ending = Ending::new(EndingKind::Undecodable, undecodable.why());
            return Performed {
                decoded,
                step: Step::End(ending),
                refusal: None,
            };
        }
    };
    let run = Run {
        worker,
        decoded: &decoded,
        terms: &terms,
        invocation,
    };
    let (step, refusal) = match run.enter(standing).await {
        Entry::Started(started_at, started) => run.call(started_at, started).await,
        Entry::Step(step) => (step, None),
    };
    Performed { decoded, step, refusal }
}

struct Run<'a, H> {
    worker: &'a Worker<H>,
    decoded: &'a Decoded,
    terms: &'a Arc<Terms>,
    invocation: &'a Invocation,
}

enum Entry {
    Started(Timestamp, Started),
    Step(Step),
}

type Refusal = Option<Box<(Signal, RateLimited)>>;

impl<H: Handler> Run<'_, H> {
    fn now(&self) -> Timestamp {
        self.worker.inner.clock.now()
    }

    fn policy(&self) -> Policy {
        let mut policy = self.worker.inner.policy.clone();
        if let Some(retry) = &self.terms.retry {
            policy.retry = retry.clone();
        }
        policy
    }

    /// Through admission to a started call: the gate is held, and the mark is written where one is needed.
    async fn enter(&self, standing: Standing) -> Entry {
        let gates = &self.worker.inner.gates;
        let patience_ends = self.now() + SCOPE_FULL_PATIENCE;
        loop {
            let freed = gates.freed();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let now = self.now();
            match self.admission(standing, &gates.check(self.terms, now), now) {
                Admission::Admit { after } if after.is_zero() => {
                    if let Ok(started) = gates.start(self.terms, now) {
                        return self.mark(now, started).await;
                    }
                }
                Admission::Admit { after } => self.worker.inner.clock.sleep(after).await,
                Admission::Full if now < patience_ends => {
                    tokio::select! {
                        () = freed => {}
                        () = self.worker.inner.clock.sleep(patience_ends.since(now)) => {}
                    }
                }
                Admission::Full => {
                    let reason = format!("as many calls of {} are in flight as may be", self.terms.scope);
                    return Entry::Step(self.hop(now + SCOPE_FULL_PATIENCE, Cause::ScopeFull, &reason, now));
                }
                Admission::Park { until, cause, reason } => {
                    let until = if cause == Cause::GateClosed {
                        until.max(gates.turn(self.terms, now))
                    } else {
                        until
                    };
                    return Entry::Step(self.hop(until, cause, &reason, now));
                }
                Admission::End(ending) => return Entry::Step(Step::End(ending)),
                Admission::Discard(why) => return Entry::Step(Step::Discard(why)),
                Admission::Yield => {
                    return Entry::Step(self.hop(now, Cause::OutOfTime, "the invocation had no time left for it", now));
                }
            }
        }
    }

    fn admission(&self, standing: Standing, gate: &Passage, now: Timestamp) -> Admission {
        let message = &self.decoded.message;
        let reach = self.worker.inner.queue.reach();
        admit(
            &self.worker.inner.policy,
            &AdmissionFacts {
                now,
                envelope: self.decoded.handed_on.then_some(&self.decoded.envelope),
                standing,
                queue: reach.kind,
                receive_count: message.receive_count,
                max_receive_count: reach.max_receive_count,
                repeatable: self.terms.repeatable,
                not_before: self.terms.not_before,
                deadline: self.terms.deadline,
                scope: &self.terms.scope,
                gate,
                time_left: self.invocation.fits(now, self.terms.timeout),
            },
        )
    }

    fn hop(&self, until: Timestamp, cause: Cause, reason: &str, now: Timestamp) -> Step {
        // A FIFO message that stays makes no copy, so there is no counter that could rise.
        if cause == Cause::OutOfTime && self.worker.inner.queue.reach().kind == QueueKind::Fifo {
            return Step::Leave;
        }
        match hop(
            &self.policy(),
            &self.decoded.facts(self.worker),
            until,
            cause,
            reason,
            now,
        ) {
            Decision::Wait(wait) => Step::Wait(wait),
            Decision::End(ending) => Step::End(ending),
            Decision::Complete | Decision::Drop { .. } => Step::Leave,
        }
    }

    /// Writes the mark of a call that cannot be repeated, just before it is made.
    async fn mark(&self, now: Timestamp, started: Started) -> Entry {
        let Some(ledger) = self.worker.inner.ledger.as_ref().filter(|_| !self.terms.repeatable) else {
            return Entry::Started(now, started);
        };
        let step = match ledger.mark_started(&self.decoded.message).await {
            Ok(Standing::Current | Standing::Unrecorded) => return Entry::Started(self.now(), started),
            Ok(Standing::Over(why)) => Step::Discard(why),
            Ok(Standing::Started) => Step::End(Ending::new(
                EndingKind::Unknown,
                "its call was started before and may have had its effect; it cannot be repeated safely",
            )),
            Err(error) => {
                tracing::warn!(job_id = %self.terms.job_id, %error, "the start could not be marked, so the call is not made; the message stays");
                Step::Leave
            }
        };
        self.worker.inner.gates.give_back(self.terms, started, now);
        Entry::Step(step)
    }

    async fn call(&self, started_at: Timestamp, started: Started) -> (Step, Refusal) {
        let outcome = self.outcome(started_at).await;
        let now = self.now();
        let gates = &self.worker.inner.gates;
        let told = outcome.as_ref().map_or_else(Interrupt::counters, Done::counters);
        let counters: Vec<Counter> = told.iter().map(|counter| self.bounded(*counter, now)).collect();
        match outcome {
            Ok(done) => {
                gates.succeed(self.terms, started, started_at, &counters, now);
                (Step::Complete(done), None)
            }
            Err(interrupt) => match interrupt.into_outcome() {
                Outcome::Throttled(signal) => {
                    let found = gates.refuse(self.terms, started, signal.not_before(), &counters, now);
                    let (step, event) = self.refused(&signal, found, now).await;
                    (step, Some(Box::new((signal, event))))
                }
                outcome @ (Outcome::Done | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Rejected(_)) => {
                    let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Unknown(_));
                    gates.end(self.terms, started, failed, &counters, now);
                    (self.decided(&outcome, &Verdict::Default, None, now), None)
                }
            },
        }
    }

    /// A counter holds a scope no longer than a refusal may, so that one absurd header does not hold it for years.
    fn bounded(&self, counter: Counter, now: Timestamp) -> Counter {
        let latest = now + self.worker.inner.policy.deferral.max_deferred;
        Counter {
            resets_at: counter.resets_at.min(latest),
            ..counter
        }
    }

    /// The call, in a task of its own: one that panics or hangs hurts nobody else.
    async fn outcome(&self, started_at: Timestamp) -> Result<Done, Interrupt> {
        let must_end_by = self.invocation.must_end_by(started_at, self.terms.timeout);
        let max_receive_count = self.worker.inner.queue.reach().max_receive_count;
        let job = Job {
            message: Arc::clone(&self.decoded.message),
            terms: Arc::clone(self.terms),
            identity: self.decoded.envelope.identity.clone(),
            delivery: self.decoded.delivery(max_receive_count),
            must_end_by,
            counters: self.decoded.envelope.counters,
        };
        let worker = self.worker.clone();
        let mut task = JoinSet::new();
        let in_process = InProcess::new(worker.inner.policy.deferral.max_in_process_wait, must_end_by);
        task.spawn(in_process.around(async move { worker.inner.handler.handle(job).await }));
        tokio::select! {
            joined = task.join_next() => match joined {
                Some(Ok(result)) => result,
                Some(Err(error)) if error.is_panic() => {
                    Err(self.broken(&format!("the handler panicked: {}", panic_words(error.into_panic()))))
                }
                Some(Err(_)) | None => Err(self.broken("the handler was cancelled")),
            },
            () = self.worker.inner.clock.sleep(must_end_by.since(started_at)) => {
                let ms = must_end_by.since(started_at).as_millis();
                Err(self.broken(&format!("it took longer than its timeout of {ms} ms")))
            }
        }
    }

    /// A call that broke off: what cannot be repeated may have had its effect.
    fn broken(&self, reason: &str) -> Interrupt {
        let fault = Fault::new(reason);
        if self.terms.repeatable {
            Interrupt::failed(fault)
        } else {
            Interrupt::unknown(fault)
        }
    }

    /// Closes the gate at once, then asks the integration, then decides.
    async fn refused(&self, signal: &Signal, found: Option<Timestamp>, now: Timestamp) -> (Step, RateLimited) {
        // A scope whose pace is being found is held by its pacer, who knows better than a ladder when to ask again.
        let found = found.filter(|_| by_pace(signal, self.terms));
        if found.is_none() {
            self.close_gate(signal, now).await;
        }
        let facts = self.decoded.facts(self.worker);
        let max_receive_count = self.worker.inner.queue.reach().max_receive_count;
        let event = RateLimited::new(
            signal,
            &self.decoded.message,
            self.terms,
            &self.decoded.envelope.identity.next(),
            facts.deferrals().saturating_add(1),
            facts.first_deferred_at,
            self.decoded.delivery(max_receive_count),
        );
        let inner = &self.worker.inner;
        let verdict = verdict::ask(&*inner.answers, &event, &*inner.clock, inner.verdict_limit).await;
        (
            self.decided(&Outcome::Throttled(signal.clone()), &verdict, found, self.now()),
            event,
        )
    }

    /// One refusal teaches all: whatever becomes of this job, its scope is closed until the provider's moment, or the one
    /// that the default handler would wait for. A moment past the cap on waits closes no longer than that cap, so that one
    /// absurd header does not close a scope for years.
    async fn close_gate(&self, signal: &Signal, now: Timestamp) {
        let policy = self.policy();
        let outcome = Outcome::Throttled(signal.clone());
        let by_default = decide(
            &policy,
            &self.decoded.facts(self.worker),
            &outcome,
            &Verdict::Default,
            now,
            0,
        );
        let until = match by_default {
            Decision::Wait(wait) => wait.until - wait.jitter,
            Decision::End(ending) if ending.kind() == EndingKind::Rejected => return,
            Decision::End(_) | Decision::Complete | Decision::Drop { .. } => {
                signal.not_before().unwrap_or(now + policy.deferral.probe_interval)
            }
        };
        let until = until.min(now + policy.deferral.max_deferred);
        let own = signal.closes().unwrap_or(&self.terms.scope);
        // A key of a provider that the job's terms do not name holds none of these jobs: their own scope does.
        let unnamed = (signal.provider() != self.terms.provider).then_some(&self.terms.scope);
        let closings: Vec<Closing> = std::iter::once(own)
            .chain(signal.closes_too())
            .chain(unnamed)
            .filter(|scope| self.worker.inner.gates.close(scope, until, now, signal.why()))
            .map(|scope| Closing {
                scope: scope.clone(),
                until,
                reason: signal.why().to_string(),
                observation: signal.observation().clone(),
            })
            .collect();
        let Some(store) = self.worker.inner.gate_store.as_ref().filter(|_| !closings.is_empty()) else {
            return;
        };
        if let Err(error) = store.close(&closings).await {
            tracing::warn!(scope = %own, %error, "the gate store did not take the closing; other workers learn of it only from the provider");
        }
    }

    fn decided(&self, outcome: &Outcome, verdict: &Verdict, found: Option<Timestamp>, now: Timestamp) -> Step {
        let facts = Facts {
            found_turn: found,
            ..self.decoded.facts(self.worker)
        };
        let entropy = self.decoded.envelope.identity.next().entropy();
        match decide(&self.policy(), &facts, outcome, verdict, now, entropy) {
            Decision::Complete => Step::Complete(Done::new()),
            Decision::Drop { reason } => Step::Drop { reason },
            Decision::Wait(wait) => {
                if let Some(anomaly) = wait.anomaly {
                    tracing::warn!(job_id = %self.terms.job_id, anomaly, until = %wait.until, "an odd moment was corrected");
                }
                Step::Wait(wait)
            }
            Decision::End(ending) => Step::End(ending),
        }
    }
}

/// Whether a refusal is about the pace of its own scope: not about a day's quota, nor about another scope.
fn by_pace(signal: &Signal, terms: &Terms) -> bool {
    let of_a_pace = match signal.limit_kind() {
        Kind::Short | Kind::Concurrency | Kind::Unknown => true,
        Kind::Daily | Kind::Monthly | Kind::AccountDisabled => false,
    };
    of_a_pace
        && signal.observation().status.is_none_or(|status| status == 429)
        && signal.closes().is_none_or(|scope| *scope == terms.scope)
}

fn panic_words(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or_else(|| "no message".to_string(), ToString::to_string),
    }
}
