//! An SQS queue in memory: the [`Queue`] port with what AWS refuses, and a count of the calls that AWS would bill.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{Envelope, Identity, Mechanism, QueueKind, Reach, Timestamp};
use async_trait::async_trait;
use tokio::sync::{Notify, futures::Notified};

use super::{
    FakeLedger, Outgoing, Stored,
    faults::{Faults, Process, failed},
    lock,
    rules::{MAX_BYTES, MAX_ENTRIES},
    store::{Departed, Store},
};
use crate::{
    Clock, Message,
    port::{Accepted, Copy, DeadLetter, Deletion, Hold, PortError, Queue},
};

/// What kind of queue it is. The defaults are those of the deployed template: 180 s of visibility, 14 days, 5 receives.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Standard or FIFO.
    pub kind: QueueKind,
    /// The queue's visibility timeout.
    pub visibility_timeout: Duration,
    /// The longest visibility that can be asked for, from the receive on.
    pub max_visibility: Duration,
    /// How long a message is kept from its sending on.
    pub retention: Duration,
    /// After how many receives a message moves to the dead-letter queue.
    pub max_receive_count: Option<u32>,
    /// Whether there is a dead-letter queue.
    pub dead_letters: bool,
    /// `MaximumMessageSize`, at most 1,048,576 bytes.
    pub max_message_bytes: usize,
    /// How many messages may be in flight.
    pub in_flight_limit: usize,
    /// Whether a copy takes the original's place in one transaction, as an embedded store can do and SQS cannot.
    pub transactional: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            kind: QueueKind::Standard,
            visibility_timeout: Duration::from_secs(180),
            max_visibility: Duration::from_secs(43_200),
            retention: Duration::from_secs(14 * 86_400),
            max_receive_count: Some(5),
            dead_letters: true,
            max_message_bytes: MAX_BYTES,
            in_flight_limit: 120_000,
            transactional: false,
        }
    }
}

/// How many calls were made of the service: what an account is billed for, and what a quota counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// SendMessageBatch, to the queue and to its dead-letter queue.
    pub send: u64,
    /// DeleteMessageBatch by the worker. What an event source mapping deletes is not counted.
    pub delete: u64,
    /// ChangeMessageVisibilityBatch.
    pub visibility: u64,
}

impl Calls {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.send + self.delete + self.visibility
    }
}

/// A step that the queue, or a scheduler that sends to it, has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it was accepted.
    pub at: Timestamp,
    /// Which step.
    pub identity: Identity,
    /// Not before this moment.
    pub due: Timestamp,
    /// How the wait is held; none for an end.
    pub mechanism: Mechanism,
    /// The word for the end.
    pub end: Option<String>,
}

/// A queue in memory. Its clones are the same queue.
#[derive(Clone, Debug)]
pub struct FakeQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: Process,
    /// The clock of the process that receives: its skew against the queue's is a test's to choose.
    pub(crate) own_clock: Arc<dyn Clock>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) settings: QueueSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Mutex<Store>,
    pub(crate) dead_letters: Mutex<Store>,
    pub(crate) expired: Mutex<Vec<Message>>,
    pub(crate) calls: Mutex<Calls>,
    pub(crate) steps: Mutex<Vec<Step>>,
    pub(crate) refused: Mutex<Vec<String>>,
    pub(crate) ledger: Option<FakeLedger>,
    changed: Notify,
}

impl FakeQueue {
    /// A standard queue with the default settings.
    #[must_use]
    pub fn standard(name: &str, clock: Arc<dyn Clock>) -> Self {
        Self::new(name, clock, QueueSettings::default())
    }

    /// A FIFO queue with the default settings.
    #[must_use]
    pub fn fifo(name: &str, clock: Arc<dyn Clock>) -> Self {
        let settings = QueueSettings {
            kind: QueueKind::Fifo,
            ..QueueSettings::default()
        };
        Self::new(name, clock, settings)
    }

    /// A queue with these settings.
    #[must_use]
    pub fn new(name: &str, clock: Arc<dyn Clock>, settings: QueueSettings) -> Self {
        Self::build(name, clock, settings, None)
    }

