//! The worker's handler for HTTP jobs.

use std::sync::Arc;

use adjourn_core::Outcome;
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Message, Terms, Undecodable};

use crate::{ClientError, Credentials, HttpJob, PlainReader, ReadResponse, Requester, Settings};

/// Performs the HTTP jobs of a queue under the settings.
#[derive(Clone, Debug)]
pub struct HttpHandler {
    requester: Requester,
}

impl HttpHandler {
    /// A handler for the providers of `settings`, read by the generic reader.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn new(settings: Settings, credentials: Credentials, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        Self::with_reader(settings, credentials, clock, Arc::new(PlainReader))
    }

    /// A handler whose responses `reader` reads.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn with_reader(
        settings: Settings,
        credentials: Credentials,
        clock: Arc<dyn Clock>,
        reader: Arc<dyn ReadResponse>,
    ) -> Result<Self, ClientError> {
        let requester = Requester::new(settings, credentials, reader, Arc::new(move || clock.now()))?;
        Ok(Self { requester })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.requester.settings()
    }
}

/// A queue has its own limit for messages: one that was delivered is not refused for its size.
fn parse(body: &str) -> Result<HttpJob, String> {
    HttpJob::parse_within(body, usize::MAX).map_err(|error| format!("it is no HTTP job: {error}"))
}

impl Handler for HttpHandler {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        let job = parse(&message.body).map_err(|words| Undecodable::new(&words))?;
        let provider = job
            .check(self.settings())
            .map_err(|error| Undecodable::new(&format!("it is no job under these settings: {error}")))?;
        let scope = job.scope_key();
        let repeatable = provider.repeats(&job.method);
        let job_id = job.id.unwrap_or_else(|| message.id.clone());
        Ok(Terms {
            provider: job.provider,
            scope,
            tenant: job.tenant.or_else(|| message.group.clone()),
            run: Some(job.run.unwrap_or_else(|| job_id.clone())),
            job_id,
            not_before: job.not_before,
            deadline: job.deadline,
            repeatable,
            timeout: provider.timeout(),
            pace: provider.pace(),
            max_in_flight: provider.max_in_flight(),
            retry: provider.retry().cloned(),
        })
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let http_job = parse(job.body()).map_err(|words| Interrupt::rejected(adjourn_core::Fault::new(&words)))?;
        let answer = self
            .requester
            .perform(&http_job, job.identity().id.as_str(), job.must_end_by())
            .await;
        match answer.outcome {
            Outcome::Done => {
                let done = answer.status.into_iter().fold(Done::new(), Done::status);
                Ok(answer.result.into_iter().fold(done, Done::result))
            }
            Outcome::Throttled(signal) => Err(Interrupt::throttled(signal)),
            Outcome::Failed(fault) => Err(Interrupt::failed(fault)),
            Outcome::Unknown(fault) => Err(Interrupt::unknown(fault)),
            Outcome::Rejected(fault) => Err(Interrupt::rejected(fault)),
        }
    }
}
