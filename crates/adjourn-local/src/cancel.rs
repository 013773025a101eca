//! Cancelling: every wake-up that has not started is prevented, and what has started is said.

use adjourn_core::{Mechanism, Timestamp};
use adjourn_worker::Transition;
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::{JobFilter, State, StoreError, history, send, state::mechanism_of_code, view, writer::Session};

/// Which jobs to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These, by the caller's names.
    Ids(Vec<String>),
    /// All of a run.
    Run(String),
    /// All of a tenant.
    Tenant(String),
}

/// What a cancellation did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelReport {
    /// The jobs that are cancelled now, each with the wake-up that it would have had.
    pub prevented: Vec<Prevented>,
    /// Running jobs. Each that has to wait ends as cancelled instead; one whose call succeeds is done.
    pub running: Vec<String>,
    /// Jobs that had ended before.
    pub ended: Vec<AlreadyEnded>,
    /// Names of which there is no job.
    pub unknown: Vec<String>,
}

/// A wake-up that will not come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prevented {
    /// The job.
    pub id: String,
    /// When it would have woken up; none if it could have been taken at once.
    pub due: Option<Timestamp>,
    /// How its wait was held.
    pub mechanism: Mechanism,
    /// Why it waited.
    pub reason: Option<String>,
}

/// A job that cannot be cancelled or brought back, with the state that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlreadyEnded {
    /// The job.
    pub id: String,
    /// Where it stands.
    pub state: State,
}

impl CancelReport {
    /// Whether every job that was named is cancelled now.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.running.is_empty() && self.ended.is_empty() && self.unknown.is_empty()
    }
}

/// The rows of a selection, and the names of which there are none.
fn select(conn: &Connection, selection: &Selection) -> Result<(Vec<i64>, Vec<String>), StoreError> {
    let mut unknown = Vec::new();
    let mut seqs = Vec::new();
    let filter = match selection {
        Selection::Ids(ids) => {
            for id in ids {
                match send::find(conn, id)? {
                    Some(seq) => seqs.push(seq),
                    None => unknown.push(id.clone()),
                }
            }
            return Ok((seqs, unknown));
        }
        Selection::Run(run) => JobFilter {
            run: Some(run.clone()),
            ..JobFilter::default()
        },
        Selection::Tenant(tenant) => JobFilter {
            tenant: Some(tenant.clone()),
            ..JobFilter::default()
        },
    };
    for (sql, values) in view::listing(&filter) {
        let mut statement = conn.prepare_cached(&sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(values.iter().map(|value| &**value)), |row| {
            row.get("seq")
        })?;
        for seq in rows {
            seqs.push(seq?);
        }
    }
    Ok((seqs, unknown))
}

pub(crate) fn cancel(session: &Session, selection: &Selection, now: Timestamp) -> Result<CancelReport, StoreError> {
    let conn = &session.conn;
    let (seqs, unknown) = select(conn, selection)?;
    let mut report = CancelReport {
        unknown,
        ..CancelReport::default()
    };
    for seq in seqs {
        cancel_one(conn, seq, now, &mut report)?;
    }
    Ok(report)
}

fn cancel_one(conn: &Connection, seq: i64, now: Timestamp, report: &mut CancelReport) -> Result<(), StoreError> {
    let (id, code, due, mechanism, reason): (String, i64, i64, i64, Option<String>) = conn
        .prepare_cached("SELECT id, state, due, mechanism, reason FROM jobs WHERE seq = ?1")?
        .query_row([seq], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })?;
    let state = State::of_code(code).unwrap_or(State::Failed);
    let due = Timestamp::from_unix_ms(due);
    match state {
        State::Done | State::Failed | State::Exhausted | State::Review | State::Cancelled => {
            report.ended.push(AlreadyEnded { id, state });
            return Ok(());
        }
        // A lease that has not run out: it is being done, as far as anybody can tell.
        State::Running if due > now => {
            conn.prepare_cached("UPDATE jobs SET cancel_requested = 1 WHERE seq = ?1")?
                .execute([seq])?;
            report.running.push(id);
            return Ok(());
        }
        State::Ready | State::Running | State::Waiting => {}
    }
    conn.prepare_cached(
        "UPDATE jobs SET state = ?2, due = ?3, updated_at = ?3, mechanism = 0, reason = 'cancelled by a person' WHERE seq = ?1",
    )?
    .execute(params![seq, State::Cancelled.code(), now.as_unix_ms()])?;
    let until = (state == State::Waiting).then_some(due);
    history::add(
        conn,
        seq,
        &history::line(now, Transition::Cancelled, "cancelled by a person", until),
    )?;
    report.prevented.push(Prevented {
        id,
        due: until,
        mechanism: mechanism_of_code(mechanism),
        reason,
    });
    Ok(())
}
