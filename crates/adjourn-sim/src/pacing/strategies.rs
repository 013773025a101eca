//! The strategies that scenarios are played under, by name.

use std::time::Duration;

use adjourn_pace::{Aimd, Chance, Evidence, Fixed, FullJitter, Independent, Ladder, SpacingGate, Strategy};

use super::{Limit, Scenario};

/// A strategy by its name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name, as `--strategy` takes it.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Makes one for a process of a scenario, from a seed; none for the ideal, which asks the provider itself.
    pub(super) make: Option<Make>,
}

type Make = fn(&Scenario, u64) -> Box<dyn Strategy>;

/// All of them, ours first and the ideal last.
pub const STRATEGIES: [Named; 7] = [
    Named {
        name: "evidence",
        about: "adjourn's own: a refusal is a measurement of the bucket",
        make: Some(|scenario, _| Box::new(Evidence::new(ladder(scenario)))),
    },
    Named {
        name: "aimd",
        about: "a rate configured at twice the true one, halved by refusals, growing by a tenth a second",
        make: Some(|scenario, _| Box::new(Aimd::new(2.0 * true_rate(scenario), ladder(scenario)))),
    },
    Named {
        name: "spacing-gate",
        about: "starts spaced by 100 ms to 2 s after refusals, with a circuit",
        make: Some(|scenario, _| Box::new(SpacingGate::new(ladder(scenario)))),
    },
    Named {
        name: "independent",
        about: "each job retries on its own after 1, 2, 4, 4, ... s",
        make: Some(|scenario, _| Box::new(Independent::new(each_alone(scenario)))),
    },
    Named {
        name: "full-jitter",
        about: "each job on its own after a random time up to 1, 2, 4, ... 60 s",
        make: Some(|scenario, seed| {
            let (base, cap) = (Duration::from_secs(1), Duration::from_secs(60));
            Box::new(FullJitter::new(base, cap, scenario.max_attempts, Chance::of(seed)))
        }),
    },
    Named {
        name: "fixed",
        about: "a fixed pace at the true rate, which somebody has to know",
        make: Some(|scenario, _| Box::new(Fixed::new(true_rate(scenario), ladder(scenario)))),
    },
    Named {
        name: "ideal",
        about: "who knows the limit and calls in the moment in which a call passes",
        make: None,
    },
];

/// What each job waits that retries on its own.
pub(super) fn each_alone(scenario: &Scenario) -> Ladder {
    let rungs = [1, 2, 4].map(Duration::from_secs).to_vec();
    Ladder::new(rungs, scenario.max_attempts)
}

fn ladder(scenario: &Scenario) -> Ladder {
    Ladder::plain(scenario.max_attempts)
}

/// Calls a second that the limits let pass in the long run, at the start of the scenario.
fn true_rate(scenario: &Scenario) -> f64 {
    let per = |calls: u32, per_ms: u64| f64::from(calls) / Duration::from_millis(per_ms.max(1)).as_secs_f64();
    let rates = scenario.limits.iter().filter_map(|limit| match limit {
        Limit::Bucket { rate, .. } => Some(*rate),
        Limit::Window { calls, per_ms, .. } | Limit::Sliding { calls, per_ms } => Some(per(*calls, *per_ms)),
        Limit::Concurrent { most } => Some(per(*most, scenario.service_ms + scenario.latency_ms)),
        Limit::Chance { .. }
        | Limit::Outage { .. }
        | Limit::Once { .. }
        | Limit::Job { .. }
        | Limit::First { .. }
        | Limit::Always { .. } => None,
    });
    let lowest = rates.fold(f64::INFINITY, f64::min);
    if lowest.is_finite() {
        lowest
    } else {
        // Nothing limits: as fast as the calls in flight allow.
        per(scenario.concurrency, scenario.latency_ms.max(1))
    }
}

/// The strategy that runs unless another is named.
pub const DEFAULT_STRATEGY: &str = "evidence";

impl Named {
    /// The strategy of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        STRATEGIES.iter().find(|strategy| strategy.name == name)
    }

    /// The words for a name that no strategy has: the nearest, and all there are.
    #[must_use]
    pub fn unknown(found: &str) -> String {
        let names: Vec<&str> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
        super::nearest::known(found, &names)
    }
}
