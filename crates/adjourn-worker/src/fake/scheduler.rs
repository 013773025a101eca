//! EventBridge Scheduler in memory, with the universal target that sends a message to a queue.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::{Envelope, Mechanism, Reading, ScheduleReach, Timestamp};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, futures::Notified};

use super::{
    FakeQueue, Outgoing,
    faults::{Faults, Process, failed},
    lock,
};
use crate::{
    Attribute, AttributeValue, Clock, ENVELOPE_ATTRIBUTE, Message,
    port::{Accepted, PortError, ScheduledCopy, Scheduler},
};

const MINUTE: Duration = Duration::from_secs(60);
/// The longest name of a schedule (Scheduler API, CreateSchedule).
const MAX_NAME: usize = 64;
/// How many names a step may use up before its schedule is given up.
const MAX_REVISIONS: u32 = 8;

/// How the scheduler behaves.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleSettings {
    /// Chooses how far within its minute each schedule fires.
    pub seed: u64,
    /// The most bytes of an Input. AWS documents none.
    pub max_input_bytes: usize,
    /// How many schedules may wait at a time.
    pub quota: usize,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            max_input_bytes: 1_048_576,
            quota: 10_000_000,
        }
    }
}

/// A scheduler whose schedules send to one queue. Its clones are the same scheduler.
#[derive(Clone, Debug)]
pub struct FakeScheduler {
    shared: Arc<Shared>,
    process: Process,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    settings: ScheduleSettings,
    target: FakeQueue,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    schedules: BTreeMap<String, Schedule>,
    fired: u64,
    fires_twice: bool,
    target_refuses: bool,
    dead_letters: Vec<String>,
}

#[derive(Clone, Debug)]
struct Schedule {
    at: Timestamp,
    fires_at: Timestamp,
    input: String,
}

/// What SQS's SendMessage takes, in the names of its API.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Input {
    queue_url: String,
    message_body: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<String, InputAttribute>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    message_system_attributes: BTreeMap<String, InputAttribute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_group_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_deduplication_id: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct InputAttribute {
    data_type: String,
    string_value: String,
}

enum Created {
    Made,
    Conflict(Timestamp, String),
}

impl FakeScheduler {
    /// A scheduler whose schedules send to `target`.
    #[must_use]
    pub fn new(target: &FakeQueue, settings: ScheduleSettings) -> Self {
        let process = Faults::none().process();
        let shared = Shared {
            clock: Arc::clone(&target.shared.clock),
            settings,
            target: target.used_by(&process),
            state: Mutex::default(),
            changed: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            process,
        }
    }

    /// The same scheduler as this process uses it.
    #[must_use]
    pub fn used_by(&self, process: &Process) -> Self {
        Self {
            process: process.clone(),
            ..self.clone()
        }
    }

    /// From now on every schedule fires twice, or no longer: the service promises at least once.
    pub fn fire_twice(&self, yes: bool) {
        lock(&self.shared.state).fires_twice = yes;
    }

    /// From now on the target refuses every message, or no longer: what it is sent ends in the schedules' dead letters.
    pub fn refuse_at_target(&self, yes: bool) {
        lock(&self.shared.state).target_refuses = yes;
    }

    /// Puts a schedule of somebody else's under `name`.
    pub fn occupy(&self, name: &str, at: Timestamp) {
        let input = r#"{"QueueUrl":"elsewhere","MessageBody":"not ours"}"#.to_string();
        let fires_at = Timestamp::MAX;
        lock(&self.shared.state)
            .schedules
            .insert(name.to_string(), Schedule { at, fires_at, input });
    }

    /// The schedules that wait: name and moment.
    #[must_use]
    pub fn waiting(&self) -> Vec<(String, Timestamp)> {
        lock(&self.shared.state)
            .schedules
            .iter()
            .map(|(name, schedule)| (name.clone(), schedule.at))
            .collect()
    }

    /// How many messages were sent by schedules.
    #[must_use]
    pub fn fired(&self) -> u64 {
        lock(&self.shared.state).fired
    }

