//! An explanation in words, for people.

use std::io::{self, Write};

use adjourn_core::{Interpretation, Kind, Mechanism, ScopeHint, Source, Timestamp};
use adjourn_http::{Contract, Executed, ExplainedLimit, Explanation};
use hyper::StatusCode;

use crate::{
    moment,
    paint::{Paint, Tone, harmless},
};

/// By what a response was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// By what providers have in common, nobody's in particular.
    Generic,
    /// The same, for a provider without a contract.
    Without(String),
    /// By a provider's contract.
    Contract(String),
}

impl Reader {
    pub(crate) fn of(name: &str, contract: Option<&Contract>) -> Self {
        match contract {
            None => Self::Without(name.to_string()),
            Some(contract) => Self::Contract(match &contract.title {
                Some(title) if title.as_str() != name => format!("{title} ({name})"),
                Some(_) | None => name.to_string(),
            }),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Generic => {
                "what providers have in common; --provider NAME reads by a provider's contract".to_string()
            }
            Self::Without(name) => format!("what providers have in common; {name} names no contract"),
            Self::Contract(name) => format!("the contract of {name}"),
        }
    }
}

/// The whole answer: what it is, until when, from which field, what would become of the job, what was ignored.
pub(crate) fn answer(out: &mut impl Write, told: &Explanation, reader: &Reader, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}", verdict(told, paint))?;
    let mut row = |label: &str, words: &str| {
        let label = paint.words(Tone::Quiet, format_args!("{label:<9}"));
        writeln!(out, "  {label} {words}")
    };
    if told.retry_at.is_some() || told.rate_limited {
        row("until", &until(told, paint))?;
    }
    if let Some(field) = &told.field {
        row("told by", &told_by(field, told))?;
    }
    if told.rate_limited || told.scope_hint != ScopeHint::Unknown {
        let scopes: Vec<&str> = told.scopes.iter().map(|&scope| concerned(scope)).collect();
        row("concerns", &scopes.join("; "))?;
    }
    let code = told.code.as_deref().map(|code| format!(" ({})", harmless(code)));
    row(
        "reason",
        &format!("{}{}", harmless(&told.reason), code.unwrap_or_default()),
    )?;
    row("adjourn", &would(told))?;
    for limit in &told.limits {
        row("limit", &state(limit, told.retry_at))?;
    }
    for ignored in &told.ignored {
        let (field, raw) = (harmless(&ignored.field), harmless(&ignored.raw));
        row("ignored", &format!("{field}: {raw:?}, since it {}", ignored.why))?;
    }
    if let Some(hint) = &told.hint {
        row("tell them", &harmless(&hint.text))?;
        for link in &hint.links {
            row("", &format!("{}: {}", harmless(&link.label), harmless(&link.url)))?;
        }
    }
    row("read by", &reader.words())
}

/// One answer in one line, for JSON Lines.
pub(crate) fn line(out: &mut impl Write, number: usize, told: &Explanation, paint: Paint) -> io::Result<()> {
    let status = told.status.unwrap_or_default();
    let (tone, word) = if told.rate_limited {
        (Tone::Wait, kind_word(told.kind))
    } else if told.kind == Kind::AccountDisabled {
        (Tone::Bad, kind_word(told.kind))
    } else {
        (Tone::Good, "no limit")
    };
    let word = paint.words(tone, format_args!("{word:<16}"));
    let at = told.retry_at.map_or_else(|| "-".to_string(), |at| at.to_string());
    let field = told.field.as_deref().map_or_else(|| "-".to_string(), harmless);
    let decision = &told.decision;
    let then = decision
        .until
        .map(|until| format!(" until {until}"))
        .unwrap_or_default();
    writeln!(
        out,
        "{number:>6}  {status}  {word}  {at:<24}  {field}  {}{then}",
        decision.kind
    )
}

fn verdict(told: &Explanation, paint: Paint) -> String {
    let status = told.status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = match status {
        Some(status) => match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        },
        None => "A response".to_string(),
    };
    let status = paint.words(Tone::Strong, status);
    let (tone, words) = match (told.rate_limited, told.kind) {
        (true, Kind::Short) => (
            Tone::Wait,
            "a limit, and a short one: a burst, or a window of minutes or hours",
        ),
        (true, Kind::Daily) => (Tone::Wait, "a limit: the day's quota is spent"),
        (true, Kind::Monthly) => (Tone::Wait, "a limit: the month's quota is spent"),
        (true, Kind::Concurrency) => (Tone::Wait, "a limit: too many calls at the same time"),
        (true, Kind::Unknown) => (Tone::Wait, "a limit; which one, the response does not say"),
        (_, Kind::AccountDisabled) => (
            Tone::Bad,
            "no wait helps: the account is closed, unpaid or out of its spend limit",
        ),
        (false, Kind::Short | Kind::Daily | Kind::Monthly | Kind::Concurrency | Kind::Unknown) => {
            (Tone::Good, "no limit")
        }
    };
    let words = paint.words(tone, words);
    match told.executed {
        Some(Executed::Some) => format!("{status}: {words}; a part of the call was carried out"),
        Some(Executed::None) => format!("{status}: {words}; nothing of the call was carried out"),
        Some(Executed::All) | None => format!("{status}: {words}"),
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Short => "short",
        Kind::Daily => "daily",
        Kind::Monthly => "monthly",
        Kind::Concurrency => "concurrency",
        Kind::AccountDisabled => "account disabled",
        Kind::Unknown => "limit",
    }
}

