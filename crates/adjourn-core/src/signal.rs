//! What a refusal says: when, why, and whom it concerns.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Which limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A burst or a window of minutes; it frees itself soon.
    Short,
    /// A quota of the day.
    Daily,
    /// A quota of the month.
    Monthly,
    /// Too many calls at the same time.
    Concurrency,
    /// The account is closed, unpaid or out of its spend limit: no wait helps.
    AccountDisabled,
    /// The response does not say.
    #[default]
    Unknown,
}

/// Whom the refusal concerns, as far as the response reveals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeHint {
    /// Every customer of this application.
    App,
    /// One account (the contract's entity).
    Account,
    /// One user (the credential).
    User,
    /// One endpoint or class of operations.
    Endpoint,
    /// The provider as a whole.
    Global,
    /// The response does not say.
    #[default]
    Unknown,
}

/// What the moment was read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A rule of the provider's contract, or the handler itself.
    Classify,
    /// A parser that reads a header or a body.
    Parser,
    /// A window or a floor that the contract states.
    Contract,
    /// Nobody named a moment.
    #[default]
    None,
}

/// The key under which a limit is shared: `<provider>`, `<provider>:app` or `<provider>:<scope>:<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct ScopeKey(String);

impl ScopeKey {
    /// The most bytes that a key keeps; a longer one is cut and ends in a hash of the whole, so that it stays unique.
    pub const MAX_BYTES: usize = 256;

    /// The whole provider: the conservative choice where a limit's scope is not known.
    #[must_use]
    pub fn provider(name: &str) -> Self {
        Self::bounded(name.to_string())
    }

    /// All customers of the application together: `<provider>:app`.
    #[must_use]
    pub fn app(provider: &str) -> Self {
        Self::bounded(format!("{provider}:app"))
    }

    /// One credential, entity or custom scope of a provider.
    #[must_use]
    pub fn scoped(provider: &str, scope: &str, id: &str) -> Self {
        Self::bounded(format!("{provider}:{scope}:{id}"))
    }

    fn bounded(key: String) -> Self {
        if key.len() <= Self::MAX_BYTES {
            return Self(key);
        }
        let hash = xxhash_rust::xxh3::xxh3_128(key.as_bytes());
        Self(format!(
            "{}#{hash:032x}",
            truncated(&key, Self::MAX_BYTES.saturating_sub(33))
        ))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ScopeKey {
    /// A key as a store or a person wrote it, bounded like any other.
    fn from(key: String) -> Self {
        Self::bounded(key)
    }
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a raw value was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpretation {
    /// A span from the receipt of the response.
    Delay,
    /// One of the three date forms of HTTP (RFC 9110, section 5.6.7).
    HttpDate,
    /// Seconds since the Unix epoch.
    EpochS,
    /// Milliseconds since the Unix epoch.
    EpochMs,
    /// Microseconds since the Unix epoch.
    EpochUs,
    /// Nanoseconds since the Unix epoch.
    EpochNs,
    /// A date by RFC 3339, or one that comes close to it.
    Rfc3339,
    /// A span in words or units, such as `1h2m3.5s`.
    Duration,
    /// Computed from what is known of the limit: its window, or the pause that its documentation asks for.
    Computed,
    /// Said by a handler, not read from a response.
    Stated,
    /// Present, and nothing that can be believed.
    Invalid,
    /// Nothing was there to read.
    Absent,
}

/// One reading of one response: what was seen, and how it was understood. Kept in the job's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The response's status; none when a handler spoke for itself.
    pub status: Option<u16>,
    /// The provider's own code for the limit, where it gives one.
    pub code: Option<String>,
    /// When the response was received.
    pub observed_at: Timestamp,
    /// The text that was read, at most 200 bytes, never a credential.
    pub raw: Option<String>,
    /// How it was understood.
    pub interpretation: Interpretation,
    /// The earliest moment that the provider allows; none when it named none.
    pub earliest_retry_at: Option<Timestamp>,
    /// By how much the moment may be off, in milliseconds, since two clocks and a whole second are involved.
    pub clock_uncertainty_ms: u64,
}

impl Observation {
    /// The most bytes of a raw value that are kept.
    pub const MAX_RAW_BYTES: usize = 200;

    /// An observation at `observed_at` of nothing in particular.
    #[must_use]
    pub fn at(observed_at: Timestamp) -> Self {
        Self {
            status: None,
            code: None,
            observed_at,
            raw: None,
            interpretation: Interpretation::Absent,
            earliest_retry_at: None,
            clock_uncertainty_ms: 0,
        }
    }
}

/// A refusal, read. Being throttled is a value, not an error.
///
/// Made by a response reader, or by a handler that knows its provider:
///
/// ```
/// # use adjourn_core::{Kind, Signal, Timestamp};
/// # let now = Timestamp::EPOCH;
/// let refusal = Signal::new("acme", now)
///     .kind(Kind::Daily)
///     .reason("the day's quota is spent")
///     .retry_at(now + core::time::Duration::from_secs(3600));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    provider: String,
    scope_key: Option<ScopeKey>,
    also_closes: Vec<ScopeKey>,
    kind: Kind,
    scope_hint: ScopeHint,
    reason: String,
    source: Source,
    parser: Option<String>,
    saturated: bool,
    turn_at: Option<Timestamp>,
    observation: Observation,
}

impl Signal {
    /// The most bytes of a reason that are kept.
    pub const MAX_REASON_BYTES: usize = 500;

