//! One round of asking the ports, each for a whole group.

use std::sync::Arc;

use adjourn_core::{Ending, EndingKind, Envelope, Route};

use super::pending::Pending;
use crate::{
    Handler, Handoff, Worker,
    port::{Accepted, Copy, DeadLetter, Hold, PortError, ScheduledCopy},
};

/// What a port's answer is worth: a proof that the original may go, or nothing to prove because it stays hidden.
pub(super) enum Carried {
    Away(Handoff),
    Hidden,
}
/// One round of asking: each message with the route it takes, grouped by port.
pub(super) struct Round {
    resend: Vec<(Pending, Route, Copy)>,
    schedule: Vec<(Pending, Route, ScheduledCopy)>,
    hold: Vec<(Pending, Route, Hold)>,
    dead_letter: Vec<(Pending, Route, DeadLetter)>,
    leave: Vec<(Pending, Route)>,
}

pub(super) type Answer = Option<Result<Carried, PortError>>;

impl Round {
    pub(super) fn plan<H: Handler>(worker: &Worker<H>, pending: Vec<Pending>) -> Self {
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

    pub(super) async fn carry_out<H: Handler>(self, worker: &Worker<H>) -> Vec<(Pending, Route, Answer)> {
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
