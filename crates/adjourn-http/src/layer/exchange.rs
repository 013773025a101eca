//! What the layers need of a request and of a response, whoever's types these are.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, StatusCode};
use http_body::Body;

use super::body::{Beginning, ReadBody};
use crate::InFlight;

mod sealed {
    pub trait Sealed {}
    impl<B> Sealed for http::Request<B> {}
    impl<B> Sealed for http::Response<B> {}
    impl Sealed for reqwest::Request {}
    impl Sealed for reqwest::Response {}
}

/// A request that may be made again: `http::Request` with a body that can be cloned, and `reqwest::Request`.
pub trait LayerRequest: sealed::Sealed + Send + Sized + 'static {
    /// The same request once more; none where its body is a stream.
    #[doc(hidden)]
    fn again(&self) -> Option<Self>;
    #[doc(hidden)]
    fn method(&self) -> &Method;
    #[doc(hidden)]
    fn path(&self) -> &str;
    #[doc(hidden)]
    fn headers(&self) -> &HeaderMap;
    #[doc(hidden)]
    fn timeout(&self) -> Option<Duration>;
}

impl<B: Clone + Send + 'static> LayerRequest for http::Request<B> {
    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn method(&self) -> &Method {
        self.method()
    }
    fn path(&self) -> &str {
        self.uri().path()
    }
    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl LayerRequest for reqwest::Request {
    fn again(&self) -> Option<Self> {
        self.try_clone()
    }
    fn method(&self) -> &Method {
        self.method()
    }
    fn path(&self) -> &str {
        self.url().path()
    }
    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
    fn timeout(&self) -> Option<Duration> {
        self.timeout().copied()
    }
}

/// A response: `http::Response`, whose body becomes a [`ReadBody`], and `reqwest::Response`, which stays what it is.
pub trait LayerResponse: sealed::Sealed + Send + Sized + 'static {
    /// What it is once a layer has seen it.
    type Seen: Send + 'static;
    #[doc(hidden)]
    fn status(&self) -> StatusCode;
    #[doc(hidden)]
    fn headers(&self) -> &HeaderMap;
    #[doc(hidden)]
    fn extensions(&mut self) -> &mut Extensions;
    /// Reads about so many bytes of the body, within that time; they stay in it.
    #[doc(hidden)]
    fn begun(self, most: usize, within: Duration) -> impl Future<Output = (Bytes, Self::Seen)> + Send;
    #[doc(hidden)]
    fn seen_extensions(seen: &mut Self::Seen) -> &mut Extensions;
    #[doc(hidden)]
    fn held(seen: Self::Seen, in_flight: InFlight) -> Self::Seen;
}

impl<B> LayerResponse for http::Response<B>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Seen = http::Response<ReadBody<B>>;

    fn status(&self) -> StatusCode {
        self.status()
    }
    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
    fn extensions(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
    async fn begun(self, most: usize, within: Duration) -> (Bytes, Self::Seen) {
        let (parts, body) = self.into_parts();
        let mut body = Box::pin(body);
        let mut beginning = Beginning::new();
        if most > 0 {
            // Whatever came in time is what is read; a body that stalls or breaks off does so for its reader as well.
            let _ = tokio::time::timeout(within, beginning.read(&mut body, most)).await;
        }
        let body = ReadBody::new(beginning, body);
        (body.read(), http::Response::from_parts(parts, body))
    }
    fn seen_extensions(seen: &mut Self::Seen) -> &mut Extensions {
        seen.extensions_mut()
    }
    fn held(seen: Self::Seen, in_flight: InFlight) -> Self::Seen {
        seen.map(|body| body.held(in_flight))
    }
}

impl LayerResponse for reqwest::Response {
    type Seen = Self;

    fn status(&self) -> StatusCode {
        self.status()
    }
    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
    fn extensions(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
    async fn begun(self, most: usize, within: Duration) -> (Bytes, Self) {
        if most == 0 {
            return (Bytes::new(), self);
        }
        let url = self.url().clone();
        let (read, seen) = http::Response::<reqwest::Body>::from(self).begun(most, within).await;
        (read, rebuilt(seen, url))
    }
    fn seen_extensions(seen: &mut Self) -> &mut Extensions {
        seen.extensions_mut()
    }
    fn held(seen: Self, in_flight: InFlight) -> Self {
        let url = seen.url().clone();
        let response = http::Response::<reqwest::Body>::from(seen);
        rebuilt(
            response.map(|body| ReadBody::new(Beginning::new(), Box::pin(body)).held(in_flight)),
            url,
        )
    }
}

/// reqwest keeps a response's URL beside it, and takes it from where its own extension of the builder puts it.
fn rebuilt(response: http::Response<ReadBody<reqwest::Body>>, url: url::Url) -> reqwest::Response {
    use reqwest::ResponseBuilderExt;
    let mut response = response.map(reqwest::Body::wrap);
    if let Ok(carrier) = http::Response::builder().url(url).body(()) {
        response.extensions_mut().extend(carrier.into_parts().0.extensions);
    }
    response.into()
}
