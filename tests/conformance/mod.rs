//! One suite for each port, run on every implementation: in memory, on SQLite, and on an emulator's SQS and Scheduler.
//!
//! What an emulator wrongly accepts is asked of the fakes and of the ports' own checks, which come before any call.

/// One test for each case of a suite, on a site of its own, with these attributes of its runtime.
macro_rules! suite {
    ($module:ident, [$($runtime:tt)*], $site:path, $suite:path, [$($case:ident),* $(,)?]) => {
        mod $module {
            use $suite as suite;
            suite!(@cases [$($runtime)*], $site, [$($case),*]);
        }
    };
    (@cases $runtime:tt, $site:path, [$($case:ident),*]) => {
        $(suite!(@case $runtime, $site, $case);)*
    };
    (@case [$($runtime:tt)*], $site:path, $case:ident) => {
        #[tokio::test($($runtime)*)]
        async fn $case() {
            let site = $site(stringify!($case)).await;
            suite::$case(&site).await;
        }
    };
}

mod emulator;
mod fakes;
mod queue;
mod scheduler;
mod sqlite;

use std::{sync::Arc, time::Duration};

use adjourn_core::{DeferralId, Ending, EndingKind, Envelope, Mechanism, Reading, Timestamp};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, Message, POLICY_VERSION, Receipt, Transition, Worker,
    fake::Outgoing,
    port::{Copy, DeadLetter, Hold, PortError, Queue, ScheduledCopy, Scheduler},
};
use async_trait::async_trait;

/// A place where a queue can be tried: the port, and the side that sends and receives.
#[async_trait]
pub(crate) trait Site: Send + Sync {
    /// The port.
    fn queue(&self) -> Arc<dyn Queue>;
    /// The clock by which its messages become due.
    fn clock(&self) -> Arc<dyn Clock>;
    /// Sends a customer's message.
    async fn send(&self, outgoing: Outgoing);
    /// What can be received at this moment, at most ten.
    async fn receive(&self) -> Vec<Message>;
    /// What can be received once something can, within this span.
    async fn next(&self, within: Duration) -> Vec<Message>;
    /// Why each dead letter ended.
    async fn dead_letters(&self) -> Vec<String>;
    /// Whether a copy takes the original's place in one transaction.
    fn is_transactional(&self) -> bool {
        false
    }
    /// Whether system attributes of a batch call arrive; an emulator may drop them.
    fn keeps_trace_headers(&self) -> bool {
        true
    }
    /// Whether the queue counts in SQS's units and has its limits.
    fn has_the_limits_of_sqs(&self) -> bool {
        true
    }
}

/// A place where a scheduler can be tried.
#[async_trait]
pub(crate) trait ScheduleSite: Site {
    /// The port.
    fn scheduler(&self) -> Arc<dyn Scheduler>;
    /// The schedules that wait: name and moment.
    async fn schedules(&self) -> Vec<(String, Timestamp)>;
    /// Puts somebody else's schedule under a name; false where nobody else can make any.
    async fn occupy(&self, name: &str, at: Timestamp) -> bool;
    /// Whether its schedules fire. An emulator may store them and never fire.
    fn fires(&self) -> bool {
        true
    }
}

/// Sends one message of this body and receives it.
pub(crate) async fn received(site: &dyn Site, body: &str) -> Arc<Message> {
    site.send(Outgoing::body(body)).await;
    let mut messages = site.next(Duration::from_secs(5)).await;
    assert_eq!(messages.len(), 1, "what was sent is received");
    Arc::new(messages.remove(0))
}

/// The envelope of a message's next step, due at `due`.
pub(crate) fn step(message: &Message, due: Timestamp) -> Envelope {
    let mut envelope = envelope_of(message)
        .unwrap_or_else(|| Envelope::first(DeferralId::new(&message.id), message.sent_at, message.content()));
    envelope.identity = envelope.identity.next();
    envelope.due = due;
    envelope.rest = Some(Duration::ZERO);
    envelope.counters.deferrals += 1;
    envelope.reason = "burst".to_string();
    envelope
}

/// The envelope that a received message carries.
pub(crate) fn envelope_of(message: &Message) -> Option<Envelope> {
    match Envelope::read(message.envelope_text(), message.content(), Timestamp::MAX) {
        Reading::Read { envelope, .. } => Some(envelope),
        Reading::Absent => None,
        Reading::Rejected(problem) => panic!("an envelope that is none: {problem}"),
    }
}

fn receipt(envelope: &Envelope, mechanism: Mechanism) -> Receipt {
    Receipt {
        at: envelope.due,
        transition: Transition::Deferred,
        cause: envelope.reason.clone(),
        until: Some(envelope.due),
        mechanism,
        sequence: envelope.identity.sequence,
        gate: None,
        policy_version: POLICY_VERSION,
        jitter_ms: 0,
        observation: None,
    }
}

/// A copy of a message, delayed by so much.
pub(crate) fn copy(site: &dyn Site, message: &Arc<Message>, delay: Duration) -> Copy {
    let envelope = step(message, site.clock().now() + delay);
    Copy {
        original: Arc::clone(message),
        delay,
        receipt: receipt(&envelope, Mechanism::Delay),
        envelope,
    }
}

/// A message hidden for so long.
pub(crate) fn hold(site: &dyn Site, message: &Arc<Message>, visibility: Duration) -> Hold {
    let until = site.clock().now() + visibility;
    let envelope = step(message, until);
    Hold {
        original: Arc::clone(message),
        visibility,
        until,
        receipt: receipt(&envelope, Mechanism::Visibility),
        envelope,
    }
}

/// A message's dead letter.
pub(crate) fn letter(site: &dyn Site, message: &Arc<Message>, why: &str) -> DeadLetter {
    let mut envelope = step(message, site.clock().now());
    let ending = Ending::new(EndingKind::Rejected, why);
    envelope.end = Some(ending.word().to_string());
    envelope.reason = why.to_string();
    DeadLetter {
        original: Arc::clone(message),
        receipt: Receipt {
            transition: Transition::Ended,
            until: None,
            ..receipt(&envelope, Mechanism::None)
        },
        envelope,
        ending,
    }
}

/// A copy of a message, to be sent by a schedule at this moment.
pub(crate) fn scheduled(message: &Arc<Message>, at: Timestamp) -> ScheduledCopy {
    let envelope = step(message, at);
    ScheduledCopy {
        original: Arc::clone(message),
        at,
        receipt: receipt(&envelope, Mechanism::Schedule),
        envelope,
    }
}

/// Everything that is asked is done well.
struct Doing;

impl Handler for Doing {
    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        Ok(Done::new().status(200))
    }
}

/// Has a worker do these jobs, deletes what it proves to be done, and answers what the queue said.
pub(crate) async fn do_and_delete(site: &dyn Site, messages: Vec<Message>) -> Vec<Result<(), PortError>> {
    let queue = site.queue();
    let worker = Worker::builder(Doing, Arc::clone(&queue)).clock(site.clock()).build();
    let settled = worker.run_batch(messages, None).await;
    let deletions: Vec<_> = settled.into_iter().filter_map(|one| one.deletion).collect();
    queue.delete(&deletions).await
}
