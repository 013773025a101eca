//! The catalogue as it is listed: facts for programs, a table for people, and the page of the documentation.

mod facts;
mod page;
mod text;

use adjourn_core::{Kind, ScopeHint};
use adjourn_http::{Basis, Calendar, Contract, LimitScope, Resets, Window};

use crate::moment;

pub(crate) use facts::Facts;
pub(crate) use page::page;
pub(crate) use text::{detail, table};

/// A key that shares a limit, in a word.
fn scope_word(scope: Option<LimitScope>) -> &'static str {
    match scope {
        Some(LimitScope::Credential) => "credential",
        Some(LimitScope::Entity) => "entity",
        Some(LimitScope::App) => "app",
        Some(LimitScope::Function) => "function",
        Some(LimitScope::Custom) => "custom",
        None => "unknown",
    }
}

/// A window in words: `day: 1000 a day, anew at midnight in UTC`.
fn window_words(window: &Window) -> String {
    let mut words = format!("{}: {}", window.name, amount(window));
    match window.resets {
        Some(Resets::Rolling) => words.push_str(", rolling"),
        Some(Resets::At { at, zone }) => {
            let at = match at {
                Calendar::Minute => "the full minute",
                Calendar::QuarterHour => "the quarter of an hour",
                Calendar::Hour => "the full hour",
                Calendar::Day => "midnight",
                Calendar::Week => "Monday's midnight",
                Calendar::Month => "the first of the month",
            };
            let zone = zone.map_or_else(
                || "a zone of the account's own".to_string(),
                |zone| zone.name().to_string(),
            );
            words = format!("{words}, anew at {at} in {zone}");
        }
        None => {}
    }
    let kind = match window.limit_kind() {
        Kind::Daily => Some("daily"),
        Kind::Monthly => Some("monthly"),
        Kind::Concurrency => Some("concurrency"),
        Kind::AccountDisabled => Some("no wait helps"),
        Kind::Short | Kind::Unknown => None,
    };
    let concerns = match window.scope {
        Some(ScopeHint::App) => Some("the app's"),
        Some(ScopeHint::Account) => Some("the account's"),
        Some(ScopeHint::User) => Some("the user's"),
        Some(ScopeHint::Endpoint) => Some("the endpoint's"),
        Some(ScopeHint::Global) => Some("everybody's"),
        Some(ScopeHint::Unknown) | None => None,
    };
    let beside: Vec<&str> = kind.into_iter().chain(concerns).collect();
    if beside.is_empty() {
        words
    } else {
        format!("{words} ({})", beside.join(", "))
    }
}

/// How much in how long: `1000 in 1 d`.
fn amount(window: &Window) -> String {
    match (window.limit, window.per_ms) {
        (Some(limit), Some(ms)) => format!("{limit} in {}", moment::span(ms)),
        (None, Some(ms)) => format!("an unknown number in {}", moment::span(ms)),
        (Some(limit), None) => limit.to_string(),
        (None, None) => "unknown".to_string(),
    }
}

/// What the facts rest on.
fn basis_words(contract: &Contract) -> &'static str {
    match contract.basis {
        Some(Basis::Page) => "the provider's own page",
        Some(Basis::SecondHand) => "what others wrote of it",
        None => "unknown",
    }
}