fn until(told: &Explanation, paint: Paint) -> String {
    let Some(at) = told.retry_at else {
        return "the response names no time".to_string();
    };
    let mut words = paint.words(Tone::Strong, moment::both(at));
    if let Some(wait) = told.wait_ms {
        words = match wait {
            0 => format!("{words}: at once"),
            wait => format!("{words}: {} after it was received", moment::span(wait)),
        };
    }
    if told.saturated {
        words = format!("{words}; it names a time beyond what can be told, and this is the last that can");
    }
    if told.clock_uncertainty_ms > 0 {
        words = format!("{words}, give or take {}", moment::span(told.clock_uncertainty_ms));
    }
    words
}

fn told_by(field: &str, told: &Explanation) -> String {
    let field = harmless(field);
    let raw = told
        .raw
        .as_deref()
        .map(|raw| format!(": {}", harmless(raw)))
        .unwrap_or_default();
    let how = match told.interpretation {
        Interpretation::Delay => "a span from its receipt",
        Interpretation::HttpDate | Interpretation::Rfc3339 => "a date",
        Interpretation::EpochS => "seconds since 1970",
        Interpretation::EpochMs => "milliseconds since 1970",
        Interpretation::EpochUs => "microseconds since 1970",
        Interpretation::EpochNs => "nanoseconds since 1970",
        Interpretation::Duration => "a span with its unit",
        Interpretation::Computed => "computed from what is known of the limit",
        Interpretation::Stated => "stated",
        Interpretation::Invalid => "which is no time",
        Interpretation::Absent => return format!("{field}{raw}"),
    };
    format!("{field}{raw}, {how}")
}

fn concerned(scope: ScopeHint) -> &'static str {
    match scope {
        ScopeHint::App => "all customers of the application",
        ScopeHint::Account => "the account",
        ScopeHint::User => "the user, or the credential",
        ScopeHint::Endpoint => "this endpoint, or this class of calls",
        ScopeHint::Global => "everybody who calls the provider",
        ScopeHint::Unknown => "the response does not say whom: the whole provider, to be on the safe side",
    }
}

/// What would become of the job, and who says so.
fn would(told: &Explanation) -> String {
    let decision = &told.decision;
    let why = decision
        .reason
        .as_deref()
        .map(|why| format!(": {}", harmless(why)))
        .unwrap_or_default();
    let Some(until) = decision.until else {
        return match decision.kind {
            "complete" => "completes the job".to_string(),
            "exhaust" => format!("ends the job as exhausted{why}"),
            _ => format!("ends the job as failed{why}"),
        };
    };
    let until = if told.retry_at == Some(until) {
        "then".to_string()
    } else {
        moment::both(until)
    };
    let how = match decision.mechanism {
        Mechanism::Delay => ", by the queue's delay",
        Mechanism::Schedule => ", by a one-time schedule",
        Mechanism::Visibility => ", by the message's visibility",
        Mechanism::None => "",
    };
    if decision.kind == "retry" {
        return format!("tries again, not before {until}{how}; it counts as a failure");
    }
    let whose = if told.source == Source::None {
        ", a time of its own choice"
    } else {
        ""
    };
    format!("puts the job off until {until}{how}{whose}; it costs no attempt")
}

fn state(limit: &ExplainedLimit, retry_at: Option<Timestamp>) -> String {
    let amount = match (limit.remaining, limit.limit) {
        (Some(remaining), Some(limit)) => format!("{remaining} of {limit} left"),
        (Some(remaining), None) => format!("{remaining} left"),
        (None, Some(limit)) => format!("{limit} in all"),
        (None, None) => "how much is left, it does not say".to_string(),
    };
    let name = if limit.name.is_empty() {
        String::new()
    } else {
        format!("{}: ", harmless(&limit.name))
    };
    let anew = match limit.resets_at {
        Some(at) if retry_at == Some(at) => ", anew then".to_string(),
        Some(at) => format!(", anew at {}", moment::both(at)),
        None => String::new(),
    };
    format!("{name}{amount}{anew}")
}
