//! A provider that limits, with books of its own: what really reached it, and when.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjourn_core::{Kind, Signal, Timestamp};

/// How a provider limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It never refuses.
    None,
    /// So many calls in each window that begins at a multiple of it.
    FixedWindow {
        /// Calls a window.
        requests: u32,
        /// The window.
        window: Duration,
    },
    /// A bucket of tokens, one a call.
    TokenBucket {
        /// The time that one token takes to come back.
        interval: Duration,
        /// The most tokens.
        burst: u32,
    },
    /// It refuses every call, and names this wait.
    Always {
        /// The wait.
        wait: Duration,
    },
    /// It refuses the first calls of each job, and names this wait.
    RefuseFirst {
        /// How many calls of each job.
        calls: u32,
        /// The wait.
        wait: Duration,
    },
    /// It answers the calls of each job by this list, and then takes every call.
    Script(Vec<Reply>),
    /// It answers 503 to the first calls of each job, with a wait if there is one.
    FailFirst {
        /// How many calls of each job.
        calls: u32,
        /// The wait that the 503 names.
        wait: Option<Duration>,
    },
}

/// One answer of a [`Limit::Script`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It refuses, and names this wait.
    Refuse(Duration),
    /// It answers 503.
    Fail,
}

/// How a refusal names its moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// `Retry-After` in whole seconds, rounded up.
    #[default]
    Seconds,
    /// `retry-after-ms`.
    Milliseconds,
    /// `Retry-After: 0`, which says nothing.
    Zero,
    /// No header at all.
    Absent,
}

/// A provider of a simulated system. Its clones are the same provider.
#[derive(Clone, Debug)]
pub struct Provider {
    name: String,
    limit: Limit,
    hint: Hint,
    kind: Kind,
    latency: Duration,
    books: Arc<Mutex<Books>>,
}

/// One call, as the provider saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// When it arrived.
    pub at: Timestamp,
    /// The job's idempotency key.
    pub key: String,
    /// The message that made it.
    pub message: String,
    /// The step of the job that this message carried.
    pub sequence: u32,
    /// The status that it was answered.
    pub status: u16,
    /// The moment that the answer named, whether or not anybody read it.
    pub told: Option<Timestamp>,
    /// How long before the moment that the job read in its last answer, where this call came earlier than that.
    pub early_by: Option<Duration>,
}

/// What a provider counted.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Every call in its order.
    pub calls: Vec<CallRecord>,
    /// The most calls in flight at a time.
    pub max_in_flight: u32,
    in_flight: u32,
    window: Option<(i64, u32)>,
    tokens_at: Timestamp,
    jobs: BTreeMap<String, Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    calls: u32,
    effects: u32,
    told: Option<Timestamp>,
}

pub(crate) enum Answer {
    Done,
    Limited(Box<Signal>),
    Unavailable(Option<Timestamp>),
}

impl Provider {
    /// A provider that takes 40 ms a call.
    #[must_use]
    pub fn new(name: &str, limit: Limit, hint: Hint) -> Self {
        Self {
            name: name.to_string(),
            limit,
            hint,
            kind: Kind::Short,
            latency: Duration::from_millis(40),
            books: Arc::default(),
        }
    }

