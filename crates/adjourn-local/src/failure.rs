//! Why the file did not do what it was asked, in words that say what to do next.

use std::{error::Error, fmt, path::Path};

use adjourn_worker::port::PortError;
use rusqlite::ErrorCode;

/// An error of the store. It names the file, what is wrong with it and what to do.
#[derive(Debug)]
pub struct StoreError {
    kind: Kind,
    path: String,
    words: String,
    source: Option<Box<rusqlite::Error>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// There is no file, or no directory for it.
    Missing,
    /// Something else than a store of this program.
    Foreign,
    /// Written by a newer version.
    Newer,
    ReadOnly,
    Locked,
    Full,
    Damaged,
    /// The machine did not read or write.
    Unreachable,
    /// A request that the store does not take.
    Refused,
    /// The job is held by another by now.
    LeaseLost,
    /// A mistake of this program.
    Internal,
}

impl StoreError {
    pub(crate) fn missing(words: &str) -> Self {
        Self::new(Kind::Missing, words)
    }

    pub(crate) fn foreign(words: &str) -> Self {
        Self::new(Kind::Foreign, words)
    }

    pub(crate) fn newer(found: i64, known: i64) -> Self {
        Self::new(
            Kind::Newer,
            &format!(
                "was written by a newer adjourn: its schema is version {found}, this program knows versions up to {known}; use that newer program, the file is unchanged"
            ),
        )
    }

    pub(crate) fn read_only() -> Self {
        Self::new(Kind::ReadOnly, READ_ONLY)
    }

    pub(crate) fn refused(words: &str) -> Self {
        Self::new(Kind::Refused, words)
    }

    pub(crate) fn lease_lost(id: &str) -> Self {
        Self::new(
            Kind::LeaseLost,
            &format!("the lease of {id} has ended and the job is no longer this worker's; nothing was changed"),
        )
    }

    pub(crate) fn internal(words: &str) -> Self {
        Self::new(Kind::Internal, words)
    }

    fn new(kind: Kind, words: &str) -> Self {
        Self {
            kind,
            path: String::new(),
            words: words.to_string(),
            source: None,
        }
    }

    /// The same error, said of the file at `path`.
    #[must_use]
    pub(crate) fn of(mut self, path: &Path) -> Self {
        if self.path.is_empty() {
            self.path = path.display().to_string();
        }
        self
    }

    /// The same words again, for another request that failed with this one.
    pub(crate) fn again(&self) -> Self {
        Self {
            kind: self.kind,
            path: self.path.clone(),
            words: self.words.clone(),
            source: None,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind {
            Kind::Locked | Kind::Full | Kind::Unreachable | Kind::Internal => true,
            Kind::Missing
            | Kind::Foreign
            | Kind::Newer
            | Kind::ReadOnly
            | Kind::Damaged
            | Kind::Refused
            | Kind::LeaseLost => false,
        }
    }

    /// Whether another process held the file for too long.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.kind == Kind::Locked
    }

    /// Whether the file cannot be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.kind == Kind::ReadOnly
    }

    /// Whether no space was left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// Whether the file is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.kind == Kind::Damaged
    }

    /// Whether a newer version of this program wrote the file.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        self.kind == Kind::Newer
    }

    /// Whether there is no such file, or no directory for it.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.kind == Kind::Missing
    }

    /// Whether the file is something else than a store of this program.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.kind == Kind::Foreign
    }

    /// Whether the job is no longer the caller's to settle.
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        self.kind == Kind::LeaseLost
    }
}

const READ_ONLY: &str = "cannot be written; give this user write permission on the file and on its directory (SQLite keeps a -wal and a -shm file beside it), or name another file with --store";

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let (kind, words) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => (
                Kind::Locked,
                "is locked: another process has kept it from being written for 10 s; see what else has it open (a backup, a sqlite3 shell with an open transaction) and try again".to_string(),
            ),
            Some(ErrorCode::DiskFull) => (
                Kind::Full,
                "could not grow: the disk is full; free some space and try again, nothing of this step was written".to_string(),
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (Kind::ReadOnly, READ_ONLY.to_string()),
            Some(ErrorCode::DatabaseCorrupt) => (
                Kind::Damaged,
                format!(
                    "is damaged ({error}); copy it aside together with its -wal file, then restore a backup or salvage it with `sqlite3 FILE .recover`"
                ),
            ),
            Some(ErrorCode::NotADatabase) => (
                Kind::Foreign,
                "is not an SQLite database; name another file with --store, or move this one away".to_string(),
            ),
            Some(ErrorCode::CannotOpen) => (
                Kind::Missing,
                "cannot be opened; check that the path is a file in a directory that this user may write to".to_string(),
            ),
            Some(ErrorCode::SystemIoFailure) => (
                Kind::Unreachable,
                format!("could not be read or written ({error}); check the disk and that the file is on a local file system"),
            ),
            _ => (Kind::Internal, format!("did not take a statement of this program: {error}")),
        };
        Self {
            kind,
            path: String::new(),
            words,
            source: Some(Box::new(error)),
        }
    }
}

impl From<StoreError> for PortError {
    fn from(error: StoreError) -> Self {
        if error.is_transient() {
            Self::transient(error)
        } else {
            Self::refused(error)
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Refused | Kind::LeaseLost => f.write_str(&self.words),
            Kind::Internal if self.path.is_empty() => f.write_str(&self.words),
            Kind::Missing
            | Kind::Foreign
            | Kind::Newer
            | Kind::ReadOnly
            | Kind::Locked
            | Kind::Full
            | Kind::Damaged
            | Kind::Unreachable
            | Kind::Internal => write!(f, "{} {}", self.path, self.words),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
