//! How a response is read: parsers, places, and the rules of `classify`.

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint};
use serde::{Serialize, Serializer};

use super::{Pattern, Pointer, Unit, load};

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
