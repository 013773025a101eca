//! Jobs into the store: all of a call in one transaction, an open id only once, a newer revision in an older one's place.

use std::{collections::BTreeMap, time::Duration};

use adjourn_core::{Content, DeferralId, Envelope, Reading, ScopeKey, Timestamp};
use adjourn_worker::{Attribute, AttributeValue, Transition};
use rusqlite::{Connection, OptionalExtension, Statement, params};
use serde::{Deserialize, Serialize};

use crate::{MAX_DELAY, MAX_JOB_BYTES, QUEUE, State, StoreError, history, state::mechanism_code, writer::Session};
use adjourn_core::Mechanism;

/// A body up to this size is kept in the job's row.
const MAX_INLINE_BODY: usize = 2048;

/// A job to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The caller's name for it; among the open jobs there is one of each name.
    pub id: String,
    /// Its name for life on envelopes and in idempotency keys.
    pub deferral_id: DeferralId,
    /// The message's body.
    pub body: String,
    /// The provider that it calls.
    pub provider: String,
    /// The scope whose limit it shares.
    pub scope_key: ScopeKey,
    /// The fairness key; an empty one is none.
    pub tenant: Option<String>,
    /// The caller's process that it is part of; by default the id.
    pub run: Option<String>,
    /// Not before this moment.
    pub not_before: Option<Timestamp>,
    /// A higher one supersedes the waiting job of the same id.
    pub revision: u64,
    /// The message's attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// The message's trace header.
    pub trace_header: Option<String>,
}

impl NewJob {
    /// A job of this name for this provider, in the provider's own scope, to be done at once.
    #[must_use]
    pub fn new(id: &str, provider: &str, body: &str) -> Self {
        Self {
            id: id.to_string(),
            deferral_id: DeferralId::new(id),
            body: body.to_string(),
            provider: provider.to_string(),
            scope_key: ScopeKey::provider(provider),
            tenant: None,
            run: None,
            not_before: None,
            revision: 0,
            attributes: BTreeMap::new(),
            trace_header: None,
        }
    }
}

/// What became of a job that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The caller's name for it.
    pub id: String,
    /// What became of it.
    pub outcome: SendOutcome,
}

/// What became of a job that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendOutcome {
    /// It is in the store.
    Added,
    /// It is in the store; an ended job of its id made place.
    AddedAgain,
    /// A job of its id is open: this one was not added.
    AlreadyOpen,
    /// It took the place of the waiting job of its id.
    Revised,
    /// The job of its id is running, so it was not superseded.
    RunningAlready,
    /// The job of its id has this revision or a higher one.
    NotNewer,
}

#[derive(Serialize, Deserialize)]
struct StoredAttribute {
    #[serde(rename = "t")]
    data_type: String,
    #[serde(rename = "v", skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
}

/// The attributes as the file keeps them; none when there are none.
fn write_attributes(attributes: &BTreeMap<String, Attribute>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let stored: BTreeMap<&str, StoredAttribute> = attributes
        .iter()
        .map(|(name, attribute)| {
            let (text, bytes) = match &attribute.value {
                AttributeValue::Text(text) => (Some(text.clone()), None),
                AttributeValue::Bytes(bytes) => (None, Some(bytes.clone())),
            };
            let data_type = attribute.data_type.clone();
            (name.as_str(), StoredAttribute { data_type, text, bytes })
        })
        .collect();
    serde_json::to_string(&stored).ok()
}

/// The attributes as they were sent.
pub(crate) fn read_attributes(text: Option<&str>) -> BTreeMap<String, Attribute> {
    let stored: BTreeMap<String, StoredAttribute> = text
        .map(|text| serde_json::from_str(text).unwrap_or_default())
        .unwrap_or_default();
    stored
        .into_iter()
        .map(|(name, stored)| {
            let value = match (stored.text, stored.bytes) {
                (None, Some(bytes)) => AttributeValue::Bytes(bytes),
                (text, _) => AttributeValue::Text(text.unwrap_or_default()),
            };
            let data_type = stored.data_type;
            (name, Attribute { data_type, value })
        })
        .collect()
}

