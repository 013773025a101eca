//! The gates of this process, one for each scope, and the bridge to the store that shares them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, futures::Notified};

use adjourn_core::{Gate, Passage, ScopeKey, Timestamp};

use crate::Terms;

/// Above this many gates the idle ones are forgotten.
const MOST_GATES: usize = 10_000;

/// Every gate that this process knows.
#[derive(Debug, Default)]
pub struct Gates {
    gates: Mutex<HashMap<ScopeKey, Gate>>,
    ended: Notify,
}

impl Gates {
    /// What the gate of this job's scope says, or the provider's own, which holds every scope of it.
    #[must_use]
    pub fn check(&self, terms: &Terms, now: Timestamp) -> Passage {
        self.wider(terms, now)
            .unwrap_or_else(|| self.of(terms, now, |gate| gate.check(now)))
    }

    /// How many calls of a scope may start now, at most `most`.
    #[must_use]
    pub fn startable(&self, scope: &ScopeKey, now: Timestamp, most: u32) -> u32 {
        self.lock().get(scope).map_or(most, |gate| gate.startable(now, most))
    }

    /// The moment from which a scope's next call may start, as far as it is known.
    #[must_use]
    pub fn opens_at(&self, scope: &ScopeKey, now: Timestamp) -> Timestamp {
        self.lock().get(scope).map_or(now, |gate| gate.opens_at(now))
    }

    /// The scopes that a refusal has closed: until when, and why.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Vec<(ScopeKey, Timestamp, String)> {
        self.lock()
            .iter()
            .filter_map(|(scope, gate)| {
                gate.closed(now)
                    .map(|(until, why)| (scope.clone(), until, why.to_string()))
            })
            .collect()
    }

    /// Learns from the store that a scope is closed.
    pub fn learn(&self, scope: &ScopeKey, until: Timestamp, now: Timestamp, reason: &str) {
        if until > now {
            self.with(scope, now, |gate| {
                if gate.opens_at(now) < until {
                    gate.close(until, now, reason);
                }
            });
        }
    }

    /// Completes when a call of some scope has ended after this was made.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Starts a call if the gate lets it pass.
    pub(crate) fn start(&self, terms: &Terms, now: Timestamp) -> Passage {
        if let Some(closed) = self.wider(terms, now) {
            return closed;
        }
        self.of(terms, now, |gate| {
            let passage = gate.check(now);
            if passage == Passage::Open {
                gate.start(now);
            }
            passage
        })
    }

    pub(crate) fn give_back(&self, terms: &Terms, now: Timestamp) {
        self.of(terms, now, Gate::give_back);
        self.ended.notify_waiters();
    }

    pub(crate) fn end(&self, terms: &Terms, now: Timestamp) {
        self.of(terms, now, Gate::end);
        self.ended.notify_waiters();
    }

    pub(crate) fn succeed(&self, terms: &Terms, started_at: Timestamp, now: Timestamp) {
        self.of(terms, now, |gate| gate.succeed(started_at));
        self.ended.notify_waiters();
    }

    pub(crate) fn close(&self, scope: &ScopeKey, until: Timestamp, now: Timestamp, reason: &str) -> bool {
        self.with(scope, now, |gate| gate.close(until, now, reason))
    }

    pub(crate) fn turn(&self, terms: &Terms, now: Timestamp) -> Timestamp {
        self.of(terms, now, |gate| gate.turn(now))
    }

    /// The closing of the whole provider, where the job's scope is only a part of it.
    fn wider(&self, terms: &Terms, now: Timestamp) -> Option<Passage> {
        let provider = ScopeKey::provider(&terms.provider);
        if provider == terms.scope {
            return None;
        }
        let gates = self.lock();
        let (until, reason) = gates.get(&provider)?.closed(now)?;
        Some(Passage::Closed {
            until,
            reason: reason.to_string(),
        })
    }

    /// The gate of a job's scope, under the limits that its terms name.
    fn of<T>(&self, terms: &Terms, now: Timestamp, act: impl FnOnce(&mut Gate) -> T) -> T {
        self.with(&terms.scope, now, |gate| {
            gate.limit(terms.pace, terms.max_in_flight);
            act(gate)
        })
    }

    fn with<T>(&self, scope: &ScopeKey, now: Timestamp, act: impl FnOnce(&mut Gate) -> T) -> T {
        let mut gates = self.lock();
        if gates.len() >= MOST_GATES && !gates.contains_key(scope) {
            gates.retain(|_, gate| !gate.is_idle(now));
        }
        act(gates.entry(scope.clone()).or_insert_with(|| Gate::new(None, None)))
    }

    /// A gate is never left half changed by a panic, so a poisoned lock is as good as another.
    fn lock(&self) -> MutexGuard<'_, HashMap<ScopeKey, Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
