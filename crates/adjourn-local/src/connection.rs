//! Opening the file: what has to hold before the first statement.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{StoreError, schema};

/// How long a statement waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(10);
/// Statements that stay prepared; the store has fewer.
const STATEMENTS: usize = 96;
/// How often turning on the write-ahead log is tried while other processes open the same new file.
const ATTEMPTS: u32 = 20;

/// Opens the file for writing, makes it if `create` says so, and brings it to the current schema.
pub(crate) fn open(path: &Path, create: bool) -> Result<Connection, StoreError> {
    check_place(path, create)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut conn = Connection::open_with_flags(path, flags)?;
    prepare(&conn)?;
    // SQLite opens a file that it may not write as a read-only one, without a word.
    if conn.is_readonly("main")? {
        // A file that is none of ours is the more useful thing to say.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        return Err(StoreError::read_only());
    }
    // Requests share a transaction, each with a savepoint. What a savepoint would restore is small and stays out of files.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    write_ahead(&conn)?;
    schema::migrate(&mut conn, schema::MIGRATIONS)?;
    Ok(conn)
}

/// Opens the file a second time, to read it beside the writer.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    // Not SQLITE_OPEN_READ_ONLY: a reader of a write-ahead log has to be able to write its index.
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&conn)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // A plan holds for every value that is bound. Without this, SQLite plans nearly each of our statements again each time
    // that it runs, since a bound value might fit a partial index.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // FULL: an acknowledged send or wait survives a power cut.
    conn.pragma_update(None, "synchronous", "FULL")?;
    // 16 MiB of log between two checkpoints: the pages of the indexes are written back once for many commits.
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    Ok(())
}

fn write_ahead(conn: &Connection) -> Result<(), StoreError> {
    let mut attempt = 0;
    loop {
        let mode = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::foreign(&format!(
                    "is on a file system that cannot hold a write-ahead log (journal mode {mode}); put it on a local disk"
                )));
            }
            Err(error) => {
                attempt += 1;
                let error = StoreError::from(error);
                if !error.is_locked() || attempt >= ATTEMPTS {
                    return Err(error);
                }
                // Changing the journal mode does not wait for others by itself; taking the write lock does.
                conn.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
            }
        }
    }
}

fn check_place(path: &Path, create: bool) -> Result<(), StoreError> {
    if path.as_os_str().is_empty() {
        return Err(StoreError::missing(
            "the store's path is empty; name a file: sqlite:PATH",
        ));
    }
    if path.is_dir() {
        return Err(StoreError::missing("is a directory; name a file in it"));
    }
    if !create && !path.exists() {
        return Err(StoreError::missing(
            "does not exist; `adjourn send` makes it, or name another file with --store",
        ));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        return Err(StoreError::missing(&format!(
            "cannot be made: the directory {} does not exist; make it first",
            parent.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::{StatementStatus, params};

    use super::*;

    #[test]
    fn a_statement_is_planned_once_however_often_it_runs() {
        let directory = tempfile::tempdir().unwrap();
        let conn = open(&directory.path().join("jobs.db"), true).unwrap();
        for sql in [crate::take::OF_TENANT, crate::take::NEXT_TENANT, crate::take::COME_DUE] {
            for round in 0..3 {
                let mut statement = conn.prepare_cached(sql).unwrap();
                match statement.parameter_count() {
                    2 if statement.readonly() => drop(statement.query(params!["acme", round]).unwrap().next().unwrap()),
                    2 => drop(statement.execute(params![round, 10]).unwrap()),
                    _ => drop(statement.query(params!["acme", "t", round]).unwrap().next().unwrap()),
                }
                assert_eq!(
                    statement.get_status(StatementStatus::RePrepare),
                    0,
                    "round {round}: {sql}"
                );
            }
        }
    }
}
