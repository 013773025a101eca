//! The catalogue: one contract for each provider, compiled in as text and parsed when it is asked for.

use crate::{Contract, ContractError};

/// Every file, by name, sorted.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// An entry of the catalogue, not yet parsed.
///
/// ```
/// let entry = adjourn_http::CatalogueEntry::find("GitHub GraphQL").unwrap();
/// assert_eq!(entry.name(), "github");
/// assert_eq!(entry.contract()?.title.as_deref(), Some("GitHub"));
/// # Ok::<(), adjourn_http::ContractError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    name: &'static str,
    text: &'static str,
}

impl CatalogueEntry {
    /// Every entry, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        FILES.iter().map(|&(name, text)| Self { name, text })
    }

    /// The entry of that name, title or alias, without regard to case, blanks and punctuation.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let exact = FILES.binary_search_by_key(&name, |(name, _)| name).ok();
        if let Some(&(name, text)) = exact.and_then(|index| FILES.get(index)) {
            return Some(Self { name, text });
        }
        let asked = plain(name);
        if asked.is_empty() {
            return None;
        }
        let named = Self::all().find(|entry| plain(entry.name) == asked);
        named.or_else(|| Self::all().find(|entry| entry.spoken_names().any(|name| plain(name) == asked)))
    }

    /// The names of all entries.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        FILES.iter().map(|(name, _)| *name).collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Its text, TOML.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.text
    }

    /// Its contract, parsed now.
    ///
    /// # Errors
    /// When the file is wrong, which this crate's tests exclude.
    pub fn contract(self) -> Result<Contract, ContractError> {
        Contract::parse(self.text)
    }

    /// Title and aliases, found without parsing: they stand at the head of the file, each on one line.
    fn spoken_names(self) -> impl Iterator<Item = &'static str> {
        let head = self.text.lines().take_while(|line| !line.starts_with('['));
        let named = head.filter(|line| line.starts_with("title = ") || line.starts_with("aliases = "));
        named.flat_map(|line| line.split('"').skip(1).step_by(2))
    }
}

/// A name without case, blanks and punctuation.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
