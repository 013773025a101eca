//! A refusal as an error, for code that uses `?`.

use alloc::boxed::Box;
use core::{error::Error, fmt, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{Kind, ScopeKey, Signal, Source, Timestamp};

/// A refusal as an error, for code that uses `?`: the worker finds it anywhere in an error's source chain and treats the
/// job as throttled.
///
/// Its own source is what the provider answered. So [`RateLimitError::find_in`] also finds it where a wrapper shows its source and
/// not the error itself: `#[error(transparent)]`, `std::io::Error::other`, an `Arc` or a `Box` around it. Only an error that names no
/// source at all hides it.
///
/// As JSON it is what a front end tells its own caller: `status`, `retryAt`, `waitMs`, `reason`, `kind`, `source`,
/// `scopeKey`, `provider`, `policy` and `retryable`; what is not known is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitError {
    refusal: Box<Refusal>,
}

/// What the provider answered, as the error's source. It is the one link of the chain that no wrapper leaves out, and so carries
/// everything.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refusal {
    signal: Signal,
    scope: Option<ScopeKey>,
}

impl RateLimitError {
    /// The refusal in an error: the error itself, or anywhere in its source chain.
    #[must_use]
    pub fn find_in(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut link = Some(error);
        while let Some(error) = link {
            if let Some(refusal) = error.downcast_ref::<Refusal>() {
                let refusal = Box::new(refusal.clone());
                return Some(Self { refusal });
            }
            link = error.source();
        }
        None
    }

    /// The key under which the caller's limit is shared, for a refusal that names none of its own.
    #[must_use]
    pub fn in_scope(mut self, key: ScopeKey) -> Self {
        self.refusal.scope = Some(key);
        self
    }

    /// The refusal that this error carries.
    #[must_use]
    pub fn signal(&self) -> &Signal {
        &self.refusal.signal
    }

    /// Gives the refusal back; not the caller's key.
    #[must_use]
    pub fn into_signal(self) -> Signal {
        self.refusal.signal
    }

    /// The status of the response; none where no response said it.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.signal().observation().status
    }

    /// The moment that the provider named, never one of ours; none when it named none.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.signal().earliest_retry_at()
    }

    /// How long that is from the receipt of the response. Of a call that was not made, since its turn by the caller's own pace came too
    /// late, how long until that turn; the reason says so, and there is no moment of the provider's.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let at = self.signal().not_before()?;
        Some(at.since(self.signal().observation().observed_at))
    }

    /// Why, in words.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.signal().why()
    }

    /// Which limit refused.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.signal().limit_kind()
    }

    /// What named the moment. It is not called `source`, which is an error's cause.
    #[must_use]
    pub fn told_by(&self) -> Source {
        self.signal().source()
    }

    /// The key under which the limit is shared: the refusal's own, otherwise the caller's.
    #[must_use]
    pub fn scope_key(&self) -> Option<&ScopeKey> {
        self.signal().closes().or(self.refusal.scope.as_ref())
    }

    /// Who refused.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.signal().provider()
    }

    /// The provider's own name for the limit, where it gives one.
    #[must_use]
    pub fn policy(&self) -> Option<&str> {
        self.signal().observation().code.as_deref()
    }

    /// Whether a later call may go through: not where the account is closed, unpaid or out of its spend limit.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind() != Kind::AccountDisabled
    }
}

impl From<Signal> for RateLimitError {
    fn from(signal: Signal) -> Self {
        Self {
            refusal: Box::new(Refusal { signal, scope: None }),
        }
    }
}

impl fmt::Display for RateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.provider(), self.reason())?;
        match (self.retry_at(), self.signal().not_before()) {
            (Some(at), _) => write!(f, "; not before {at}"),
            (None, Some(turn)) => write!(f, "; its turn comes at {turn}"),
            (None, None) => f.write_str("; it named no time"),
        }
    }
}

impl Error for RateLimitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.signal.observation();
        match seen.status {
            Some(status) => write!(f, "the answer was {status}")?,
            None => f.write_str("no answer said so")?,
        }
        match &seen.code {
            Some(code) => write!(f, ", by the name of {code}"),
            None => Ok(()),
        }
    }
}

impl Error for Refusal {}

