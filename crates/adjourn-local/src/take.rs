//! Taking jobs: fair turns between scopes and between the tenants of a scope, and no work for what cannot start.

use std::{collections::VecDeque, sync::Arc};

use adjourn_core::{ScopeKey, Standing, Timestamp};
use adjourn_worker::{Attribute, ENVELOPE_ATTRIBUTE, Message, Transition};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    LEASE, Lease, MAX_RECEIVE_COUNT, QUEUE, State, StoreError, gates, history,
    lease::{Token, end_cancelled},
    send::read_attributes,
    writer::Session,
};

/// The most waits that come due in one transaction.
const MOST_DUE: i64 = 1000;
/// The most scopes whose last tenant is remembered.
const MOST_TURNS: usize = 10_000;

/// The statements by which jobs are found; each is a seek in an index.
pub(crate) const NEXT_SCOPE: &str =
    "SELECT scope_key FROM jobs WHERE state = 0 AND scope_key > ?1 ORDER BY scope_key LIMIT 1";
pub(crate) const FIRST_TENANT: &str =
    "SELECT tenant FROM jobs WHERE state = 0 AND scope_key = ?1 ORDER BY tenant LIMIT 1";
pub(crate) const NEXT_TENANT: &str =
    "SELECT tenant FROM jobs WHERE state = 0 AND scope_key = ?1 AND tenant > ?2 ORDER BY tenant LIMIT 1";
pub(crate) const OF_TENANT: &str =
    "SELECT seq, due FROM jobs WHERE state = 0 AND scope_key = ?1 AND tenant = ?2 ORDER BY due LIMIT ?3";
pub(crate) const COME_DUE: &str = "UPDATE jobs SET state = 0 WHERE seq IN
    (SELECT seq FROM jobs WHERE state <> 0 AND state = 2 AND due <= ?1 ORDER BY due LIMIT ?2)";
pub(crate) const RUN_OUT: &str = "SELECT seq, cancel_requested, receive_count, started_at IS NOT NULL FROM jobs
    WHERE state <> 0 AND state = 1 AND due <= ?1 ORDER BY due LIMIT ?2";
pub(crate) const NEXT_DUE: &str = "SELECT min(due) FROM jobs WHERE state <> 0 AND state = ?1";

/// What a take brought.
#[derive(Debug, Default)]
pub struct Taken {
    /// The jobs, in the order in which they should start.
    pub leases: Vec<Lease>,
    /// The earliest moment at which the file may have more to give: a wait's end, a lease's end, a gate's opening. None
    /// while nothing waits. At or before now when this take stopped at its limit.
    pub next: Option<Timestamp>,
    /// The scopes that have jobs which the caller's quota held back.
    pub held_back: Vec<ScopeKey>,
    /// The gates that the file says are closed.
    pub closed: Vec<(ScopeKey, Timestamp, String)>,
}

/// How many jobs of a scope may be taken, at most the second argument.
pub(crate) type Quota = Box<dyn FnMut(&ScopeKey, u32) -> u32 + Send>;

