//! The one attribute that a message carries for us, and the identity inside it.
//!
//! It evolves by addition: `id`, `epoch`, `sequence`, `due` and the counters never change meaning, and a reader ignores what
//! it does not know, so that an older worker honours a newer one's waits. Nothing in it is trusted: it is checked, clamped
//! to what can be, and is no envelope at all on a message that it was not written for.

use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString},
};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use crate::{Timestamp, signal::truncated};

/// The most bytes that the envelope takes on a message.
pub const MAX_ENVELOPE_BYTES: usize = 1024;

/// The furthest that a due time in an envelope is believed: a year and a day from now.
const FURTHEST_DUE: Duration = Duration::from_secs(366 * 86_400);

/// A job's name for life, from its original message: 1 to 128 of `A-Z a-z 0-9 _ - . :`.
///
/// A name that does not fit is replaced by a hash of it, so that every message has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct DeferralId(String);

impl DeferralId {
    /// The most bytes of an id.
    pub const MAX_BYTES: usize = 128;

    /// The id for the original message `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        if Self::fits(name) {
            Self(name.to_string())
        } else {
            Self(format!("h-{:032x}", xxh3_128(name.as_bytes())))
        }
    }

    fn fits(name: &str) -> bool {
        !name.is_empty()
            && name.len() <= Self::MAX_BYTES
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeferralId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which step of which job: the id is stable for life, the sequence rises with every hand-off of whatever kind, the epoch
/// when a person redrives. Repeating a step repeats its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The job.
    pub id: DeferralId,
    /// How often a person has redriven it.
    pub epoch: u32,
    /// How often it was handed on in this epoch.
    pub sequence: u32,
}

impl Identity {
    /// The identity of a message that was never handed on.
    #[must_use]
    pub fn first(id: DeferralId) -> Self {
        Self {
            id,
            epoch: 0,
            sequence: 0,
        }
    }

    /// The identity of the next hand-off.
    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            id: self.id.clone(),
            epoch: self.epoch,
            sequence: self.sequence.saturating_add(1),
        }
    }

    /// A number that is the same for the same step: the seed of its jitter.
    #[must_use]
    pub fn entropy(&self) -> u64 {
        xxh3_64(self.to_string().as_bytes())
    }

    /// A name for this step that schedulers and deduplication take: 36 of `a-z 0-9 -`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("adj-{:032x}", xxh3_128(self.to_string().as_bytes()))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.id, self.epoch, self.sequence)
    }
}

/// A hash of what an envelope belongs to: queue, group and body.
///
/// It catches an envelope that was copied onto another message. It is no signature: who may write messages may write
/// envelopes too, so the fast XXH3 serves and a keyed hash would promise what it cannot keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content(u128);

impl Content {
    /// The hash of a message in `queue`, with its group if it has one.
    #[must_use]
    pub fn of(queue: &str, group: Option<&str>, body: &[u8]) -> Self {
        let mut hash = Xxh3::new();
        for part in [queue.as_bytes(), group.unwrap_or("\u{0}").as_bytes()] {
            hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
        hash.update(body);
        Self(hash.digest128())
    }
}

/// What a job has used up: three counters with three caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Refusals waited out.
    pub deferrals: u32,
    /// Hand-offs without a call: an early arrival, a closed gate, no time left.
    pub hops: u32,
    /// Calls that failed.
    pub failures: u32,
    /// Consecutive refusals that named no time: the rung of the ladder.
    pub unnamed: u32,
}

/// What a handed-on copy knows of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Which step of which job this copy is.
    pub identity: Identity,
    /// Not before this moment.
    pub due: Timestamp,
    /// What is left of the wait once the queue has delayed this copy in full; none where the queue's delay alone does not
    /// cover the wait, and the clock has to be asked.
    pub rest: Option<Duration>,
    /// When the job was first deferred.
    pub first_deferred_at: Option<Timestamp>,
    /// Since when it has been refused without a time.
    pub unnamed_since: Option<Timestamp>,
    /// What the job has used up.
    pub counters: Counters,
    /// When the original message was sent.
    pub sent_at: Timestamp,
    /// What the envelope belongs to.
    pub content: Content,
    /// Why the job waits, in words.
    pub reason: String,
    /// How it ended, on a dead letter.
    pub end: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    v: u32,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "is_zero")]
    epoch: u64,
    sequence: u64,
    due: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_deferred_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unnamed_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    deferrals: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    hops: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    failures: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    unnamed: u64,
    sent_at: Timestamp,
    #[serde(borrow)]
    hash: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    reason: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    end: Option<Cow<'a, str>>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What an attribute turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The message carries none.
    Absent,
    /// This message's envelope; `clamped` when a value in it could not be and was brought back into range.
    Read {
        /// What it says.
        envelope: Envelope,
        /// Whether a value was brought back into range.
        clamped: bool,
    },
    /// Something that is no envelope of this message: treated as absent, with a warning.
    Rejected(EnvelopeProblem),
}

/// Why an attribute is no envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeProblem {
    words: String,
}

impl fmt::Display for EnvelopeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl core::error::Error for EnvelopeProblem {}

