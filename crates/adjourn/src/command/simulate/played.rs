//! Scenarios played under strategies, on as many processors as there are; what came of it stands in the order that was asked for.

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    sync::mpsc,
    thread,
    time::Duration,
};

use adjourn_sim::pacing::{Bins, Figures, Named, STRATEGIES, Scenario, Yardstick, laws_broken, watch};
use indicatif::ProgressBar;

use super::chosen::Chosen;
use crate::{environment::Environment, progress};

/// What is to be played, and what is to be kept of it.
pub(super) struct Wanted<'s> {
    pub(super) strategies: &'s [&'static Named],
    pub(super) seed: u64,
    /// Whether pictures are drawn of it.
    pub(super) charts: bool,
}

/// A scenario, played.
pub(super) struct Played {
    pub(super) scenario: Scenario,
    pub(super) variants: Vec<PlayedVariant>,
}

/// One of its variants, under each strategy.
pub(super) struct PlayedVariant {
    pub(super) runs: Vec<Run>,
    /// Who knows the limit, over time.
    pub(super) ideal: Bins,
}

/// One run.
pub(super) struct Run {
    pub(super) figures: Figures,
    pub(super) makespan: Duration,
    /// What no run may do, in words.
    pub(super) laws_broken: Vec<String>,
    /// Over time, where pictures are drawn.
    pub(super) bins: Bins,
}

impl Played {
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.variants.iter().flat_map(|variant| &variant.runs)
    }
}

/// Plays everything.
pub(super) fn all(chosen: &[Chosen], wanted: &Wanted<'_>, environment: &Environment) -> Vec<Played> {
    let tasks: Vec<(&str, &Scenario)> = chosen
        .iter()
        .flat_map(|chosen| {
            chosen
                .variants
                .iter()
                .map(|variant| (chosen.scenario.name.as_str(), variant))
        })
        .collect();
    let bars = progress::bars(environment);
    let length = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
    let bar = bars.add(ProgressBar::new(length).with_style(progress::style("{bar:28} {pos} of {len} played  {msg}")));
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut done = on_all_processors(&tasks, wanted, |name| {
        bar.set_message(name.to_string());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let of = |chosen: &Chosen| {
        let rest = done.split_off(chosen.variants.len().min(done.len()));
        Played {
            scenario: chosen.scenario.clone(),
            variants: std::mem::replace(&mut done, rest),
        }
    };
    chosen.iter().map(of).collect()
}

fn on_all_processors(
    tasks: &[(&str, &Scenario)],
    wanted: &Wanted<'_>,
    mut tell: impl FnMut(&str),
) -> Vec<PlayedVariant> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(tasks.len());
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let mut done: Vec<(usize, PlayedVariant)> = thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, variant)) = tasks.get(place) else {
                        return;
                    };
                    if send.send((place, one(name, variant, wanted))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let named = |(place, played): (usize, PlayedVariant)| {
            tell(tasks.get(place).map_or("", |(_, variant)| variant.name.as_str()));
            (place, played)
        };
        receive.into_iter().map(named).collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, played)| played).collect()
}

fn one(name: &str, variant: &Scenario, wanted: &Wanted<'_>) -> PlayedVariant {
    let yardstick = Yardstick::of(variant, wanted.seed);
    let seen = |strategy: &Named| {
        let mut bins = Bins::default();
        let run = watch(variant, strategy, wanted.seed, &mut |seen| {
            if wanted.charts {
                bins.see(seen);
            }
        });
        (run, bins)
    };
    let runs = wanted.strategies.iter().map(|strategy| {
        let (run, bins) = seen(strategy);
        Run {
            figures: Figures::of(name, variant, strategy.name, wanted.seed, &run, yardstick),
            makespan: run.makespan,
            laws_broken: laws_broken(&run),
            bins,
        }
    });
    let runs = runs.collect();
    let ideal = STRATEGIES.last().filter(|_| wanted.charts);
    PlayedVariant {
        runs,
        ideal: ideal.map(|ideal| seen(ideal).1).unwrap_or_default(),
    }
}