    /// A queue that tells `ledger` of every step that it accepts, as part of accepting it.
    #[must_use]
    pub fn with_ledger(name: &str, clock: Arc<dyn Clock>, settings: QueueSettings, ledger: FakeLedger) -> Self {
        Self::build(name, clock, settings, Some(ledger))
    }

    fn build(name: &str, clock: Arc<dyn Clock>, settings: QueueSettings, ledger: Option<FakeLedger>) -> Self {
        let store = Store::new(settings.kind, name);
        let dead_letters = Store::new(settings.kind, &format!("{name}-dlq"));
        let own_clock = Arc::clone(&clock);
        let shared = Shared {
            name: name.to_string(),
            settings,
            clock,
            store: Mutex::new(store),
            dead_letters: Mutex::new(dead_letters),
            expired: Mutex::default(),
            calls: Mutex::default(),
            steps: Mutex::default(),
            refused: Mutex::default(),
            ledger,
            changed: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            process: Faults::none().process(),
            own_clock,
        }
    }

    /// The same queue as this process uses it.
    #[must_use]
    pub fn used_by(&self, process: &Process) -> Self {
        Self {
            process: process.clone(),
            ..self.clone()
        }
    }

    /// The same queue as a process with this clock uses it.
    #[must_use]
    pub fn read_by(&self, clock: Arc<dyn Clock>) -> Self {
        Self {
            own_clock: clock,
            ..self.clone()
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &QueueSettings {
        &self.shared.settings
    }

    /// Sends a message that is nothing but its body, and answers its id. On a FIFO queue: group `g`, deduplicated by body.
    ///
    /// # Errors
    /// What SQS refuses.
    pub fn send_body(&self, body: &str) -> Result<String, PortError> {
        let mut outgoing = Outgoing::body(body);
        if self.shared.settings.kind == QueueKind::Fifo {
            outgoing.group = Some("g".to_string());
            outgoing.deduplication_id = Some(format!("{:016x}", xxhash(body)));
        }
        self.send(outgoing)
    }

    /// Sends a message as a customer would, and answers its id.
    ///
    /// # Errors
    /// What SQS refuses.
    pub fn send(&self, outgoing: Outgoing) -> Result<String, PortError> {
        let settings = &self.shared.settings;
        outgoing.check(settings.kind, settings.max_message_bytes)?;
        let id = lock(&self.shared.store).accept(outgoing, self.now());
        self.shared.changed.notify_waiters();
        Ok(id)
    }

    /// Makes the queue deliver a message twice, as a standard queue may. Whether it was there.
    pub fn repeat(&self, id: &str) -> bool {
        let found = lock(&self.shared.store).repeat(id);
        self.shared.changed.notify_waiters();
        found
    }

    /// Every message in it, whether visible or not, oldest first.
    #[must_use]
    pub fn stored(&self) -> Vec<Stored> {
        lock(&self.shared.store).stored()
    }

    /// Every message in it, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.stored().into_iter().map(|stored| stored.message).collect()
    }

    /// Every message in its dead-letter queue, oldest first.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<Message> {
        lock(&self.shared.dead_letters)
            .stored()
            .into_iter()
            .map(|stored| stored.message)
            .collect()
    }

    /// What was lost at the end of the retention.
    #[must_use]
    pub fn expired(&self) -> Vec<Message> {
        lock(&self.shared.expired).clone()
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        *lock(&self.shared.calls)
    }

