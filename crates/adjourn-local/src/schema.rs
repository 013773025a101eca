//! The tables of the file, and how an older file becomes a current one.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Says in the file's header whose it is: the letters `adjn`.
const APPLICATION_ID: i64 = 0x6164_6a6e;

/// Each step takes a file from the version of its place in the list to the next. A step that was released never changes.
pub(crate) const MIGRATIONS: &[&str] = &[FIRST, FOUND_PACES];

/// One row for each job, whatever becomes of it: a hand-off moves the row, so there is never a second wake-up.
///
/// `state` is [`State`](crate::State) as a number. `due` is since when a ready job can be taken, until when a waiting one
/// waits, when a running one's lease ends, when an ended one ended. What comes back from the indexes:
///
/// - `jobs_ready`: the scopes and tenants that have something to do, each found by a seek, however much waits elsewhere;
/// - `jobs_state`: what is due next, whose lease has run out, counts and listings by state.
///
/// `lease_owner` and `lease_serial` stay on the row when it moves on, so that a settlement whose answer was lost can be
/// repeated; a lease counts only while the state is running. A body over 2 KiB is kept apart, in `bodies`, so that no
/// change of a job's state rewrites it.
const FIRST: &str = "
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  state INTEGER NOT NULL,
  due INTEGER NOT NULL,
  scope_key TEXT NOT NULL,
  tenant TEXT NOT NULL,
  provider TEXT NOT NULL,
  run TEXT,
  deferral_id TEXT NOT NULL,
  epoch INTEGER NOT NULL DEFAULT 0,
  sequence INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL DEFAULT 0,
  receive_count INTEGER NOT NULL DEFAULT 0,
  first_received_at INTEGER,
  lease_owner INTEGER,
  lease_serial INTEGER,
  started_at INTEGER,
  lost_leases INTEGER NOT NULL DEFAULT 0,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  deferrals INTEGER NOT NULL DEFAULT 0,
  hops INTEGER NOT NULL DEFAULT 0,
  mechanism INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  last_status INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  envelope TEXT,
  body TEXT,
  attributes TEXT,
  trace_header TEXT
) STRICT;
CREATE INDEX jobs_ready ON jobs (scope_key, tenant, due) WHERE state = 0;
CREATE INDEX jobs_state ON jobs (state, due) WHERE state <> 0;
CREATE INDEX jobs_tenant ON jobs (tenant) WHERE tenant <> '';
CREATE INDEX jobs_run ON jobs (run) WHERE run IS NOT NULL;
CREATE TABLE bodies (job INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE results (job INTEGER PRIMARY KEY, result TEXT NOT NULL) STRICT;
CREATE TABLE receipts (
  job INTEGER NOT NULL,
  n INTEGER NOT NULL,
  receipt TEXT NOT NULL,
  PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE gates (
  scope_key TEXT PRIMARY KEY,
  closed_until INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  pace_ms INTEGER,
  reason TEXT NOT NULL,
  observation TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_closed ON gates (closed_until);
";

/// When `pace_ms` was found to be the scope's pace, by whichever process said so last. A row of a scope that was never closed is closed
/// until the epoch.
const FOUND_PACES: &str = "ALTER TABLE gates ADD COLUMN pace_found_at INTEGER";

/// Brings the file to the version after the last of `migrations`, in one transaction.
pub(crate) fn migrate(conn: &mut Connection, migrations: &[&str]) -> Result<(), StoreError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if version(conn)? == known && is_ours(conn)? {
        return Ok(());
    }
    // Another process may be at it too: look again once the write lock is ours.
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if !is_ours(&transaction)? {
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables > 0 || found > 0 {
            return Err(StoreError::foreign(
                "is an SQLite database of another program; name another file with --store",
            ));
        }
    }
    if found > known {
        return Err(StoreError::newer(found, known));
    }
    for step in migrations.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

fn version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn is_ours(conn: &Connection) -> Result<bool, StoreError> {
    let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    Ok(id == APPLICATION_ID)
}

#[cfg(test)]
mod tests {
    use adjourn_core::Timestamp;

    use super::*;

    fn tables(conn: &Connection) -> Vec<String> {
        let mut statement = conn
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    }

    #[test]
    fn an_older_file_takes_only_the_steps_that_it_lacks_and_keeps_its_jobs() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        conn.execute(
            "INSERT INTO jobs (id, state, due, scope_key, tenant, provider, deferral_id, created_at, updated_at)
             VALUES ('a', 0, 1, 'acme', '', 'acme', 'a', 1, 1)",
            [],
        )
        .unwrap();
        let mut longer = MIGRATIONS.to_vec();
        longer.push("ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'");
        migrate(&mut conn, &longer).unwrap();
        let colour: String = conn
            .query_row("SELECT colour FROM jobs WHERE id = 'a'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(colour, "green");
        assert_eq!(version(&conn).unwrap(), i64::try_from(longer.len()).unwrap());
        // What knows only the first steps refuses the file from now on.
        assert!(migrate(&mut conn, MIGRATIONS).unwrap_err().is_newer());
    }

    #[test]
    fn a_file_of_the_first_version_keeps_its_closed_gates_and_takes_paces() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &MIGRATIONS[..1]).unwrap();
        conn.execute(
            "INSERT INTO gates (scope_key, closed_until, changed_at, reason) VALUES ('acme', 2000, 500, 'burst')",
            [],
        )
        .unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        let [gate] = crate::gates::list(&conn, Timestamp::from_unix_ms(1000))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(
            (
                gate.closed_until,
                gate.pace_ms,
                gate.pace_found_at,
                gate.reason.as_str()
            ),
            (Some(Timestamp::from_unix_ms(2000)), None, None, "burst")
        );
        conn.execute("UPDATE gates SET pace_ms = 250, pace_found_at = 900", [])
            .unwrap();
        let [gate] = crate::gates::list(&conn, Timestamp::from_unix_ms(1000))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(gate.pace_found_at, Some(Timestamp::from_unix_ms(900)));
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        let before = tables(&conn);
        let mut broken = MIGRATIONS.to_vec();
        broken.push("CREATE TABLE half (a); CREATE TABLE half (a)");
        migrate(&mut conn, &broken).unwrap_err();
        assert_eq!(tables(&conn), before);
        migrate(&mut conn, MIGRATIONS).unwrap();
    }

    #[test]
    fn an_empty_file_becomes_a_store() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        assert_eq!(tables(&conn), ["bodies", "gates", "jobs", "receipts", "results"]);
        assert!(is_ours(&conn).unwrap());
    }
}
