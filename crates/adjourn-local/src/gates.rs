//! Closed gates, shared between the processes that use one file, and the paces that they have found, for who looks.

use std::{collections::HashMap, time::Duration};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::port::{Closing, FoundPaceNote};
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::{StoreError, writer::Session};

/// How long a gate that has opened is kept for those who ask why a job waited.
const KEPT_MS: i64 = 86_400_000;
/// How long a found pace is shown after it was last said, besides the time of two calls at that pace. A process that still calls says
/// it each minute: what is older is the pace of one that is gone, or that calls no more.
const SHOWN_MS: i64 = 600_000;
/// The reason that stands beside a pace that was found, where the gate is open.
const FOUND: &str = "found";

/// A gate that is closed, or whose pace was found, as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateView {
    /// The scope.
    pub scope_key: ScopeKey,
    /// Until when no call of this scope starts; none while it is open.
    pub closed_until: Option<Timestamp>,
    /// Milliseconds between two calls, where a process has found the scope's pace; at least one. Each process keeps to its own: of
    /// several, this is what the last one said.
    pub pace_ms: Option<u64>,
    /// When that was said.
    pub pace_found_at: Option<Timestamp>,
    /// Why it is closed, in words; `found` where it is open and keeps to a pace that was found.
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
    forget(&session.conn, now)
}

/// Forgets what nobody asks for any more.
fn forget(conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
    conn.prepare_cached(FORGET)?
        .execute([now.as_unix_ms().saturating_sub(KEPT_MS)])?;
    Ok(())
}

const FORGET: &str = "DELETE FROM gates WHERE closed_until < ?1 AND (pace_found_at IS NULL OR pace_found_at < ?1)";

/// Writes down the paces that a process has found. It closes and opens nothing.
pub(crate) fn note(session: &mut Session, paces: &[FoundPaceNote], now: Timestamp) -> Result<(), StoreError> {
    let mut found = session.conn.prepare_cached(
        "INSERT INTO gates (scope_key, closed_until, changed_at, pace_ms, pace_found_at, reason) VALUES (?1, 0, ?2, ?3, ?2, '')
         ON CONFLICT (scope_key) DO UPDATE SET pace_ms = excluded.pace_ms, pace_found_at = excluded.pace_found_at",
    )?;
    let mut none = session
        .conn
        .prepare_cached("UPDATE gates SET pace_ms = NULL, pace_found_at = NULL WHERE scope_key = ?1")?;
    for pace in paces {
        match pace.interval {
            Some(interval) => {
                found.execute(params![pace.scope.as_str(), pace.at.as_unix_ms(), rounded_ms(interval)])?
            }
            None => none.execute([pace.scope.as_str()])?,
        };
    }
    forget(&session.conn, now)
}

/// A span in whole milliseconds, the nearest and at least one.
fn rounded_ms(span: Duration) -> i64 {
    let ms = span.saturating_add(Duration::from_micros(500)).as_millis().max(1);
    i64::try_from(ms).unwrap_or(i64::MAX)
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

/// Every gate that is closed, and until when; the first to open first.
pub(crate) fn all_closed(conn: &Connection, now: Timestamp) -> Result<Vec<(String, Timestamp, String)>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT scope_key, closed_until, reason FROM gates WHERE closed_until > ?1 ORDER BY closed_until, scope_key",
    )?;
    let rows = statement.query_map([now.as_unix_ms()], |row| {
        Ok((row.get(0)?, Timestamp::from_unix_ms(row.get(1)?), row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The closed gates, the first to open first, and then the open ones that keep to a pace that was found.
pub(crate) fn list(conn: &Connection, now: Timestamp) -> Result<Vec<GateView>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT scope_key, closed_until, pace_ms, pace_found_at, reason,
           coalesce(pace_found_at > ?1 - ?2 - 2 * pace_ms, 0) AS shown
         FROM gates WHERE closed_until > ?1 OR shown
         ORDER BY closed_until <= ?1, max(closed_until, ?1), scope_key",
    )?;
    let rows = statement.query_map([now.as_unix_ms(), SHOWN_MS], |row| {
        let closed_until = Timestamp::from_unix_ms(row.get(1)?);
        let closed_until = Some(closed_until).filter(|&until| until > now);
        let shown: bool = row.get(5)?;
        let pace: Option<(i64, i64)> = row.get::<_, Option<i64>>(2)?.zip(row.get(3)?).filter(|_| shown);
        Ok(GateView {
            scope_key: ScopeKey::provider(&row.get::<_, String>(0)?),
            closed_until,
            pace_ms: pace.and_then(|(ms, _)| u64::try_from(ms).ok()),
            pace_found_at: pace.map(|(_, at)| Timestamp::from_unix_ms(at)),
            reason: match closed_until {
                Some(_) => row.get(4)?,
                None => FOUND.to_string(),
            },
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
