//! One fault at one step: every call of a fake port is numbered, and a chosen one goes wrong.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

use super::lock;
use crate::port::PortError;

/// What goes wrong at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortFault {
    /// The call fails before anything is done.
    Fail,
    /// The call's first entry fails, the others succeed (`Failed[]` of a batch call). A call of one entry fails.
    FailEntry,
    /// It is done, and the caller sees an error.
    LoseReply,
    /// The process stops just before the call.
    StopBefore,
    /// The process stops just after the call was done.
    StopAfter,
}

impl PortFault {
    /// Every fault.
    pub const ALL: [Self; 5] = [
        Self::Fail,
        Self::FailEntry,
        Self::LoseReply,
        Self::StopBefore,
        Self::StopAfter,
    ];
}

/// Numbers the calls of every fake that shares it, from zero, and holds the fault that is to happen. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    plan: Option<(usize, PortFault)>,
    outages: Mutex<BTreeSet<&'static str>>,
    trail: Mutex<Vec<&'static str>>,
    stops: Notify,
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// `fault` happens at the call with the number `step`, and nothing else goes wrong.
    #[must_use]
    pub fn at(step: usize, fault: PortFault) -> Self {
        Self {
            shared: Arc::new(Shared {
                plan: Some((step, fault)),
                ..Shared::default()
            }),
        }
    }

    /// From now on every call whose name begins with `calls` fails: `sqs`, `sqs.send`, `gates`, `ledger.mark`, ...
    pub fn outage(&self, calls: &'static str) {
        lock(&self.shared.outages).insert(calls);
    }

    /// Ends an outage.
    pub fn mend(&self, calls: &'static str) {
        lock(&self.shared.outages).remove(calls);
    }

    /// The names of all calls so far, in their order.
    #[must_use]
    pub fn trail(&self) -> Vec<&'static str> {
        lock(&self.shared.trail).clone()
    }

    /// The name of the call at which the planned fault happened; none as long as the run has not come to it.
    #[must_use]
    pub fn happened_at(&self) -> Option<&'static str> {
        let (step, _) = self.shared.plan?;
        lock(&self.shared.trail).get(step).copied()
    }

    /// A process whose calls are counted here, and that a fault can stop.
    #[must_use]
    pub fn process(&self) -> Process {
        Process {
            faults: self.clone(),
            stopped: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// One process that calls ports. Its clones are the same process.
#[derive(Clone, Debug)]
pub struct Process {
    faults: Faults,
    stopped: Arc<AtomicBool>,
}

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    process: &'a Process,
    name: &'static str,
    fault: Option<PortFault>,
}

impl Process {
    /// Completes when the process has stopped: whoever drives it drops everything that runs in it.
    pub async fn stopped(&self) {
        loop {
            let stops = self.faults.shared.stops.notified();
            tokio::pin!(stops);
            stops.as_mut().enable();
            if self.is_stopped() {
                return;
            }
            stops.await;
        }
    }

    /// Whether it has stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Stops it, as a kill from outside would.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.faults.shared.stops.notify_waiters();
    }

    /// One numbered call: `act` does it, unless the fault comes first. A stopped process never comes back from here.
    ///
    /// # Errors
    /// The planned fault or an outage, as a transient error.
    pub async fn call<T>(&self, name: &'static str, act: impl FnOnce() -> T) -> Result<T, PortError> {
        let call = self.begin(name).await?;
        if call.fails_an_entry() {
            return Err(failed(name));
        }
        let answer = act();
        call.end(answer).await
    }

    pub(crate) async fn begin(&self, name: &'static str) -> Result<Call<'_>, PortError> {
        if self.is_stopped() {
            return pending().await;
        }
        let shared = &self.faults.shared;
        let step = {
            let mut trail = lock(&shared.trail);
            trail.push(name);
            trail.len() - 1
        };
        let fault = shared.plan.filter(|&(at, _)| at == step).map(|(_, fault)| fault);
        match fault {
            Some(PortFault::Fail) => return Err(failed(name)),
            Some(PortFault::StopBefore) => {
                self.stop();
                return pending().await;
            }
            Some(PortFault::FailEntry | PortFault::LoseReply | PortFault::StopAfter) | None => {}
        }
        if lock(&shared.outages).iter().any(|outage| name.starts_with(outage)) {
            return Err(failed(name));
        }
        Ok(Call {
            process: self,
            name,
            fault,
        })
    }
}

impl Call<'_> {
    /// Whether the first entry of this call is to fail.
    pub(crate) fn fails_an_entry(&self) -> bool {
        self.fault == Some(PortFault::FailEntry)
    }

    pub(crate) async fn end<T>(self, answer: T) -> Result<T, PortError> {
        match self.fault {
            Some(PortFault::LoseReply) => Err(PortError::transient(format!("the reply of {} was lost", self.name))),
            Some(PortFault::StopAfter) => {
                self.process.stop();
                pending().await
            }
            Some(PortFault::Fail | PortFault::FailEntry | PortFault::StopBefore) | None => Ok(answer),
        }
    }
}

pub(crate) fn failed(name: &str) -> PortError {
    PortError::transient(format!("{name} failed"))
}
