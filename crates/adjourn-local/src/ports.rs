//! The worker's ports on the store: a queue, a scheduler, a gate store and a ledger that are one file.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Envelope, Mechanism, QueueKind, Reach, ScheduleReach, ScopeKey, Standing, Timestamp};
use adjourn_worker::{
    Message, Receipt,
    port::{
        Accepted, Closing, Copy, DeadLetter, Deletion, FoundPaceNote, GateStore, Hold, Ledger, PortError, Queue,
        ScheduledCopy, Scheduler,
    },
};
use async_trait::async_trait;

use crate::{
    LEASE, MAX_DELAY, MAX_MESSAGE_BYTES, MAX_RECEIVE_COUNT, Store, StoreError, gates,
    lease::Token,
    settle::{self, Closure, ClosureKind, End, Move},
};

/// The longest visibility timeout of a queue in the cloud, kept here so that both take the same tiers.
const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);
/// A file keeps its jobs for good: a century stands for it.
const RETENTION: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The answers of the entries that could be read, in the places of all of them.
fn fold<T>(
    prepared: Vec<Result<T, StoreError>>,
    answers: Result<Vec<Result<(), StoreError>>, StoreError>,
) -> Vec<Result<(), PortError>> {
    let (mut answers, failure) = match answers {
        Ok(answers) => (answers.into_iter(), None),
        Err(error) => (Vec::new().into_iter(), Some(error)),
    };
    prepared
        .into_iter()
        .map(|entry| {
            entry?;
            match &failure {
                Some(error) => Err(PortError::from(error.again())),
                None => answers
                    .next()
                    .unwrap_or_else(|| Err(StoreError::internal("an entry was not answered")))
                    .map_err(PortError::from),
            }
        })
        .collect()
}

fn accepted(
    answers: Vec<Result<(), PortError>>,
    envelopes: impl Iterator<Item = Envelope>,
) -> Vec<Result<Accepted, PortError>> {
    answers
        .into_iter()
        .zip(envelopes)
        .map(|(answer, envelope)| {
            answer.map(|()| Accepted {
                name: envelope.identity.name(),
                identity: envelope.identity,
            })
        })
        .collect()
}

/// How a hand-off is held, and when it is due once the moment of its writing is known.
struct Wait {
    mechanism: Mechanism,
    keeps_receive_count: bool,
    due: Due,
}

#[derive(Clone, Copy)]
enum Due {
    /// So long after it is written, and not before the envelope's own moment where the delay covers the whole wait.
    After(Duration),
    At(Timestamp),
}

impl Store {
    async fn hand_on(&self, entries: Vec<(Arc<Message>, Envelope, Receipt, Wait)>) -> Vec<Result<Accepted, PortError>> {
        let envelopes: Vec<Envelope> = entries.iter().map(|(_, envelope, ..)| envelope.clone()).collect();
        let prepared: Vec<Result<(Move, Due), StoreError>> = entries
            .into_iter()
            .map(|(message, envelope, receipt, wait)| {
                let entry = Move {
                    token: Token::of(&message)?,
                    id: message.id.clone(),
                    envelope,
                    due: Timestamp::EPOCH,
                    mechanism: wait.mechanism,
                    keeps_receive_count: wait.keeps_receive_count,
                    receipt,
                };
                Ok((entry, wait.due))
            })
            .collect();
        let mut moves: Vec<(Move, Due)> = prepared.iter().flatten().cloned().collect();
        let answers = self
            .write(move |session, now| {
                for (one, due) in &mut moves {
                    one.due = match *due {
                        Due::At(at) => at,
                        Due::After(delay) => {
                            let own = one.envelope.rest.map(|rest| one.envelope.due - rest);
                            own.unwrap_or(now).max(now + delay)
                        }
                    };
                }
                let moves: Vec<Move> = moves.into_iter().map(|(one, _)| one).collect();
                settle::move_on(session, &moves, now)
            })
            .await;
        accepted(fold(prepared, answers), envelopes.into_iter())
    }
}

#[async_trait]
impl Queue for Store {
    fn reach(&self) -> Reach {
        Reach {
            kind: QueueKind::Standard,
            max_delay: MAX_DELAY,
            delay_step: Duration::from_millis(1),
            schedule: None,
            max_visibility: MAX_VISIBILITY,
            visibility_timeout: LEASE,
            retention: RETENTION,
            max_receive_count: Some(MAX_RECEIVE_COUNT),
        }
    }

    fn max_message_bytes(&self) -> usize {
        MAX_MESSAGE_BYTES
    }

    async fn resend(&self, copies: &[Copy]) -> Vec<Result<Accepted, PortError>> {
        let entries = copies.iter().map(|copy| {
            let wait = Wait {
                mechanism: if copy.delay.is_zero() {
                    Mechanism::None
                } else {
                    Mechanism::Delay
                },
                keeps_receive_count: false,
                due: Due::After(copy.delay),
            };
            (
                Arc::clone(&copy.original),
                copy.envelope.clone(),
                copy.receipt.clone(),
                wait,
            )
        });
        self.hand_on(entries.collect()).await
    }

