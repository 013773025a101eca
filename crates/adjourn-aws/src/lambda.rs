//! The entry point of a Lambda function that SQS triggers with partial batch responses.
//!
//! ```no_run
//! use adjourn_aws::{Environment, lambda};
//! use adjourn_worker::{Done, Handler, Interrupt, Job};
//!
//! struct Invoices;
//!
//! impl Handler for Invoices {
//!     async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
//!         let _invoice: serde_json::Value = job.json()?;
//!         Ok(Done::new())
//!     }
//! }
//!
//! # async fn main_of_the_function() -> Result<(), lambda_runtime::Error> {
//! let environment = Environment::of_process();
//! lambda::log::start(&environment);
//! let deployment = lambda::Deployment::read(&environment).await?;
//! let worker = deployment.worker(Invoices, Default::default())?.concurrency(5).build();
//! deployment.serve(worker).await
//! # }
//! ```

mod function;
mod job_span;
pub mod log;
mod record;
mod unsent;

use std::sync::Arc;

use adjourn_core::Policy;
use adjourn_worker::{Clock, Handler, SystemClock, Worker, WorkerBuilder};
use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, service_fn};

pub use function::Function;
pub use job_span::InJobSpan;

use crate::{Clients, Environment, EventBridgeScheduler, Mistakes, Patience, Settings, SqsQueue};

/// A function's settings and the ports that they name.
#[derive(Clone, Debug)]
pub struct Deployment {
    settings: Settings,
    queue: SqsQueue,
    scheduler: Option<EventBridgeScheduler>,
    clock: Arc<dyn Clock>,
}

impl Deployment {
    /// Reads the environment and sets up the clients. Makes no call.
    ///
    /// # Errors
    /// Every wrong or missing item at once.
    pub async fn read(environment: &Environment) -> Result<Self, Mistakes> {
        let settings = Settings::read(environment)?;
        let clients = Clients::connect(environment, &settings.queue, Patience::WORKER).await?;
        Ok(Self::of(settings, &clients, Arc::new(SystemClock)))
    }

    /// A deployment on clients that the caller configured, and by the caller's clock.
    #[must_use]
    pub fn of(settings: Settings, clients: &Clients, clock: Arc<dyn Clock>) -> Self {
        let queue = SqsQueue::new(clients, settings.queue.clone());
        let scheduler = settings
            .schedules
            .clone()
            .map(|schedules| EventBridgeScheduler::new(clients, schedules, &settings.queue, Arc::clone(&clock)));
        Self {
            settings,
            queue,
            scheduler,
            clock,
        }
    }

    /// What the environment said.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A worker on this deployment's ports, for the caller to finish.
    ///
    /// # Errors
    /// When the policy cannot be kept here.
    pub fn worker<H: Handler>(&self, handler: H, mut policy: Policy) -> Result<WorkerBuilder<InJobSpan<H>>, Mistakes> {
        self.settings.check(&policy)?;
        policy.deferral.clock_skew = policy.deferral.clock_skew.max(self.settings.clock_skew);
        let builder = Worker::builder(InJobSpan(handler), Arc::new(self.queue.clone()))
            .policy(policy)
            .clock(Arc::clone(&self.clock));
        Ok(match &self.scheduler {
            Some(scheduler) => builder.scheduler(Arc::new(scheduler.clone())),
            None => builder,
        })
    }

    /// What an invocation calls.
    #[must_use]
    pub fn function<H: Handler>(self, worker: Worker<H>) -> Function<H> {
        Function::new(worker, self.queue, &self.settings, self.clock)
    }

    /// Answers invocations until the process ends.
    ///
    /// # Errors
    /// When the runtime's own interface fails.
    pub async fn serve<H: Handler>(self, worker: Worker<H>) -> Result<(), Error> {
        let function = Arc::new(self.function(worker));
        let answer = move |event: LambdaEvent<SqsEvent>| {
            let function = Arc::clone(&function);
            async move {
                log::invocation(&event.context.request_id);
                Box::pin(function.invoke(event.payload, event.context.deadline)).await
            }
        };
        // Boxed, as what it runs nests deeper than a caller's `main` may.
        Box::pin(lambda_runtime::run(service_fn(answer))).await
    }
}
