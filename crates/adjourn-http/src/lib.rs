//! HTTP jobs: what they are, who may be called, and what an answer means.
//!
//! A worker that calls somebody else's API needs three things of this crate. A [`HttpJob`] is one call as JSON, strictly
//! read: a bad field is refused in words before anything is queued. [`Settings`] are `adjourn.toml`: the providers that
//! may be called, and the caps on waiting. A [`Requester`] makes the call, bounded in time and bytes, and turns its answer
//! into an [`Outcome`](adjourn_core::Outcome), with a [`ReadResponse`] deciding what is a refusal and until when.
//!
//! ```
//! use adjourn_http::{HttpJob, Settings};
//!
//! let settings = Settings::parse("[providers.acme]\nbase_url = \"https://api.acme.example/v2\"")?;
//! let job = HttpJob::parse(r#"{"provider":"acme","method":"POST","path":"/orders","body":{"sku":7},"id":"order-7"}"#)?;
//! assert_eq!(job.check(&settings)?.base_url().as_str(), "https://api.acme.example/v2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The map: `job` the job and files of jobs · `settings` the file `adjourn.toml` and credentials · `contract` what is known of
//! a provider, and `catalogue` of whom · `read` what a response says about limits · `explain` one pasted response, explained ·
//! `budget` how fast it may be called · `requester` the call and what its answer means · `waiting` how long it may wait in
//! process · [`layer`] the same around clients that exist already · `handler` (feature `handler`) the worker's handler.
mod budget;
mod catalogue;
mod contract;
#[cfg(feature = "handler")]
mod counter;
mod explain;
#[cfg(feature = "handler")]
mod found_pace;
#[cfg(feature = "handler")]
mod handler;
mod headers;
mod job;
pub mod layer;
mod nearest;
mod read;
mod requester;
mod scope;
mod settings;
mod token;
mod waiting;

/// The most bytes of a body that are read to understand a response.
pub const READ_BYTES: usize = 64 * 1024;

pub use budget::{
    Budgets, Costs, Feedback, HeldBody, InFlight, NoTurn, Rate, RateBudget, RateRule, Throttle, Turn, WaitReason,
    policy_disabled,
};
pub use catalogue::CatalogueEntry;
pub use contract::{
    Basis, Calendar, Case, Contract, ContractError, Cost, Executed, Expectation, LimitHeaders, LimitScope, Link,
    Operation, Parser, Pattern, Place, Pointer, Resets, Rule, StatusTest, Test, Time, Unit, UserHint, Window,
};
pub use explain::{
    ExplainedDecision, ExplainedIgnored, ExplainedLimit, Explainer, Explanation, Pasted, PastedError, PastedLine,
};
#[cfg(feature = "handler")]
pub use found_pace::FoundPace;
#[cfg(feature = "handler")]
pub use handler::HttpHandler;
pub use job::{
    Body, FieldProblem, HttpJob, JobError, JobLine, JobLines, JobPath, LineProblem, LinesError, MAX_JOB_BYTES,
    Priority, Repeat, Scope, read_lines,
};
pub use read::{
    Classified, Classify, ContractReader, Ignored, LimitState, PlainReader, ReadResponse, Reading, Response,
};
pub use requester::{Answer, ClientError, MAX_RESULT_BYTES, Now, Requester};
pub use settings::{ClientAuth, Credential, Credentials, OAuth2, Problem, Provider, Results, Settings, SettingsError};
pub use token::{Token, TokenError, TokenSource};
pub use waiting::{Allowance, WaitPolicy};