    /// Which limit its refusals speak of.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// How long a call takes.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn latency_of_a_call(&self) -> Duration {
        self.latency
    }

    /// The same provider with empty books.
    #[must_use]
    pub(crate) fn anew(&self) -> Self {
        Self {
            books: Arc::default(),
            ..self.clone()
        }
    }

    /// How many calls of this key had their effect.
    #[must_use]
    pub fn effects(&self, key: &str) -> u32 {
        self.lock().effects(key)
    }

    /// Its books.
    #[must_use]
    pub fn books(&self) -> Books {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call arrives: it is counted, and has its effect or none at once. The answer takes its time.
    pub(crate) fn arrive(&self, key: &str, message: &str, sequence: u32, now: Timestamp) -> (Answer, InFlight) {
        let mut books = self.lock();
        books.in_flight = books.in_flight.saturating_add(1);
        books.max_in_flight = books.max_in_flight.max(books.in_flight);
        let known = books.jobs.entry(key.to_string()).or_default();
        known.calls = known.calls.saturating_add(1);
        let calls = known.calls;
        let early_by = known.told.map(|told| told.since(now)).filter(|by| !by.is_zero());
        let answer = match self.verdict(&mut books, calls, now) {
            Verdict::Pass => Answer::Done,
            Verdict::Refuse(at) => Answer::Limited(Box::new(self.signal(at, now))),
            Verdict::Fail(at) => Answer::Unavailable(at),
        };
        let (status, told) = match &answer {
            Answer::Done => (200, None),
            Answer::Limited(signal) => (429, signal.earliest_retry_at()),
            Answer::Unavailable(at) => (503, *at),
        };
        let known = books.jobs.entry(key.to_string()).or_default();
        known.effects = known.effects.saturating_add(u32::from(status == 200));
        books.calls.push(CallRecord {
            at: now,
            key: key.to_string(),
            message: message.to_string(),
            sequence,
            status,
            told,
            early_by,
        });
        drop(books);
        (answer, InFlight(self.clone()))
    }

    /// An answer has been read: from now on the job knows the moment that it named.
    pub(crate) fn read(&self, key: &str, told: Option<Timestamp>) {
        self.lock().jobs.entry(key.to_string()).or_default().told = told;
    }

    fn verdict(&self, books: &mut Books, calls: u32, now: Timestamp) -> Verdict {
        match &self.limit {
            Limit::None => Verdict::Pass,
            Limit::Always { wait } => Verdict::Refuse(now + *wait),
            Limit::RefuseFirst { calls: first, wait } if calls <= *first => Verdict::Refuse(now + *wait),
            Limit::FailFirst { calls: first, wait } if calls <= *first => Verdict::Fail(wait.map(|wait| now + wait)),
            Limit::Script(replies) => {
                let place = usize::try_from(calls.saturating_sub(1)).unwrap_or(usize::MAX);
                match replies.get(place) {
                    Some(Reply::Refuse(wait)) => Verdict::Refuse(now + *wait),
                    Some(Reply::Fail) => Verdict::Fail(None),
                    None => Verdict::Pass,
                }
            }
            Limit::RefuseFirst { .. } | Limit::FailFirst { .. } => Verdict::Pass,
            Limit::FixedWindow { requests, window } => {
                let start = now.floor_to(*window);
                let used = books
                    .window
                    .filter(|&(at, _)| at == start.as_unix_ms())
                    .map_or(0, |(_, used)| used);
                if used >= *requests {
                    return Verdict::Refuse(start + *window);
                }
                books.window = Some((start.as_unix_ms(), used.saturating_add(1)));
                Verdict::Pass
            }
            Limit::TokenBucket { interval, burst } => {
                let full = interval.saturating_mul(burst.saturating_sub(1));
                let earliest = books.tokens_at - full;
                if earliest > now {
                    return Verdict::Refuse(earliest);
                }
                books.tokens_at = books.tokens_at.max(now) + *interval;
                Verdict::Pass
            }
        }
    }

    fn signal(&self, at: Timestamp, now: Timestamp) -> Signal {
        let signal = Signal::new(&self.name, now)
            .status(429)
            .kind(self.kind)
            .reason("simulated limit");
        match self.hint {
            Hint::Seconds => {
                let wait = at.since(now);
                let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
                signal.retry_at(now + Duration::from_secs(seconds))
            }
            Hint::Milliseconds => signal.retry_at(at),
            Hint::Zero => signal.retry_at(now),
            Hint::Absent => signal,
        }
    }
}

enum Verdict {
    Pass,
    Refuse(Timestamp),
    Fail(Option<Timestamp>),
}

impl Books {
    /// How many refusals there were.
    #[must_use]
    pub fn refusals(&self) -> usize {
        self.calls.iter().filter(|call| call.status == 429).count()
    }

    /// How many calls of this key had their effect.
    #[must_use]
    pub fn effects(&self, key: &str) -> u32 {
        self.jobs.get(key).map_or(0, |known| known.effects)
    }

    /// Effects beyond the first of each key.
    #[must_use]
    pub fn duplicates(&self) -> u32 {
        self.jobs.values().map(|known| known.effects.saturating_sub(1)).sum()
    }
}

/// A call that is not over: counted down when its answer is there, or when its caller is gone.
pub(crate) struct InFlight(Provider);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut books = self.0.lock();
        books.in_flight = books.in_flight.saturating_sub(1);
    }
}
