//! The layers as middleware of the crate `reqwest-middleware`.

use std::error::Error;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next};

use super::{
    CallError, FollowRedirectLayer, RateLimitLayer, RetryLayer,
    chain::{self, Attempts, Broken},
    follow_redirect::follow,
};
use crate::Allowance;

#[async_trait]
impl Middleware for RetryLayer {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let mut attempts = Rest { next, extensions };
        match chain::call(&self.retrying, &Allowance::current(), &mut attempts, request).await {
            Ok(response) => Ok(response),
            Err(Broken::Refused(refusal)) => Err(reqwest_middleware::Error::middleware(CallError::Refused(refusal))),
            Err(Broken::Failed(error)) => Err(error),
        }
    }
}

#[async_trait]
impl Middleware for RateLimitLayer {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let started = self.limiting.turn(&request).await;
        let started = started.map_err(|refusal| reqwest_middleware::Error::middleware(CallError::Refused(refusal)))?;
        let response = next.run(request, extensions).await?;
        Ok(self.limiting.answered(started, response).await)
    }
}

#[async_trait]
impl Middleware for FollowRedirectLayer {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        follow(&mut Rest { next, extensions }, request).await
    }
}

/// The middleware that follows, and the client.
struct Rest<'a, 'e> {
    next: Next<'a>,
    extensions: &'e mut Extensions,
}

impl Attempts<Request> for Rest<'_, '_> {
    type Response = Response;
    type Error = reqwest_middleware::Error;

    async fn make(&mut self, request: Request) -> reqwest_middleware::Result<Response> {
        self.next.clone().run(request, self.extensions).await
    }

    fn causes(error: &reqwest_middleware::Error) -> &(dyn Error + 'static) {
        error
    }
}
