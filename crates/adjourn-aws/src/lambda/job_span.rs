//! Puts the job's id on every line that its handler logs.

use std::{future::Future, sync::Arc};

use adjourn_worker::{Done, Handler, Interrupt, Job, Message, Terms, Undecodable, port::FindPace};
use tracing::Instrument as _;

/// A handler whose jobs run in a span that names them.
#[derive(Clone, Debug)]
pub struct InJobSpan<H>(pub H);

impl<H: Handler> Handler for InJobSpan<H> {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        self.0.terms(message)
    }

    fn find_pace(&self) -> Option<Arc<dyn FindPace>> {
        self.0.find_pace()
    }

    fn handle(&self, job: Job) -> impl Future<Output = Result<Done, Interrupt>> + Send {
        let span = tracing::info_span!("job", job_id = %job.terms().job_id);
        self.0.handle(job).instrument(span)
    }
}
