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
    Allowance, ClientAuth, InFlight, Now, OAuth2, RateBudget, Reading, Response, read,
    requester::{chain, read_body},
    waiting,
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

    /// Asks for a token, within that time.
    pub(super) async fn ask(&self, within: Duration) -> Result<Token, TokenError> {
        let path = self.oauth2.token_url().path();
        let allowance = Allowance::current();
        let turn = waiting::turn(&self.budget, path, 1, &allowance, &self.now, self.timeout).await;
        let in_flight = turn.map_err(|no_turn| self.refused(waiting::refused(&self.provider, no_turn, self.now())))?;
        let sent_at = self.now();
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
        let reading = self.heard(&in_flight, status, &headers, &body, received_at);
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
        in_flight.heard(status.as_u16(), headers, &reading, received_at);
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
