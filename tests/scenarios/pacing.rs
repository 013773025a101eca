//! Every scenario that comes with adjourn, under adjourn's own strategy: what it must reach, and what is known to be missed.

use std::collections::{BTreeMap, BTreeSet};

use adjourn_sim::pacing::{BuiltIn, DEFAULT_STRATEGY, Named, Yardstick, missed, watch};

/// What all chance is drawn from; printed with each failure, and `adjourn simulate --seed` replays it.
const SEED: u64 = 1;

/// Variants that miss what they must reach, each group with the reason. One that is met may not stand here.
const KNOWN_MISSES: &[(&str, &[&str])] = &[
    (
        "the first job that is refused has to wait a minute, in a run that needs ten seconds: nobody can do that in eleven",
        &["hinted-100/hint=late/latency=0", "hinted-100/hint=late/latency=30"],
    ),
    (
        "of fifty processes that know nothing of each other the last come up slowly again when the others have finished",
        &["processes-50"],
    ),
];

fn known() -> BTreeMap<&'static str, &'static str> {
    let mut known = BTreeMap::new();
    for (reason, names) in KNOWN_MISSES {
        assert!(reason.split_whitespace().count() > 3, "a reason in words: {reason:?}");
        for name in *names {
            assert!(known.insert(*name, *reason).is_none(), "{name} stands twice");
        }
    }
    known
}

#[test]
fn every_scenario_reaches_what_it_must_but_for_the_known_misses() {
    let strategy = Named::find(DEFAULT_STRATEGY).expect("the default strategy is one of them");
    let known = known();
    let mut wrong = Vec::new();
    let mut played = BTreeSet::new();
    for built_in in BuiltIn::all() {
        let scenario = built_in.scenario().expect("its own test reads it");
        for variant in scenario.variants() {
            let run = watch(&variant, strategy, SEED, &mut |_| {});
            let missed = missed(&variant, &run, Yardstick::of(&variant, SEED).reference);
            match (known.get(variant.name.as_str()), missed.as_slice()) {
                (None, []) | (Some(_), [_, ..]) => {}
                (None, missed) => wrong.push(format!("{}: {}", variant.name, missed.join("; "))),
                (Some(reason), []) => wrong.push(format!("{}: is met, and stands in the list: {reason}", variant.name)),
            }
            played.insert(variant.name);
        }
    }
    let unknown = known.keys().filter(|name| !played.contains(**name));
    wrong.extend(unknown.map(|name| format!("{name}: stands in the list, and there is no such variant")));
    assert!(
        wrong.is_empty(),
        "{} of {} with seed {SEED}:\n{}",
        wrong.len(),
        played.len(),
        wrong.join("\n")
    );
}

/// Scenarios in which calls are refused by chance, and in how many of [`SEEDS`] seeds the strategy may miss what it must reach: a run may begin
/// with two refusals in a row, which no strategy can tell from a limit.
const BY_CHANCE: &[(&str, usize)] = &[
    ("flaky-5", 3),
    ("flaky-10", 4),
    ("flaky-20", 4),
    ("random-503", 2),
    ("stray-hints", 10),
];
const SEEDS: u64 = 40;
/// And none may take so many times as long: chance never makes it stand still.
const STANDSTILL: u32 = 30;

#[test]
fn what_is_refused_by_chance_is_found_out_with_nearly_every_seed() {
    let strategy = Named::find(DEFAULT_STRATEGY).expect("the default strategy is one of them");
    for &(name, allowed) in BY_CHANCE {
        let scenario = BuiltIn::find(name).expect(name).scenario().expect(name);
        for variant in scenario.variants() {
            let mut misses = Vec::new();
            for seed in 1..=SEEDS {
                let run = watch(&variant, strategy, seed, &mut |_| {});
                let reference = Yardstick::of(&variant, seed).reference;
                assert!(
                    run.makespan <= reference * STANDSTILL,
                    "{}, seed {seed}: {:?} where {reference:?} is usual",
                    variant.name,
                    run.makespan
                );
                let missed = missed(&variant, &run, reference);
                if !missed.is_empty() {
                    misses.push(format!("seed {seed}: {}", missed.join("; ")));
                }
            }
            assert!(
                misses.len() <= allowed,
                "{}, {} of {SEEDS}:\n{}",
                variant.name,
                misses.len(),
                misses.join("\n")
            );
        }
    }
}

#[test]
fn a_scenario_plays_the_same_again() {
    let strategy = Named::find(DEFAULT_STRATEGY).expect("the default strategy is one of them");
    for name in ["flaky-20", "processes-2", "stray-hints"] {
        let scenario = BuiltIn::find(name).expect(name).scenario().expect(name);
        for variant in scenario.variants() {
            let play = || {
                let mut seen = Vec::new();
                let run = watch(&variant, strategy, SEED, &mut |one| seen.push(one));
                (seen, run)
            };
            assert!(play() == play(), "{}, seed {SEED}", variant.name);
        }
    }
}
