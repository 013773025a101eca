//! Responses that a contract's own file holds, and what they have to be read as.

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint};
use serde::Serialize;

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

fn is_unknown_kind(kind: &Kind) -> bool {
    *kind == Kind::Unknown
}

fn is_unknown_hint(hint: &ScopeHint) -> bool {
    *hint == ScopeHint::Unknown
}
