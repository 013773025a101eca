//! Bringing ended jobs back: a new epoch, counters at zero, on a slope and in fair turns between tenants.

use std::collections::{BTreeMap, HashMap, VecDeque};

use adjourn_core::{Content, DeferralId, Envelope, Gate, Timestamp};
use adjourn_worker::Transition;
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::{
    AlreadyEnded, QUEUE, State, StoreError, gates, history, send, send::mechanism_for, state::mechanism_code,
    writer::Session,
};

/// Which jobs to bring back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redrive {
    /// These, by the caller's names.
    Ids(Vec<String>),
    /// All that failed, were exhausted, or were left to a person.
    All,
}

/// What a redrive did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedriveReport {
    /// The jobs that come back.
    pub redriven: Vec<Redriven>,
    /// Jobs that cannot be brought back, with the state that they are in.
    pub not_redrivable: Vec<AlreadyEnded>,
    /// Names of which there is no job.
    pub unknown: Vec<String>,
}

/// A job that comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redriven {
    /// The job.
    pub id: String,
    /// Its new epoch.
    pub epoch: u32,
    /// When its turn comes.
    pub due: Timestamp,
}

struct Ended {
    seq: i64,
    id: String,
    epoch: u32,
    deferral_id: String,
    scope: String,
    tenant: String,
    created_at: Timestamp,
    body: String,
}

pub(crate) const REDRIVABLE: &str = "SELECT seq FROM jobs WHERE state <> 0 AND state = ?1 ORDER BY due";

pub(crate) fn redrive(session: &mut Session, which: &Redrive, now: Timestamp) -> Result<RedriveReport, StoreError> {
    gates::refresh(session, now)?;
    let mut report = RedriveReport::default();
    let seqs = match which {
        Redrive::Ids(ids) => named(&session.conn, ids, &mut report)?,
        Redrive::All => all(&session.conn)?,
    };
    // Of each scope one queue for each tenant: a scope reopens on its own slope, its tenants in turn.
    let mut scopes: BTreeMap<String, BTreeMap<String, VecDeque<i64>>> = BTreeMap::new();
    for seq in seqs {
        let (scope, tenant): (String, String) = session
            .conn
            .prepare_cached("SELECT scope_key, tenant FROM jobs WHERE seq = ?1")?
            .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        scopes
            .entry(scope)
            .or_default()
            .entry(tenant)
            .or_default()
            .push_back(seq);
    }
    let mut soonest = None;
    for (scope, mut tenants) in scopes {
        let base = session.closed.until(&scope, now).unwrap_or(now);
        let mut slope = Gate::new(None, None);
        slope.close(base, now, "redriven");
        while !tenants.is_empty() {
            for queue in tenants.values_mut() {
                if let Some(seq) = queue.pop_front() {
                    let due = slope.turn(now).max(base);
                    report.redriven.push(bring_back(&session.conn, seq, due, now)?);
                    soonest = Some(soonest.map_or(due, |soonest: Timestamp| soonest.min(due)));
                }
            }
            tenants.retain(|_, queue| !queue.is_empty());
        }
    }
    if let Some(soonest) = soonest {
        session.wake_at(soonest);
    }
    Ok(report)
}

fn named(conn: &Connection, ids: &[String], report: &mut RedriveReport) -> Result<Vec<i64>, StoreError> {
    let mut seqs = Vec::new();
    let mut seen: HashMap<i64, ()> = HashMap::new();
    for id in ids {
        let Some(seq) = send::find(conn, id)? else {
            report.unknown.push(id.clone());
            continue;
        };
        let code: i64 = conn
            .prepare_cached("SELECT state FROM jobs WHERE seq = ?1")?
            .query_row([seq], |row| row.get(0))?;
        let state = State::of_code(code).unwrap_or(State::Failed);
        if !state.is_redrivable() {
            report.not_redrivable.push(AlreadyEnded { id: id.clone(), state });
        } else if seen.insert(seq, ()).is_none() {
            seqs.push(seq);
        }
    }
    Ok(seqs)
}

fn all(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut seqs = Vec::new();
    for state in State::ALL.into_iter().filter(|state| state.is_redrivable()) {
        let mut statement = conn.prepare_cached(REDRIVABLE)?;
        let rows = statement.query_map([state.code()], |row| row.get(0))?;
        for seq in rows {
            seqs.push(seq?);
        }
    }
    Ok(seqs)
}

fn bring_back(conn: &Connection, seq: i64, due: Timestamp, now: Timestamp) -> Result<Redriven, StoreError> {
    let ended = conn
        .prepare_cached(
            "SELECT id, epoch, deferral_id, scope_key, tenant, created_at,
               coalesce(body, (SELECT body FROM bodies WHERE job = seq), '') FROM jobs WHERE seq = ?1",
        )?
        .query_row([seq], |row| {
            Ok(Ended {
                seq,
                id: row.get(0)?,
                epoch: row.get(1)?,
                deferral_id: row.get(2)?,
                scope: row.get(3)?,
                tenant: row.get(4)?,
                created_at: Timestamp::from_unix_ms(row.get(5)?),
                body: row.get(6)?,
            })
        })?;
    let epoch = ended.epoch.saturating_add(1);
    let group = Some(ended.tenant.as_str()).filter(|tenant| !tenant.is_empty());
    let content = Content::of(QUEUE, group, ended.body.as_bytes());
    let mut envelope = Envelope::first(DeferralId::new(&ended.deferral_id), ended.created_at, content);
    envelope.identity.epoch = epoch;
    envelope.due = due;
    envelope.rest = Some(std::time::Duration::ZERO);
    envelope.reason = format!("redriven by a person, in turn with the others of {}", ended.scope);
    let state = if due > now { State::Waiting } else { State::Ready };
    conn.prepare_cached(
        "UPDATE jobs SET state = ?2, due = ?3, epoch = ?4, sequence = 0, receive_count = 0, first_received_at = NULL,
           lease_owner = NULL, lease_serial = NULL, started_at = NULL, lost_leases = 0, cancel_requested = 0, attempts = 0,
           deferrals = 0, hops = 0, mechanism = ?5, reason = ?6, last_status = NULL, updated_at = ?7, envelope = ?8
         WHERE seq = ?1",
    )?
    .execute(params![
        ended.seq,
        state.code(),
        due.as_unix_ms(),
        epoch,
        if state == State::Waiting { mechanism_code(mechanism_for(due.since(now))) } else { 0 },
        envelope.reason,
        now.as_unix_ms(),
        envelope.write(),
    ])?;
    let cause = format!("redriven by a person: epoch {epoch}, counters at zero");
    let mut line = history::line(
        now,
        Transition::Redriven,
        &cause,
        (state == State::Waiting).then_some(due),
    );
    line.gate = Some(ended.scope);
    history::add(conn, ended.seq, &line)?;
    Ok(Redriven {
        id: ended.id,
        epoch,
        due,
    })
}
