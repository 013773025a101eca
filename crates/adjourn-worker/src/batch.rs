//! A batch of one queue, run to its settlements.
//!
//! Jobs run concurrently, each in its own task, and are settled in groups, so that a full batch of deferrals costs one call.
//! What was received more than once runs last and alone, after the others are settled and gone: a job that kills its
//! process takes nobody along. On a FIFO queue each group is a chain that stops at the first message that stays.

use std::{collections::VecDeque, future::pending, pin::pin, sync::Arc, time::Duration};

use adjourn_core::{QueueKind, ScopeKey, Standing, Timestamp};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    Handler, Message, Performed, Settled, Settlement, Worker,
    decode::Decoded,
    perform::{Invocation, perform_decoded},
};

/// The most messages that one call of a queue takes (SQS API, batch entries).
const GROUP: usize = 10;
/// How long a finished job waits for others to be settled with.
const LINGER: Duration = Duration::from_millis(50);

/// A message that is ready to be performed, in its place of the batch.
struct Ready {
    index: usize,
    decoded: Decoded,
    standing: Standing,
}

pub(crate) async fn run<H: Handler>(
    worker: &Worker<H>,
    messages: Vec<Message>,
    ends_at: Option<Timestamp>,
) -> Vec<Settled> {
    let invocation = Arc::new(Invocation::new(worker.inner.clock.now(), ends_at));
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let mut settled: Vec<Settled> = messages.iter().map(untouched).collect();
    let ready = prepare(worker, &messages).await;
    let (suspects, first): (Vec<_>, Vec<_>) = match worker.reach().kind {
        QueueKind::Standard => {
            let chains = ready.into_iter().map(|one| vec![one]);
            chains.partition(|chain| chain.iter().any(is_suspect))
        }
        QueueKind::Fifo => chains_of(ready)
            .into_iter()
            .partition(|chain| chain.iter().any(is_suspect)),
    };
    let mut outcomes = Vec::new();
    match worker.reach().kind {
        QueueKind::Standard => outcomes.extend(grouped(worker, first, &invocation).await),
        QueueKind::Fifo => outcomes.extend(chained(worker, first, &invocation).await),
    }
    if !suspects.is_empty() {
        delete(worker, &mut outcomes).await;
        for chain in suspects {
            let mut one = run_chain(worker.clone(), chain, Arc::clone(&invocation)).await;
            delete(worker, &mut one).await;
            outcomes.extend(one);
        }
    }
    for (index, outcome) in outcomes {
        if let Some(place) = settled.get_mut(index) {
            *place = outcome;
        }
    }
    settled
}

fn untouched(message: &Arc<Message>) -> Settled {
    Settled {
        message: Arc::clone(message),
        settlement: Settlement::Keep,
        deletion: None,
    }
}

fn is_suspect(one: &Ready) -> bool {
    one.decoded.message.receive_count > 1
}