pub(crate) fn send(
    session: &mut Session,
    jobs: &[NewJob],
    revise: bool,
    now: Timestamp,
) -> Result<Vec<Sent>, StoreError> {
    jobs.iter().try_for_each(check)?;
    let mut sent = Vec::with_capacity(jobs.len());
    let mut soonest: Option<Timestamp> = None;
    let mut insert = session.conn.prepare_cached(INSERT)?;
    for job in jobs {
        let (outcome, due) = send_one(&session.conn, &mut insert, job, revise, now)?;
        let id = job.id.clone();
        sent.push(Sent { id, outcome });
        soonest = soonest.into_iter().chain(due).min();
    }
    drop(insert);
    if let Some(due) = soonest {
        session.wake_at(due);
    }
    Ok(sent)
}

fn check(job: &NewJob) -> Result<(), StoreError> {
    if job.id.is_empty() {
        return Err(StoreError::refused(
            "a job's id is empty; it takes at least one character",
        ));
    }
    let attributes: usize = job
        .attributes
        .iter()
        .map(|(name, attribute)| name.len() + attribute.data_type.len() + attribute.len())
        .sum();
    let bytes = job.body.len() + attributes;
    if bytes > MAX_JOB_BYTES {
        return Err(StoreError::refused(&format!(
            "job {:?} is {bytes} bytes, attributes included; at most {MAX_JOB_BYTES} are allowed",
            job.id
        )));
    }
    Ok(())
}

/// What became of a job, and from when on something can be taken because of it.
type Sending = (SendOutcome, Option<Timestamp>);

fn send_one(
    conn: &Connection,
    insert: &mut Statement<'_>,
    job: &NewJob,
    revise: bool,
    now: Timestamp,
) -> Result<Sending, StoreError> {
    let added = add(conn, insert, job, now)?;
    if added.is_some() {
        return Ok((SendOutcome::Added, added));
    }
    let (seq, code): (i64, i64) = conn
        .prepare_cached("SELECT seq, state FROM jobs WHERE id = ?1")?
        .query_row([&job.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if State::of_code(code).is_some_and(State::is_open) {
        return if revise {
            supersede(conn, seq, job, now)
        } else {
            Ok((SendOutcome::AlreadyOpen, None))
        };
    }
    history::forget(conn, seq)?;
    conn.prepare_cached("DELETE FROM jobs WHERE seq = ?1")?.execute([seq])?;
    Ok((SendOutcome::AddedAgain, add(conn, insert, job, now)?))
}

/// When a new job is due, and how it waits for that.
fn first_due(job: &NewJob, now: Timestamp) -> (State, Timestamp, Mechanism, Option<String>) {
    let Some(at) = job.not_before.filter(|&at| at > now) else {
        return (State::Ready, now, Mechanism::None, None);
    };
    (
        State::Waiting,
        at,
        mechanism_for(at.since(now)),
        Some(format!("the job itself says not before {at}")),
    )
}

/// The tier that a wait of this length has in the cloud.
pub(crate) fn mechanism_for(wait: Duration) -> Mechanism {
    if wait <= MAX_DELAY {
        Mechanism::Delay
    } else {
        Mechanism::Schedule
    }
}

const INSERT: &str =
    "INSERT INTO jobs (id, state, due, scope_key, tenant, provider, run, deferral_id, revision, mechanism, reason,
       created_at, updated_at, body, attributes, trace_header)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14, ?15)
     ON CONFLICT (id) DO NOTHING";

/// Adds a job by the statement [`INSERT`] and answers when it is due; none if there is one of its id.
fn add(
    conn: &Connection,
    insert: &mut Statement<'_>,
    job: &NewJob,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let (state, due, mechanism, reason) = first_due(job, now);
    let inline = (job.body.len() <= MAX_INLINE_BODY).then_some(job.body.as_str());
    let changed = insert.execute(params![
        job.id,
        state.code(),
        due.as_unix_ms(),
        job.scope_key.as_str(),
        job.tenant.as_deref().unwrap_or_default(),
        job.provider,
        job.run,
        job.deferral_id.as_str(),
        i64::try_from(job.revision).unwrap_or(i64::MAX),
        mechanism_code(mechanism),
        reason,
        now.as_unix_ms(),
        inline,
        write_attributes(&job.attributes),
        job.trace_header,
    ])?;
    if changed == 0 {
        return Ok(None);
    }
    if inline.is_none() {
        keep_body(conn, conn.last_insert_rowid(), &job.body)?;
    }
    Ok(Some(due))
}