impl Serialize for RateLimitError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wait_ms = self
            .wait()
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let mut fields = serializer.serialize_struct("RateLimitError", 10)?;
        fields.serialize_field("status", &self.status())?;
        fields.serialize_field("retryAt", &self.retry_at())?;
        fields.serialize_field("waitMs", &wait_ms)?;
        fields.serialize_field("reason", self.reason())?;
        fields.serialize_field("kind", &self.kind())?;
        fields.serialize_field("source", &self.told_by())?;
        fields.serialize_field("scopeKey", &self.scope_key())?;
        fields.serialize_field("provider", self.provider())?;
        fields.serialize_field("policy", &self.policy())?;
        fields.serialize_field("retryable", &self.is_retryable())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interpretation;
    use alloc::string::ToString;

    fn refusal() -> Signal {
        let now = Timestamp::from_unix_ms(0);
        Signal::new("acme", now)
            .status(429)
            .kind(Kind::Short)
            .code("SECONDLY")
            .read_by(Source::Parser, "retry-after", "1", Interpretation::Delay)
            .reason("burst")
            .retry_at(now + Duration::from_secs(1))
    }

    #[test]
    fn the_error_says_who_why_and_when() {
        let error = RateLimitError::from(refusal());
        assert_eq!(
            error.to_string(),
            "acme refused: burst; not before 1970-01-01T00:00:01.000Z"
        );
        let bare = RateLimitError::from(Signal::new("acme", Timestamp::EPOCH).reason("busy"));
        assert_eq!(bare.to_string(), "acme refused: busy; it named no time");
    }

    #[test]
    fn a_turn_of_our_own_pace_is_a_wait_and_no_moment_of_the_provider_s() {
        let turn = Timestamp::EPOCH + Duration::from_secs(60);
        let own = RateLimitError::from(Signal::new("acme", Timestamp::EPOCH).reason("paced").turn_at(turn));
        assert_eq!((own.retry_at(), own.wait()), (None, Some(Duration::from_secs(60))));
        let told = serde_json::to_value(&own).unwrap();
        assert_eq!(
            (&told["retryAt"], &told["waitMs"]),
            (&serde_json::Value::Null, &60_000.into())
        );
        assert_eq!(
            own.to_string(),
            "acme refused: paced; its turn comes at 1970-01-01T00:01:00.000Z"
        );
        let named = RateLimitError::from(refusal().turn_at(turn));
        assert_eq!(
            (named.retry_at(), named.wait()),
            (refusal().earliest_retry_at(), refusal().wait())
        );
    }

    #[test]
    fn its_source_says_what_was_answered_and_carries_everything() {
        let error = RateLimitError::from(refusal()).in_scope(ScopeKey::app("acme"));
        let source = error.source().unwrap();
        assert_eq!(source.to_string(), "the answer was 429, by the name of SECONDLY");
        assert_eq!(RateLimitError::find_in(source), Some(error.clone()));
        assert_eq!(RateLimitError::find_in(&error), Some(error));

        let stated = RateLimitError::from(Signal::new("acme", Timestamp::EPOCH));
        assert_eq!(stated.source().unwrap().to_string(), "no answer said so");
        assert_eq!(RateLimitError::find_in(&fmt::Error), None);
    }

    #[test]
    fn a_front_end_can_hand_it_on_as_json() {
        let error = RateLimitError::from(refusal()).in_scope(ScopeKey::scoped("acme", "entity", "7"));
        let told = serde_json::json!({
            "status": 429, "retryAt": "1970-01-01T00:00:01.000Z", "waitMs": 1000, "reason": "burst", "kind": "short",
            "source": "parser", "scopeKey": "acme:entity:7", "provider": "acme", "policy": "SECONDLY", "retryable": true,
        });
        assert_eq!(serde_json::to_value(&error).unwrap(), told);

        let bare = RateLimitError::from(Signal::new("acme", Timestamp::EPOCH).kind(Kind::AccountDisabled));
        let told = serde_json::json!({
            "status": null, "retryAt": null, "waitMs": null, "reason": "the provider refused and did not say why",
            "kind": "account_disabled", "source": "none", "scopeKey": null, "provider": "acme", "policy": null, "retryable": false,
        });
        assert_eq!(serde_json::to_value(&bare).unwrap(), told);
    }

    #[test]
    fn a_scope_that_the_refusal_names_comes_before_the_caller_s() {
        let own = RateLimitError::from(refusal().scope_key(ScopeKey::app("acme"))).in_scope(ScopeKey::provider("acme"));
        assert_eq!(own.scope_key(), Some(&ScopeKey::app("acme")));
        assert_eq!(own.into_signal(), refusal().scope_key(ScopeKey::app("acme")));
    }
}