    /// The Inputs that the target refused.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<String> {
        lock(&self.shared.state).dead_letters.clone()
    }

    /// The messages that the target refused.
    #[must_use]
    pub fn undelivered(&self) -> Vec<Outgoing> {
        let inputs = self.dead_letters();
        inputs.iter().filter_map(|input| read_input(input).ok()).collect()
    }

    /// The messages that waiting schedules will send.
    #[must_use]
    pub fn scheduled(&self) -> Vec<Outgoing> {
        lock(&self.shared.state)
            .schedules
            .values()
            .filter_map(|schedule| read_input(&schedule.input).ok())
            .collect()
    }

    /// The next moment at which a schedule fires.
    #[must_use]
    pub fn next_firing_at(&self) -> Option<Timestamp> {
        lock(&self.shared.state)
            .schedules
            .values()
            .map(|schedule| schedule.fires_at)
            .filter(|&at| at < Timestamp::MAX)
            .min()
    }

    /// Completes when a schedule was made or deleted after this was made.
    pub fn changed(&self) -> Notified<'_> {
        self.shared.changed.notified()
    }

    /// Fires every schedule whose moment has come, and deletes it.
    pub fn fire_due(&self) {
        let now = self.shared.clock.now();
        let mut state = lock(&self.shared.state);
        let due: Vec<String> = state
            .schedules
            .iter()
            .filter(|(_, schedule)| schedule.fires_at <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let Some(schedule) = state.schedules.remove(&name) else {
                continue;
            };
            let times = if state.fires_twice { 2 } else { 1 };
            for attempt in 1..=times {
                let input = substitute(&schedule.input, &name, schedule.at, attempt);
                let sent = read_input(&input)
                    .ok()
                    .filter(|_| !state.target_refuses)
                    .and_then(|outgoing| self.shared.target.send(outgoing).ok());
                match sent {
                    Some(_) => state.fired += 1,
                    None => state.dead_letters.push(input),
                }
            }
        }
    }

    /// Fires schedules as their moments come, for ever.
    pub async fn run(&self) {
        loop {
            let changed = self.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            self.fire_due();
            match self.next_firing_at() {
                Some(at) => {
                    let wait = at.since(self.shared.clock.now());
                    tokio::select! {
                        () = self.shared.clock.sleep(wait) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    fn input(&self, copy: &ScheduledCopy) -> Result<String, PortError> {
        let outgoing = Outgoing::copy_of(&copy.original, &copy.envelope.write());
        let mut message_attributes = BTreeMap::new();
        for (name, attribute) in outgoing.attributes {
            let AttributeValue::Text(string_value) = attribute.value else {
                return Err(PortError::refused(format!(
                    "MessageAttributes: {name:?} is binary, and an Input is text"
                )));
            };
            let attribute = InputAttribute {
                data_type: attribute.data_type,
                string_value,
            };
            message_attributes.insert(name, attribute);
        }
        let trace = outgoing.trace_header.map(|string_value| {
            let data_type = "String".to_string();
            let header = InputAttribute {
                data_type,
                string_value,
            };
            ("AWSTraceHeader".to_string(), header)
        });
        let is_fifo = self.shared.target.shared.settings.kind == adjourn_core::QueueKind::Fifo;
        let input = Input {
            queue_url: self.shared.target.name().to_string(),
            message_body: outgoing.body,
            message_attributes,
            message_system_attributes: trace.into_iter().collect(),
            message_group_id: outgoing.group,
            message_deduplication_id: is_fifo.then(|| copy.envelope.identity.name()),
        };
        serde_json::to_string(&input).map_err(PortError::refused)
    }

    /// CreateSchedule.
    async fn create(&self, name: &str, at: Timestamp, input: &str) -> Result<Created, PortError> {
        let call = self.process.begin("scheduler.create").await?;
        if call.fails_an_entry() {
            return Err(failed("scheduler.create"));
        }
        let answer = self.accept(name, at, input);
        self.shared.changed.notify_waiters();
        call.end(answer).await?
    }

    fn accept(&self, name: &str, at: Timestamp, input: &str) -> Result<Created, PortError> {
        let now = self.shared.clock.now();
        let settings = &self.shared.settings;
        let spelled = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if name.is_empty() || name.len() > MAX_NAME || !spelled {
            return Err(PortError::refused(format!(
                "Name: {name:?} is not 1 to {MAX_NAME} of 0-9 a-z A-Z - _ ."
            )));
        }
        if at != at.floor_to(Duration::from_secs(1)) {
            return Err(PortError::refused(format!(
                "ScheduleExpression: at({at}) has a fraction of a second, whole seconds are allowed"
            )));
        }
        if at <= now {
            return Err(PortError::refused(format!(
                "ScheduleExpression: at({at}) is not in the future (it is {now})"
            )));
        }
        if input.len() > settings.max_input_bytes {
            return Err(PortError::refused(format!(
                "Input: {} bytes, at most {} are allowed",
                input.len(),
                settings.max_input_bytes
            )));
        }
        let mut state = lock(&self.shared.state);
        if let Some(known) = state.schedules.get(name) {
            return Ok(Created::Conflict(known.at, known.input.clone()));
        }
        if state.schedules.len() >= settings.quota {
            return Err(PortError::throttled(format!(
                "ServiceQuotaExceededException: {} schedules are allowed",
                settings.quota
            )));
        }
        let schedule = Schedule {
            at,
            fires_at: at + within_its_minute(name, settings.seed),
            input: input.to_string(),
        };
        state.schedules.insert(name.to_string(), schedule);
        Ok(Created::Made)
    }

    /// DeleteSchedule of what a later moment has replaced. Where it fails, both fire, and the earlier is parked.
    async fn delete(&self, name: &str) {
        let gone = self
            .process
            .call("scheduler.delete", || {
                lock(&self.shared.state).schedules.remove(name);
            })
            .await;
        if let Err(error) = gone {
            tracing::warn!(schedule = name, %error, "an earlier schedule of this step was not deleted; it fires too");
        }
    }

    async fn make(&self, copy: &ScheduledCopy) -> Result<Accepted, PortError> {
        let input = self.input(copy)?;
        let base = copy.envelope.identity.name();
        let mut earlier: Vec<String> = Vec::new();
        for revision in 0..MAX_REVISIONS {
            let name = if revision == 0 {
                base.clone()
            } else {
                format!("{base}-r{revision}")
            };
            match self.create(&name, copy.at, &input).await? {
                Created::Made => {
                    for name in &earlier {
                        self.delete(name).await;
                    }
                    self.note(copy);
                    return Ok(self.accepted(copy, name));
                }
                Created::Conflict(_, known) if !is_ours(&known, copy) => {
                    return Err(PortError::refused(format!(
                        "ConflictException: {name} exists and is not ours"
                    )));
                }
                Created::Conflict(at, _) if at >= copy.at => {
                    self.note(copy);
                    return Ok(self.accepted(copy, name));
                }
                Created::Conflict(..) => earlier.push(name),
            }
        }
        Err(PortError::transient(format!(
            "{base} has {MAX_REVISIONS} revisions already"
        )))
    }

    fn note(&self, copy: &ScheduledCopy) {
        self.shared.target.note_step(&copy.envelope, Mechanism::Schedule);
        if let Some(ledger) = &self.shared.target.shared.ledger {
            ledger.accepted(&copy.envelope.identity, None, &copy.receipt);
        }
    }

    fn accepted(&self, copy: &ScheduledCopy, name: String) -> Accepted {
        Accepted {
            identity: copy.envelope.identity.clone(),
            name,
        }
    }
}

/// Whether a stored Input is this very step of this very message.
fn is_ours(input: &str, copy: &ScheduledCopy) -> bool {
    let Ok(outgoing) = read_input(input) else {
        return false;
    };
    let envelope = outgoing
        .attributes
        .get(ENVELOPE_ATTRIBUTE)
        .and_then(|attribute| match &attribute.value {
            AttributeValue::Text(text) => Some(text.as_str()),
            AttributeValue::Bytes(_) => None,
        });
    match Envelope::read(envelope, copy.original.content(), Timestamp::MAX) {
        Reading::Read { envelope, .. } => envelope.identity == copy.envelope.identity,
        Reading::Absent | Reading::Rejected(_) => false,
    }
}

/// Between 0 and 59 s after its moment, the same for the same name and seed.
fn within_its_minute(name: &str, seed: u64) -> Duration {
    let id = adjourn_core::DeferralId::new(&format!("{seed}:{name}"));
    Duration::from_secs(adjourn_core::Identity::first(id).entropy() % 60)
}

/// The keywords that the service replaces wherever they stand in an Input (Scheduler UG, context attributes).
fn substitute(input: &str, name: &str, at: Timestamp, attempt: u32) -> String {
    input
        .replace(
            "<aws.scheduler.schedule-arn>",
            &format!("arn:aws:scheduler:::schedule/adjourn/{name}"),
        )
        .replace("<aws.scheduler.scheduled-time>", &at.to_string())
        .replace("<aws.scheduler.execution-id>", &format!("execution-{attempt}"))
        .replace("<aws.scheduler.attempt-number>", &attempt.to_string())
}

fn read_input(input: &str) -> Result<Outgoing, PortError> {
    let input: Input = serde_json::from_str(input).map_err(PortError::refused)?;
    let text = |attribute: InputAttribute| Attribute {
        data_type: attribute.data_type,
        value: AttributeValue::Text(attribute.string_value),
    };
    Ok(Outgoing {
        body: input.message_body,
        attributes: input
            .message_attributes
            .into_iter()
            .map(|(name, attribute)| (name, text(attribute)))
            .collect(),
        group: input.message_group_id,
        deduplication_id: input.message_deduplication_id,
        trace_header: input
            .message_system_attributes
            .into_values()
            .next()
            .map(|header| header.string_value),
        delay: Duration::ZERO,
    })
}

#[async_trait]
impl Scheduler for FakeScheduler {
    fn reach(&self) -> ScheduleReach {
        ScheduleReach {
            step: MINUTE,
            lead: MINUTE,
        }
    }

    fn carries(&self, message: &Message) -> bool {
        // A character may take six bytes in JSON; where that might be too much, the Input itself is measured.
        let most = self.shared.settings.max_input_bytes;
        let fits = message.customer_bytes().saturating_mul(6) < most.saturating_sub(4096)
            || serde_json::to_string(&message.body).is_ok_and(|body| body.len() + 8192 < most);
        fits && !message.upsets_a_scheduler()
    }

    async fn schedule(&self, copies: &[ScheduledCopy]) -> Vec<Result<Accepted, PortError>> {
        let mut answers = Vec::new();
        for copy in copies {
            answers.push(self.make(copy).await);
        }
        answers
    }
}
