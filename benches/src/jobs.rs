//! The jobs that are measured with: one small POST each, under a provider that knows idempotency keys or one that does not.

use adjourn_http::{Credentials, HttpHandler, Settings};
use adjourn_local::NewJob;
use adjourn_worker::SystemClock;
use std::sync::Arc;

use crate::Failure;

/// How many calls are under way at a time: what `adjourn run` and the function do by default.
pub(crate) const CONCURRENCY: usize = 10;

/// What each call sends.
pub(crate) const BODY: &str = r#"{"sku":"A-1044","count":2,"note":"leave at the door"}"#;

/// The path of a job's call.
pub(crate) const PATH: &str = "/orders";

/// The name of a job.
pub(crate) fn id(number: u32) -> String {
    format!("order-{number}")
}

/// The job of this number as a line of a file or the body of a message.
pub(crate) fn line(number: u32) -> String {
    let id = id(number);
    format!(r#"{{"provider":"loopback","method":"POST","path":"{PATH}","id":"{id}","body":{BODY}}}"#)
}

/// These jobs as the store takes them.
pub(crate) fn new_jobs(numbers: std::ops::Range<u32>) -> Vec<NewJob> {
    numbers
        .map(|number| NewJob::new(&id(number), "loopback", &line(number)))
        .collect()
}

/// The settings file. Without an idempotency header a POST cannot be repeated, so each start is written down first.
pub(crate) fn settings(url: &str, repeatable: bool) -> String {
    let header = if repeatable {
        "idempotency_header = \"Idempotency-Key\"\n"
    } else {
        ""
    };
    format!("[providers.loopback]\nbase_url = \"{url}\"\n{header}")
}

/// The handler that `adjourn run` has.
pub(crate) fn handler(url: &str, repeatable: bool) -> Result<HttpHandler, Failure> {
    let settings = Settings::parse(&settings(url, repeatable))?;
    Ok(HttpHandler::new(
        settings,
        Credentials::default(),
        Arc::new(SystemClock),
    )?)
}
