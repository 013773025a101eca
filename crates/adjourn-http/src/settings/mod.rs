//! `adjourn.toml`: which providers may be called, how, and how long a job may wait.

mod contract;
mod credential;
mod oauth2;
pub(crate) mod problem;
mod provider;
pub(crate) mod sheet;
#[cfg(test)]
mod tests;
mod tiers;

use std::{collections::BTreeMap, time::Duration};

use adjourn_core::Policy;
use toml::de::DeTable;

pub(crate) use credential::redacted;
pub use credential::{Credential, Credentials};
pub use oauth2::{ClientAuth, OAuth2};
pub use problem::{Problem, SettingsError};
pub use provider::{Provider, Results};

use sheet::{Sheet, Table};

/// The settings, read and checked.
///
/// ```
/// let settings = adjourn_http::Settings::parse(
///     r#"
///     [providers.acme]
///     base_url = "https://api.acme.example/v2"
///     timeout_ms = 5000
///     "#,
/// )?;
/// assert_eq!(settings.provider("acme").unwrap().timeout().as_secs(), 5);
///
/// let error = adjourn_http::Settings::parse("[providers.acme]\nbase_ulr = \"https://api.acme.example\"").unwrap_err();
/// assert_eq!(error.problems()[1].line(), 2);
/// # Ok::<(), adjourn_http::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    providers: BTreeMap<String, Provider>,
    policy: Policy,
    concurrency: usize,
    find_pace: bool,
}

impl Settings {
    /// Reads the text of `adjourn.toml`. No environment and no file is read: see [`Credentials::read`].
    ///
    /// # Errors
    /// Every mistake at once, each with its line, what was found and what is allowed; an empty text is one.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let (document, syntax) = DeTable::parse_recoverable(text);
        let mut sheet = Sheet::new(text);
        for error in &syntax {
            let start = error.span().map_or(0, |span| span.start);
            sheet.problem(start, "", format!("is not TOML: {}", error.message()));
        }
        let root = Table {
            path: String::new(),
            line: 1,
            entries: document.get_ref(),
        };
        let settings = Self::read(&mut sheet, &root, syntax.is_empty());
        SettingsError::check(sheet.problems)?;
        Ok(settings)
    }

    fn read(sheet: &mut Sheet<'_>, root: &Table<'_>, sound: bool) -> Self {
        sheet.keys(
            root,
            &["providers", "deferral", "retry", "worker"],
            &[("sinks", "sinks for results")],
        );
        let providers = provider::read_all(sheet, root);
        if root.get("providers").is_none() && sound {
            let found = if root.entries.is_empty() {
                "found an empty file"
            } else {
                "found no provider"
            };
            sheet.problem(
                0,
                "",
                format!("{found}; allowed: one or more tables [providers.NAME] with a base_url"),
            );
        }
        let (mut deferral, in_process) = (tiers::deferral(sheet, root), tiers::worker(sheet, root));
        deferral.max_in_process_wait = in_process.max_in_process_wait;
        let retry = sheet
            .table(root, "retry")
            .map(|table| tiers::retry(sheet, &table))
            .unwrap_or_default();
        Self {
            providers,
            policy: Policy { deferral, retry },
            concurrency: in_process.concurrency,
            find_pace: in_process.find_pace,
        }
    }

    /// The provider of that name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    /// Every provider, by name.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values()
    }

    /// Caps and tiers.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How many jobs a worker runs at a time.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Whether the pace of a provider without a configured rate is found from its answers.
    #[must_use]
    pub fn find_pace(&self) -> bool {
        self.find_pace
    }

    /// The longest time that a job of any provider may take: its call, and what it may wait in process.
    #[must_use]
    pub fn longest_timeout(&self) -> Duration {
        let call = self.providers().map(Provider::timeout).max().unwrap_or_default();
        call + self.policy.deferral.max_in_process_wait
    }
}
