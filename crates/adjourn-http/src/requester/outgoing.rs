//! A job as the request that is sent.

use std::time::Duration;

use adjourn_core::Timestamp;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use secrecy::ExposeSecret;
use url::Url;

use super::paced::Pacing;
use crate::{Body, Credentials, HttpJob, Provider, Token};

static JSON: HeaderValue = HeaderValue::from_static("application/json");
static TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
static BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// What a call is made from, and made from again where it has to be sent again.
pub(super) struct Order<'a> {
    pub(super) job: &'a HttpJob,
    pub(super) provider: &'a Provider,
    pub(super) credentials: &'a Credentials,
    pub(super) lasting_id: &'a str,
    /// The caller's deadline.
    pub(super) must_end_by: Option<Timestamp>,
    /// None where somebody else paces the calls.
    pub(super) pacing: Option<Pacing<'a>>,
}

/// A request that is not sent yet.
pub(super) struct Call {
    url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<Bytes>,
}

impl Call {
    /// The same call with a token, where the provider's credential says.
    pub(super) fn with_token(mut self, provider: &Provider, token: &Token) -> Self {
        let (name, value) = match provider.credential() {
            Some(credential) => (credential.header().clone(), credential.header_value(token.secret())),
            None => (header::AUTHORIZATION, bearer(token)),
        };
        if let Some(value) = value {
            self.headers.insert(name, value);
        }
        self
    }

    /// The same call of another URL.
    pub(super) fn to(self, url: Url) -> Self {
        Self { url, ..self }
    }

    /// As the client takes it, over after that time.
    pub(super) fn request(self, within: Duration) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method, self.url);
        *request.headers_mut() = self.headers;
        *request.timeout_mut() = Some(within);
        *request.body_mut() = self.body.map(reqwest::Body::from);
        request
    }
}

fn bearer(token: &Token) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.secret().expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Order<'_> {
    /// When a call that is sent at that moment has to be over: within the provider's timeout, and by the caller's deadline.
    pub(super) fn ends_at(&self, sent_at: Timestamp) -> Timestamp {
        let ends_at = sent_at + self.provider.timeout();
        self.must_end_by.map_or(ends_at, |at| at.min(ends_at))
    }

    /// The request; none if the job's path would leave the base URL. A token is put into it later.
    pub(super) fn call(&self) -> Option<Call> {
        let Self {
            job,
            provider,
            credentials,
            lasting_id,
            must_end_by: _,
            pacing: _,
        } = *self;
        let mut url = job.path.under(provider.base_url())?;
        if !job.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&job.query);
        }
        let mut headers = HeaderMap::new();
        let (body, content_type) = match &job.body {
            None => (None, None),
            Some(Body::Json(json)) => (Some(Bytes::from(json.clone())), Some(&JSON)),
            Some(Body::Text(text)) => (Some(Bytes::from(text.clone())), Some(&TEXT)),
            Some(Body::Bytes(bytes)) => (Some(Bytes::from(bytes.clone())), Some(&BYTES)),
        };
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, content_type.clone());
        }
        for (name, value) in &job.headers {
            headers.insert(name, value.clone());
        }
        if let Some(name) = provider.idempotency_header() {
            headers.insert(name, HeaderValue::from_str(&job.key(lasting_id)).ok()?);
        }
        // Last, so that nothing before it can take its place.
        if let Some(credential) = provider.credential()
            && credential.oauth2().is_none()
            && let Some(secret) = credentials.secret(provider.name())
        {
            headers.insert(credential.header(), credential.header_value(secret)?);
        }
        Some(Call {
            url,
            method: job.method.clone(),
            headers,
            body,
        })
    }
}
