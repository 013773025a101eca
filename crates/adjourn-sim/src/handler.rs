//! The handler of simulated jobs: it calls the provider that the job names.

use std::{collections::BTreeMap, future::pending, sync::Arc};

use adjourn_core::Fault;
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Message, Terms, Undecodable, fake::Process};

use crate::{Act, Provider, SimJob, provider::Answer};

#[derive(Debug)]
pub(crate) struct SimHandler {
    pub(crate) providers: BTreeMap<String, Provider>,
    pub(crate) process: Process,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Handler for SimHandler {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(SimJob::read(message)?.terms(message))
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let Ok(sim) = SimJob::read(job.message()) else {
            return Err(Interrupt::rejected(Fault::new("no simulated job")));
        };
        match sim.act {
            Act::Call => self.call(&job, &sim).await,
            Act::Hang => pending().await,
            Act::Kill => {
                self.process.stop();
                pending().await
            }
            Act::Panic => {
                #[expect(clippy::panic, reason = "a handler that panics is what this act simulates")]
                std::panic::panic_any("simulated panic");
            }
        }
    }
}

impl SimHandler {
    /// The call is a numbered step like those of the ports: it may not arrive, or arrive and lose its answer.
    async fn call(&self, job: &Job, sim: &SimJob) -> Result<Done, Interrupt> {
        let Some(provider) = self.providers.get(&sim.provider) else {
            return Err(Interrupt::rejected(Fault::new("there is no such provider")));
        };
        let key = job.id();
        let (message, sequence) = (&job.message().id, job.identity().sequence);
        let arrived = self
            .process
            .call("provider.call", || {
                provider.arrive(key, message, sequence, self.clock.now())
            })
            .await;
        let (answer, in_flight) = match arrived {
            Ok(arrived) => arrived,
            Err(error) if sim.repeatable => return Err(Interrupt::failed(Fault::new(&error.to_string()))),
            Err(error) => return Err(Interrupt::unknown(Fault::new(&error.to_string()))),
        };
        self.clock.sleep(provider.latency_of_a_call()).await;
        drop(in_flight);
        match answer {
            Answer::Done => Ok(Done::new().status(200)),
            Answer::Limited(signal) => {
                provider.read(key, signal.earliest_retry_at());
                Err(Interrupt::throttled(*signal))
            }
            Answer::Unavailable(at) => {
                provider.read(key, at);
                let fault = Fault::new("the provider is unavailable").status(503);
                Err(Interrupt::failed(match at {
                    Some(at) => fault.retry_at(at),
                    None => fault,
                }))
            }
        }
    }
}
