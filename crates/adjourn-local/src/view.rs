//! What a person sees: counts, one line a job, a job with its history.

use std::{collections::HashMap, ops::ControlFlow};

use adjourn_core::{Mechanism, Timestamp};
use adjourn_worker::{Receipt, Transition};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::Serialize;

use crate::{GateView, State, StoreError, gates, history, send::mechanism_for, state::mechanism_of_code};

/// Counts by state, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Jobs that can be taken.
    pub ready: u64,
    /// Jobs that are being done.
    pub running: u64,
    /// Jobs that wait for a moment, or for a gate.
    pub waiting: u64,
    /// Jobs that had their effect.
    pub done: u64,
    /// Jobs that ended without success.
    pub failed: u64,
    /// Jobs that ended at a cap on waits.
    pub exhausted: u64,
    /// Jobs that were left to a person.
    pub review: u64,
    /// Jobs that were cancelled or dropped.
    pub cancelled: u64,
    /// When the next waiting job is due.
    pub next_due_at: Option<Timestamp>,
    /// The closed gates, and those that keep to a pace that was found.
    pub gates: Vec<GateView>,
}

/// One job, as a line of `jobs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// The caller's name for it.
    pub id: String,
    /// Where it stands.
    pub state: State,
    /// The provider that it calls.
    pub provider: String,
    /// The scope whose limit it shares.
    pub scope_key: String,
    /// The fairness key.
    pub tenant: Option<String>,
    /// The caller's process that it is part of.
    pub run: String,
    /// Calls that count towards `max_attempts`: those that failed, and the last one. A refusal spends none.
    pub attempts: u32,
    /// Refusals waited out.
    pub deferrals: u32,
    /// Hand-offs without a call.
    pub hops: u32,
    /// How its wait is held.
    pub mechanism: Mechanism,
    /// Not before this moment; none unless it waits.
    pub retry_at: Option<Timestamp>,
    /// Why it waits, or how it ended, in words.
    pub reason: Option<String>,
    /// The last status that the provider answered.
    pub last_status: Option<u16>,
    /// Its name for life.
    pub deferral_id: String,
    /// How often a person has redriven it.
    pub epoch: u32,
    /// How often it was handed on in this epoch.
    pub sequence: u32,
    /// When it was sent.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// A job with its history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// Its history, oldest first.
    pub receipts: Vec<Receipt>,
    /// Its result, where results are stored and it has brought one.
    pub result: Option<String>,
}

/// Which jobs to list; an empty filter lists all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs in this state.
    pub state: Option<State>,
    /// Only jobs of this tenant.
    pub tenant: Option<String>,
    /// Only jobs of this run.
    pub run: Option<String>,
}

const COLUMNS: &str = "id, state, due, provider, scope_key, tenant, run, attempts, deferrals, hops, mechanism, reason,
    last_status, deferral_id, epoch, sequence, created_at, updated_at, seq";

pub(crate) const COUNT_READY: &str = "SELECT count(*) FROM jobs WHERE state = 0";
pub(crate) const COUNT: &str = "SELECT count(*) FROM jobs WHERE state <> 0 AND state = ?1";
pub(crate) const COUNT_DUE: &str = "SELECT count(*) FROM jobs WHERE state <> 0 AND state = ?1 AND due <= ?2";
const COUNT_READY_IN: &str = "SELECT count(*) FROM jobs WHERE state = 0 AND scope_key = ?1";
const FIRST_WAIT: &str = "SELECT min(due) FROM jobs WHERE state <> 0 AND state = 2 AND due > ?1";

pub(crate) fn status(conn: &Connection, now: Timestamp) -> Result<Status, StoreError> {
    // One snapshot for all counts.
    let snapshot = conn.unchecked_transaction()?;
    let gates = gates::list(&snapshot, now)?;
    let closed = || gates.iter().filter_map(|gate| Some((gate, gate.closed_until?)));
    let mut held_back = 0;
    for (gate, _) in closed() {
        held_back += count(&snapshot, COUNT_READY_IN, &[&gate.scope_key.as_str()])?;
    }
    let due = |state: State| count(&snapshot, COUNT_DUE, &[&state.code(), &now.as_unix_ms()]);
    let all = |state: State| count(&snapshot, COUNT, &[&state.code()]);
    // A wait that has ended, or a lease that has run out: ready, though no worker has looked at it yet.
    let (due_waits, lost_leases) = (due(State::Waiting)?, due(State::Running)?);
    let first_wait: Option<i64> = snapshot
        .prepare_cached(FIRST_WAIT)?
        .query_row([now.as_unix_ms()], |row| row.get(0))?;
    let first_gate = closed().map(|(_, until)| until).next().filter(|_| held_back > 0);
    let status = Status {
        ready: (count(&snapshot, COUNT_READY, &[])? + due_waits + lost_leases).saturating_sub(held_back),
        running: all(State::Running)?.saturating_sub(lost_leases),
        waiting: all(State::Waiting)?.saturating_sub(due_waits) + held_back,
        done: all(State::Done)?,
        failed: all(State::Failed)?,
        exhausted: all(State::Exhausted)?,
        review: all(State::Review)?,
        cancelled: all(State::Cancelled)?,
        next_due_at: first_wait
            .map(Timestamp::from_unix_ms)
            .into_iter()
            .chain(first_gate)
            .min(),
        gates,
    };
    snapshot.commit()?;
    Ok(status)
}