    /// Every step that was accepted, in its order: what a test may rely on as recorded.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        lock(&self.shared.steps).clone()
    }

    /// What it refused for good, in words, oldest first.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        lock(&self.shared.refused).clone()
    }

    /// The next moment at which something can be received; none in an empty queue.
    #[must_use]
    pub fn next_receivable_at(&self) -> Option<Timestamp> {
        lock(&self.shared.store).next_receivable_at(self.now())
    }

    /// Completes when something was sent, hidden or deleted after this was made.
    pub fn changed(&self) -> Notified<'_> {
        self.shared.changed.notified()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn note_step(&self, envelope: &Envelope, mechanism: Mechanism) {
        lock(&self.shared.steps).push(Step {
            at: self.now(),
            identity: envelope.identity.clone(),
            due: envelope.due,
            mechanism,
            end: envelope.end.clone(),
        });
    }

    pub(crate) fn note_change(&self) {
        self.shared.changed.notify_waiters();
    }

    /// Moves what the queue gave up to where it goes.
    pub(crate) fn depart(&self, departed: Departed) {
        let now = self.now();
        lock(&self.shared.expired).extend(departed.expired);
        for message in departed.redriven {
            lock(&self.shared.dead_letters).take_over(message, now);
        }
    }

    /// One call of the service for these entries, each done by `act`.
    async fn call<R, T>(
        &self,
        name: &'static str,
        entries: &[R],
        mut act: impl FnMut(&R) -> Result<T, PortError>,
    ) -> Vec<Result<T, PortError>> {
        let call = match self.process.begin(name).await {
            Ok(call) => call,
            Err(_) => return entries.iter().map(|_| Err(failed(name))).collect(),
        };
        let one_fails = call.fails_an_entry();
        let answers: Vec<_> = entries
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                if one_fails && index == 0 {
                    Err(failed(name))
                } else {
                    act(entry)
                }
            })
            .collect();
        lock(&self.shared.refused).extend(
            answers
                .iter()
                .filter_map(|answer| answer.as_ref().err())
                .filter(|error| !error.is_transient())
                .map(|error| format!("{name}: {error}")),
        );
        self.note_change();
        match call.end(answers).await {
            Ok(answers) => answers,
            Err(lost) => {
                let words = lost.to_string();
                entries
                    .iter()
                    .map(|_| Err(PortError::transient(words.clone())))
                    .collect()
            }
        }
    }

    fn accept_copy(&self, copy: &Copy, now: Timestamp) -> Result<Accepted, PortError> {
        let settings = &self.shared.settings;
        let mut outgoing = Outgoing::copy_of(&copy.original, &copy.envelope.write());
        outgoing.delay = copy.delay;
        if settings.kind == QueueKind::Fifo {
            outgoing.deduplication_id = Some(copy.envelope.identity.name());
        }
        outgoing.check(settings.kind, settings.max_message_bytes)?;
        self.replace(&copy.original, now)?;
        let name = lock(&self.shared.store).accept(outgoing, now);
        if let Some(ledger) = &self.shared.ledger {
            ledger.accepted(&copy.envelope.identity, Some(&name), &copy.receipt);
        }
        self.note_step(&copy.envelope, Mechanism::Delay);
        Ok(accepted(&copy.envelope.identity, name))
    }

    fn accept_letter(&self, letter: &DeadLetter, now: Timestamp) -> Result<Accepted, PortError> {
        let settings = &self.shared.settings;
        if !settings.dead_letters {
            return Err(PortError::refused(format!(
                "the queue {} has no dead-letter queue",
                self.name()
            )));
        }
        let mut outgoing = Outgoing::copy_of(&letter.original, &letter.envelope.write());
        if outgoing.attributes.len() > 10 || outgoing.bytes() > settings.max_message_bytes {
            // No room for our attribute: the customer's message goes as it is.
            outgoing.attributes.remove(crate::ENVELOPE_ATTRIBUTE);
        }
        if settings.kind == QueueKind::Fifo {
            outgoing.deduplication_id = Some(letter.envelope.identity.name());
        }
        outgoing.check(settings.kind, settings.max_message_bytes)?;
        self.replace(&letter.original, now)?;
        let name = lock(&self.shared.dead_letters).accept(outgoing, now);
        if let Some(ledger) = &self.shared.ledger {
            ledger.ended(&letter.envelope.identity, &letter.receipt);
        }
        self.note_step(&letter.envelope, Mechanism::None);
        Ok(accepted(&letter.envelope.identity, name))
    }

    /// In a queue with transactions the original goes in the same one, and only its lease's owner may do that.
    fn replace(&self, original: &Message, now: Timestamp) -> Result<(), PortError> {
        if !self.shared.settings.transactional {
            return Ok(());
        }
        let mut store = lock(&self.shared.store);
        if !store.is_leased(&original.receipt, now) {
            return Err(PortError::refused("the lease of the original is another's by now"));
        }
        store.delete(&original.receipt, now)
    }

    fn hide(&self, hold: &Hold, now: Timestamp) -> Result<Accepted, PortError> {
        let longest = self.shared.settings.max_visibility;
        let name = lock(&self.shared.store).change_visibility(&hold.original.receipt, hold.visibility, now, longest)?;
        if let Some(ledger) = &self.shared.ledger {
            ledger.accepted(&hold.envelope.identity, Some(&hold.original.id), &hold.receipt);
        }
        self.note_step(&hold.envelope, Mechanism::Visibility);
        Ok(accepted(&hold.envelope.identity, name))
    }
}

