//! A token endpoint: one request for a token, and what its answer means.

use std::{fmt, time::Duration};

use adjourn_core::{Fault, RateLimitError, ScopeKey, Signal, Timestamp};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::form_urlencoded;

use super::{Token, TokenError};
use crate::{
    Allowance, ClientAuth, InFlight, Now, OAuth2, RateBudget, Reading, Response,
    budget::PauseBounds,
    read,
    requester::{chain, read_body},
    waiting::{self, TooLate},
};

/// The most bytes of an answer that are read.
const MOST: usize = 64 * 1024;
/// No token is believed to be good for longer.
const LONGEST: u64 = 365 * 86_400;

/// A provider's token endpoint.
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) oauth2: OAuth2,
    pub(crate) secret: SecretString,
    pub(crate) client: reqwest::Client,
    pub(crate) budget: RateBudget,
    pub(crate) timeout: Duration,
    /// After a refusal that names a time.
    pub(crate) least_wait: Duration,
    pub(crate) now: Now,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("oauth2", &self.oauth2)
            .finish_non_exhaustive()
    }
}

/// A token as RFC 6749 answers it, section 5.1. Some servers write the number as a text.
#[derive(Deserialize)]
struct Granted {
    access_token: SecretText,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(from = "String")]
struct SecretText(SecretString);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(SecretString::from(text))
    }
}

/// Why there is none, section 5.2.
#[derive(Deserialize)]
struct Denied {
    error: String,
}

/// The scope of a provider's token endpoint: its limit is not the API's.
pub(crate) fn scope(provider: &str) -> ScopeKey {
    ScopeKey::from(format!("{provider}:token"))
}

impl Endpoint {
    pub(super) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Asks for a token, within that time. What of it passes before the request's turn comes is the caller's patience, and the request
    /// has its own time besides.
    pub(super) async fn ask(&self, within: Duration) -> Result<Token, TokenError> {
        let path = self.oauth2.token_url().path();
        let ends_at = self.now() + within;
        let allowance = Allowance::current().until(ends_at);
        let turn = waiting::turn(&self.budget, path, 1, &allowance, &self.now, self.timeout).await;
        let in_flight = turn.map_err(|too_late| self.held(too_late))?;
        let sent_at = self.now();
        let within = ends_at.since(sent_at);
        let (headers, form) = self.request();
        let request = self
            .client
            .post(self.oauth2.token_url().clone())
            .headers(headers)
            .timeout(within.min(self.timeout))
            .body(form);
        let mut response = request
            .send()
            .await
            .map_err(|error| self.failed(&format!("did not answer: {}", chain(&error))))?;
        let received_at = self.now();
        let (status, headers) = (response.status(), response.headers().clone());
        let (body, _) = read_body(&mut response, MOST).await;
        let reading = self.heard(&in_flight, &allowance, status, &headers, &body, received_at);
        if status.is_success()
            && let Ok(granted) = serde_json::from_slice::<Granted>(&body)
        {
            // Counted from the request: the server's clock started at some moment in between.
            let good_for = granted.expires_in.as_ref().and_then(seconds);
            return Ok(Token::new(granted.access_token.0, good_for.map(|span| sent_at + span)));
        }
        if reading.is_limited() {
            return Err(self.refused(reading.into_signal()));
        }
        let said = serde_json::from_slice::<Denied>(&body).ok().map(|denied| denied.error);
        // A name of the RFC's kind; anything else might hold what is nobody's business.
        let named =
            |name: &String| name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let words = match said.filter(named) {
            Some(name) => format!("answered {status}: {name}"),
            None if status.is_success() => format!("answered {status} without a token"),
            None => format!("answered {status}"),
        };
        let fault = Fault::new(&self.words(&words)).status(status.as_u16());
        Err(TokenError::Failed(match reading.not_before() {
            Some(at) if status.is_server_error() => fault.retry_at(at),
            _ => fault,
        }))
    }

    /// Refuses at once what a pause holds longer than the caller may be kept waiting.
    pub(super) async fn open(&self) -> Result<(), TokenError> {
        let patience = waiting::patience(&Allowance::current(), self.now(), self.timeout);
        match self.budget.pause_remaining() {
            Some(left) if left >= patience => self.turn_within(patience).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Why the time of a caller passed that waited for somebody else's answer: the endpoint's pause or our own pace, as the refusal that
    /// it is, or else that answer itself.
    pub(super) async fn out_of_time(&self) -> TokenError {
        match self.turn_within(Duration::from_nanos(1)).await {
            Err(refused) => refused,
            Ok(()) => TokenError::Failed(Fault::new(
                "there was no time left to wait for a token; the call was not sent",
            )),
        }
    }

    /// Whether a turn comes within that time. It is given back.
    async fn turn_within(&self, within: Duration) -> Result<(), TokenError> {
        let turn = self.budget.turn(self.oauth2.token_url().path(), Some(within)).await;
        turn.map(drop).map_err(|no_turn| self.held(TooLate::Turn(no_turn)))
    }

    /// How long the endpoint wants no call.
    pub(super) fn pause_remaining(&self) -> Option<Duration> {
        self.budget.pause_remaining()
    }

    /// A call of it that has no turn in time.
    fn held(&self, too_late: TooLate) -> TokenError {
        self.refused(waiting::refused(&self.provider, too_late, self.now()))
    }

    /// The answer that somebody else waited for did not come.
    pub(super) fn silent(&self) -> TokenError {
        self.failed("gave no answer")
    }

    fn request(&self) -> (HeaderMap, String) {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if let Some(scope) = self.oauth2.scope() {
            form.append_pair("scope", scope);
        }
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let (id, secret) = (self.oauth2.client_id(), self.secret.expose_secret());
        match self.oauth2.client_auth() {
            ClientAuth::Body => {
                form.append_pair("client_id", id).append_pair("client_secret", secret);
            }
            ClientAuth::Basic => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
                if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {pair}")) {
                    value.set_sensitive(true);
                    headers.insert(header::AUTHORIZATION, value);
                }
            }
        }
        (headers, form.finish())
    }

    fn heard(
        &self,
        in_flight: &InFlight,
        allowance: &Allowance,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        received_at: Timestamp,
    ) -> Reading {
        let response = Response {
            status,
            headers,
            body: if status.is_success() { b"" } else { body },
            received_at,
        };
        let reading = read::read(&self.provider, None, None, &response);
        in_flight.heard_within(status.as_u16(), &reading, received_at, || PauseBounds {
            least: self.least_wait,
            room: allowance.budget(self.now(), self.timeout),
        });
        reading
    }

    fn refused(&self, signal: Signal) -> TokenError {
        TokenError::Refused(RateLimitError::from(signal.scope_key(scope(&self.provider))))
    }

    fn failed(&self, words: &str) -> TokenError {
        TokenError::Failed(Fault::new(&self.words(words)))
    }

    fn words(&self, words: &str) -> String {
        format!("the token endpoint of {} {words}; the call was not sent", self.provider)
    }
}

fn seconds(value: &serde_json::Value) -> Option<Duration> {
    let seconds = match value {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => None,
    };
    seconds.map(|seconds| Duration::from_secs(seconds.min(LONGEST)))
}