    async fn hold(&self, holds: &[Hold]) -> Vec<Result<Accepted, PortError>> {
        let entries = holds.iter().map(|hold| {
            let wait = Wait {
                mechanism: Mechanism::Visibility,
                keeps_receive_count: true,
                due: Due::After(hold.visibility),
            };
            (
                Arc::clone(&hold.original),
                hold.envelope.clone(),
                hold.receipt.clone(),
                wait,
            )
        });
        self.hand_on(entries.collect()).await
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<Accepted, PortError>> {
        let prepared: Vec<Result<End, StoreError>> = letters
            .iter()
            .map(|letter| {
                Ok(End {
                    token: Token::of(&letter.original)?,
                    id: letter.original.id.clone(),
                    envelope: letter.envelope.clone(),
                    ending: letter.ending.clone(),
                    receipt: letter.receipt.clone(),
                })
            })
            .collect();
        let ends: Vec<End> = prepared.iter().flatten().cloned().collect();
        let answers = self.write(move |session, now| settle::end(session, &ends, now)).await;
        accepted(
            fold(prepared, answers),
            letters.iter().map(|letter| letter.envelope.clone()),
        )
    }

    async fn delete(&self, deletions: &[Deletion]) -> Vec<Result<(), PortError>> {
        let prepared: Vec<Result<Closure, StoreError>> = deletions.iter().map(closure).collect();
        // A hand-off has moved its row: there is nothing left to write, so there is nothing to wait for.
        let closures: Vec<Closure> = prepared.iter().flatten().cloned().collect();
        if closures
            .iter()
            .all(|closure| matches!(closure.kind, ClosureKind::HandedOn))
        {
            let answers = closures.iter().map(|_| Ok(())).collect();
            return fold(prepared, Ok(answers));
        }
        let answers = self
            .write(move |session, now| settle::close(session, &closures, now))
            .await;
        fold(prepared, answers)
    }
}

fn closure(deletion: &Deletion) -> Result<Closure, StoreError> {
    let proof = &deletion.proof;
    let kind = if proof.is_completed() {
        ClosureKind::Done(deletion.done.clone().unwrap_or_default())
    } else if let Some(reason) = proof.drop_reason() {
        ClosureKind::Dropped(reason.to_string())
    } else if let Some(why) = proof.discard_reason() {
        ClosureKind::Discarded(why)
    } else {
        ClosureKind::HandedOn
    };
    Ok(Closure {
        token: Token::of(&deletion.original)?,
        id: deletion.original.id.clone(),
        kind,
        receipt: deletion.receipt.clone(),
    })
}

#[async_trait]
impl Scheduler for Store {
    fn reach(&self) -> ScheduleReach {
        ScheduleReach {
            step: Duration::from_millis(1),
            lead: Duration::ZERO,
        }
    }

    fn carries(&self, _message: &Message) -> bool {
        true
    }

    async fn schedule(&self, copies: &[ScheduledCopy]) -> Vec<Result<Accepted, PortError>> {
        let entries = copies.iter().map(|copy| {
            let wait = Wait {
                mechanism: Mechanism::Schedule,
                keeps_receive_count: false,
                due: Due::At(copy.at),
            };
            (
                Arc::clone(&copy.original),
                copy.envelope.clone(),
                copy.receipt.clone(),
                wait,
            )
        });
        self.hand_on(entries.collect()).await
    }
}

#[async_trait]
impl GateStore for Store {
    async fn close(&self, closings: &[Closing]) -> Result<(), PortError> {
        let closings = closings.to_vec();
        Ok(self
            .write(move |session, now| gates::close(session, &closings, now))
            .await?)
    }

    async fn closed(&self, scopes: &[ScopeKey]) -> Result<Vec<Option<(Timestamp, String)>>, PortError> {
        let scopes = scopes.to_vec();
        Ok(self.read(move |conn, now| gates::closed(conn, &scopes, now)).await?)
    }

    async fn note_paces(&self, paces: &[FoundPaceNote]) -> Result<(), PortError> {
        let paces = paces.to_vec();
        Ok(self
            .write(move |session, now| gates::note(session, &paces, now))
            .await?)
    }
}

#[async_trait]
impl Ledger for Store {
    async fn standing(&self, messages: &[Arc<Message>]) -> Result<Vec<Standing>, PortError> {
        let tokens = messages
            .iter()
            .map(|message| Token::of(message))
            .collect::<Result<Vec<_>, _>>()?;
        let standings = self.read(move |conn, _| tokens.iter().map(|&token| settle::standing(conn, token)).collect());
        Ok(standings.await?)
    }

    async fn mark_started(&self, message: &Arc<Message>) -> Result<Standing, PortError> {
        let token = Token::of(message)?;
        Ok(self
            .write(move |session, now| settle::mark_started(session, token, now))
            .await?)
    }
}
