//! Given this outcome, these facts and this answer: expect this decision.

use alloc::string::ToString;
use std::{format, vec, vec::Vec};

use super::*;
use crate::{Cap, DeferralId, Identity};

mod a_failure;
mod a_hop;
mod a_verdict;
mod jitter;
mod law_5_capped;
mod properties;
mod the_default_handler;
mod the_ladder;

const HOUR: Duration = Duration::from_secs(3600);

fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

fn refusal() -> Signal {
    Signal::new("acme", now()).status(429).reason("burst")
}

/// Without jitter, so that a moment can be compared.
fn decided(policy: &Policy, facts: &Facts, outcome: &Outcome, verdict: &Verdict) -> Decision {
    decide(policy, facts, outcome, verdict, now(), 0)
}

fn refused(facts: &Facts, signal: Signal) -> Decision {
    decided(
        &Policy::default(),
        facts,
        &Outcome::Throttled(signal),
        &Verdict::Default,
    )
}

fn answered(facts: &Facts, signal: Signal, verdict: Verdict) -> Decision {
    decided(&Policy::default(), facts, &Outcome::Throttled(signal), &verdict)
}

fn failed(facts: &Facts, fault: Fault) -> Decision {
    decided(&Policy::default(), facts, &Outcome::Failed(fault), &Verdict::Default)
}

#[track_caller]
fn wait(decision: Decision) -> Wait {
    let Decision::Wait(wait) = &decision else {
        panic!("expected a wait, got {decision:?}")
    };
    wait.clone()
}

#[track_caller]
fn ending(decision: Decision) -> Ending {
    let Decision::End(ending) = &decision else {
        panic!("expected an end, got {decision:?}")
    };
    ending.clone()
}

fn deferred(times: u32) -> Facts {
    let counters = Counters {
        deferrals: times,
        ..Counters::default()
    };
    Facts {
        counters,
        first_deferred_at: Some(now() - HOUR),
        ..Facts::first_delivery()
    }
}

fn unnamed(times: u32, since: Timestamp) -> Facts {
    let counters = Counters {
        deferrals: times,
        unnamed: times,
        ..Counters::default()
    };
    Facts {
        counters,
        first_deferred_at: Some(since),
        unnamed_since: Some(since),
        ..Facts::first_delivery()
    }
}

const KINDS: [Kind; 6] = [
    Kind::Short,
    Kind::Daily,
    Kind::Monthly,
    Kind::Concurrency,
    Kind::AccountDisabled,
    Kind::Unknown,
];
