//! Given this message, this moment and this gate: expect this admission.

use alloc::string::ToString;
use std::format;

use super::*;
use crate::{Content, Counters, DeferralId};

mod ends;
mod properties;
mod waits;

fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

fn scope() -> ScopeKey {
    ScopeKey::scoped("acme", "entity", "7")
}

/// The envelope of a copy that was handed on: due then, with that much left once its delay was served.
fn copy(due: Timestamp, rest: Option<Duration>) -> Envelope {
    let mut envelope = Envelope::first(DeferralId::new("m-1"), now() - s(600), Content::of("q", None, b"{}"));
    envelope.identity = envelope.identity.next();
    envelope.counters = Counters {
        deferrals: 1,
        ..Counters::default()
    };
    envelope.reason = "burst".to_string();
    envelope.due = due;
    envelope.rest = rest;
    envelope
}

/// A fresh message of a repeatable job, whose gate is open.
fn fresh(scope: &ScopeKey) -> AdmissionFacts<'_> {
    AdmissionFacts {
        now: now(),
        envelope: None,
        standing: Standing::Unrecorded,
        queue: QueueKind::Standard,
        receive_count: 1,
        max_receive_count: Some(5),
        repeatable: true,
        not_before: None,
        deadline: None,
        scope,
        gate: &Passage::Open,
        time_left: true,
    }
}

const AT_ONCE: Admission = Admission::Admit { after: Duration::ZERO };

#[track_caller]
fn admitted(facts: &AdmissionFacts<'_>) -> Admission {
    admit(&Policy::default(), facts)
}

#[track_caller]
fn ending(admission: Admission) -> Ending {
    let Admission::End(ending) = &admission else {
        panic!("expected an end, got {admission:?}")
    };
    ending.clone()
}

#[track_caller]
fn park(admission: Admission) -> (Timestamp, Cause, String) {
    let Admission::Park { until, cause, reason } = &admission else {
        panic!("expected a park, got {admission:?}")
    };
    (*until, *cause, reason.clone())
}
