//! What a response says about limits.

use std::borrow::Cow;

use adjourn_core::{Observation, ScopeHint, Signal, Timestamp};
use http::StatusCode;

use crate::Executed;

/// What a response says about limits: whether it is a refusal, and everything that was read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    limited: bool,
    signal: Signal,
    scopes: Vec<ScopeHint>,
    executed: Option<Executed>,
    field: Option<String>,
    ignored: Vec<Ignored>,
    limits: Vec<LimitState>,
    of_others: bool,
}

/// A field that was seen and not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    field: String,
    raw: String,
    why: &'static str,
}

/// The state of one limit, as headers tell it on any status: what pacing learns from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitState {
    /// The contract's window, or what the headers' names have besides the usual words.
    pub name: String,
    /// How much it allows.
    pub limit: Option<i64>,
    /// What remains of it.
    pub remaining: Option<i64>,
    /// When it starts anew.
    pub resets_at: Option<Timestamp>,
}

impl Reading {
    pub(super) fn new(limited: bool, signal: Signal) -> Self {
        Self {
            limited,
            scopes: vec![signal.concerns()],
            signal,
            executed: None,
            field: None,
            ignored: Vec::new(),
            limits: Vec::new(),
            of_others: false,
        }
    }

    pub(super) fn ignoring(mut self, ignored: Vec<Ignored>) -> Self {
        self.ignored = ignored;
        self
    }

    pub(super) fn closing(mut self, scopes: Vec<ScopeHint>) -> Self {
        if !scopes.is_empty() {
            self.scopes = scopes;
        }
        self
    }

    pub(super) fn having_executed(mut self, executed: Option<Executed>) -> Self {
        self.executed = executed;
        self
    }

    pub(super) fn told_by(mut self, field: Option<&str>) -> Self {
        self.field = field.map(str::to_string);
        self
    }

    pub(super) fn with_limits(mut self, limits: Vec<LimitState>) -> Self {
        self.limits = limits;
        self
    }

    pub(super) fn of_others(mut self, of_others: bool) -> Self {
        self.of_others = of_others;
        self
    }

    /// Whether the moment is that of a limit that counts no requests, such as bytes: it concerns this call and not how many may start.
    pub(crate) fn is_of_others(&self) -> bool {
        self.of_others
    }

    /// Whether the provider refused for a limit: "not now".
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// What was read: of a refusal, the refusal; of another response, what it says for the calls that follow.
    #[must_use]
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// As [`Reading::signal`].
    #[must_use]
    pub fn into_signal(self) -> Signal {
        self.signal
    }

    /// Everybody whom the refusal concerns, never empty: one refusal may close more than one scope.
    #[must_use]
    pub fn scopes(&self) -> &[ScopeHint] {
        &self.scopes
    }

    /// The moment before which it asks for no further call.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        self.signal.earliest_retry_at()
    }

    /// How much of the call was carried out, where a 2xx says that it was not all of it.
    #[must_use]
    pub fn executed(&self) -> Option<Executed> {
        self.executed
    }

    /// The header, or the field of the body, that named the moment.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What was seen and not used, and why.
    #[must_use]
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// The state of the provider's limits of requests, as far as headers tell it: by `RateLimit` with `RateLimit-Policy`, by windows that
    /// the contract names, and, where the former say nothing of requests, by what is named like `X-RateLimit-Remaining`.
    #[must_use]
    pub fn limits(&self) -> &[LimitState] {
        &self.limits
    }
}

impl Ignored {
    pub(super) fn new(field: &str, raw: &str, why: &'static str) -> Self {
        Self {
            field: field.to_string(),
            raw: shown(raw).into_owned(),
            why,
        }
    }

    /// The header, or the field of the body.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What stood there, at most 200 bytes and never a credential.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Why it was not used, as the end of a sentence.
    #[must_use]
    pub fn why(&self) -> &'static str {
        self.why
    }
}

/// A status with its words: `429 Too Many Requests`.
pub(super) fn title(status: StatusCode) -> Cow<'static, str> {
    match (status.as_u16(), status.canonical_reason()) {
        // The commonest, which need not be put together.
        (200, _) => Cow::Borrowed("200 OK"),
        (429, _) => Cow::Borrowed("429 Too Many Requests"),
        (_, Some(words)) => Cow::Owned([status.as_str(), " ", words].concat()),
        (number, None) => Cow::Owned(number.to_string()),
    }
}

/// As much of a value as may be repeated. What looks like a credential is not: a word for one, or a long run of letters and
/// digits mixed, which no time has.
pub(super) fn shown(raw: &str) -> Cow<'_, str> {
    let cut = raw
        .get(..raw.floor_char_boundary(Observation::MAX_RAW_BYTES))
        .unwrap_or_default();
    if !is_plain(cut) && looks_secret(cut) {
        return Cow::Borrowed("[hidden: it looks like a credential]");
    }
    Cow::Borrowed(cut)
}

fn looks_secret(text: &str) -> bool {
    let secret = |word: &str| {
        word.len() >= 20
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_alphabetic())
            // A date by RFC 3339 and a span have no more than two letters in a row.
            && !word.bytes().all(|byte| byte.is_ascii_digit() || b"TZtz:.+-hmsun".contains(&byte))
    };
    let words = text
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | ',' | ';' | '=' | '{' | '}' | '[' | ']' | '<' | '>'));
    let named = text.split_whitespace().any(|word| {
        ["bearer", "basic", "token", "apikey"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name))
    });
    named || words.into_iter().any(secret)
}

/// Whether a value is ASCII without a word of the length that a credential, or the word for one, has: most values are, and
/// need no closer look.
fn is_plain(text: &str) -> bool {
    let (mut word, mut run) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'\t'..=b'\r' | b' ' => {
                if word == 5 || word == 6 {
                    return false;
                }
                (word, run) = (0, 0);
            }
            b'"' | b',' | b';' | b'=' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' => {
                word += 1;
                run = 0;
            }
            0x80.. => return false,
            _ => {
                word += 1;
                run += 1;
                if run == 20 {
                    return false;
                }
            }
        }
    }
    word != 5 && word != 6
}

/// As [`shown`], of a value that is borrowed or not.
pub(super) fn shown_of(raw: Cow<'_, str>) -> Cow<'_, str> {
    match raw {
        Cow::Borrowed(raw) => shown(raw),
        Cow::Owned(raw) => Cow::Owned(shown(&raw).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_needs_no_closer_look_is_no_secret(
            text in "(?:[a-z0-9]{1,8}|[A-Za-z0-9]{15,22}|bearer|Basic|token|apikey|[ ,;=\"\\t\\u{a0}.-]){0,8}",
        ) {
            prop_assert!(!is_plain(&text) || !looks_secret(&text), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_credential_is_not_repeated() {
        for raw in [
            "Bearer abc",
            "sk_live_51H8xYzABCDEF0123456789",
            "{\"key\":\"ghp_16C7e42F292c6912E7710c838347Ae178B4a\"}",
        ] {
            assert!(shown(raw).starts_with("[hidden"), "{raw}");
        }
        for raw in [
            "30",
            "Fri, 10 Jul 2026 20:15:47 GMT",
            "2026-07-10T20:38:49.9856571Z",
            "\"default\";r=0;t=30",
            "rand(30),add(30)",
            "9999999999999999999999999999999",
            "Sunday, 06-Nov-94 08:49:37 GMT",
        ] {
            assert_eq!(shown(raw), raw);
        }
    }
}
