//! A job as the request that is sent.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

use crate::{Body, Credentials, HttpJob, Provider};

pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

/// The request for a job; none if its path would leave the base URL.
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
    if let (Some(credential), Some(value)) = (provider.credential(), credentials.header_value(provider.name())) {
        headers.insert(credential.header(), value);
    }
    Some(Call {
        method: job.method.clone(),
        url,
        headers,
        body,
    })
}
