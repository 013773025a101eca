//! Pacing strategies compared: a provider that limits, clients that find its pace, in virtual time.

mod bins;
mod books;
mod catalogue;
pub mod chart;
mod figures;
mod load;
mod nearest;
mod run;
mod scenario;
mod server;
mod strategies;
mod verdict;

pub use bins::{Bin, Bins};
pub use books::{BrokenOff, Run, Seen, Traced};
pub use catalogue::BuiltIn;
pub use figures::Figures;
pub use load::{MAX_SCENARIO_BYTES, Problem, ScenarioError};
pub use scenario::{Against, Change, Hint, Limit, Must, Other, Scenario, Vary};
pub use strategies::{DEFAULT_STRATEGY, Named, STRATEGIES};
pub use verdict::{Yardstick, laws_broken, missed, ratio};

use std::time::Duration;

use adjourn_pace::{Independent, Ladder, Strategy};

use run::Pacers;

/// Plays a scenario under a strategy and keeps each of its calls; the same seed always plays the same.
#[must_use]
pub fn play(scenario: &Scenario, strategy: &Named, seed: u64) -> Run {
    let mut trace = Vec::new();
    let run = watch(scenario, strategy, seed, &mut |seen| {
        if let Seen::Called(call) = seen {
            trace.push(call);
        }
    });
    Run { trace, ..run }
}

/// Plays a scenario under a strategy, and shows what happens to `seen` as it happens instead of keeping it.
pub fn watch(scenario: &Scenario, strategy: &Named, seed: u64, seen: &mut dyn FnMut(Seen)) -> Run {
    match strategy.make {
        Some(make) => run::run(scenario, &Pacers::Each(&|seed| make(scenario, seed)), seed, Some(seen)),
        None => run::run(scenario, &Pacers::Ideal, seed, Some(seen)),
    }
}

/// The time that a scenario's limits themselves need; zero where they need none, let nothing pass, or need more than can be played.
#[must_use]
pub fn ideal(scenario: &Scenario, seed: u64) -> Duration {
    let run = run::run(scenario, &Pacers::Ideal, seed, None);
    match run.broken_off {
        // The time of a part says nothing of the whole.
        Some(BrokenOff::Time) => Duration::ZERO,
        Some(BrokenOff::Calls) | None => run.makespan,
    }
}

/// How long what a scenario is compared with takes.
#[must_use]
pub fn reference(scenario: &Scenario, seed: u64) -> Duration {
    let on_its_own = |scenario: &Scenario, ladder: Ladder| {
        let make = |_| -> Box<dyn Strategy> { Box::new(Independent::new(ladder.clone())) };
        run::run(scenario, &Pacers::Each(&make), seed, None).makespan
    };
    match scenario.must.against {
        Against::Limit => ideal(scenario, seed),
        Against::Independent => on_its_own(scenario, strategies::each_alone(scenario)),
        Against::Ladder => on_its_own(scenario, Ladder::plain(scenario.max_attempts)),
        Against::Patient => {
            let alone = Scenario {
                jobs: 1,
                processes: 1,
                ..scenario.clone()
            };
            on_its_own(&alone, Ladder::plain(scenario.max_attempts))
        }
    }
}
