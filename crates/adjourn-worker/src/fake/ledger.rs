//! A ledger in memory: which step of each job is the newest, which was started, and which jobs are over.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use adjourn_core::{DeferralId, Discarded, Envelope, Identity, Reading, Standing, Timestamp};
use async_trait::async_trait;

use super::{
    faults::{Faults, Process},
    lock,
};
use crate::{
    Message, Receipt,
    port::{Deletion, Ledger, PortError},
};

/// Remembers jobs. Its clones are the same ledger.
///
/// A [`FakeQueue`](super::FakeQueue) made with it tells it of every step that the queue accepts. One message acts on a step:
/// the copy or the held original that was accepted last, and for a schedule, whose message has no name before it is sent,
/// the first that asks. What other message carries that step, or an older one, is stale: the acting one is durable.
#[derive(Clone, Debug)]
pub struct FakeLedger {
    rows: Arc<Mutex<BTreeMap<DeferralId, Row>>>,
    process: Process,
}

#[derive(Debug, Default)]
struct Row {
    epoch: u32,
    sequence: u32,
    /// The message that acts on the newest step.
    owner: Option<String>,
    /// The steps whose call was started.
    started: BTreeSet<(u32, u32)>,
    over: Option<Discarded>,
    history: Vec<Receipt>,
}

impl Row {
    fn newest(&self) -> (u32, u32) {
        (self.epoch, self.sequence)
    }

    /// A step was accepted: `carrier` acts on it, where its name is known.
    fn accept(&mut self, identity: &Identity, carrier: Option<&str>) {
        let step = (identity.epoch, identity.sequence);
        if step >= self.newest() {
            (self.epoch, self.sequence) = step;
            self.owner = carrier.map(str::to_string);
            // A hold cannot write, so what is handed on after it repeats its step; the new carrier was never started.
            self.started.remove(&step);
        }
    }

    fn claim(&mut self, identity: &Identity, message_id: &str) {
        (self.epoch, self.sequence) = (identity.epoch, identity.sequence);
        self.owner = Some(message_id.to_string());
    }
}

impl Default for FakeLedger {
    fn default() -> Self {
        Self {
            rows: Arc::default(),
            process: Faults::none().process(),
        }
    }
}

impl FakeLedger {
    /// The same ledger as this process uses it.
    #[must_use]
    pub fn used_by(&self, process: &Process) -> Self {
        Self {
            process: process.clone(),
            ..self.clone()
        }
    }

    /// A person cancels a job: none of its wake-ups that has not started will.
    pub fn cancel(&self, id: &DeferralId) {
        lock(&self.rows).entry(id.clone()).or_default().over = Some(Discarded::Cancelled);
    }

    /// A newer revision takes a job's place.
    pub fn supersede(&self, id: &DeferralId) {
        lock(&self.rows).entry(id.clone()).or_default().over = Some(Discarded::Stale);
    }

    /// A job's history, oldest first.
    #[must_use]
    pub fn history(&self, id: &DeferralId) -> Vec<Receipt> {
        lock(&self.rows)
            .get(id)
            .map(|row| row.history.clone())
            .unwrap_or_default()
    }

    pub(crate) fn accepted(&self, identity: &Identity, carrier: Option<&str>, receipt: &Receipt) {
        let mut rows = lock(&self.rows);
        let row = rows.entry(identity.id.clone()).or_default();
        row.accept(identity, carrier);
        row.history.push(receipt.clone());
    }

    pub(crate) fn ended(&self, identity: &Identity, receipt: &Receipt) {
        let mut rows = lock(&self.rows);
        let row = rows.entry(identity.id.clone()).or_default();
        row.accept(identity, None);
        row.over = Some(Discarded::Ended);
        row.history.push(receipt.clone());
    }

    pub(crate) fn deleted(&self, deletion: &Deletion) {
        let over = deletion.proof.is_completed() || deletion.proof.drop_reason().is_some();
        let identity = step_of(&deletion.original);
        let mut rows = lock(&self.rows);
        let row = rows.entry(identity.id).or_default();
        if over {
            row.over = Some(Discarded::Ended);
        }
        row.history.extend(deletion.receipt.clone());
    }

    fn ask(&self, message: &Message, starting: bool) -> Standing {
        let identity = step_of(message);
        let mut rows = lock(&self.rows);
        let row = rows.entry(identity.id.clone()).or_default();
        if let Some(why) = row.over {
            return Standing::Over(why);
        }
        let owns = row.owner.as_deref() == Some(message.id.as_str());
        let step = (identity.epoch, identity.sequence);
        if !owns {
            if step < row.newest() || (step == row.newest() && row.owner.is_some()) {
                return Standing::Over(Discarded::Stale);
            }
            row.claim(&identity, &message.id);
        }
        // A held original acts on the step of its hold, which it cannot carry.
        let newest = row.newest();
        if row.started.contains(&newest) {
            return Standing::Started;
        }
        if starting {
            row.started.insert(newest);
        }
        Standing::Current
    }
}

/// The step that a message carries.
fn step_of(message: &Message) -> Identity {
    match Envelope::read(message.envelope_text(), message.content(), Timestamp::MAX) {
        Reading::Read { envelope, .. } => envelope.identity,
        Reading::Absent | Reading::Rejected(_) => Identity::first(DeferralId::new(&message.id)),
    }
}

#[async_trait]
impl Ledger for FakeLedger {
    async fn standing(&self, messages: &[Arc<Message>]) -> Result<Vec<Standing>, PortError> {
        self.process
            .call("ledger.standing", || {
                messages.iter().map(|message| self.ask(message, false)).collect()
            })
            .await
    }

    async fn mark_started(&self, message: &Arc<Message>) -> Result<Standing, PortError> {
        self.process.call("ledger.mark", || self.ask(message, true)).await
    }
}
