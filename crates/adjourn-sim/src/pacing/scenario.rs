//! A scenario: a provider that limits, the clients that call it, and what must be reached. One TOML file each.

use serde::Deserialize;

/// One scenario. docs/scenarios.md explains each field.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: the file's, for those that come with adjourn.
    #[serde(default)]
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// Jobs in all.
    pub jobs: u32,
    /// Calls that one process has in flight at most.
    #[serde(default = "ten")]
    pub concurrency: u32,
    /// Processes that know nothing of each other; the jobs are dealt out among them.
    #[serde(default = "one")]
    pub processes: u32,
    /// Round trip of a call, half of it each way.
    #[serde(default)]
    pub latency_ms: u64,
    /// How long the provider works on a call that it lets pass.
    #[serde(default)]
    pub service_ms: u64,
    /// Calls that a job has, where a strategy counts them.
    #[serde(default = "seven")]
    pub max_attempts: u32,
    /// Each job that is done calls for so many others, until all have been called for; without it all are there from the start.
    #[serde(default)]
    pub children: Option<u32>,
    /// What a refusal of the limits says of the time.
    #[serde(default)]
    pub hint: Hint,
    /// How much longer than true the hint "late" is.
    #[serde(default)]
    pub late_ms: u64,
    /// Whether each answer carries what remains of the limit.
    #[serde(default)]
    pub counter: bool,
    /// The provider's limits; a call must pass all, in this order.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Another client of the same limits, which keeps to a pace of its own.
    #[serde(default)]
    pub other: Option<Other>,
    /// The same scenario with other values.
    #[serde(default)]
    pub vary: Vary,
    /// What must be reached.
    #[serde(default)]
    pub must: Must,
}

fn one() -> u32 {
    1
}
fn seven() -> u32 {
    7
}
fn ten() -> u32 {
    10
}

/// What a refusal says of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// The moment from which a call would pass, exactly.
    Honest,
    /// Now.
    Zero,
    /// The same in whole seconds, rounded up.
    Seconds,
    /// A good deal later than true.
    Late,
}

/// One limit of a provider.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Limit {
    /// A token bucket, full at the start.
    Bucket {
        /// Tokens a second.
        rate: f64,
        /// The most tokens.
        burst: f64,
        /// Other rates from some moments on, in their order.
        #[serde(default)]
        changes: Vec<Change>,
    },
    /// So many calls in each window.
    Window {
        /// Calls a window.
        calls: u32,
        /// Its length.
        per_ms: u64,
        /// How far into a window the run begins.
        #[serde(default)]
        phase_ms: u64,
    },
    /// So many calls in any stretch of that length.
    Sliding {
        /// Calls a stretch.
        calls: u32,
        /// Its length.
        per_ms: u64,
    },
    /// So many calls being worked on at a time.
    Concurrent {
        /// Calls at a time.
        most: u32,
    },
    /// Some calls fail by chance.
    Chance {
        /// Which share.
        share: f64,
        /// What they are answered.
        #[serde(default = "refused")]
        status: u16,
        /// The wait that such an answer names.
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
    /// All calls fail for a while.
    Outage {
        /// From when.
        from_ms: u64,
        /// Until when.
        until_ms: u64,
        /// What they are answered.
        #[serde(default = "unavailable")]
        status: u16,
    },
    /// One call, by its place in the order of arrival, is refused.
    Once {
        /// Which call, from 1.
        call: u64,
        /// The wait that it names.
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
    /// All calls of one job are refused.
    Job {
        /// Which job, from 0.
        job: u32,
    },
    /// The first calls of each job are refused.
    First {
        /// How many.
        calls: u32,
        /// The wait that they name.
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
    /// Every call is refused.
    Always {
        /// The wait that it names.
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
}

fn refused() -> u16 {
    429
}
fn unavailable() -> u16 {
    503
}

/// Another rate from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From when.
    pub at_ms: u64,
    /// Tokens a second.
    pub rate: f64,
}

/// Another client.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// Calls a second.
    pub rate: f64,
    /// From when.
    #[serde(default)]
    pub from_ms: u64,
}

/// Values that a scenario is also run with.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vary {
    /// Round trips.
    pub latency_ms: Vec<u64>,
    /// Hints.
    pub hint: Vec<Hint>,
    /// Concurrent calls.
    pub concurrency: Vec<u32>,
}

/// What must be reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Must {
    /// The makespan over that of the reference, at most.
    pub ratio: Option<f64>,
    /// The reference.
    pub against: Against,
    /// The share of calls that are refused, at most.
    pub refused_share: Option<f64>,
    /// Calls in all, at most.
    pub calls: Option<u64>,
    /// Jobs that may be given up; none unless it is said.
    pub given_up: u32,
}

/// What a makespan is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// Who knows the limit and calls at its very pace.
    #[default]
    Limit,
    /// Each job retried on its own after 1, 2, 4, 4, ... seconds.
    Independent,
    /// One job alone, patient until its calls are used up.
    Patient,
    /// All jobs by the plain ladder: 1, 3, 10, 30, 60 and 180 s.
    Ladder,
}

impl Scenario {
    /// This scenario with each combination of the values that it varies.
    #[must_use]
    pub fn variants(&self) -> Vec<Self> {
        let mut all = vec![Self {
            vary: Vary::default(),
            ..self.clone()
        }];
        spread(&mut all, &self.vary.concurrency, |scenario, &most| {
            scenario.concurrency = most;
            format!("concurrency={most}")
        });
        spread(&mut all, &self.vary.hint, |scenario, &hint| {
            scenario.hint = hint;
            format!("hint={}", hint.name())
        });
        spread(&mut all, &self.vary.latency_ms, |scenario, &ms| {
            scenario.latency_ms = ms;
            format!("latency={ms}")
        });
        all
    }
}

fn spread<T>(all: &mut Vec<Scenario>, values: &[T], set: impl Fn(&mut Scenario, &T) -> String) {
    if values.is_empty() {
        return;
    }
    *all = all
        .iter()
        .flat_map(|scenario| {
            values.iter().map(|value| {
                let mut variant = scenario.clone();
                let words = set(&mut variant, value);
                variant.name = format!("{}/{words}", variant.name);
                variant
            })
        })
        .collect();
}

impl Hint {
    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Honest => "honest",
            Self::Zero => "zero",
            Self::Seconds => "seconds",
            Self::Late => "late",
        }
    }
}
