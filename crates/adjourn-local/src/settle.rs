//! What becomes of a taken job: it moves on, it ends, or it is done. Each is one change of its row, made only by the holder
//! of its lease.

use adjourn_core::{Cap, Discarded};
use adjourn_core::{Ending, EndingKind, Envelope, Mechanism, Standing, Timestamp};
use adjourn_worker::{Done, Receipt, Transition};
use rusqlite::params;

use crate::{
    State, StoreError, history,
    lease::{Holding, Token, end_cancelled, holding},
    state::mechanism_code,
    writer::Session,
};

/// A hand-off: where the row moves to.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) token: Token,
    pub(crate) id: String,
    pub(crate) envelope: Envelope,
    pub(crate) due: Timestamp,
    pub(crate) mechanism: Mechanism,
    /// A hold keeps the receive count, as a queue would.
    pub(crate) keeps_receive_count: bool,
    pub(crate) receipt: Receipt,
}

/// How a job ends without success.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) token: Token,
    pub(crate) id: String,
    pub(crate) envelope: Envelope,
    pub(crate) ending: Ending,
    pub(crate) receipt: Receipt,
}

/// How a job is let go.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) token: Token,
    pub(crate) id: String,
    pub(crate) kind: ClosureKind,
    pub(crate) receipt: Option<Receipt>,
}

#[derive(Clone, Debug)]
pub(crate) enum ClosureKind {
    Done(Done),
    Dropped(String),
    Discarded(Discarded),
    /// Its hand-off has moved the row already.
    HandedOn,
}

/// Each entry's own answer; the outer error is the file's and says that nothing was written.
type Answers = Vec<Result<(), StoreError>>;

pub(crate) fn move_on(session: &mut Session, moves: &[Move], now: Timestamp) -> Result<Answers, StoreError> {
    moves
        .iter()
        .map(|one| match move_one(session, one, now) {
            Err(error) if error.is_lease_lost() => Ok(Err(error)),
            other => other.map(Ok),
        })
        .collect()
}

fn move_one(session: &mut Session, to: &Move, now: Timestamp) -> Result<(), StoreError> {
    match holding(&session.conn, to.token)? {
        Holding::Held { cancel_requested: true } => {
            history::add(&session.conn, to.token.seq, &to.receipt)?;
            return end_cancelled(&session.conn, to.token.seq, now);
        }
        Holding::Held {
            cancel_requested: false,
        } => {}
        // The same step again: the answer to the first time was lost.
        Holding::Settled { epoch, sequence, .. }
            if (epoch, sequence) == (to.envelope.identity.epoch, to.envelope.identity.sequence) =>
        {
            return Ok(());
        }
        // Cancelled in this lease's time: the step is not made, and nothing will wake up for it.
        Holding::Settled {
            state: State::Cancelled,
            ..
        } => return Ok(()),
        Holding::Settled { .. } | Holding::Lost { .. } => return Err(StoreError::lease_lost(&to.id)),
    }
    let mut envelope = to.envelope.clone();
    if to.due >= envelope.due && envelope.rest.is_none() {
        // This store keeps the whole wait by its own clock, so nothing is left of it when the job is taken.
        envelope.rest = Some(std::time::Duration::ZERO);
    }
    let state = if to.due > now { State::Waiting } else { State::Ready };
    session
        .conn
        .prepare_cached(
            "UPDATE jobs SET state = ?2, due = ?3, epoch = ?4, sequence = ?5, receive_count = receive_count * ?6,
               first_received_at = CASE WHEN ?6 THEN first_received_at END, started_at = NULL, lost_leases = 0,
               attempts = ?7, deferrals = ?8, hops = ?9, mechanism = ?10, reason = ?11,
               last_status = coalesce(?12, last_status), updated_at = ?13, envelope = ?14
             WHERE seq = ?1",
        )?
        .execute(params![
            to.token.seq,
            state.code(),
            to.due.as_unix_ms(),
            envelope.identity.epoch,
            envelope.identity.sequence,
            to.keeps_receive_count,
            envelope.counters.failures,
            envelope.counters.deferrals,
            envelope.counters.hops,
            mechanism_code(to.mechanism),
            to.receipt.cause,
            to.receipt.observation.as_ref().and_then(|seen| seen.status),
            now.as_unix_ms(),
            envelope.write(),
        ])?;
    history::add(&session.conn, to.token.seq, &to.receipt)?;
    session.wake_at(to.due);
    Ok(())
}

pub(crate) fn end(session: &mut Session, ends: &[End], now: Timestamp) -> Result<Answers, StoreError> {
    ends.iter()
        .map(|one| match end_one(session, one, now) {
            Err(error) if error.is_lease_lost() => Ok(Err(error)),
            other => other.map(Ok),
        })
        .collect()
}

fn end_one(session: &Session, end: &End, now: Timestamp) -> Result<(), StoreError> {
    match holding(&session.conn, end.token)? {
        Holding::Held { .. } => {}
        Holding::Settled { state, epoch, sequence }
            if !state.is_open()
                && (epoch, sequence) == (end.envelope.identity.epoch, end.envelope.identity.sequence) =>
        {
            return Ok(());
        }
        Holding::Settled { .. } | Holding::Lost { .. } => return Err(StoreError::lease_lost(&end.id)),
    }
    let state = if end.ending.is_exhausted() {
        State::Exhausted
    } else {
        State::Failed
    };
    let counters = end.envelope.counters;
    session
        .conn
        .prepare_cached(
            "UPDATE jobs SET state = ?2, due = ?3, updated_at = ?3, epoch = ?4, sequence = ?5, attempts = ?6, deferrals = ?7,
               hops = ?8, mechanism = 0, reason = ?9, last_status = coalesce(?10, last_status), envelope = ?11
             WHERE seq = ?1",
        )?
        .execute(params![
            end.token.seq,
            state.code(),
            now.as_unix_ms(),
            end.envelope.identity.epoch,
            end.envelope.identity.sequence,
            counters.failures.saturating_add(u32::from(spent_an_attempt(&end.ending))),
            counters.deferrals,
            counters.hops,
            format!("{}: {}", end.ending.word(), end.ending.why()),
            end.ending.last_status(),
            end.envelope.write(),
        ])?;
    history::add(&session.conn, end.token.seq, &end.receipt)
}