/// Decodes each message alone, and asks the stores once for the whole batch. A store that is away changes nothing.
async fn prepare<H: Handler>(worker: &Worker<H>, messages: &[Arc<Message>]) -> Vec<Ready> {
    let decoded: Vec<Decoded> = messages
        .iter()
        .map(|message| Decoded::read(worker, Arc::clone(message)))
        .collect();
    if let Some(store) = &worker.inner.gate_store {
        let mut scopes: Vec<ScopeKey> = decoded
            .iter()
            .filter_map(|one| one.terms.as_ref().ok().map(|terms| terms.scope.clone()))
            .collect();
        scopes.sort_unstable();
        scopes.dedup();
        match store.closed(&scopes).await {
            Ok(closed) => {
                let now = worker.inner.clock.now();
                for (scope, closed) in scopes.iter().zip(closed) {
                    if let Some((until, reason)) = closed {
                        worker.inner.gates.learn(scope, until, now, &reason);
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the gate store cannot be read; this worker goes on with what it knows")
            }
        }
    }
    let mut standings = Vec::new();
    if let Some(ledger) = &worker.inner.ledger {
        match ledger.standing(messages).await {
            Ok(known) => standings = known,
            Err(error) => tracing::warn!(%error, "the ledger cannot be read; this worker goes on without it"),
        }
    }
    standings.resize(decoded.len(), Standing::Unrecorded);
    let pairs = decoded.into_iter().zip(standings).enumerate();
    pairs
        .map(|(index, (decoded, standing))| Ready {
            index,
            decoded,
            standing,
        })
        .collect()
}

/// The messages of each group in their order; a message without a group is a chain of its own.
fn chains_of(ready: Vec<Ready>) -> Vec<Vec<Ready>> {
    let mut chains: Vec<(Option<String>, Vec<Ready>)> = Vec::new();
    for one in ready {
        let group = one.decoded.message.group.clone();
        match chains.iter_mut().find(|(of, _)| group.is_some() && *of == group) {
            Some((_, chain)) => chain.push(one),
            None => chains.push((group, vec![one])),
        }
    }
    chains.into_iter().map(|(_, chain)| chain).collect()
}

/// Runs single messages concurrently and settles them in groups.
async fn grouped<H: Handler>(
    worker: &Worker<H>,
    chains: Vec<Vec<Ready>>,
    invocation: &Arc<Invocation>,
) -> Vec<(usize, Settled)> {
    let mut waiting: VecDeque<Ready> = chains.into_iter().flatten().collect();
    let mut running: JoinSet<(usize, Performed)> = JoinSet::new();
    let mut settling: JoinSet<Vec<(usize, Settled)>> = JoinSet::new();
    let mut finished: Vec<(usize, Performed)> = Vec::new();
    let mut outcomes = Vec::new();
    // One for a group: a timer for each job that ends would wake a thread that waits for the provider's answers.
    let mut linger = pin!(None);
    loop {
        while running.len() < worker.inner.concurrency
            && let Some(one) = waiting.pop_front()
        {
            let (worker, invocation) = (worker.clone(), Arc::clone(invocation));
            running.spawn(async move {
                (
                    one.index,
                    perform_decoded(&worker, one.decoded, one.standing, &invocation).await,
                )
            });
        }
        let nothing_to_come = running.is_empty() && waiting.is_empty();
        if finished.len() >= GROUP || (nothing_to_come && !finished.is_empty()) {
            spawn_settling(worker, &mut finished, &mut settling);
        }
        if finished.is_empty() {
            linger.set(None);
        } else if linger.is_none() {
            linger.set(Some(worker.inner.clock.sleep(LINGER)));
        }
        if nothing_to_come && settling.is_empty() {
            return outcomes;
        }
        tokio::select! {
            Some(joined) = running.join_next() => match joined {
                Ok(performed) => finished.push(performed),
                Err(error) => tracing::error!(%error, "a job's task broke off; its message stays"),
            },
            Some(joined) = settling.join_next() => match joined {
                Ok(settled) => outcomes.extend(settled),
                Err(error) => tracing::error!(%error, "settling broke off; its messages stay"),
            },
            () = async { match linger.as_mut().as_pin_mut() { Some(linger) => linger.await, None => pending().await } } => {
                spawn_settling(worker, &mut finished, &mut settling);
            }
        }
    }
}

fn spawn_settling<H: Handler>(
    worker: &Worker<H>,
    finished: &mut Vec<(usize, Performed)>,
    settling: &mut JoinSet<Vec<(usize, Settled)>>,
) {
    let (indices, performed): (Vec<_>, Vec<_>) = std::mem::take(finished).into_iter().unzip();
    let worker = worker.clone();
    settling.spawn(async move { indices.into_iter().zip(worker.settle(performed).await).collect() });
}

/// Runs chains concurrently, each in its order.
async fn chained<H: Handler>(
    worker: &Worker<H>,
    chains: Vec<Vec<Ready>>,
    invocation: &Arc<Invocation>,
) -> Vec<(usize, Settled)> {
    let slots = Arc::new(Semaphore::new(worker.inner.concurrency));
    let mut running = JoinSet::new();
    for chain in chains {
        let (worker, invocation, slots) = (worker.clone(), Arc::clone(invocation), Arc::clone(&slots));
        running.spawn(async move {
            let _slot = slots.acquire().await;
            run_chain(worker, chain, invocation).await
        });
    }
    let mut outcomes = Vec::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok(settled) => outcomes.extend(settled),
            Err(error) => tracing::error!(%error, "a group's task broke off; its messages stay"),
        }
    }
    outcomes
}

/// Runs a chain in its order and stops at the first message that stays. What comes after it stays too, untouched.
async fn run_chain<H: Handler>(
    worker: Worker<H>,
    chain: Vec<Ready>,
    invocation: Arc<Invocation>,
) -> Vec<(usize, Settled)> {
    let mut outcomes = Vec::new();
    for one in chain {
        let index = one.index;
        let performed = perform_decoded(&worker, one.decoded, one.standing, &invocation).await;
        let settled = worker.settle(vec![performed]).await;
        let stays = settled.iter().all(|settled| settled.settlement == Settlement::Keep);
        outcomes.extend(settled.into_iter().map(|settled| (index, settled)));
        if stays {
            break;
        }
    }
    outcomes
}

/// Deletes what may go now, before a message that may kill the process runs. What was not deleted is left to the caller.
async fn delete<H: Handler>(worker: &Worker<H>, outcomes: &mut [(usize, Settled)]) {
    let (places, deletions): (Vec<_>, Vec<_>) = outcomes
        .iter_mut()
        .filter_map(|(_, settled)| {
            settled
                .deletion
                .take()
                .map(|deletion| (&mut settled.deletion, deletion))
        })
        .unzip();
    if deletions.is_empty() {
        return;
    }
    let answers = worker.inner.queue.delete(&deletions).await;
    for ((place, deletion), answer) in places.into_iter().zip(deletions).zip(answers) {
        if let Err(error) = answer {
            tracing::warn!(message_id = %deletion.original.id, %error, "a settled message was not deleted yet");
            *place = Some(deletion);
        }
    }
}
