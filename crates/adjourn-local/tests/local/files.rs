//! Files that cannot be used say what is wrong and what to do.

use std::{fs, sync::Arc};

use adjourn_local::{Store, StoreError};
use adjourn_worker::SystemClock;
use rusqlite::Connection;

use crate::fixture::*;

fn open(path: &std::path::Path) -> Result<Store, StoreError> {
    Store::open(path, Arc::new(SystemClock))
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nowhere/adjourn.db");
    let error = open(&path).unwrap_err();
    assert!(error.is_missing());
    let parent = directory.path().join("nowhere");
    assert_eq!(
        error.to_string(),
        format!(
            "{} cannot be made: the directory {} does not exist; make it first",
            path.display(),
            parent.display()
        )
    );
    let error = open(directory.path()).unwrap_err();
    assert!(
        error.to_string().ends_with("is a directory; name a file in it"),
        "{error}"
    );
    let error = Store::open_existing(directory.path().join("none.db"), Arc::new(SystemClock)).unwrap_err();
    assert!(
        error.is_missing() && error.to_string().contains("does not exist"),
        "{error}"
    );
    assert!(!directory.path().join("none.db").exists());
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    let notes = "the shopping list\n".repeat(100);
    fs::write(&path, &notes).unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.is_foreign(), "{error:?}");
    assert!(error.to_string().contains("is not an SQLite database"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), notes);
}

#[test]
fn another_program_s_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.is_foreign(), "{error:?}");
    assert!(
        error.to_string().contains("is an SQLite database of another program"),
        "{error}"
    );
    let tables: i64 = other
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_newer_file_is_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("adjourn.db");
    drop(open(&path).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.is_newer());
    assert!(
        error
            .to_string()
            .contains("was written by a newer adjourn: its schema is version 99, this program knows versions up to 2"),
        "{error}"
    );
    let version: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[tokio::test]
async fn a_damaged_file_says_how_to_salvage_it() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..2000).map(|n| job(&format!("{n}"), "done")).collect();
    store.send(jobs, false).await.unwrap();
    drop(store);
    // Everything after the first pages is overwritten, as by a disk that lies.
    let conn = Connection::open(place.path()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    let mut bytes = fs::read(place.path()).unwrap();
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0x5a;
    }
    fs::write(place.path(), bytes).unwrap();
    let error = match open(&place.path()) {
        Err(error) => error,
        Ok(store) => store.status().await.unwrap_err(),
    };
    assert!(error.is_damaged(), "{error:?}");
    assert!(error.to_string().contains("sqlite3 FILE .recover"), "{error}");
}

#[tokio::test]
async fn several_processes_may_make_the_same_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("adjourn.db");
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || open(&path).map(drop))
        })
        .collect();
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
}
