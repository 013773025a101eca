//! A job as the request that is sent.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use secrecy::ExposeSecret;
use url::Url;

use crate::{Body, Credentials, HttpJob, Provider, Token};

#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    /// The token among its headers, so that a provider that repeats it can be hushed.
    pub(super) token: Option<Token>,
}

impl Call {
    /// The same call with a token, where the provider's credential says.
    pub(super) fn with_token(&self, provider: &Provider, token: &Token) -> Self {
        let mut call = self.clone();
        let (name, value) = match provider.credential() {
            Some(credential) => (credential.header().clone(), credential.header_value(token.secret())),
            None => (header::AUTHORIZATION, bearer(token)),
        };
        if let Some(value) = value {
            call.headers.insert(name, value);
        }
        call.token = Some(token.clone());
        call
    }
}

fn bearer(token: &Token) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.secret().expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The request for a job; none if its path would leave the base URL. A token is put into it later.
pub(super) fn call(job: &HttpJob, provider: &Provider, credentials: &Credentials, lasting_id: &str) -> Option<Call> {
    let mut url = job.path.under(provider.base_url())?;
    if !job.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&job.query);
    }
    let mut headers = HeaderMap::new();
    let (body, content_type) = match &job.body {
        None => (None, None),
        Some(Body::Json(json)) => (Some(Bytes::from(json.clone())), Some("application/json")),
        Some(Body::Text(text)) => (Some(Bytes::from(text.clone())), Some("text/plain; charset=utf-8")),
        Some(Body::Bytes(bytes)) => (Some(Bytes::from(bytes.clone())), Some("application/octet-stream")),
    };
    if let Some(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in &job.headers {
        headers.insert(name, value.clone());
    }
    if let Some(name) = provider.idempotency_header() {
        headers.insert(name, HeaderValue::from_str(&job.idempotency_key(lasting_id)).ok()?);
    }
    // Last, so that nothing before it can take its place.
    if let (Some(credential), Some(secret)) = (provider.credential(), credentials.secret(provider.name()))
        && credential.oauth2().is_none()
    {
        headers.insert(credential.header(), credential.header_value(secret)?);
    }
    Some(Call {
        method: job.method.clone(),
        url,
        headers,
        body,
        token: None,
    })
}
