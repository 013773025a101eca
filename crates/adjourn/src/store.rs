//! Which store a command works on: what may stand behind `--store`.

use std::{fmt, path::PathBuf};

/// A store, as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// The queues that the environment names.
    Aws,
}

impl Store {
    /// Reads `sqlite:PATH` or `aws`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed are sqlite:PATH and aws";
        match text.split_once(':') {
            Some(("sqlite", "")) => Err(format!("sqlite: needs a path behind the colon; {ALLOWED}")),
            Some(("sqlite", ":memory:")) => {
                Err("a store in memory would be gone with this command; name a file".into())
            }
            Some(("sqlite", path)) => Ok(Self::Sqlite(PathBuf::from(path))),
            None if text == "aws" => Ok(Self::Aws),
            Some((scheme, _)) => Err(format!("the scheme \"{scheme}\" is not known; {ALLOWED}")),
            None => Err(format!("no scheme; {ALLOWED} (for a file, write sqlite:{text})")),
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Aws => f.write_str("aws"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_everything_else_names_them() {
        assert_eq!(Store::parse("sqlite:a/b.db"), Ok(Store::Sqlite("a/b.db".into())));
        assert_eq!(Store::parse("sqlite:C:/b.db"), Ok(Store::Sqlite("C:/b.db".into())));
        assert_eq!(Store::parse("aws"), Ok(Store::Aws));
        for wrong in [
            "",
            "sqlite",
            "sqlite:",
            "sqlite::memory:",
            "postgres://x",
            "AWS",
            "aws:eu",
            "adjourn.db",
        ] {
            let error = Store::parse(wrong).unwrap_err();
            assert!(
                error.contains("allowed are sqlite:PATH") || error.contains("name a file"),
                "{wrong}: {error}"
            );
        }
        assert!(Store::parse("jobs.db").unwrap_err().contains("write sqlite:jobs.db"));
    }
}
