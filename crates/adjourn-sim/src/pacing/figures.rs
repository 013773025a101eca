//! The figures of a run, as programs read them.

use std::time::Duration;

use serde::Serialize;

use super::{Run, Scenario, Yardstick, verdict};

/// One run in figures; in JSON one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The scenario.
    pub scenario: String,
    /// Which of its variants, as `hint=zero/latency=30`; none where it has but one.
    pub variant: Option<String>,
    /// The strategy.
    pub strategy: String,
    /// What all chance was drawn from.
    pub seed: u64,
    /// Jobs in all.
    pub jobs: u32,
    /// Jobs that were done.
    pub done: u32,
    /// Jobs that were given up.
    pub failed: u32,
    /// From the start to the last job's end.
    pub makespan_ms: u64,
    /// What the limits themselves need; 0 where they need no time, let nothing pass, or need more than a century.
    pub limit_ms: u64,
    /// The one over the other; none where that is 0.
    pub ratio: Option<f64>,
    /// Calls that a limit refused.
    pub refusals: u64,
    /// Their share of all calls.
    pub refused_share: f64,
    /// Calls before the moment that the job's last answer named.
    pub early_calls: u64,
    /// Jobs that came to no end.
    pub lost: u32,
    /// Jobs that were done more than once.
    pub duplicates: u32,
    /// The most calls at a time.
    pub max_in_flight: u32,
    /// From when a job could be called until it was done: half of them took no longer.
    pub p50_latency_ms: u64,
    /// The same for 99 of 100.
    pub p99_latency_ms: u64,
    /// Jain's index over the processes: 1 where all were served alike.
    pub fairness: f64,
    /// What the scenario compares with: limit, independent, patient or ladder.
    pub against: String,
    /// How long that took.
    pub reference_ms: u64,
    /// Each part of the scenario's `must` that was missed, in words.
    pub missed: Vec<String>,
}

impl Figures {
    /// The figures of a run. `variant` is one of the scenario's variants, by its whole name.
    #[must_use]
    pub fn of(scenario: &str, variant: &Scenario, strategy: &str, seed: u64, run: &Run, yardstick: Yardstick) -> Self {
        let own = variant
            .name
            .strip_prefix(scenario)
            .and_then(|rest| rest.strip_prefix('/'));
        Self {
            scenario: scenario.to_string(),
            variant: own.map(str::to_string),
            strategy: strategy.to_string(),
            seed,
            jobs: variant.jobs,
            done: run.done,
            failed: run.failed,
            makespan_ms: millis(run.makespan),
            limit_ms: millis(yardstick.limit),
            ratio: verdict::ratio(run.makespan, yardstick.limit).map(rounded),
            refusals: run.refusals,
            refused_share: rounded(run.refused_share()),
            early_calls: run.early,
            lost: run.lost,
            duplicates: run.duplicates,
            max_in_flight: run.max_in_flight,
            p50_latency_ms: millis(run.p50),
            p99_latency_ms: millis(run.p99),
            fairness: rounded(run.fairness),
            against: variant.must.against.name().to_string(),
            reference_ms: millis(yardstick.reference),
            missed: verdict::missed(variant, run, yardstick.reference),
        }
    }

    /// Scenario and variant in one name.
    #[must_use]
    pub fn whole_name(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}/{variant}", self.scenario),
            None => self.scenario.clone(),
        }
    }

    /// The makespan over that of what the scenario compares with.
    #[must_use]
    pub fn reference_ratio(&self) -> Option<f64> {
        let ms = Duration::from_millis;
        verdict::ratio(ms(self.makespan_ms), ms(self.reference_ms))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Four places: more would be the machine's rounding rather than a figure.
fn rounded(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}
