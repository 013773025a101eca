//! How far jitter spreads, and that a step's jitter repeats.

use super::*;

#[test]
fn of_a_step_is_the_same_each_time_and_another_for_another_step() {
    let step = Identity {
        id: DeferralId::new("m-1"),
        epoch: 0,
        sequence: 4,
    };
    let until = |step: &Identity| {
        let outcome = Outcome::Throttled(refusal().retry_at(now() + s(600)));
        let facts = Facts::first_delivery();
        wait(decide(
            &Policy::default(),
            &facts,
            &outcome,
            &Verdict::Default,
            now(),
            step.entropy(),
        ))
        .until
    };
    assert_eq!(until(&step), until(&step.clone()));
    let steps: Vec<Timestamp> = (0..50)
        .map(|n| {
            until(&Identity {
                id: DeferralId::new(&format!("m-{n}")),
                epoch: 0,
                sequence: 1,
            })
        })
        .collect();
    let mut distinct = steps.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(
        distinct.len() > 40,
        "50 jobs of one moment spread: {} moments",
        distinct.len()
    );
}

#[test]
fn spreads_over_a_tenth_and_at_most_thirty_seconds() {
    let added = |span, entropy| {
        let outcome = Outcome::Throttled(refusal().retry_at(now() + span));
        let facts = Facts::first_delivery();
        wait(decide(
            &Policy::default(),
            &facts,
            &outcome,
            &Verdict::Default,
            now(),
            entropy,
        ))
        .jitter
    };
    assert_eq!(added(s(100), 0), Duration::ZERO);
    assert_eq!(added(s(100), 10_000), s(10));
    assert_eq!(added(s(100), 5_000), s(5));
    assert_eq!(added(HOUR, 10_000), s(30));
    assert_eq!(
        added(ms(1001), 10_000),
        ms(100),
        "whole milliseconds, and never more than a tenth"
    );
}
