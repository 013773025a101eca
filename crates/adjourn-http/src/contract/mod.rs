//! What a provider says about its limits, as data: the provider contract.

mod extend;
mod load;
mod pattern;
mod pointer;
mod problem;
mod reset;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint};
use serde::{Serialize, Serializer};

pub(crate) use load::inline;
pub use pattern::Pattern;
pub use pointer::Pointer;
pub use problem::ContractError;
pub use reset::{Calendar, Resets};

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
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// One way to read a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parser {
    /// `Retry-After` and the headers that are named like it.
    RetryAfter,
    /// `retry-after-ms` and the headers that are named like it.
    RetryAfterMs,
    /// `RateLimit` and `RateLimit-*`, all generations of the IETF draft.
    Ietf,
    /// Reset headers, by the contract's `headers` and by their names.
    ResetHeaders,
    /// The fields and phrases of bodies that many providers share.
    Body,
    /// Shopify's cost of a GraphQL query against what its bucket restores a second.
    ShopifyCost,
    /// A place that the contract names.
    From(Place),
}

/// A place in a response that holds a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// A header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// A field of the body, or of the header's JSON where a header is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Pointer>,
    /// A pattern whose first group holds it, in the header or else in the body's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// What it is counted in.
    #[serde(skip_serializing_if = "Unit::is_auto")]
    pub unit: Unit,
}

/// What a response means where all of its conditions hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// Its statuses; none: every 4xx and 5xx but 401.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<StatusTest>,
    /// What headers have to hold.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Test>,
    /// What fields of the body have to hold, JSON or XML.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<Pointer, Test>,
    /// A pattern that the body's text has to match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Pattern>,
    /// Whether it is a limit.
    pub limited: bool,
    /// Which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Why, in a word or in words: the name of a window takes its kind and time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whom it concerns; several where one refusal closes more than one scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<ScopeHint>,
    /// Where the moment stands.
    #[serde(skip_serializing_if = "Time::is_parsers")]
    pub time: Time,
    /// On a 2xx: how much of the call was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed: Option<Executed>,
    /// Where the provider's own code stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Pointer>,
}

/// A status or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusTest {
    /// This status.
    Is(u16),
    /// Every status of this hundred: 2 for 2xx.
    Class(u16),
}

impl StatusTest {
    /// Whether it holds.
    #[must_use]
    pub fn holds(self, status: u16) -> bool {
        match self {
            Self::Is(one) => one == status,
            Self::Class(hundred) => status / 100 == hundred,
        }
    }
}

/// What a header or a field has to hold. Texts are compared without regard to ASCII case, numbers as their text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Test {
    /// One of these.
    Equals(Vec<String>),
    /// A text that the pattern matches.
    Matches {
        /// The pattern.
        matches: Pattern,
    },
    /// It is there, or it is not. An empty text, list or object and null count as not there.
    Present {
        /// Which of both.
        present: bool,
    },
    /// A number of at least this.
    AtLeast {
        /// The number.
        at_least: i64,
    },
    /// A number of at most this.
    AtMost {
        /// The number.
        at_most: i64,
    },
}

/// Where a rule finds the moment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Time {
    /// The parsers read it, and where they find none the window of the reason computes it.
    #[default]
    Parsers,
    /// There is none, whatever stands in the response.
    None,
    /// The window of the reason computes it; `Retry-After` may only make it later.
    Window,
    /// So many milliseconds from now; `Retry-After` may only make it later.
    Delay(u64),
    /// It stands there, the latest of what is found; where nothing is, the parsers read it.
    At(Vec<Place>),
}

impl Time {
    fn is_parsers(&self) -> bool {
        *self == Self::Parsers
    }
}

/// How much of a call was carried out that was answered with a 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executed {
    /// All of it.
    All,
    /// Some parts of it: it is never repeated whole.
    Some,
    /// Nothing.
    None,
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

/// A response and what it has to be read as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Its status.
    pub status: u16,
    /// Its headers, each with its lines.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// When it was received, RFC 3339; absent: 2026-07-10T20:13:47Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_at: Option<String>,
    /// What it has to be read as.
    pub expect: Expectation,
}

/// What a response has to be read as. What is absent has to be absent in the reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Expectation {
    /// Whether it is a limit.
    pub limited: bool,
    /// Which one; absent: unknown.
    #[serde(skip_serializing_if = "is_unknown_kind")]
    pub kind: Kind,
    /// Whom it concerns; absent: unknown.
    #[serde(skip_serializing_if = "is_unknown_hint")]
    pub scope: ScopeHint,
    /// The wait in milliseconds, to the millisecond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The moment, instead of the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
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

impl Serialize for Parser {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::From(place) => place.serialize(serializer),
            Self::RetryAfter
            | Self::RetryAfterMs
            | Self::Ietf
            | Self::ResetHeaders
            | Self::Body
            | Self::ShopifyCost => {
                let name = load::PARSERS.iter().find(|(_, parser)| parser == self);
                serializer.serialize_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Serialize for StatusTest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Is(status) => serializer.serialize_u16(*status),
            Self::Class(hundred) => serializer.collect_str(&format_args!("{hundred}xx")),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Parsers => serializer.serialize_str("parsers"),
            Self::None => serializer.serialize_str("none"),
            Self::Window => serializer.serialize_str("window"),
            Self::Delay(ms) => BTreeMap::from([("delay_ms", ms)]).serialize(serializer),
            Self::At(places) => places.serialize(serializer),
        }
    }
}

fn is_unknown_kind(kind: &Kind) -> bool {
    *kind == Kind::Unknown
}

fn is_unknown_hint(hint: &ScopeHint) -> bool {
    *hint == ScopeHint::Unknown
}
