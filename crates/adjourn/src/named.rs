//! Providers by the name that was typed: those of the settings first, then the catalogue's.

use std::sync::Arc;

use adjourn_core::RetryPolicy;
use adjourn_http::{CatalogueEntry, Contract, Settings};

use crate::ending::Failure;

/// A provider that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: String,
    /// What is known of it; none: what providers have in common.
    pub(crate) contract: Option<Arc<Contract>>,
    /// Its own way of retrying failures.
    pub(crate) retry: Option<RetryPolicy>,
}

/// The provider of that name, or the names that come nearest to it.
pub(crate) fn find(name: &str, settings: Option<&Settings>) -> Result<Named, Unknown> {
    if let Some(provider) = settings.and_then(|settings| settings.provider(name)) {
        return Ok(Named {
            name: provider.name().to_string(),
            contract: provider.contract().cloned(),
            retry: provider.retry().cloned(),
        });
    }
    let Some(entry) = CatalogueEntry::find(name) else {
        return Err(Unknown::new(name, settings));
    };
    let contract = entry.contract().map_err(|error| Unknown(format!("{name}: {error}")))?;
    Ok(Named {
        name: entry.name().to_string(),
        contract: Some(Arc::new(contract)),
        retry: None,
    })
}

/// A name that nobody has, in words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown(String);

impl Unknown {
    fn new(name: &str, settings: Option<&Settings>) -> Self {
        let own = settings.into_iter().flat_map(Settings::providers);
        let mut known: Vec<String> = own.map(|provider| provider.name().to_string()).collect();
        for entry in CatalogueEntry::all() {
            known.push(entry.name().to_string());
            if let Ok(contract) = entry.contract() {
                known.extend(contract.title);
                known.extend(contract.aliases);
            }
        }
        let shown: String = name.chars().take(60).collect();
        let nearest =
            nearest(&shown, &known).map_or_else(String::new, |nearest| format!("; the nearest is {nearest:?}"));
        Self(format!(
            "no provider has the name {shown:?}{nearest}. Known are the tables [providers.NAME] of adjourn.toml and what \
             `adjourn providers` lists"
        ))
    }

    /// Where the name was a setting of what was asked: exit 2.
    pub(crate) fn bad(self, option: &str) -> Failure {
        Failure::bad(format!("{option}: {}", self.0))
    }

    /// Where the name was what was asked: exit 1.
    pub(crate) fn no(self) -> Failure {
        Failure::no(self.0)
    }
}

/// The known name with the fewest edits to `found`, without regard to case.
fn nearest<'k>(found: &str, known: &'k [String]) -> Option<&'k str> {
    let found = found.to_lowercase();
    let edits = |name: &&String| strsim::damerau_levenshtein(&found, &name.to_lowercase());
    known.iter().min_by_key(edits).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_the_settings_first() {
        let settings = Settings::parse(
            "[providers.github]\nbase_url = \"https://github.example\"\n[providers.github.contract]\nscope = \"app\"",
        )
        .unwrap();
        let own = find("github", Some(&settings)).unwrap().contract.unwrap();
        assert_eq!((own.title.as_deref(), own.windows.len()), (None, 0));
        let known = find("github", None).unwrap().contract.unwrap();
        assert_eq!(known.title.as_deref(), Some("GitHub"));
    }

    #[test]
    fn the_nearest_name_may_be_a_title_or_one_of_the_settings() {
        let settings = Settings::parse("[providers.warehouse]\nbase_url = \"https://w.example\"").unwrap();
        for (found, expected) in [
            ("warehose", "warehouse"),
            ("githb", "github"),
            ("jira clod", "Jira Cloud"),
        ] {
            let Unknown(words) = find(found, Some(&settings)).unwrap_err();
            assert!(words.contains(&format!("the nearest is {expected:?}")), "{words}");
        }
    }
}