fn count(conn: &Connection, sql: &str, params: &[&dyn ToSql]) -> Result<u64, StoreError> {
    let count: i64 = conn.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The closed gates by scope, against which a ready job is looked at.
type Closed = HashMap<String, (Timestamp, String)>;

fn closed(conn: &Connection, now: Timestamp) -> Result<Closed, StoreError> {
    let gates = gates::all_closed(conn, now)?.into_iter();
    Ok(gates.map(|(scope, until, why)| (scope, (until, why))).collect())
}

/// The statements that together list what `filter` asks for, each with its parameters.
pub(crate) fn listing(filter: &JobFilter) -> Vec<(String, Vec<Box<dyn ToSql>>)> {
    let states: Vec<Option<State>> = match filter.state {
        None => vec![None],
        // Time alone moves a job between these, without a write: what a row says is looked at again when it is shown.
        Some(State::Ready | State::Running | State::Waiting) => {
            vec![Some(State::Running), Some(State::Waiting), Some(State::Ready)]
        }
        Some(state) => vec![Some(state)],
    };
    let mut statements = Vec::new();
    for state in states {
        let mut clauses: Vec<String> = Vec::new();
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        match state {
            Some(State::Ready) => clauses.push("state = 0".to_string()),
            Some(state) => clauses.push(format!("state <> 0 AND state = {}", state.code())),
            None => {}
        }
        if let Some(tenant) = &filter.tenant {
            values.push(Box::new(tenant.clone()));
            clauses.push(format!("tenant = ?{} AND tenant <> ''", values.len()));
        }
        let Some(run) = &filter.run else {
            statements.push((select(&clauses), values));
            continue;
        };
        // A job without a run of its own is the run of its id.
        let mut same: Vec<Box<dyn ToSql>> = Vec::new();
        if let Some(tenant) = &filter.tenant {
            same.push(Box::new(tenant.clone()));
        }
        values.push(Box::new(run.clone()));
        same.push(Box::new(run.clone()));
        let place = values.len();
        let mut by_run = clauses.clone();
        by_run.push(format!("run = ?{place}"));
        clauses.push(format!("id = ?{place} AND run IS NULL"));
        statements.push((select(&by_run), values));
        statements.push((select(&clauses), same));
    }
    statements
}

fn select(clauses: &[String]) -> String {
    if clauses.is_empty() {
        return format!("SELECT {COLUMNS} FROM jobs ORDER BY seq");
    }
    format!("SELECT {COLUMNS} FROM jobs WHERE {}", clauses.join(" AND "))
}

/// Gives each job that `filter` asks for to `each`, which may end the listing.
pub(crate) fn jobs(
    conn: &Connection,
    filter: &JobFilter,
    now: Timestamp,
    mut each: impl FnMut(JobView) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    let closed = closed(&snapshot, now)?;
    for (sql, values) in listing(filter) {
        let mut statement = snapshot.prepare_cached(&sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(values.iter().map(|value| &**value)))?;
        while let Some(row) = rows.next()? {
            let view = view(row, &closed, now)?;
            if filter.state.is_none_or(|state| state == view.state) && each(view).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn view(row: &Row<'_>, closed: &Closed, now: Timestamp) -> rusqlite::Result<JobView> {
    let id: String = row.get(0)?;
    let stored = State::of_code(row.get(1)?).unwrap_or(State::Failed);
    let due = Timestamp::from_unix_ms(row.get(2)?);
    let scope_key: String = row.get(4)?;
    let tenant: String = row.get(5)?;
    let run: Option<String> = row.get(6)?;
    let can_be_taken = match stored {
        State::Ready => true,
        State::Waiting | State::Running => due <= now,
        State::Done | State::Failed | State::Exhausted | State::Review | State::Cancelled => false,
    };
    let mechanism = mechanism_of_code(row.get(10)?);
    let reason: Option<String> = row.get(11)?;
    let (state, mechanism, retry_at, reason) = match (can_be_taken, closed.get(&scope_key)) {
        (true, Some((until, why))) => (
            State::Waiting,
            mechanism_for(until.since(now)),
            Some(*until),
            Some(format!("{scope_key} is closed until {until}: {why}")),
        ),
        (true, None) => (State::Ready, Mechanism::None, None, reason),
        (false, _) if stored == State::Waiting => (stored, mechanism, Some(due), reason),
        (false, _) => (stored, Mechanism::None, None, reason),
    };
    Ok(JobView {
        run: run.unwrap_or_else(|| id.clone()),
        id,
        state,
        provider: row.get(3)?,
        scope_key,
        tenant: Some(tenant).filter(|tenant| !tenant.is_empty()),
        attempts: row.get(7)?,
        deferrals: row.get(8)?,
        hops: row.get(9)?,
        mechanism,
        retry_at,
        reason,
        last_status: row.get(12)?,
        deferral_id: row.get(13)?,
        epoch: row.get(14)?,
        sequence: row.get(15)?,
        created_at: Timestamp::from_unix_ms(row.get(16)?),
        updated_at: Timestamp::from_unix_ms(row.get(17)?),
    })
}

/// A job by its caller's name, with its history.
pub(crate) fn job(conn: &Connection, id: &str, now: Timestamp) -> Result<Option<JobDetail>, StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    let closed = closed(&snapshot, now)?;
    let found = snapshot
        .prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1"))?
        .query_row([id], |row| Ok((view(row, &closed, now)?, row.get::<_, i64>(18)?)))
        .optional()?;
    let Some((job, seq)) = found else { return Ok(None) };
    // The first line of every history is the sending, which the row itself tells.
    let mut receipts = vec![history::line(job.created_at, Transition::Sent, "sent", None)];
    receipts.extend(history::of(&snapshot, seq)?);
    // And so is the last one, if it had its effect.
    if job.state == State::Done {
        receipts.push(Receipt {
            sequence: job.sequence,
            ..history::line(job.updated_at, Transition::Done, "done", None)
        });
    }
    let result = snapshot
        .prepare_cached("SELECT result FROM results WHERE job = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    Ok(Some(JobDetail { job, receipts, result }))
}

/// Whether any job is still to be done.
pub(crate) fn is_idle(conn: &Connection) -> Result<bool, StoreError> {
    let open: bool = conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 0)
               OR EXISTS (SELECT 1 FROM jobs WHERE state <> 0 AND state = ?1)
               OR EXISTS (SELECT 1 FROM jobs WHERE state <> 0 AND state = ?2)",
        )?
        .query_row(params![State::Running.code(), State::Waiting.code()], |row| row.get(0))?;
    Ok(!open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{plan, store};

    #[tokio::test(start_paused = true)]
    async fn status_counts_by_an_index() {
        let (_directory, store) = store();
        let expected = [
            (COUNT_READY, "SCAN jobs USING COVERING INDEX jobs_ready"),
            (COUNT, "SEARCH jobs USING COVERING INDEX jobs_state (state=?)"),
            (
                COUNT_DUE,
                "SEARCH jobs USING COVERING INDEX jobs_state (state=? AND due<?)",
            ),
            (
                COUNT_READY_IN,
                "SEARCH jobs USING COVERING INDEX jobs_ready (scope_key=?)",
            ),
            (
                FIRST_WAIT,
                "SEARCH jobs USING COVERING INDEX jobs_state (state=? AND due>?)",
            ),
        ];
        for (sql, step) in expected {
            assert_eq!(plan(&store, sql), [step], "{sql}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_filtered_listing_searches_an_index() {
        let (_directory, store) = store();
        let text = || Some("x".to_string());
        for state in State::ALL.into_iter().map(Some).chain([None]) {
            for (tenant, run) in [(None, None), (text(), None), (None, text()), (text(), text())] {
                let filter = JobFilter {
                    state,
                    tenant: tenant.clone(),
                    run: run.clone(),
                };
                for (sql, _) in listing(&filter) {
                    let steps = plan(&store, &sql);
                    let by_index = |step: &String| step.contains(" USING INDEX ");
                    // The one listing without a filter goes through all jobs in the order of their sending.
                    let whole = filter == JobFilter::default();
                    assert!(steps.iter().all(|step| whole || by_index(step)), "{sql}: {steps:?}");
                    assert!(
                        !steps.iter().any(|step| step.contains("TEMP B-TREE")),
                        "{sql}: {steps:?}"
                    );
                }
            }
        }
    }
}
