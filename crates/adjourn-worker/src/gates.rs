//! The gates of this process, one for each scope, and the bridge to the store that shares them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, futures::Notified};

use adjourn_core::{Gate, Pace, Passage, ScopeKey, Timestamp};

use crate::{
    Counter, Terms,
    noted::{self, Noted},
    port::{CallEnd, FindPace, FoundPaceNote, Pacer, PacerTurn},
};

/// Above this many gates the idle ones are forgotten.
const MOST_GATES: usize = 10_000;
/// When a refused job asks again whose scope waits for a call in flight to end.
const AFTER_END: Duration = Duration::from_millis(100);

/// Every gate that this process knows.
#[derive(Debug, Default)]
pub struct Gates {
    gates: Mutex<HashMap<ScopeKey, Scope>>,
    ended: Notify,
    finder: Option<Arc<dyn FindPace>>,
    /// When the paces were last looked through for news, in milliseconds.
    noted_at: AtomicI64,
}

/// A scope's gate, and what finds its pace where none is configured.
#[derive(Debug)]
struct Scope {
    gate: Gate,
    pacer: Option<Box<dyn Pacer>>,
    /// What is parked until the provider's counter starts anew.
    reset: Option<Gate>,
    noted: Option<Noted>,
}

/// A call that has started: its number at its scope's pacer, where there is one.
pub(crate) type Started = Option<u64>;

impl Scope {
    /// What the gate says, and then the pacer.
    fn check(&mut self, now: Timestamp) -> Passage {
        let passage = self.gate.check(now);
        match (&passage, &mut self.pacer) {
            (Passage::Open, Some(pacer)) => match pacer.turn(now) {
                PacerTurn::Now => passage,
                PacerTurn::AfterEnd => Passage::Full,
                PacerTurn::At(until) => Passage::Closed {
                    until,
                    reason: "its pace is being found, and its next turn is then".to_string(),
                },
                PacerTurn::Reset(until) => Passage::Closed {
                    until,
                    reason: "its provider's own counter leaves no call until then".to_string(),
                },
            },
            _ => passage,
        }
    }

    /// Tells the pacer of a call that started, and the gate what the pacer believes now.
    fn tell(&mut self, started: Started, tell: impl FnOnce(&mut dyn Pacer, u64)) {
        if let (Some(pacer), Some(call)) = (&mut self.pacer, started) {
            tell(&mut **pacer, call);
            self.gate.find(found(&**pacer));
        }
    }

    /// A call starts, at the gate and at the pacer.
    fn start(&mut self, now: Timestamp) -> Started {
        self.gate.start(now);
        let pacer = self.pacer.as_mut()?;
        let started = pacer.started(now);
        self.gate.find(found(&**pacer));
        Some(started)
    }

    /// The moment before which its pacer lets nothing start, as far as that is known.
    fn pacer_opens_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self.pacer.as_mut()?.turn(now) {
            PacerTurn::At(turn) | PacerTurn::Reset(turn) => Some(turn),
            PacerTurn::Now | PacerTurn::AfterEnd => None,
        }
    }

    /// The moment for the next parked job to come back.
    fn turn(&mut self, now: Timestamp) -> Timestamp {
        let Some(opens_at) = self.pacer_opens_at(now).filter(|&at| at > self.gate.opens_at(now)) else {
            return self.gate.turn(now);
        };
        if self.gate.pace().is_some() {
            return self.gate.turn(opens_at);
        }
        // What waits for a counter's reset comes back on a slope from there, as from a closed gate.
        let reset = self.reset.get_or_insert_with(|| Gate::new(None, None));
        reset.close(opens_at, now, "");
        reset.turn(now)
    }

    /// Whether a new gate and a new pacer would know as much.
    fn is_idle(&mut self, now: Timestamp) -> bool {
        self.gate.is_idle(now) && self.pacer_opens_at(now).is_none()
    }
}

/// The pace that a pacer believes in, as a gate keeps it.
fn found(pacer: &dyn Pacer) -> Option<Pace> {
    pacer.interval().map(|interval| Pace { interval, burst: 1 })
}

impl Gates {
    /// Gates that find the pace of scopes whose rate nobody configured.
    pub(crate) fn finding(finder: Arc<dyn FindPace>) -> Self {
        Self {
            finder: Some(finder),
            ..Self::default()
        }
    }

