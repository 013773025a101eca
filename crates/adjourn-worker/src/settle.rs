//! Decisions made durable: routes chosen, ports asked, proofs collected, sinks told.

mod pending;
mod round;

use std::{sync::Arc, time::Duration};

use adjourn_core::{Mechanism, Refused, Timestamp};

use crate::{
    Done, Handler, Message, Notice, NoticeDecision, POLICY_VERSION, Performed, Proof, Receipt, Settlement, Transition,
    Worker, perform::Step, port::Deletion,
};
use pending::Pending;
use round::Round;

/// How long all event sinks together may take for a group, and the store that paces are noted in.
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
    tokio::join!(tell(worker, &notices), note_paces(worker, false));
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
/// Writes down what is new of the found paces, for who looks. It changes nothing either.
pub(crate) async fn note_paces<H: Handler>(worker: &Worker<H>, last: bool) {
    let inner = &worker.inner;
    let Some(store) = &inner.gate_store else { return };
    let news = inner.gates.news(last, inner.clock.now());
    if news.is_empty() {
        return;
    }
    tokio::select! {
        noted = store.note_paces(&news) => {
            let Err(error) = noted else { return };
            tracing::warn!(%error, "the gate store did not take the paces that were found; who looks does not see them yet");
        }
        () = inner.clock.sleep(SINK_LIMIT) => {
            tracing::warn!("the gate store took too long; who looks does not see the paces that were found yet");
        }
    }
    inner.gates.not_noted(&news);
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
