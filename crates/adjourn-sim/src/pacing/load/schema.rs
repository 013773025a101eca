//! What may stand in a scenario file: each field with its range and its default, in one list.
//!
//! Files are checked by it, and tests hold it against the structs that serde fills and against docs/scenarios.md.

use std::{fmt, ops::RangeInclusive};

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) without: Without,
}

/// What a field takes.
#[derive(Clone, Debug)]
pub(crate) enum Takes {
    /// A line of text, of so many characters at most.
    Text(usize),
    /// true or false.
    Flag,
    /// A whole number.
    Whole(RangeInclusive<u64>),
    /// Any number.
    Number(RangeInclusive<f64>),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of whole numbers.
    Wholes(RangeInclusive<u64>),
    /// A list of these words.
    Words(&'static [&'static str]),
    /// A table.
    Table(&'static [Field]),
    /// A list of so many tables at most.
    Tables(&'static [Field], usize),
    /// A list of so many limits at most.
    Limits(usize),
}

/// What a field that is not there counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// It has to be there.
    Wrong,
    /// This value, as TOML.
    Value(&'static str),
    /// This, in words.
    Words(&'static str),
}

/// The most values that a list of `[vary]` holds.
pub(crate) const VALUES: usize = 20;

const DAY_MS: u64 = 86_400_000;
const MONTH_MS: u64 = 31 * DAY_MS;
const YEAR_MS: u64 = 365 * DAY_MS;
const HOUR_MS: u64 = DAY_MS / 24;
const JOBS: RangeInclusive<u64> = 1..=10_000_000;
const RATE: RangeInclusive<f64> = 0.001..=1_000_000.0;
const CALLS: RangeInclusive<u64> = 1..=1_000_000_000;
const HINTS: &[&str] = &["none", "honest", "zero", "seconds", "late"];

const fn field(name: &'static str, takes: Takes, without: Without) -> Field {
    Field { name, takes, without }
}

const RETRY_AFTER: Field = field(
    "retry_after_ms",
    Takes::Whole(0..=MONTH_MS),
    Without::Words("names no time"),
);

/// The file.
pub(crate) const SCENARIO: &[Field] = &[
    field("name", Takes::Text(60), Without::Words("the file's name")),
    field("title", Takes::Text(200), Without::Wrong),
    field("jobs", Takes::Whole(JOBS), Without::Wrong),
    field("concurrency", Takes::Whole(1..=100_000), Without::Value("10")),
    field("processes", Takes::Whole(1..=10_000), Without::Value("1")),
    field("latency_ms", Takes::Whole(0..=HOUR_MS), Without::Value("0")),
    field("service_ms", Takes::Whole(0..=HOUR_MS), Without::Value("0")),
    field("max_attempts", Takes::Whole(1..=1000), Without::Value("7")),
    field(
        "children",
        Takes::Whole(1..=1_000_000),
        Without::Words("all jobs are there from the start"),
    ),
    field("hint", Takes::Word(HINTS), Without::Value("\"none\"")),
    field("late_ms", Takes::Whole(0..=MONTH_MS), Without::Value("0")),
    field("counter", Takes::Flag, Without::Value("false")),
    field("limits", Takes::Limits(20), Without::Words("no limit")),
    field("other", Takes::Table(OTHER), Without::Words("nobody else")),
    field("vary", Takes::Table(VARY), Without::Words("one variant")),
    field("must", Takes::Table(MUST), Without::Words("all jobs are done")),
];

/// `[other]`.
pub(crate) const OTHER: &[Field] = &[
    field("rate", Takes::Number(0.001..=10_000.0), Without::Wrong),
    field("from_ms", Takes::Whole(0..=YEAR_MS), Without::Value("0")),
];

/// `[vary]`.
pub(crate) const VARY: &[Field] = &[
    field("latency_ms", Takes::Wholes(0..=HOUR_MS), Without::Value("[]")),
    field("hint", Takes::Words(HINTS), Without::Value("[]")),
    field("concurrency", Takes::Wholes(1..=100_000), Without::Value("[]")),
];

/// `[must]`.
pub(crate) const MUST: &[Field] = &[
    field("ratio", Takes::Number(0.01..=1000.0), Without::Words("any")),
    field(
        "against",
        Takes::Word(&["limit", "independent", "patient", "ladder"]),
        Without::Value("\"limit\""),
    ),
    field("refused_share", Takes::Number(0.0..=1.0), Without::Words("any")),
    field("calls", Takes::Whole(CALLS), Without::Words("any")),
    field("given_up", Takes::Whole(0..=10_000_000), Without::Value("0")),
];

/// An entry of `changes`.
pub(crate) const CHANGE: &[Field] = &[
    field("at_ms", Takes::Whole(0..=YEAR_MS), Without::Wrong),
    field("rate", Takes::Number(RATE), Without::Wrong),
];

/// The kinds of `[[limits]]`, each with its fields.
pub(crate) const LIMITS: &[(&str, &[Field])] = &[
    (
        "bucket",
        &[
            field("rate", Takes::Number(RATE), Without::Wrong),
            field("burst", Takes::Number(1.0..=1_000_000.0), Without::Wrong),
            field("changes", Takes::Tables(CHANGE, 1000), Without::Value("[]")),
        ],
    ),
    (
        "window",
        &[
            field("calls", Takes::Whole(1..=1_000_000_000), Without::Wrong),
            field("per_ms", Takes::Whole(1..=MONTH_MS), Without::Wrong),
            field("phase_ms", Takes::Whole(0..=MONTH_MS), Without::Value("0")),
        ],
    ),
    (
        "sliding",
        &[
            field("calls", Takes::Whole(1..=1_000_000_000), Without::Wrong),
            field("per_ms", Takes::Whole(1..=MONTH_MS), Without::Wrong),
        ],
    ),
    (
        "concurrent",
        &[field("most", Takes::Whole(1..=1_000_000), Without::Wrong)],
    ),
    (
        "chance",
        &[
            field("share", Takes::Number(0.0..=1.0), Without::Wrong),
            field("status", Takes::Whole(400..=599), Without::Value("429")),
            RETRY_AFTER,
        ],
    ),
    (
        "outage",
        &[
            field("from_ms", Takes::Whole(0..=YEAR_MS), Without::Wrong),
            field("until_ms", Takes::Whole(1..=YEAR_MS), Without::Wrong),
            field("status", Takes::Whole(400..=599), Without::Value("503")),
        ],
    ),
    (
        "once",
        &[field("call", Takes::Whole(CALLS), Without::Wrong), RETRY_AFTER],
    ),
    ("job", &[field("job", Takes::Whole(0..=9_999_999), Without::Wrong)]),
    (
        "first",
        &[field("calls", Takes::Whole(0..=1_000_000), Without::Wrong), RETRY_AFTER],
    ),
    ("always", &[RETRY_AFTER]),
];

/// What is allowed, in words.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(most) => write!(f, "a text of 1 to {most} characters on one line"),
            Self::Flag => f.write_str("true or false"),
            Self::Whole(range) => write!(f, "a whole number from {} to {}", range.start(), range.end()),
            Self::Number(range) => write!(f, "a number from {} to {}", range.start(), range.end()),
            Self::Word(words) => one_of(f, words),
            Self::Wholes(range) => write!(
                f,
                "a list of at most {VALUES} whole numbers from {} to {}",
                range.start(),
                range.end()
            ),
            Self::Words(words) => {
                write!(f, "a list of at most {VALUES} of ")?;
                one_of(f, words)
            }
            Self::Table(_) => f.write_str("a table"),
            Self::Tables(_, most) => write!(f, "a list of at most {most} tables"),
            Self::Limits(most) => write!(f, "a list of at most {most} tables"),
        }
    }
}

fn one_of(f: &mut fmt::Formatter<'_>, words: &[&str]) -> fmt::Result {
    for (place, word) in words.iter().enumerate() {
        let before = match place {
            0 => "",
            _ if place + 1 == words.len() => " or ",
            _ => ", ",
        };
        write!(f, "{before}{word:?}")?;
    }
    Ok(())
}
