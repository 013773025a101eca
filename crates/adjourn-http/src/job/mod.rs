//! The HTTP job: one JSON object, strictly read.

mod check;
mod field;
mod lines;
mod parse;
mod path;
mod problem;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use adjourn_core::{ScopeKey, Timestamp};
use http::{HeaderName, HeaderValue, Method};

pub use lines::{JobLine, JobLines, LineProblem, LinesError, Repeat, read_lines};
pub use path::JobPath;
pub use problem::{FieldProblem, JobError};

/// The most bytes of a job: the queue's message size (1,048,576 bytes) less 2 KiB for what adjourn adds.
pub const MAX_JOB_BYTES: usize = 1_048_576 - 2048;

/// One call of somebody else's API, as a queue message's body or a line for `adjourn send` describes it.
///
/// ```
/// let job = adjourn_http::HttpJob::parse(r#"{"provider":"acme","method":"GET","path":"/orders/7"}"#)?;
/// assert_eq!(job.path.as_str(), "/orders/7");
/// let error = adjourn_http::HttpJob::parse(r#"{"provider":"acme","method":"GET","pth":"/orders/7"}"#).unwrap_err();
/// assert!(error.to_string().starts_with("pth: is not known; the nearest known is \"path\""));
/// # Ok::<(), adjourn_http::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpJob {
    /// A name in the settings.
    pub provider: String,
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: Method,
    /// Appended to the provider's base URL.
    pub path: JobPath,
    /// Query parameters in their order; a list of values is one entry for each.
    pub query: Vec<(String, String)>,
    /// The job's own headers; none that adjourn, the connection or the credential owns.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What is sent.
    pub body: Option<Body>,
    /// The caller's name for the job; the message's id where it gives none.
    pub id: Option<String>,
    /// The fairness key.
    pub tenant: Option<String>,
    /// The caller's process that it is part of.
    pub run: Option<String>,
    /// Which limit it shares; the whole provider where it names none.
    pub scope: Option<Scope>,
    /// The caller's own key; see [`HttpJob::idempotency_key`].
    pub own_key: Option<String>,
    /// Not before this moment.
    pub not_before: Option<Timestamp>,
    /// After this moment it is useless.
    pub deadline: Option<Timestamp>,
    /// Which share of the provider's limit it may use.
    pub priority: Priority,
    /// A higher number supersedes the waiting job of the same id.
    pub revision: u64,
}

/// What a job sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// JSON, byte for byte as the job has it.
    Json(String),
    /// Text in UTF-8.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Which limit a job shares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One account of the provider.
    Entity(String),
    /// One credential.
    Credential(String),
    /// Whatever the caller says.
    Custom(String),
}

/// Which share of a provider's limit a job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// An ordinary job.
    #[default]
    Normal,
    /// A query that resolves an unknown outcome.
    Status,
}

impl HttpJob {
    /// Reads a job of at most [`MAX_JOB_BYTES`].
    ///
    /// # Errors
    /// Everything that is wrong with it: each unknown field with the nearest known one, each bad field with what was found
    /// and what is allowed.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        Self::parse_within(text, MAX_JOB_BYTES)
    }

    /// Reads a job of at most `max_bytes`, for a queue whose messages have another size.
    ///
    /// # Errors
    /// As [`HttpJob::parse`].
    pub fn parse_within(text: &str, max_bytes: usize) -> Result<Self, JobError> {
        parse::job(text, max_bytes)
    }

    /// The key of the limit that it shares.
    #[must_use]
    pub fn scope_key(&self) -> ScopeKey {
        match &self.scope {
            Some(Scope::Entity(id)) => ScopeKey::scoped(&self.provider, "entity", id),
            Some(Scope::Credential(id)) => ScopeKey::scoped(&self.provider, "credential", id),
            Some(Scope::Custom(text)) => ScopeKey::scoped(&self.provider, "custom", text),
            None => ScopeKey::provider(&self.provider),
        }
    }

    /// The key of the limit that it shares at its provider: that of its lane, where the settings give its path a rate of its own;
    /// otherwise as the provider's contract has it, which may know a scope where the job names none, and limits of its own
    /// for classes of calls.
    #[must_use]
    pub fn scope_key_at(&self, provider: &crate::Provider) -> ScopeKey {
        match provider.lane_of(self) {
            Some(lane) => crate::scope::of_lane(self, lane.fragment()),
            None => crate::scope::of_job(self, provider.contract().map(AsRef::as_ref)),
        }
    }

    /// The key by which the provider knows a repeat of this call, the same on every attempt: the caller's own, otherwise
    /// made from the job's id, or from `lasting_id`, the name that its message keeps for life.
    ///
    /// A revision above 0 is part of a made key, since another content under a used key is no repeat.
    #[must_use]
    pub fn idempotency_key(&self, lasting_id: &str) -> String {
        self.key(lasting_id).into_owned()
    }

    /// The same, borrowed where it is an id as it stands.
    pub(crate) fn key<'a>(&'a self, lasting_id: &'a str) -> Cow<'a, str> {
        if let Some(key) = &self.own_key {
            return Cow::Borrowed(key);
        }
        let id = self.id.as_deref().unwrap_or(lasting_id);
        let sendable = id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic());
        let base = if sendable {
            Cow::Borrowed(id)
        } else {
            Cow::Owned(format!("h-{:032x}", xxhash_rust::xxh3::xxh3_128(id.as_bytes())))
        };
        if self.revision == 0 {
            base
        } else {
            Cow::Owned(format!("{base}.r{}", self.revision))
        }
    }
}