fn keep_body(conn: &Connection, seq: i64, body: &str) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT OR REPLACE INTO bodies (job, body) VALUES (?1, ?2)")?
        .execute(params![seq, body])?;
    Ok(())
}

/// Puts a newer revision in the place of the waiting job of its id. What the provider has said about that job still holds:
/// its due time, its counters and its history stay.
fn supersede(conn: &Connection, seq: i64, job: &NewJob, now: Timestamp) -> Result<Sending, StoreError> {
    let (code, due, revision, envelope, old_body, old_tenant, sequence): (i64, i64, i64, Option<String>, String, String, u32) = conn
        .prepare_cached(
            "SELECT state, due, revision, envelope, coalesce(body, (SELECT body FROM bodies WHERE job = seq), ''), tenant, sequence
             FROM jobs WHERE seq = ?1",
        )?
        .query_row([seq], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
        })?;
    let newer = i64::try_from(job.revision).unwrap_or(i64::MAX);
    if newer <= revision {
        return Ok((SendOutcome::NotNewer, None));
    }
    if code == State::Running.code() && due > now.as_unix_ms() {
        return Ok((SendOutcome::RunningAlready, None));
    }
    let (_, own_due, mechanism, _) = first_due(job, now);
    let due = Timestamp::from_unix_ms(due).max(own_due);
    let state = if due > now { State::Waiting } else { State::Ready };
    // The envelope is bound to the body: it is written again for the new one, as the next step of the same job.
    let tenant = Some(old_tenant.as_str()).filter(|tenant| !tenant.is_empty());
    let old = Content::of(QUEUE, tenant, old_body.as_bytes());
    let content = Content::of(
        QUEUE,
        job.tenant.as_deref().filter(|tenant| !tenant.is_empty()),
        job.body.as_bytes(),
    );
    let envelope = match Envelope::read(envelope.as_deref(), old, now) {
        Reading::Read { mut envelope, .. } => {
            envelope.identity = envelope.identity.next();
            envelope.content = content;
            envelope.due = due;
            Some(envelope)
        }
        Reading::Absent | Reading::Rejected(_) => None,
    };
    let next_sequence = envelope
        .as_ref()
        .map_or(sequence, |envelope| envelope.identity.sequence);
    let inline = (job.body.len() <= MAX_INLINE_BODY).then_some(job.body.as_str());
    conn.prepare_cached(
        "UPDATE jobs SET state = ?2, due = ?3, scope_key = ?4, tenant = ?5, provider = ?6, run = ?7, revision = ?8,
           mechanism = CASE WHEN ?2 = 0 THEN 0 WHEN mechanism = 0 THEN ?9 ELSE mechanism END, sequence = ?10,
           envelope = ?11, body = ?12, attributes = ?13, trace_header = ?14, updated_at = ?15, started_at = NULL
         WHERE seq = ?1",
    )?
    .execute(params![
        seq,
        state.code(),
        due.as_unix_ms(),
        job.scope_key.as_str(),
        job.tenant.as_deref().unwrap_or_default(),
        job.provider,
        job.run,
        newer,
        mechanism_code(mechanism),
        next_sequence,
        envelope.map(|envelope| envelope.write()),
        inline,
        write_attributes(&job.attributes),
        job.trace_header,
        now.as_unix_ms(),
    ])?;
    if inline.is_none() {
        keep_body(conn, seq, &job.body)?;
    } else {
        conn.prepare_cached("DELETE FROM bodies WHERE job = ?1")?
            .execute([seq])?;
    }
    let mut line = history::line(
        now,
        Transition::Superseded,
        &format!("revision {newer} took the place of revision {revision}"),
        (state == State::Waiting).then_some(due),
    );
    line.sequence = next_sequence;
    history::add(conn, seq, &line)?;
    Ok((SendOutcome::Revised, Some(due)))
}

/// The seq of a job by its caller's name.
pub(crate) fn find(conn: &Connection, id: &str) -> Result<Option<i64>, StoreError> {
    Ok(conn
        .prepare_cached("SELECT seq FROM jobs WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?)
}