    pub(crate) fn finds(&self) -> bool {
        self.finder.is_some()
    }

    /// The scopes whose pace is being found, with the time between two calls, where it is kept to one.
    #[must_use]
    pub fn paces(&self) -> Vec<(ScopeKey, Duration)> {
        self.lock()
            .iter()
            .filter_map(|(key, scope)| Some((key.clone(), scope.pacer.as_ref()?.interval()?)))
            .collect()
    }

    /// The paces that are worth writing down now: what has changed since it was, once a second at most unless it is the `last` time.
    /// They count as written down.
    pub(crate) fn news(&self, last: bool, now: Timestamp) -> Vec<FoundPaceNote> {
        if !self.finds() {
            return Vec::new();
        }
        let before = self.noted_at.load(Ordering::Relaxed);
        // A clock that stepped back is no reason to say nothing for an hour.
        let fresh = Timestamp::from_unix_ms(before) <= now && now.since(Timestamp::from_unix_ms(before)) < noted::EVERY;
        let taken = || {
            self.noted_at
                .compare_exchange(before, now.as_unix_ms(), Ordering::Relaxed, Ordering::Relaxed)
        };
        if !last && (fresh || taken().is_err()) {
            return Vec::new();
        }
        let mut news = Vec::new();
        for (key, scope) in self.lock().iter_mut() {
            let interval = scope.pacer.as_ref().and_then(|pacer| pacer.interval());
            if Noted::is_news(scope.noted, interval, now) {
                scope.noted = Noted::of(interval, now);
                news.push(FoundPaceNote {
                    scope: key.clone(),
                    interval,
                    at: now,
                });
            }
        }
        news
    }

    /// These were not written down after all. A pace that is kept to no longer is not said again: what was written of it grows old.
    pub(crate) fn not_noted(&self, paces: &[FoundPaceNote]) {
        let mut gates = self.lock();
        for pace in paces {
            if let Some(scope) = gates.get_mut(&pace.scope) {
                scope.noted = None;
            }
        }
    }

    /// What the gate of this job's scope says, or the provider's own, which holds every scope of it.
    #[must_use]
    pub fn check(&self, terms: &Terms, now: Timestamp) -> Passage {
        self.wider(terms, now)
            .unwrap_or_else(|| self.of(terms, now, |scope| scope.check(now)))
    }

    /// How many calls of a scope may start now, at most `most`.
    #[must_use]
    pub fn startable(&self, scope: &ScopeKey, now: Timestamp, most: u32) -> u32 {
        self.lock().get(scope).map_or(most, |scope| {
            let most = scope.gate.startable(now, most);
            scope.pacer.as_ref().map_or(most, |pacer| pacer.startable(now, most))
        })
    }

    /// The moment from which a scope's next call may start, as far as it is known.
    #[must_use]
    pub fn opens_at(&self, scope: &ScopeKey, now: Timestamp) -> Timestamp {
        self.lock().get_mut(scope).map_or(now, |scope| {
            let opens_at = scope.gate.opens_at(now);
            scope.pacer_opens_at(now).map_or(opens_at, |turn| opens_at.max(turn))
        })
    }

