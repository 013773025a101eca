//! What an AWS call's failure means to a port: refused, throttled, or passing.

use std::{error::Error, fmt, sync::Arc};

use adjourn_worker::port::PortError;
use aws_smithy_runtime_api::{client::result::SdkError, http::Response};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// Codes that ask for fewer requests. `KmsThrottled` and `OverLimit` are not in the SDK's own list.
const THROTTLING: &[&str] = &[
    "KMS.ThrottlingException",
    "KmsThrottled",
    "OverLimit",
    "AWS.SimpleQueueService.OverLimit",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Codes of a passing fault that come with a status which does not say so.
const PASSING: &[&str] = &[
    "InternalError",
    "InternalFailure",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
];

/// Why an AWS call, or one entry of it, did not do what it was asked. Cheap to clone: one call answers for many entries.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    class: Class,
    code: Option<String>,
    words: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Refused,
    Throttled,
    Transient,
}

impl Failure {
    /// Refused by ourselves, before any call.
    pub(crate) fn local(words: impl Into<String>) -> Self {
        Self {
            class: Class::Refused,
            code: None,
            words: words.into(),
            source: None,
        }
    }

    /// An answer that does not say what became of the request: it may have been done.
    pub(crate) fn unaccounted(words: impl Into<String>) -> Self {
        Self {
            class: Class::Transient,
            code: None,
            words: words.into(),
            source: None,
        }
    }

    /// A call that failed as a whole.
    pub(crate) fn of_call<E>(operation: &'static str, error: SdkError<E, Response>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let code = error
            .as_service_error()
            .and_then(ProvideErrorMetadata::code)
            .map(str::to_string);
        let status = error.raw_response().map(|response| response.status().as_u16());
        let never_left = matches!(&error, SdkError::ConstructionFailure(_))
            || matches!(&error, SdkError::DispatchFailure(failure) if failure.is_user());
        let class = if never_left {
            Class::Refused
        } else if matches!(&error, SdkError::ServiceError(_)) {
            Class::of(code.as_deref(), status)
        } else {
            // No answer, or one that cannot be read: it may have been done.
            Class::Transient
        };
        let message = error.as_service_error().and_then(ProvideErrorMetadata::message);
        let words = match &code {
            Some(code) => format!("{operation}: {code}: {}", message.unwrap_or("no message")),
            None => format!("{operation}: {}", chain(&error)),
        };
        Self {
            class,
            code,
            words,
            source: Some(Arc::new(error)),
        }
    }

    /// An entry that a batch call lists as failed.
    pub(crate) fn of_entry(operation: &'static str, code: &str, message: Option<&str>, sender_fault: bool) -> Self {
        let class = if THROTTLING.contains(&code) {
            Class::Throttled
        } else if sender_fault && !PASSING.contains(&code) {
            Class::Refused
        } else {
            Class::Transient
        };
        let words = format!("{operation}: {code}: {}", message.unwrap_or("no message"));
        Self {
            class,
            code: Some(code.to_string()),
            words,
            source: None,
        }
    }

    /// The same failure, known to be final, with what that means.
    pub(crate) fn refused_because(mut self, meaning: &str) -> Self {
        self.class = Class::Refused;
        self.words = format!("{meaning}: {}", self.words);
        self
    }

    /// Whether the service answered with one of these codes.
    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }
}

/// An error with its sources, in words. The SDK's own display of it prints whole responses.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        words = format!("{words}: {source}");
        next = source.source();
    }
    words
}

impl Class {
    fn of(code: Option<&str>, status: Option<u16>) -> Self {
        // A success that cannot be read says nothing: it may have been done.
        let unsaid = status.is_none_or(|status| status < 400);
        if status == Some(429) || code.is_some_and(|code| THROTTLING.contains(&code)) {
            Self::Throttled
        } else if unsaid
            || status.is_some_and(|status| status >= 500)
            || code.is_some_and(|code| PASSING.contains(&code))
        {
            Self::Transient
        } else {
            Self::Refused
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<Failure> for PortError {
    fn from(failure: Failure) -> Self {
        match failure.class {
            Class::Refused => Self::refused(failure),
            Class::Throttled => Self::throttled(failure),
            Class::Transient => Self::transient(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_entry_is_classed_by_its_code_before_its_fault() {
        let class = |code, sender_fault| Failure::of_entry("SendMessageBatch", code, None, sender_fault).class;
        assert_eq!(class("InvalidParameterValue", true), Class::Refused);
        assert_eq!(
            class("InternalError", true),
            Class::Transient,
            "a passing fault, whoever is blamed"
        );
        assert_eq!(class("KmsThrottled", true), Class::Throttled);
        assert_eq!(class("Unheard", false), Class::Transient);
    }

    #[test]
    fn a_status_speaks_where_the_code_does_not() {
        assert_eq!(Class::of(None, Some(503)), Class::Transient);
        assert_eq!(Class::of(None, Some(200)), Class::Transient, "an unreadable success");
        assert_eq!(Class::of(Some("Odd"), Some(429)), Class::Throttled);
        assert_eq!(Class::of(Some("AccessDeniedException"), Some(400)), Class::Refused);
        assert_eq!(Class::of(Some("RequestThrottled"), Some(400)), Class::Throttled);
    }

    #[test]
    fn a_port_error_keeps_the_words_and_the_question() {
        let error = PortError::from(Failure::of_entry(
            "SendMessageBatch",
            "RequestThrottled",
            Some("slow down"),
            true,
        ));
        assert!(error.is_throttled() && error.is_transient());
        assert_eq!(error.to_string(), "SendMessageBatch: RequestThrottled: slow down");
        assert!(!PortError::from(Failure::local("no")).is_transient());
    }
}