pub(crate) fn take(
    session: &mut Session,
    limit: usize,
    quota: Quota,
    (owner, serial): (i64, i64),
    now: Timestamp,
) -> Result<Taken, StoreError> {
    gates::refresh(session, now)?;
    leases_run_out(session, now)?;
    let came_due = session
        .conn
        .prepare_cached(COME_DUE)?
        .execute(params![now.as_unix_ms(), MOST_DUE])?;
    let mut take = Take {
        session,
        quota,
        owner,
        serial,
        now,
        taken: Taken::default(),
    };
    take.turns(limit)?;
    let full = take.taken.leases.len() >= limit || i64::try_from(came_due).unwrap_or(0) >= MOST_DUE;
    let mut taken = take.taken;
    taken.closed = session.closed.all(now);
    if full {
        taken.next = Some(now);
    } else {
        for state in [State::Waiting, State::Running] {
            let due: Option<i64> = session
                .conn
                .prepare_cached(NEXT_DUE)?
                .query_row([state.code()], |row| row.get(0))?;
            taken.next = earlier(taken.next, due.map(Timestamp::from_unix_ms));
        }
    }
    Ok(taken)
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Jobs whose lease has run out come back; one that was received as often as may be is given up, like a message that a
/// queue moves to its dead-letter queue; one that a person wants cancelled ends.
fn leases_run_out(session: &Session, now: Timestamp) -> Result<(), StoreError> {
    let conn = &session.conn;
    let mut statement = conn.prepare_cached(RUN_OUT)?;
    let rows = statement.query_map(params![now.as_unix_ms(), MOST_DUE], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let lost: Vec<(i64, bool, u32, bool)> = rows.collect::<Result<_, _>>()?;
    for (seq, cancel_requested, receive_count, started) in lost {
        if cancel_requested && !started {
            end_cancelled(conn, seq, now)?;
        } else if receive_count >= MAX_RECEIVE_COUNT {
            give_up(conn, seq, receive_count, now)?;
        } else {
            conn.prepare_cached(
                "UPDATE jobs SET state = 0, lost_leases = lost_leases + 1, updated_at = ?2 WHERE seq = ?1",
            )?
            .execute(params![seq, now.as_unix_ms()])?;
        }
    }
    Ok(())
}

fn give_up(conn: &Connection, seq: i64, receive_count: u32, now: Timestamp) -> Result<(), StoreError> {
    let reason = format!("crashed: received {receive_count} times, and no process that did it lived to settle it");
    tracing::error!(job = seq, end = "crashed", "{reason}");
    conn.prepare_cached(
        "UPDATE jobs SET state = ?2, due = ?3, updated_at = ?3, mechanism = 0, reason = ?4 WHERE seq = ?1",
    )?
    .execute(params![seq, State::Failed.code(), now.as_unix_ms(), reason])?;
    history::add(conn, seq, &history::line(now, Transition::Ended, &reason, None))
}

struct Take<'a> {
    session: &'a mut Session,
    quota: Quota,
    owner: i64,
    serial: i64,
    now: Timestamp,
    taken: Taken,
}

/// A scope in this take, with how many of its jobs may still be taken.
struct Turn {
    scope: ScopeKey,
    left: usize,
}

impl Take<'_> {
    /// Rounds between the scopes that may start something, each with an equal share of what is left, until nothing is.
    fn turns(&mut self, limit: usize) -> Result<(), StoreError> {
        let mut turns = self.scopes(limit)?;
        let mut left = limit;
        while left > 0 && !turns.is_empty() {
            let share = left.div_ceil(turns.len());
            let mut again = Vec::new();
            for mut turn in turns {
                let most = share.min(turn.left).min(left);
                let got = self.tenants(&turn.scope, most)?;
                left = left.saturating_sub(got);
                turn.left = turn.left.saturating_sub(got);
                self.session.last_scope = turn.scope.as_str().to_string();
                if got == most && turn.left > 0 && left > 0 {
                    again.push(turn);
                } else if turn.left == 0 {
                    self.taken.held_back.push(turn.scope);
                }
            }
            turns = again;
        }
        Ok(())
    }

    /// The scopes that have ready jobs and may start some, from the one after the last on, around.
    fn scopes(&mut self, limit: usize) -> Result<Vec<Turn>, StoreError> {
        let start = self.session.last_scope.clone();
        let mut turns = Vec::new();
        let mut at = start.clone();
        let mut wrapped = false;
        while turns.len() < limit {
            let next: Option<String> = self
                .session
                .conn
                .prepare_cached(NEXT_SCOPE)?
                .query_row([&at], |row| row.get(0))
                .optional()?;
            let Some(key) = next.filter(|key| !wrapped || *key <= start) else {
                if wrapped || start.is_empty() {
                    break;
                }
                wrapped = true;
                at.clear();
                continue;
            };
            if let Some(until) = self.session.closed.until(&key, self.now) {
                self.taken.next = earlier(self.taken.next, Some(until));
            } else {
                let scope = ScopeKey::provider(&key);
                let most = u32::try_from(limit).unwrap_or(u32::MAX);
                match (self.quota)(&scope, most).min(most) {
                    0 => self.taken.held_back.push(scope),
                    left => turns.push(Turn {
                        scope,
                        left: usize::try_from(left).unwrap_or(usize::MAX),
                    }),
                }
            }
            at = key;
        }
        Ok(turns)
    }

    /// Rounds between the tenants of a scope, from the one after the last on.
    fn tenants(&mut self, scope: &ScopeKey, most: usize) -> Result<usize, StoreError> {
        let mut got = 0;
        while got < most {
            let tenants = self.ready_tenants(scope, most - got)?;
            if tenants.is_empty() {
                break;
            }
            let share = (most - got).div_ceil(tenants.len());
            let mut queues = Vec::with_capacity(tenants.len());
            for tenant in &tenants {
                queues.push(self.ready_of(scope, tenant, share)?);
            }
            // One of each in turn, so that the order of starting is fair too.
            let mut turn = 0;
            while got < most && queues.iter().any(|queue| !queue.is_empty()) {
                let place = turn % queues.len();
                turn += 1;
                let Some((seq, since)) = queues.get_mut(place).and_then(VecDeque::pop_front) else {
                    continue;
                };
                self.lease(seq, since)?;
                got += 1;
                if let Some(tenant) = tenants.get(place) {
                    self.remember(scope, tenant);
                }
            }
        }
        Ok(got)
    }

    fn remember(&mut self, scope: &ScopeKey, tenant: &str) {
        let last = &mut self.session.last_tenant;
        if last.len() >= MOST_TURNS && !last.contains_key(scope.as_str()) {
            last.clear();
        }
        last.insert(scope.as_str().to_string(), tenant.to_string());
    }

    fn ready_tenants(&self, scope: &ScopeKey, most: usize) -> Result<Vec<String>, StoreError> {
        let conn = &self.session.conn;
        let start = self.session.last_tenant.get(scope.as_str());
        let mut tenants: Vec<String> = Vec::new();
        let mut next: Option<String> = match start {
            Some(start) => conn
                .prepare_cached(NEXT_TENANT)?
                .query_row(params![scope.as_str(), start], |row| row.get(0))
                .optional()?,
            None => None,
        };
        let mut wrapped = false;
        loop {
            match next {
                Some(tenant) if !wrapped || start.is_none_or(|start| tenant <= *start) => {
                    if tenants.len() >= most {
                        return Ok(tenants);
                    }
                    next = conn
                        .prepare_cached(NEXT_TENANT)?
                        .query_row(params![scope.as_str(), tenant], |row| row.get(0))
                        .optional()?;
                    tenants.push(tenant);
                }
                _ if wrapped => return Ok(tenants),
                _ => {
                    wrapped = true;
                    next = conn
                        .prepare_cached(FIRST_TENANT)?
                        .query_row([scope.as_str()], |row| row.get(0))
                        .optional()?;
                }
            }
        }
    }

    fn ready_of(&self, scope: &ScopeKey, tenant: &str, most: usize) -> Result<VecDeque<(i64, Timestamp)>, StoreError> {
        let mut statement = self.session.conn.prepare_cached(OF_TENANT)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![scope.as_str(), tenant, most], |row| {
            Ok((row.get(0)?, Timestamp::from_unix_ms(row.get(1)?)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn lease(&mut self, seq: i64, ready_since: Timestamp) -> Result<(), StoreError> {
        let token = Token {
            seq,
            owner: self.owner,
            serial: self.serial,
        };
        let now = self.now;
        let lease = self
            .session
            .conn
            .prepare_cached(
                "UPDATE jobs SET state = 1, due = ?2, lease_owner = ?3, lease_serial = ?4, receive_count = receive_count + 1,
                   first_received_at = coalesce(first_received_at, ?5)
                 WHERE seq = ?1
                 RETURNING deferral_id, coalesce(body, (SELECT body FROM bodies WHERE job = seq), ''), attributes, envelope,
                   tenant, trace_header, created_at, first_received_at, receive_count, started_at IS NOT NULL,
                   lost_leases > 0, scope_key",
            )?
            .query_row(
                params![
                    seq,
                    (now + LEASE).as_unix_ms(),
                    token.owner,
                    token.serial,
                    now.as_unix_ms()
                ],
                |row| lease_of(row, token, ready_since, now),
            )?;
        self.taken.leases.push(lease);
        Ok(())
    }
}

fn lease_of(row: &Row<'_>, token: Token, ready_since: Timestamp, now: Timestamp) -> rusqlite::Result<Lease> {
    let mut attributes = read_attributes(row.get::<_, Option<String>>(2)?.as_deref());
    if let Some(envelope) = row.get::<_, Option<String>>(3)? {
        attributes.insert(ENVELOPE_ATTRIBUTE.to_string(), Attribute::text(&envelope));
    }
    let tenant: String = row.get(4)?;
    let message = Message {
        id: row.get(0)?,
        receipt: token.write(),
        queue: QUEUE.to_string(),
        body: row.get(1)?,
        attributes,
        group: Some(tenant).filter(|tenant| !tenant.is_empty()),
        deduplication_id: None,
        trace_header: row.get(5)?,
        sent_at: Timestamp::from_unix_ms(row.get(6)?),
        first_received_at: Timestamp::from_unix_ms(row.get(7)?),
        received_at: now,
        receive_count: row.get(8)?,
    };
    let standing = if row.get(9)? {
        Standing::Started
    } else {
        Standing::Current
    };
    Ok(Lease {
        message: Arc::new(message),
        standing,
        scope: ScopeKey::provider(&row.get::<_, String>(11)?),
        is_suspect: row.get(10)?,
        ready_since,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{plan, store};

    #[tokio::test(start_paused = true)]
    async fn every_statement_of_a_take_is_a_seek_in_an_index() {
        let (_directory, store) = store();
        let expected = [
            (NEXT_SCOPE, "SEARCH jobs USING COVERING INDEX jobs_ready (scope_key>?)"),
            (
                FIRST_TENANT,
                "SEARCH jobs USING COVERING INDEX jobs_ready (scope_key=?)",
            ),
            (
                NEXT_TENANT,
                "SEARCH jobs USING COVERING INDEX jobs_ready (scope_key=? AND tenant>?)",
            ),
            (
                OF_TENANT,
                "SEARCH jobs USING COVERING INDEX jobs_ready (scope_key=? AND tenant=?)",
            ),
            (RUN_OUT, "SEARCH jobs USING INDEX jobs_state (state=? AND due<?)"),
            (NEXT_DUE, "SEARCH jobs USING COVERING INDEX jobs_state (state=?)"),
        ];
        for (sql, step) in expected {
            assert_eq!(plan(&store, sql), [step], "{sql}");
        }
        let come_due = plan(&store, COME_DUE);
        assert!(
            come_due.contains(&"SEARCH jobs USING COVERING INDEX jobs_state (state=? AND due<?)".to_string()),
            "{come_due:?}"
        );
        assert!(
            come_due.contains(&"SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)".to_string()),
            "{come_due:?}"
        );
    }
}
