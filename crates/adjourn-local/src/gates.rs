//! Closed gates, shared between the processes that use one file.

use std::collections::HashMap;

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::port::Closing;
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::{StoreError, writer::Session};

/// How long a gate that has opened is kept for those who ask why a job waited.
const KEPT_MS: i64 = 86_400_000;

/// A closed gate, as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateView {
    /// The scope.
    pub scope_key: ScopeKey,
    /// Until when no call of this scope starts.
    pub closed_until: Timestamp,
    /// Milliseconds between two calls, where a pace is known.
    pub pace_ms: Option<u64>,
    /// Why, in words.
    pub reason: String,
}

/// The closed gates as of the last look; other processes' writes make it look again.
#[derive(Debug, Default)]
pub(crate) struct ClosedGates {
    seen: Option<i64>,
    gates: HashMap<String, (i64, String)>,
}

impl ClosedGates {
    /// The next look reads the file again.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// Until when a scope is closed.
    pub(crate) fn until(&self, scope: &str, now: Timestamp) -> Option<Timestamp> {
        let &(until, _) = self.gates.get(scope)?;
        (until > now.as_unix_ms()).then(|| Timestamp::from_unix_ms(until))
    }

    /// Every gate that is closed at `now`.
    pub(crate) fn all(&self, now: Timestamp) -> Vec<(ScopeKey, Timestamp, String)> {
        self.gates
            .iter()
            .filter(|(_, (until, _))| *until > now.as_unix_ms())
            .map(|(scope, (until, reason))| {
                (
                    ScopeKey::provider(scope),
                    Timestamp::from_unix_ms(*until),
                    reason.clone(),
                )
            })
            .collect()
    }
}

/// Brings the session's view of the closed gates up to date; inside a transaction, so that it cannot be behind it.
pub(crate) fn refresh(session: &mut Session, now: Timestamp) -> Result<(), StoreError> {
    let version = data_version(&session.conn)?;
    if session.closed.seen == Some(version) {
        return Ok(());
    }
    let mut statement = session
        .conn
        .prepare_cached("SELECT scope_key, closed_until, reason FROM gates WHERE closed_until > ?1")?;
    let rows = statement.query_map([now.as_unix_ms()], |row| {
        Ok((row.get::<_, String>(0)?, (row.get(1)?, row.get(2)?)))
    })?;
    session.closed.gates = rows.collect::<Result<_, _>>()?;
    session.closed.seen = Some(version);
    Ok(())
}

/// Changes when another connection has written to the file.
pub(crate) fn data_version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))?)
}

/// Closes gates, each until the later of what is stored and what is asked.
pub(crate) fn close(session: &mut Session, closings: &[Closing], now: Timestamp) -> Result<(), StoreError> {
    refresh(session, now)?;
    let mut upsert = session.conn.prepare_cached(
        "INSERT INTO gates (scope_key, closed_until, changed_at, reason, observation) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (scope_key) DO UPDATE SET closed_until = excluded.closed_until, changed_at = excluded.changed_at,
           reason = excluded.reason, observation = excluded.observation
         WHERE excluded.closed_until > closed_until",
    )?;
    for closing in closings {
        let until = closing.until.as_unix_ms();
        let observation = serde_json::to_string(&closing.observation).ok();
        let changed = upsert.execute(params![
            closing.scope.as_str(),
            until,
            now.as_unix_ms(),
            closing.reason,
            observation
        ])?;
        if changed > 0 {
            session
                .closed
                .gates
                .insert(closing.scope.as_str().to_string(), (until, closing.reason.clone()));
        }
    }
    session
        .conn
        .prepare_cached("DELETE FROM gates WHERE closed_until < ?1")?
        .execute([now.as_unix_ms().saturating_sub(KEPT_MS)])?;
    Ok(())
}

/// Until when each of `scopes` is closed, and why.
pub(crate) fn closed(
    conn: &Connection,
    scopes: &[ScopeKey],
    now: Timestamp,
) -> Result<Vec<Option<(Timestamp, String)>>, StoreError> {
    let mut statement =
        conn.prepare_cached("SELECT closed_until, reason FROM gates WHERE scope_key = ?1 AND closed_until > ?2")?;
    let mut answers = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let mut rows = statement.query(params![scope.as_str(), now.as_unix_ms()])?;
        answers.push(match rows.next()? {
            Some(row) => Some((Timestamp::from_unix_ms(row.get(0)?), row.get(1)?)),
            None => None,
        });
    }
    Ok(answers)
}

/// The closed gates, the first to open first.
pub(crate) fn list(conn: &Connection, now: Timestamp) -> Result<Vec<GateView>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT scope_key, closed_until, pace_ms, reason FROM gates WHERE closed_until > ?1 ORDER BY closed_until, scope_key",
    )?;
    let rows = statement.query_map([now.as_unix_ms()], |row| {
        Ok(GateView {
            scope_key: ScopeKey::provider(&row.get::<_, String>(0)?),
            closed_until: Timestamp::from_unix_ms(row.get(1)?),
            pace_ms: row.get::<_, Option<i64>>(2)?.and_then(|ms| u64::try_from(ms).ok()),
            reason: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
