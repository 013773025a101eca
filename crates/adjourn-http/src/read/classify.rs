//! What a contract's rules, or a hook in Rust, make of a response.

use std::{borrow::Cow, fmt::Debug, panic::AssertUnwindSafe};

use adjourn_core::{Kind, ScopeHint, Timestamp};
use http::HeaderMap;
use serde_json::Value;

use super::{Response, body::Body, fields, number, retry_after};
use crate::{Contract, Executed, Rule, Test, Time};

/// A hook that knows a provider better than data can say it: it has the same powers as a contract's `classify`.
///
/// It runs before the contract's rules, on every status, and where it answers nothing the rules are asked. It is called in the
/// job's task: it has to be quick and may not block. A hook that panics has answered nothing.
pub trait Classify: Send + Sync + Debug + 'static {
    /// What the response means; none where this hook does not know.
    fn classify(&self, response: &Response<'_>) -> Option<Classified>;
}

/// What a hook says that a response means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Classified {
    /// Whether it is a limit.
    pub limited: bool,
    /// Which one.
    pub kind: Kind,
    /// Why: the name of a window of the contract, or words.
    pub reason: Option<String>,
    /// Whom it concerns; empty: the contract's scope.
    pub scopes: Vec<ScopeHint>,
    /// The moment before which no call is wanted, by our clock; none: the parsers read it.
    pub retry_at: Option<Timestamp>,
    /// How much of the call was carried out, on a 2xx.
    pub executed: Option<Executed>,
}

impl Classified {
    /// A limit of that kind.
    #[must_use]
    pub fn limit(kind: Kind) -> Self {
        Self {
            limited: true,
            kind,
            reason: None,
            scopes: Vec::new(),
            retry_at: None,
            executed: None,
        }
    }

    /// No limit, whatever it looks like.
    #[must_use]
    pub fn no_limit() -> Self {
        Self {
            limited: false,
            ..Self::limit(Kind::Unknown)
        }
    }
}

/// What a hook answers, unless it panics.
pub(super) fn ask(hook: &dyn Classify, response: &Response<'_>) -> Option<Classified> {
    std::panic::catch_unwind(AssertUnwindSafe(|| hook.classify(response))).unwrap_or_else(|_| {
        tracing::error!("a classifier panicked; the contract's rules are asked instead");
        None
    })
}

/// What a rule or a hook says, in one form.
pub(super) struct Ruled<'c> {
    pub(super) limited: bool,
    pub(super) kind: Option<Kind>,
    pub(super) reason: Option<String>,
    pub(super) scopes: Vec<ScopeHint>,
    pub(super) time: RuledTime<'c>,
    pub(super) executed: Option<Executed>,
    pub(super) code: Option<String>,
}

pub(super) enum RuledTime<'c> {
    Said(Timestamp),
    By(&'c Time),
    Parsers,
}

impl From<Classified> for Ruled<'_> {
    fn from(said: Classified) -> Self {
        Self {
            limited: said.limited,
            kind: Some(said.kind).filter(|kind| *kind != Kind::Unknown),
            reason: said.reason,
            scopes: said.scopes,
            time: said.retry_at.map_or(RuledTime::Parsers, RuledTime::Said),
            executed: said.executed,
            code: None,
        }
    }
}

/// The rules that hold, in their order.
pub(super) fn rules<'c>(
    contract: &'c Contract,
    status: u16,
    headers: &'c HeaderMap,
    body: &'c Body<'_>,
) -> impl Iterator<Item = Ruled<'c>> {
    let holding = contract
        .classify
        .iter()
        .filter(move |rule| holds(rule, status, headers, body));
    holding.map(move |rule| Ruled {
        limited: rule.limited,
        kind: rule.kind,
        reason: rule.reason.clone(),
        scopes: rule.scope.clone(),
        time: RuledTime::By(&rule.time),
        executed: rule.executed,
        code: rule.code.as_ref().and_then(|pointer| {
            let value = body.value()?;
            pointer
                .values(value)
                .iter()
                .find_map(|value| fields::scalar(value).map(Cow::into_owned))
        }),
    })
}

/// Whether a rule is about responses of that status.
pub(super) fn has_status(rule: &Rule, status: u16) -> bool {
    if rule.status.is_empty() {
        (400..600).contains(&status) && status != 401
    } else {
        rule.status.iter().any(|test| test.holds(status))
    }
}

fn holds(rule: &Rule, status: u16, headers: &HeaderMap, body: &Body<'_>) -> bool {
    has_status(rule, status)
        && rule
            .headers
            .iter()
            .all(|(name, test)| header_holds(test, name, headers))
        && rule.fields.iter().all(|(pointer, test)| {
            let values = body.value().map(|root| pointer.values(root)).unwrap_or_default();
            field_holds(test, values.iter().map(AsRef::as_ref))
        })
        && rule.body.as_ref().is_none_or(|pattern| pattern.is_match(body.text()))
}

fn header_holds(test: &Test, name: &str, headers: &HeaderMap) -> bool {
    let mut texts = headers
        .get_all(name)
        .iter()
        .map(|value| retry_after::text(value.as_bytes()));
    match test {
        Test::Present { present } => texts.any(|text| !text.is_empty()) == *present,
        Test::Equals(_) | Test::Matches { .. } | Test::AtLeast { .. } | Test::AtMost { .. } => {
            texts.any(|text| text_holds(test, &text))
        }
    }
}

fn field_holds<'v>(test: &Test, mut values: impl Iterator<Item = &'v Value>) -> bool {
    match test {
        Test::Present { present } => values.any(is_something) == *present,
        Test::Equals(_) | Test::Matches { .. } | Test::AtLeast { .. } | Test::AtMost { .. } => {
            values.any(|value| fields::scalar(value).is_some_and(|text| text_holds(test, &text)))
        }
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn text_holds(test: &Test, text: &str) -> bool {
    match test {
        Test::Equals(literals) => literals.iter().any(|literal| literal.eq_ignore_ascii_case(text)),
        Test::Matches { matches } => matches.is_match(text),
        Test::Present { present } => text.is_empty() != *present,
        Test::AtLeast { at_least } => number::amount(text).is_some_and(|number| number >= *at_least),
        Test::AtMost { at_most } => number::amount(text).is_some_and(|number| number <= *at_most),
    }
}