/// Whether the call that led to this end counts as an attempt: a refusal does not, nor an end without a call.
fn spent_an_attempt(ending: &Ending) -> bool {
    match ending.kind() {
        EndingKind::Rejected | EndingKind::Unknown | EndingKind::Exhausted(Cap::Attempts) => true,
        EndingKind::Exhausted(_)
        | EndingKind::Deadline
        | EndingKind::Undecodable
        | EndingKind::Crashed
        | EndingKind::Unholdable => false,
    }
}

pub(crate) fn close(session: &mut Session, closures: &[Closure], now: Timestamp) -> Result<Answers, StoreError> {
    closures
        .iter()
        .map(|one| match close_one(session, one, now) {
            Err(error) if error.is_lease_lost() => Ok(Err(error)),
            other => other.map(Ok),
        })
        .collect()
}

fn close_one(session: &Session, closure: &Closure, now: Timestamp) -> Result<(), StoreError> {
    let token = closure.token;
    let (state, reason, status, attempts, result) = match &closure.kind {
        ClosureKind::HandedOn => return Ok(()),
        ClosureKind::Done(done) => (State::Done, None, done.last_status(), 1, done.stored_result()),
        ClosureKind::Dropped(reason) => (
            State::Cancelled,
            Some(format!("dropped by the handler: {reason}")),
            None,
            0,
            None,
        ),
        ClosureKind::Discarded(why) => {
            let reason = match why {
                Discarded::Cancelled => "cancelled by a person before its call was made",
                Discarded::Stale => "a newer step of it exists",
                Discarded::Ended => "it had already ended",
            };
            (State::Cancelled, Some(reason.to_string()), None, 0, None)
        }
    };
    let changed = session
        .conn
        .prepare_cached(
            "UPDATE jobs SET state = ?4, due = ?5, updated_at = ?5, attempts = attempts + ?6, mechanism = 0, reason = ?7,
               last_status = coalesce(?8, last_status)
             WHERE seq = ?1 AND state = 1 AND lease_owner = ?2 AND lease_serial = ?3",
        )?
        .execute(params![
            token.seq,
            token.owner,
            token.serial,
            state.code(),
            now.as_unix_ms(),
            attempts,
            reason,
            status,
        ])?;
    if changed == 0 {
        return match (holding(&session.conn, token)?, &closure.kind) {
            (Holding::Settled { .. }, _) | (_, ClosureKind::Discarded(_)) => Ok(()),
            _ => Err(StoreError::lease_lost(&closure.id)),
        };
    }
    if let Some(result) = result {
        session
            .conn
            .prepare_cached("INSERT OR REPLACE INTO results (job, result) VALUES (?1, ?2)")?
            .execute(params![token.seq, result])?;
    }
    let receipt = match (&closure.receipt, &closure.kind) {
        (_, ClosureKind::Discarded(Discarded::Cancelled)) => Some(history::line(
            now,
            Transition::Cancelled,
            reason.as_deref().unwrap_or_default(),
            None,
        )),
        // The row itself tells that, and most jobs have nothing else to tell.
        (_, ClosureKind::Done(_)) => None,
        (receipt, _) => receipt.clone(),
    };
    if let Some(receipt) = receipt {
        history::add(&session.conn, token.seq, &receipt)?;
    }
    Ok(())
}

/// Marks a job's call as started, unless somebody has cancelled it or taken it over.
pub(crate) fn mark_started(session: &Session, token: Token, now: Timestamp) -> Result<Standing, StoreError> {
    let changed = session
        .conn
        .prepare_cached(
            "UPDATE jobs SET started_at = ?4 WHERE seq = ?1 AND state = 1 AND lease_owner = ?2 AND lease_serial = ?3
               AND started_at IS NULL AND cancel_requested = 0",
        )?
        .execute(params![token.seq, token.owner, token.serial, now.as_unix_ms()])?;
    if changed > 0 {
        return Ok(Standing::Current);
    }
    standing(&session.conn, token)
}

/// What the row says of the step that the token's message is.
pub(crate) fn standing(conn: &rusqlite::Connection, token: Token) -> Result<Standing, StoreError> {
    Ok(match holding(conn, token)? {
        Holding::Held { cancel_requested: true } => Standing::Over(Discarded::Cancelled),
        Holding::Held {
            cancel_requested: false,
        } => {
            let started: bool = conn
                .prepare_cached("SELECT started_at IS NOT NULL FROM jobs WHERE seq = ?1")?
                .query_row([token.seq], |row| row.get(0))?;
            if started { Standing::Started } else { Standing::Current }
        }
        Holding::Settled { state, .. } => over(Some(state)),
        Holding::Lost { state } => over(state),
    })
}

fn over(state: Option<State>) -> Standing {
    Standing::Over(match state {
        Some(State::Cancelled) => Discarded::Cancelled,
        Some(State::Done | State::Failed | State::Exhausted | State::Review) => Discarded::Ended,
        None | Some(State::Ready | State::Running | State::Waiting) => Discarded::Stale,
    })
}
