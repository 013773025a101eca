//! The lines of a job's history in the file.

use adjourn_core::{Mechanism, Timestamp};
use adjourn_worker::{POLICY_VERSION, Receipt, Transition};
use rusqlite::{Connection, params};

use crate::StoreError;

/// A line for what this store itself does to a job.
pub(crate) fn line(at: Timestamp, transition: Transition, cause: &str, until: Option<Timestamp>) -> Receipt {
    Receipt {
        at,
        transition,
        cause: cause.to_string(),
        until,
        mechanism: Mechanism::None,
        sequence: 0,
        gate: None,
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: None,
    }
}

/// Adds a line; part of the transaction that makes it true.
pub(crate) fn add(conn: &Connection, job: i64, receipt: &Receipt) -> Result<(), StoreError> {
    let text = serde_json::to_string(receipt)
        .map_err(|error| StoreError::internal(&format!("a receipt cannot be written: {error}")))?;
    conn.prepare_cached(
        "INSERT INTO receipts (job, n, receipt)
         SELECT ?1, coalesce(max(n), 0) + 1, ?2 FROM receipts WHERE job = ?1",
    )?
    .execute(params![job, text])?;
    Ok(())
}

/// A job's lines, oldest first. A line that a newer version wrote in a way that this one cannot read is passed over.
pub(crate) fn of(conn: &Connection, job: i64) -> Result<Vec<Receipt>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT receipt FROM receipts WHERE job = ?1 ORDER BY n")?;
    let texts = statement.query_map([job], |row| row.get::<_, String>(0))?;
    let mut lines = Vec::new();
    for text in texts {
        match serde_json::from_str(&text?) {
            Ok(receipt) => lines.push(receipt),
            Err(error) => tracing::warn!(%error, "a line of a job's history cannot be read"),
        }
    }
    Ok(lines)
}

/// Forgets a job's lines, together with its body and its result.
pub(crate) fn forget(conn: &Connection, job: i64) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM receipts WHERE job = ?1",
        "DELETE FROM bodies WHERE job = ?1",
        "DELETE FROM results WHERE job = ?1",
    ] {
        conn.prepare_cached(statement)?.execute([job])?;
    }
    Ok(())
}
