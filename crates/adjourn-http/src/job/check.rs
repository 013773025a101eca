//! What the settings have to say about a job: whether its provider is known, and which headers are not the job's to set.

use super::{HttpJob, JobError, problem::Problems};
use crate::{
    nearest,
    settings::{Provider, Settings},
};

impl HttpJob {
    /// The provider that this job calls.
    ///
    /// # Errors
    /// When the settings do not name it, or when the job sets a header that belongs to the provider's settings.
    pub fn check<'a>(&self, settings: &'a Settings) -> Result<&'a Provider, JobError> {
        let Some(provider) = settings.provider(&self.provider) else {
            let known: Vec<&str> = settings.providers().map(Provider::name).collect();
            return Err(JobError::of(
                "provider",
                format!("{:?} {}", self.provider, nearest::unknown(&known, &self.provider)),
            ));
        };
        let mut problems = Problems::default();
        for (name, _) in &self.headers {
            if provider
                .credential()
                .is_some_and(|credential| credential.header() == name)
            {
                problems.add(
                    format!("headers.{name}"),
                    "is the credential's header; adjourn sets it from the settings",
                );
            }
            if provider.idempotency_header() == Some(name) {
                problems.add(
                    format!("headers.{name}"),
                    "is the idempotency header; use the field idempotencyKey",
                );
            }
        }
        problems.into_result().map(|()| provider)
    }
}
