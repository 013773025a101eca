//! Retries and rate limits around a client that exists already: as [tower](https://docs.rs/tower-service) layers, and with the
//! feature `reqwest-middleware` as middleware of that crate.
//!
//! Most clients of a provider's API come from its SDK or from a generator, and take a `tower` service or a `reqwest` client to
//! send by. What is wrapped around that gives them what a [`Requester`](crate::Requester) has: a refusal is read by the provider's
//! contract, waited out where the caller's [`Allowance`](crate::Allowance) lets it, and is otherwise a
//! [`RateLimitError`](adjourn_core::RateLimitError), which a worker's handler hands on by `?`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use adjourn_http::{Rate, RateBudget, layer::{RateLimitLayer, RetryLayer}};
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//!
//! # let client = service_fn(async |_: http::Request<String>| {
//! #     Ok::<_, std::io::Error>(http::Response::new("fine".to_string()))
//! # });
//! let mut client = ServiceBuilder::new()
//!     .layer(RetryLayer::new("acme"))
//!     .layer(RateLimitLayer::new("acme", RateBudget::new(Rate::per_second(10))))
//!     .service(client);
//! let response = client.ready().await.unwrap().call(http::Request::new(String::new())).await.unwrap();
//! assert_eq!(response.status(), 200);
//! # }
//! ```
//!
//! The order counts: a retry around a limit, so that each repetition takes its own turn; a timeout of one call inside of both.
//! The client's own retries and redirects have to be off (docs/clients.md): what it swallows is never seen here. Redirects are followed
//! above the others, by a [`FollowRedirectLayer`] or by tower-http's.
mod body;
mod call_error;
mod carried;
mod chain;
mod exchange;
mod follow_redirect;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod rate_limit;
mod retry;
mod sight;
#[cfg(test)]
mod tests;

pub use body::ReadBody;
pub use call_error::CallError;
pub use exchange::{LayerRequest, LayerResponse};
pub use follow_redirect::{FollowRedirect, FollowRedirectLayer};
pub use rate_limit::{RateLimit, RateLimitLayer};
pub use retry::{Retry, RetryLayer};