    /// The scopes that a refusal has closed: until when, and why.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Vec<(ScopeKey, Timestamp, String)> {
        self.lock()
            .iter()
            .filter_map(|(key, scope)| {
                scope
                    .gate
                    .closed(now)
                    .map(|(until, why)| (key.clone(), until, why.to_string()))
            })
            .collect()
    }

    /// Learns from the store that a scope is closed.
    pub fn learn(&self, scope: &ScopeKey, until: Timestamp, now: Timestamp, reason: &str) {
        if until > now {
            self.with(scope, now, |scope| {
                if scope.gate.opens_at(now) < until {
                    scope.gate.close(until, now, reason);
                }
            });
        }
    }

    /// Completes when a call of some scope has ended after this was made.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Starts a call if the gate lets it pass.
    pub(crate) fn start(&self, terms: &Terms, now: Timestamp) -> Result<Started, Passage> {
        if let Some(closed) = self.wider(terms, now) {
            return Err(closed);
        }
        self.of(terms, now, |scope| match scope.check(now) {
            Passage::Open => Ok(scope.start(now)),
            other @ (Passage::Closed { .. } | Passage::Full) => Err(other),
        })
    }

    pub(crate) fn give_back(&self, terms: &Terms, started: Started, now: Timestamp) {
        self.of(terms, now, |scope| {
            scope.gate.give_back();
            scope.tell(started, |pacer, call| pacer.unmade(call, now));
        });
        self.ended.notify_waiters();
    }

    /// A call ended, neither refused nor a success to learn from; `failed` where it says nothing of the limit either.
    pub(crate) fn end(&self, terms: &Terms, started: Started, failed: bool, counters: &[Counter], now: Timestamp) {
        let end = if failed { CallEnd::Failed } else { CallEnd::Passed };
        self.of(terms, now, |scope| {
            scope.gate.end();
            scope.tell(started, |pacer, call| pacer.answered(call, end, counters, now));
        });
        self.ended.notify_waiters();
    }

    pub(crate) fn succeed(
        &self,
        terms: &Terms,
        started: Started,
        started_at: Timestamp,
        counters: &[Counter],
        now: Timestamp,
    ) {
        self.of(terms, now, |scope| {
            scope.gate.succeed(started_at);
            scope.tell(started, |pacer, call| {
                pacer.answered(call, CallEnd::Passed, counters, now)
            });
        });
        self.ended.notify_waiters();
    }

    /// A call was refused, until that moment if one was named. Where the scope's pace is being found, returns its next turn.
    pub(crate) fn refuse(
        &self,
        terms: &Terms,
        started: Started,
        named: Option<Timestamp>,
        counters: &[Counter],
        now: Timestamp,
    ) -> Option<Timestamp> {
        let turn = self.of(terms, now, |scope| {
            scope.gate.end();
            scope.tell(started, |pacer, call| {
                pacer.answered(call, CallEnd::Refused(named), counters, now)
            });
            let pacer = scope.pacer.as_mut()?;
            match pacer.turn(now) {
                PacerTurn::Reset(turn) => Some(turn),
                _ if !pacer.knows() => None,
                PacerTurn::At(turn) => Some(turn),
                PacerTurn::Now => Some(now),
                PacerTurn::AfterEnd => Some(now + AFTER_END),
            }
        });
        self.ended.notify_waiters();
        turn.filter(|_| named.is_none())
    }

    pub(crate) fn close(&self, scope: &ScopeKey, until: Timestamp, now: Timestamp, reason: &str) -> bool {
        self.with(scope, now, |scope| scope.gate.close(until, now, reason))
    }

    pub(crate) fn turn(&self, terms: &Terms, now: Timestamp) -> Timestamp {
        self.of(terms, now, |scope| scope.turn(now))
    }

    /// The closing of the whole provider, where the job's scope is only a part of it.
    fn wider(&self, terms: &Terms, now: Timestamp) -> Option<Passage> {
        let provider = ScopeKey::provider(&terms.provider);
        if provider == terms.scope {
            return None;
        }
        let gates = self.lock();
        let (until, reason) = gates.get(&provider)?.gate.closed(now)?;
        Some(Passage::Closed {
            until,
            reason: reason.to_string(),
        })
    }

    /// A job's scope, under the limits that its terms name.
    fn of<T>(&self, terms: &Terms, now: Timestamp, act: impl FnOnce(&mut Scope) -> T) -> T {
        self.with(&terms.scope, now, |scope| {
            scope.gate.limit(terms.pace, terms.max_in_flight);
            match (&self.finder, terms.pace) {
                (Some(finder), None) => {
                    scope.pacer.get_or_insert_with(|| finder.pacer(&terms.scope));
                }
                (None, _) | (_, Some(_)) => scope.pacer = None,
            }
            act(scope)
        })
    }

    fn with<T>(&self, key: &ScopeKey, now: Timestamp, act: impl FnOnce(&mut Scope) -> T) -> T {
        let mut gates = self.lock();
        if gates.len() >= MOST_GATES && !gates.contains_key(key) {
            gates.retain(|_, scope| !scope.is_idle(now));
        }
        act(gates.entry(key.clone()).or_insert_with(|| Scope {
            gate: Gate::new(None, None),
            pacer: None,
            reset: None,
            noted: None,
        }))
    }

    /// A gate is never left half changed by a panic, so a poisoned lock is as good as another.
    fn lock(&self) -> MutexGuard<'_, HashMap<ScopeKey, Scope>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