fn accepted(identity: &Identity, name: String) -> Accepted {
    Accepted {
        identity: identity.clone(),
        name,
    }
}

fn xxhash(text: &str) -> u64 {
    Identity::first(adjourn_core::DeferralId::new(text)).entropy()
}

/// Splits entries into batch calls: ten at most, and no more bytes than one message may have.
fn batches<R>(entries: &[R], bytes: impl Fn(&R) -> usize) -> Vec<&[R]> {
    let mut batches = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut sum = 0;
        let fitting = rest
            .iter()
            .take(MAX_ENTRIES)
            .take_while(|entry| {
                sum += bytes(entry);
                sum <= MAX_BYTES
            })
            .count();
        let (batch, after) = rest.split_at(fitting.max(1));
        batches.push(batch);
        rest = after;
    }
    batches
}

fn copied_bytes(original: &Message) -> usize {
    original.customer_bytes() + crate::ENVELOPE_ATTRIBUTE.len() + "String".len() + adjourn_core::MAX_ENVELOPE_BYTES
}

#[async_trait]
impl Queue for FakeQueue {
    fn reach(&self) -> Reach {
        let settings = &self.shared.settings;
        Reach {
            kind: settings.kind,
            max_delay: match settings.kind {
                QueueKind::Standard => Duration::from_secs(900),
                QueueKind::Fifo => Duration::ZERO,
            },
            delay_step: Duration::from_secs(1),
            schedule: None,
            max_visibility: settings.max_visibility,
            visibility_timeout: settings.visibility_timeout,
            retention: settings.retention,
            max_receive_count: settings.max_receive_count,
        }
    }

    fn max_message_bytes(&self) -> usize {
        self.shared.settings.max_message_bytes
    }

    async fn resend(&self, copies: &[Copy]) -> Vec<Result<Accepted, PortError>> {
        let mut answers = Vec::new();
        for batch in batches(copies, |copy| copied_bytes(&copy.original)) {
            lock(&self.shared.calls).send += 1;
            let now = self.now();
            answers.extend(self.call("sqs.send", batch, |copy| self.accept_copy(copy, now)).await);
        }
        answers
    }

    async fn hold(&self, holds: &[Hold]) -> Vec<Result<Accepted, PortError>> {
        let mut answers = Vec::new();
        for batch in batches(holds, |_| 0) {
            lock(&self.shared.calls).visibility += 1;
            let now = self.now();
            answers.extend(self.call("sqs.visibility", batch, |hold| self.hide(hold, now)).await);
        }
        answers
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<Accepted, PortError>> {
        let mut answers = Vec::new();
        for batch in batches(letters, |letter| copied_bytes(&letter.original)) {
            lock(&self.shared.calls).send += 1;
            let now = self.now();
            answers.extend(
                self.call("sqs.dead-letter", batch, |letter| self.accept_letter(letter, now))
                    .await,
            );
        }
        answers
    }

    async fn delete(&self, deletions: &[Deletion]) -> Vec<Result<(), PortError>> {
        let mut answers = Vec::new();
        for batch in batches(deletions, |_| 0) {
            lock(&self.shared.calls).delete += 1;
            let now = self.now();
            answers.extend(
                self.call("sqs.delete", batch, |deletion| {
                    lock(&self.shared.store).delete(&deletion.original.receipt, now)?;
                    if let Some(ledger) = &self.shared.ledger {
                        ledger.deleted(deletion);
                    }
                    Ok(())
                })
                .await,
            );
        }
        answers
    }
}
