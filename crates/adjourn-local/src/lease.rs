//! A taken job: what proves that it is ours, and for how long.

use std::{sync::Arc, time::Duration};

use adjourn_core::{ScopeKey, Standing, Timestamp};
use adjourn_worker::{Message, Transition};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{State, StoreError, history, writer::Session};

/// How long a lease lasts unless it is renewed: a killed process's jobs come back within this time.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often the leases of running jobs are renewed.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// A job that was taken, with what is known of it.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The message, as a worker takes it. Its receipt is the lease's token.
    pub message: Arc<Message>,
    /// What the store knows of this step.
    pub standing: Standing,
    /// The scope whose limit it shares.
    pub scope: ScopeKey,
    /// Whether an earlier lease of it ran out: its job may be one that kills its process.
    pub is_suspect: bool,
    /// Since when it could be taken: a lease that is given back keeps its place.
    pub ready_since: Timestamp,
}

/// A lease's token: the row, who took it, and which of its takes that was. No two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    pub(crate) seq: i64,
    pub(crate) owner: i64,
    pub(crate) serial: i64,
}

impl Token {
    pub(crate) fn write(self) -> String {
        format!("{}.{:x}.{}", self.seq, self.owner, self.serial)
    }

    pub(crate) fn of(message: &Message) -> Result<Self, StoreError> {
        Self::read(&message.receipt).ok_or_else(|| {
            StoreError::refused(&format!(
                "message {} was not taken from this store: its receipt {:?} is no lease of it",
                message.id, message.receipt
            ))
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let seq = parts.next()?.parse().ok()?;
        let owner = u64::from_str_radix(parts.next()?.trim_start_matches('-'), 16).ok()?;
        let serial = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self {
            seq,
            owner: i64::from_ne_bytes(owner.to_ne_bytes()),
            serial,
        })
    }
}

/// What a row says to the holder of a token.
pub(crate) enum Holding {
    /// The lease holds, and whether a person has asked for the job's cancellation.
    Held { cancel_requested: bool },
    /// The lease was the row's last one and has been settled since.
    Settled { state: State, epoch: u32, sequence: u32 },
    /// The row has gone on without it.
    Lost { state: Option<State> },
}

pub(crate) fn holding(conn: &Connection, token: Token) -> Result<Holding, StoreError> {
    let row = conn
        .prepare_cached(
            "SELECT state, lease_owner, lease_serial, cancel_requested, epoch, sequence FROM jobs WHERE seq = ?1",
        )?
        .query_row([token.seq], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Option<i64>>(1)?,
                row.get::<_, Option<i64>>(2)?,
                row.get::<_, bool>(3)?,
                row.get::<_, u32>(4)?,
                row.get::<_, u32>(5)?,
            ))
        })
        .optional()?;
    let Some((code, owner, serial, cancel_requested, epoch, sequence)) = row else {
        return Ok(Holding::Lost { state: None });
    };
    let state = State::of_code(code);
    if (owner, serial) != (Some(token.owner), Some(token.serial)) {
        return Ok(Holding::Lost { state });
    }
    Ok(match state {
        Some(State::Running) => Holding::Held { cancel_requested },
        // Ready: the lease ran out, and nobody else has taken it yet. It is lost all the same.
        None | Some(State::Ready) => Holding::Lost { state },
        Some(
            state
            @ (State::Waiting | State::Done | State::Failed | State::Exhausted | State::Review | State::Cancelled),
        ) => Holding::Settled { state, epoch, sequence },
    })
}

/// Renews leases, all in one statement. One that has been lost stays lost.
pub(crate) fn renew(session: &mut Session, tokens: &[Token], now: Timestamp) -> Result<(), StoreError> {
    let Some(owner) = tokens.first().map(|token| token.owner) else {
        return Ok(());
    };
    let seqs: Vec<i64> = tokens.iter().map(|token| token.seq).collect();
    session
        .conn
        .prepare_cached(
            "UPDATE jobs SET due = ?1
             WHERE state = 1 AND lease_owner = ?2 AND seq IN (SELECT value FROM json_each(?3))",
        )?
        .execute(params![
            (now + LEASE).as_unix_ms(),
            owner,
            serde_json::to_string(&seqs).unwrap_or_default()
        ])?;
    Ok(())
}

/// Gives leases back: what was not started keeps its place and its receive count; what was started counts as received.
pub(crate) fn release(
    session: &mut Session,
    leases: &[(Token, Timestamp, bool)],
    now: Timestamp,
) -> Result<(), StoreError> {
    for &(token, ready_since, started) in leases {
        let Holding::Held { cancel_requested } = holding(&session.conn, token)? else {
            continue;
        };
        if cancel_requested {
            end_cancelled(&session.conn, token.seq, now)?;
            continue;
        }
        session
            .conn
            .prepare_cached(
                "UPDATE jobs SET state = 0, due = ?2, receive_count = receive_count - ?3, updated_at = ?4,
                   lost_leases = lost_leases + 1 - ?3
                 WHERE seq = ?1",
            )?
            .execute(params![token.seq, ready_since.as_unix_ms(), !started, now.as_unix_ms()])?;
        session.wake_at(now);
    }
    Ok(())
}

/// Ends a job whose cancellation a person has asked for while it was running.
pub(crate) fn end_cancelled(conn: &Connection, seq: i64, now: Timestamp) -> Result<(), StoreError> {
    let reason = "cancelled by a person while it was running; it had to wait, so it ended instead";
    conn.prepare_cached(
        "UPDATE jobs SET state = ?2, due = ?3, updated_at = ?3, mechanism = 0, reason = ?4 WHERE seq = ?1",
    )?
    .execute(params![seq, State::Cancelled.code(), now.as_unix_ms(), reason])?;
    history::add(conn, seq, &history::line(now, Transition::Cancelled, reason, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_being_text() {
        for owner in [0, 1, -1, i64::MAX, i64::MIN] {
            let token = Token {
                seq: 7,
                owner,
                serial: 12,
            };
            assert_eq!(Token::read(&token.write()), Some(token));
        }
        for odd in ["", "1", "1.2", "a.b.c", "1.2.3.4"] {
            assert_eq!(Token::read(odd), None, "{odd}");
        }
    }
}