    /// A refusal by `provider`, seen at `observed_at`, that says nothing yet.
    #[must_use]
    pub fn new(provider: &str, observed_at: Timestamp) -> Self {
        Self {
            provider: provider.to_string(),
            scope_key: None,
            also_closes: Vec::new(),
            kind: Kind::Unknown,
            scope_hint: ScopeHint::Unknown,
            reason: "the provider refused and did not say why".to_string(),
            source: Source::None,
            parser: None,
            saturated: false,
            turn_at: None,
            observation: Observation::at(observed_at),
        }
    }

    /// Which limit refused.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The moment before which the provider wants no call. A moment that no parser read counts as stated by the handler.
    #[must_use]
    pub fn retry_at(mut self, at: Timestamp) -> Self {
        self.observation.earliest_retry_at = Some(at);
        if self.source == Source::None {
            self.source = Source::Classify;
            self.observation.interpretation = Interpretation::Stated;
        }
        self
    }

    /// The moment at which the call's turn comes by the caller's own pace: the call was not made, and the provider named no time.
    #[must_use]
    pub fn turn_at(mut self, at: Timestamp) -> Self {
        self.turn_at = Some(at);
        self
    }

    /// Why, in words (cut at 500 bytes).
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = truncated(reason, Self::MAX_REASON_BYTES).to_string();
        self
    }

    /// The response's status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.observation.status = Some(status);
        self
    }

    /// Whom the refusal concerns.
    #[must_use]
    pub fn scope_hint(mut self, hint: ScopeHint) -> Self {
        self.scope_hint = hint;
        self
    }

    /// The key whose gate this refusal closes; without one, the job's own scope.
    #[must_use]
    pub fn scope_key(mut self, key: ScopeKey) -> Self {
        self.scope_key = Some(key);
        self
    }

    /// A further key whose gate this refusal closes: one refusal may concern more than one scope.
    #[must_use]
    pub fn also_closes(mut self, key: ScopeKey) -> Self {
        if !self.also_closes.contains(&key) {
            self.also_closes.push(key);
        }
        self
    }

    /// What read it, from what text, understood how.
    #[must_use]
    pub fn read_by(mut self, source: Source, parser: &str, raw: &str, interpretation: Interpretation) -> Self {
        self.source = source;
        self.parser = Some(parser.to_string());
        self.observation.raw = Some(truncated(raw, Observation::MAX_RAW_BYTES).to_string());
        self.observation.interpretation = interpretation;
        self
    }

    /// The provider's own code for this limit.
    #[must_use]
    pub fn code(mut self, code: &str) -> Self {
        self.observation.code = Some(truncated(code, Observation::MAX_RAW_BYTES).to_string());
        self
    }

    /// By how much the moment may be off.
    #[must_use]
    pub fn clock_uncertainty(mut self, span: Duration) -> Self {
        self.observation.clock_uncertainty_ms = u64::try_from(crate::time::millis_up(span)).unwrap_or(u64::MAX);
        self
    }

    /// The value named was beyond what a time can hold, and was clamped.
    #[must_use]
    pub fn saturated(mut self) -> Self {
        self.saturated = true;
        self
    }

    /// The provider that refused.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The scope that this refusal closes, where the reader knows it.
    #[must_use]
    pub fn closes(&self) -> Option<&ScopeKey> {
        self.scope_key.as_ref()
    }

    /// The further scopes that this refusal closes.
    #[must_use]
    pub fn closes_too(&self) -> &[ScopeKey] {
        &self.also_closes
    }

    /// Which limit refused.
    #[must_use]
    pub fn limit_kind(&self) -> Kind {
        self.kind
    }

    /// Whom the refusal concerns.
    #[must_use]
    pub fn concerns(&self) -> ScopeHint {
        self.scope_hint
    }

    /// Why, in words.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.reason
    }

    /// What named the moment.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// The parser that read the moment.
    #[must_use]
    pub fn parser(&self) -> Option<&str> {
        self.parser.as_deref()
    }

    /// Whether the named value was clamped.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.saturated
    }

    /// The moment that the provider named.
    #[must_use]
    pub fn earliest_retry_at(&self) -> Option<Timestamp> {
        self.observation.earliest_retry_at
    }

    /// The moment before which a repeated call is in vain: the one that the provider named, otherwise the call's turn by the caller's
    /// own pace.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        self.earliest_retry_at().or(self.turn_at)
    }

    /// The wait that the provider named, from the receipt of its response; zero for a moment that was already past.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.earliest_retry_at()
            .map(|at| at.since(self.observation.observed_at))
    }

    /// Whether the provider named a moment that was no later than its own response.
    #[must_use]
    pub fn is_past(&self) -> bool {
        self.earliest_retry_at()
            .is_some_and(|at| at <= self.observation.observed_at)
    }

    /// What was seen.
    #[must_use]
    pub fn observation(&self) -> &Observation {
        &self.observation
    }
}

/// The longest prefix of `text` of at most `bytes` bytes that ends between two characters.
pub(crate) fn truncated(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
