//! What a provider says about its limits, as data: the provider contract.

mod case;
mod extend;
mod load;
mod pattern;
mod pointer;
mod problem;
mod reset;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint};
use serde::Serialize;

pub use case::{Case, Expectation};
pub(crate) use load::inline;
pub use pattern::Pattern;
pub use pointer::Pointer;
pub use problem::ContractError;
pub use reset::{Calendar, Resets};
pub use rule::{Executed, Parser, Place, Rule, StatusTest, Test, Time};

/// A provider's contract. It describes and never decides: every field may be absent, and an empty contract is one.
///
/// ```
/// use adjourn_http::Contract;
///
/// let contract = Contract::parse(
///     r#"
///     name = "acme"
///     scope = "entity"
///     [[windows]]
///     name = "day"
///     limit = 10000
///     per_ms = 86400000
///     resets = { at = "day", tz = "UTC" }
///     "#,
/// )?;
/// assert_eq!(contract.windows[0].limit, Some(10_000));
///
/// let error = Contract::parse("name = \"acme\"\nparsers = [\"retry-aftre\"]").unwrap_err();
/// assert_eq!(error.problems()[0].line(), 2);
/// # Ok::<(), adjourn_http::ContractError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contract {
    /// Its name: lower case, the name of its file in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name that people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Other names that people use for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The page of the provider that says all this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The day on which that page was read, `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_on: Option<String>,
    /// Where the facts come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// Which key shares the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<LimitScope>,
    /// The kind of a refusal that says nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The limits in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// How it says that a limit is reached, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
    /// How long it remembers an idempotency key, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_window_ms: Option<u64>,
    /// How many calls may be in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// The least wait after a refusal that it asks for in its documentation, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_retry_after_ms: Option<u64>,
    /// What reads the moment, in order; absent: the reader's own order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parsers: Option<Vec<Parser>>,
    /// Named limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Classes of calls with a limit of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// What calls cost, where a limit counts points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// Headers that carry a limit's state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<LimitHeaders>,
    /// What a response means, the first rule that holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classify: Vec<Rule>,
    /// What to tell the person who waits, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user_hints: BTreeMap<String, UserHint>,
    /// Responses and what they have to be read as.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
}

/// Where a contract's facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The provider's own page, read on the day that the contract names.
    Page,
    /// What others wrote of that page or reported of the provider's answers, gathered on that day.
    SecondHand,
}

/// Which key shares a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitScope {
    /// One credential: a user, a token.
    Credential,
    /// One account, tenant, shop, organisation.
    Entity,
    /// All customers of the application together.
    App,
    /// One class of calls.
    Function,
    /// Whatever the job names.
    Custom,
}

/// A named limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Window {
    /// Its name; a reason equal to it takes its kind and its time.
    pub name: String,
    /// How many calls or points; absent where that is unknown or depends on the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Its length in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_ms: Option<u64>,
    /// Its kind where the length does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// When it starts anew; absent where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets: Option<Resets>,
    /// Whom it concerns, where that differs from the contract's scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeHint>,
}

/// A class of calls with a limit of its own, or that shares one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Its methods, in capitals; absent: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The beginning of its path in whole segments; `*` stands for one segment.
    pub path: String,
    /// The window that limits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The operation whose limit it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<String>,
}

/// What a call costs in points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// The operation; absent: any call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Points, where they are fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
    /// Where a response's body names what the call cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Pointer>,
    /// The header that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The window that the points are taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// Headers that carry one limit's state, on any status. Each may hold a list; lists are read by position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitHeaders {
    /// The header with the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The header with what remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<String>,
    /// The header with what was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
    /// The header with the moment at which it starts anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// What the reset is counted in.
    #[serde(skip_serializing_if = "Unit::is_auto")]
    pub unit: Unit,
    /// The window of each position; one for a header that is no list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<String>,
}

/// What a moment is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// By its form, and a number by its size.
    #[default]
    Auto,
    /// Seconds from now.
    S,
    /// Milliseconds from now.
    Ms,
    /// Minutes from now.
    Min,
    /// Hours from now.
    H,
    /// Seconds since the Unix epoch.
    EpochS,
    /// Milliseconds since the Unix epoch.
    EpochMs,
    /// Microseconds since the Unix epoch.
    EpochUs,
    /// A date; one without a zone is in UTC.
    Date,
    /// A span in words such as `1h2m3.5s`.
    Duration,
}

impl Unit {
    pub(super) fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What to tell the person who waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UserHint {
    /// A sentence.
    pub text: String,
    /// Where to read or do more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// A link for the person who waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Link {
    /// What it leads to.
    pub label: String,
    /// Its address.
    pub url: String,
}

impl Contract {
    /// The window of that name.
    #[must_use]
    pub fn window(&self, name: &str) -> Option<&Window> {
        self.windows.iter().find(|window| window.name == name)
    }

    /// The contract as TOML; [`Contract::parse`] reads it back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Every key is a text and every value has a form in TOML, so that this cannot fail.
        toml::to_string(self).unwrap_or_default()
    }
}

impl Window {
    /// Its kind: the one that is stated, or by its length: from 20 hours a day's, from 27 days a month's.
    #[must_use]
    pub fn limit_kind(&self) -> Kind {
        const HOUR_MS: u64 = 3_600_000;
        match (self.kind, self.per_ms) {
            (Some(kind), _) => kind,
            (None, Some(ms)) if ms >= 27 * 24 * HOUR_MS => Kind::Monthly,
            (None, Some(ms)) if ms >= 20 * HOUR_MS => Kind::Daily,
            (None, Some(_)) => Kind::Short,
            (None, None) => Kind::Unknown,
        }
    }
}