impl Envelope {
    /// The envelope of a message that was never handed on.
    #[must_use]
    pub fn first(id: DeferralId, sent_at: Timestamp, content: Content) -> Self {
        Self {
            identity: Identity::first(id),
            due: sent_at,
            rest: None,
            first_deferred_at: None,
            unnamed_since: None,
            counters: Counters::default(),
            sent_at,
            content,
            reason: String::new(),
            end: None,
        }
    }

    /// Reads the attribute of a message whose content is `content`, at `now`.
    #[must_use]
    pub fn read(attribute: Option<&str>, content: Content, now: Timestamp) -> Reading {
        let Some(text) = attribute else { return Reading::Absent };
        let reject = |words: String| Reading::Rejected(EnvelopeProblem { words });
        if text.len() > MAX_ENVELOPE_BYTES {
            return reject(format!(
                "{} bytes, at most {MAX_ENVELOPE_BYTES} are an envelope",
                text.len()
            ));
        }
        let wire: Wire<'_> = match serde_json::from_str(text) {
            Ok(wire) => wire,
            Err(error) => return reject(format!("not readable: {error}")),
        };
        if !DeferralId::fits(&wire.id) {
            return reject(String::from("its id is no deferral id"));
        }
        if u128::from_str_radix(&wire.hash, 16).ok() != Some(content.0) {
            return reject(String::from(
                "it was written for another message: the hash of queue, group and body differs",
            ));
        }
        let counter = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let due = wire.due.min(now + FURTHEST_DUE);
        let past = |at: Timestamp| at.min(now);
        let envelope = Self {
            identity: Identity {
                id: DeferralId(wire.id.into_owned()),
                epoch: counter(wire.epoch),
                sequence: counter(wire.sequence),
            },
            due,
            rest: wire.rest_ms.filter(|&ms| ms < 1000).map(Duration::from_millis),
            first_deferred_at: wire.first_deferred_at.map(past),
            unnamed_since: wire.unnamed_since.map(past),
            counters: Counters {
                deferrals: counter(wire.deferrals),
                hops: counter(wire.hops),
                failures: counter(wire.failures),
                unnamed: counter(wire.unnamed),
            },
            sent_at: past(wire.sent_at),
            content,
            reason: wire.reason.into_owned(),
            end: wire.end.map(Cow::into_owned),
        };
        let clamped = envelope.due != wire.due
            || envelope.sent_at != wire.sent_at
            || envelope.first_deferred_at != wire.first_deferred_at
            || envelope.unnamed_since != wire.unnamed_since
            || envelope.rest.is_some() != wire.rest_ms.is_some()
            || [
                wire.epoch,
                wire.sequence,
                wire.deferrals,
                wire.hops,
                wire.failures,
                wire.unnamed,
            ]
            .iter()
            .any(|&n| n > u64::from(u32::MAX));
        Reading::Read { envelope, clamped }
    }

    /// The attribute's text, at most [`MAX_ENVELOPE_BYTES`]: words are cut first, and nothing else ever needs to be.
    #[must_use]
    pub fn write(&self) -> String {
        let full = self.encode(usize::MAX);
        if full.len() <= MAX_ENVELOPE_BYTES {
            return full;
        }
        // A byte of words costs at most six in JSON (`\u0001`), and without words an envelope is under 512 bytes.
        self.encode(40)
    }

    fn encode(&self, words: usize) -> String {
        let wire = Wire {
            v: 1,
            id: Cow::Borrowed(self.identity.id.as_str()),
            epoch: u64::from(self.identity.epoch),
            sequence: u64::from(self.identity.sequence),
            due: self.due,
            rest_ms: self
                .rest
                .map(|rest| u64::try_from(crate::time::millis_up(rest)).unwrap_or(0)),
            first_deferred_at: self.first_deferred_at,
            unnamed_since: self.unnamed_since,
            deferrals: u64::from(self.counters.deferrals),
            hops: u64::from(self.counters.hops),
            failures: u64::from(self.counters.failures),
            unnamed: u64::from(self.counters.unnamed),
            sent_at: self.sent_at,
            hash: Cow::Owned(format!("{:032x}", self.content.0)),
            reason: harmless(truncated(&self.reason, words)),
            end: self.end.as_deref().map(|end| harmless(truncated(end, words))),
        };
        serde_json::to_string(&wire).unwrap_or_default()
    }
}

/// Words as a queue and a scheduler take them. Many come from a provider's response, and a copy that its text makes
/// unsendable would never leave: SQS refuses U+FFFE and U+FFFF, which JSON does not escape, and EventBridge Scheduler replaces
/// its keywords wherever they stand. As long as it was.
fn harmless(words: &str) -> Cow<'_, str> {
    const KEYWORD: &str = "<aws.scheduler.";
    const REFUSED: [char; 2] = ['\u{fffe}', '\u{ffff}'];
    if words.contains(REFUSED) || words.contains(KEYWORD) {
        Cow::Owned(words.replace(REFUSED, "\u{fffd}").replace(KEYWORD, "(aws.scheduler."))
    } else {
        Cow::Borrowed(words)
    }
}

#[cfg(test)]
mod tests;
