//! The layer that follows redirects above the others, so that each hop is a call like any other.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Method, header};
use reqwest::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{CallError, carried::carried, chain::Attempts, retry::Client};

/// As many as reqwest's own policy follows.
const MAX_REDIRECTS: usize = 10;

/// Follows redirects of a `reqwest::Client` that follows none itself (`redirect(reqwest::redirect::Policy::none())`). It stands around the
/// other layers: a client that follows them inside makes all its hops for one turn of the budget, and nobody reads what they are
/// answered.
///
/// At most ten in a row, and to the same scheme, host and port alone: another host is another provider, whose limit this is not and
/// whose business the credentials are not. Methods change as browsers change them (RFC 9110, section 15.4): a 303 is fetched by GET, and
/// so is a 301 or 302 after a POST. What is not followed is handed on as it was answered; so is every redirect of a request whose body
/// is a stream, which is sent once.
///
/// A client that sends `http::Request`s takes tower-http's layer of the same name in its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowRedirectLayer {
    _private: (),
}

impl FollowRedirectLayer {
    /// Follows as said above.
    #[must_use]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl<S> Layer<S> for FollowRedirectLayer {
    type Service = FollowRedirect<S>;

    fn layer(&self, inner: S) -> FollowRedirect<S> {
        FollowRedirect { inner }
    }
}

/// A client behind a [`FollowRedirectLayer`].
#[derive(Clone, Debug)]
pub struct FollowRedirect<S> {
    inner: S,
}

impl<S> Service<Request> for FollowRedirect<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, CallError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.inner
            .poll_ready(context)
            .map_err(|error| CallError::from(error.into()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The one that said it is ready makes the first call.
        let clone = self.inner.clone();
        let mut client = Client::ready(std::mem::replace(&mut self.inner, clone));
        Box::pin(carried(async move { follow(&mut client, request).await }))
    }
}

/// Makes a call, and those that its redirects ask for.
pub(super) async fn follow<A>(client: &mut A, mut request: Request) -> Result<Response, A::Error>
where
    A: Attempts<Request, Response = Response>,
{
    for _ in 0..MAX_REDIRECTS {
        let copy = request.try_clone();
        let response = client.make(request).await?;
        let Some(next) = copy.and_then(|copy| next(copy, &response)) else {
            return Ok(response);
        };
        // Its place in flight is the next hop's.
        drop(response);
        request = next;
    }
    client.make(request).await
}

/// The request that a response asks for in this one's place; none where it is no redirect, or none that is followed.
fn next(mut request: Request, response: &Response) -> Option<Request> {
    let by_get = match (response.status().as_u16(), request.method()) {
        (301 | 302, &Method::POST) => true,
        (303, method) => method != Method::HEAD,
        (301 | 302 | 307 | 308, _) => false,
        _ => return None,
    };
    let location = response.headers().get(header::LOCATION)?;
    let url = request
        .url()
        .join(std::str::from_utf8(location.as_bytes()).ok()?)
        .ok()?;
    let bears_a_user = !url.username().is_empty() || url.password().is_some();
    if bears_a_user || url.origin() != request.url().origin() {
        return None;
    }
    *request.url_mut() = url;
    if by_get {
        *request.method_mut() = Method::GET;
        *request.body_mut() = None;
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_LENGTH,
            header::CONTENT_ENCODING,
            header::TRANSFER_ENCODING,
        ] {
            request.headers_mut().remove(name);
        }
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_origin_is_asked_and_by_nobody_else_s_name() {
        for (location, expected) in [
            ("https://api.acme.example/b", Some("https://api.acme.example/b")),
            (
                "https://api.acme.example:443/b?c#d",
                Some("https://api.acme.example/b?c#d"),
            ),
            ("//api.acme.example/b", Some("https://api.acme.example/b")),
            ("../b", Some("https://api.acme.example/b")),
            ("https://somebody@api.acme.example/b", None),
            ("https://:secret@api.acme.example/b", None),
            ("http://api.acme.example/b", None),
            ("https://api.acme.example:8443/b", None),
            ("//evil.example/b", None),
            ("javascript:alert(1)", None),
        ] {
            let request = Request::new(Method::GET, "https://api.acme.example/v2/a".parse().unwrap());
            let response = http::Response::builder().status(302).header("location", location);
            let response = Response::from(response.body("").unwrap());
            let followed = next(request, &response);
            assert_eq!(
                followed.as_ref().map(|next| next.url().as_str()),
                expected,
                "{location}"
            );
        }
    }
}
