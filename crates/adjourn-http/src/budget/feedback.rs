//! What a response teaches its budget.

use std::{
    hash::BuildHasher,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use adjourn_core::Timestamp;
use adjourn_pace::{Answer, Counter, Moment, Next, Outcome, Ticket};

use super::{event, queue, state::State};
use crate::Reading;

/// What a response came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feedback {
    /// Whether it was a refusal for a limit.
    pub refused: bool,
    /// How long the provider wants no call: the moment at which the budget's pause ends, a little later than the response names.
    /// The call's own repetition waits for that moment and for no other. Of a strategy, the moment that it finds.
    pub retry_after: Option<Duration>,
}

/// What a response says, in a budget's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heard {
    status: u16,
    refused: bool,
    /// Nothing remains of a limit.
    spent: bool,
    /// How long it wants no call.
    pause: Option<Duration>,
    /// Whether it is a refusal that names a moment, be that at once.
    names: bool,
    /// How long the call that was answered can wait itself.
    room: Duration,
    counter: Option<Told>,
}

/// What whoever calls knows of a pause, beside the response that asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseBounds {
    /// The least wait after a refusal that names a moment.
    pub(crate) least: Duration,
    /// How long the call that was answered can wait: jitter does not make the pause longer than that, if what was named fits.
    pub(crate) room: Duration,
}

/// A limit's own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    limit: Option<u64>,
    remaining: u64,
    resets_in: Option<Duration>,
}

impl Heard {
    /// Of a reading that was made for `received_at`.
    pub(super) fn of(status: u16, reading: &Reading, received_at: Timestamp) -> Self {
        let refused = reading.is_limited();
        let limits = reading.limits().iter();
        let counts = || {
            limits.clone().filter_map(|limit| {
                Some(Told {
                    limit: limit.limit.and_then(|limit| u64::try_from(limit).ok()),
                    remaining: u64::try_from(limit.remaining?.max(0)).ok()?,
                    resets_in: limit.resets_at.map(|at| at.since(received_at)),
                })
            })
        };
        let spent = counts().filter(|told| told.remaining == 0);
        let resets_in = spent.clone().filter_map(|told| told.resets_in).max();
        let mut names = false;
        // Elsewhere Retry-After says when to look at a result, or where it has moved to, and nothing about limits.
        let pause = if refused || status == 503 {
            // When bytes come back concerns the call that sent so many.
            let named = reading.not_before().filter(|_| !reading.is_of_others());
            names = refused && named.is_some();
            named.map(|at| at.since(received_at)).or(resets_in)
        } else {
            resets_in
        };
        Self {
            status,
            refused,
            spent: spent.count() > 0,
            pause: pause.filter(|pause| !pause.is_zero()),
            names,
            room: Duration::MAX,
            counter: counts().min_by_key(|told| told.remaining),
        }
    }

    /// The same within the caller's bounds, which are asked for where there is a pause.
    pub(super) fn within(mut self, bounds: impl FnOnce() -> PauseBounds) -> Self {
        if self.pause.is_none() && !self.names {
            return self;
        }
        let PauseBounds { least, room } = bounds();
        if self.names {
            self.pause = Some(self.pause.unwrap_or_default().max(least)).filter(|pause| !pause.is_zero());
        }
        Self { room, ..self }
    }

    fn outcome(&self) -> Outcome {
        if self.refused {
            Outcome::Refused
        } else if self.status >= 500 {
            Outcome::Failed
        } else {
            Outcome::Passed
        }
    }
}

/// The budget learns. `whole` is what a pause holds, `lane` what paced the call.
pub(super) fn apply(
    whole: &Arc<State>,
    lane: &Arc<State>,
    sent_at: Moment,
    ticket: Option<Ticket>,
    heard: &Heard,
) -> Feedback {
    let now = lane.now();
    let mut feedback = Feedback {
        refused: heard.refused,
        retry_after: None,
    };
    let slower = (heard.refused || heard.spent) && refuse(lane, sent_at, now);
    let faster = !heard.refused && !heard.spent && heard.status < 500 && lane.is_throttled() && pass(lane, now);
    if let Some(told) = heard.counter.filter(|_| !heard.refused)
        && let Some(quota) = lane.quota()
    {
        // Calls in flight may or may not be in that count; this one is.
        let others = u64::from(lane.in_flight().saturating_sub(1));
        let left = u32::try_from(told.remaining.saturating_sub(others)).unwrap_or(u32::MAX);
        lane.gcra.keep_at_most(quota, left, now);
    }
    if let Some(named) = heard.pause {
        let until = pause(whole, lane, named, heard, now);
        feedback.retry_after = Some(until.since(now));
    }
    if let Some(ticket) = ticket {
        let again = find(lane, ticket, heard, now);
        feedback.retry_after = feedback.retry_after.max(again);
    }
    if heard.pause.is_some() {
        // Whoever waits in any lane waits for the end of the pause now.
        for state in whole.lanes().iter().chain([whole]) {
            retime(state, now);
        }
    }
    if heard.pause.is_some() || slower {
        retime(lane, now);
    }
    if faster || slower || ticket.is_some() {
        queue::drive(lane);
    }
    feedback
}

fn retime(state: &Arc<State>, now: Moment) {
    if state.waiting.load(Ordering::Acquire) == 0 {
        return;
    }
    if let Some(live) = state.lock().as_deref_mut() {
        live.retime(state, now);
    }
    // Who is first now looks after the rest.
    queue::settle(state);
}

/// The rate falls, once for all the calls that were sent before. Says whether it did.
fn refuse(lane: &State, sent_at: Moment, now: Moment) -> bool {
    let Some(first) = lane.terms.throttle else {
        return false;
    };
    let fell = {
        let mut guard = lane.lock();
        let live = guard.get_or_insert_default();
        let fell = live.throttle.get_or_insert(first).refused(sent_at, now);
        lane.throttled_to(live);
        fell
    };
    if fell && let Some(quota) = lane.quota() {
        // Whatever was saved up by our count is not there by the provider's.
        lane.gcra.keep_at_most(quota, 0, now);
    }
    fell
}

/// The rate rises towards the configured one.
fn pass(lane: &State, now: Moment) -> bool {
    let mut guard = lane.lock();
    let Some(live) = guard.as_deref_mut() else {
        return false;
    };
    let Some(throttle) = live.throttle.as_mut() else {
        return false;
    };
    throttle.passed(now);
    lane.throttled_to(live);
    true
}

/// Everything pauses for the span that was named and up to a tenth of it. Answers with the end of the pause: one moment, whoever
/// asks.
fn pause(whole: &Arc<State>, lane: &Arc<State>, named: Duration, heard: &Heard, now: Moment) -> Moment {
    let status = Some(heard.status);
    let jitter = {
        let mut guard = whole.lock();
        let live = guard.get_or_insert_default();
        // Refusals of one burst prolong one pause; another share for each would only make it the longest of them.
        let running = whole.open(now).err().and_then(|hold| hold.until);
        match running {
            None => live.jitter = chance(),
            // It lasts as long as this one asks for: whoever waits for its end has that moment already.
            Some(until) if until >= now + named && lane.open(now).is_err_and(|hold| hold.until >= Some(until)) => {
                return until;
            }
            Some(_) => {}
        }
        live.jitter
    };
    let until = now + longer(named, jitter, heard.room);
    let until = whole.pause(until, status);
    if !Arc::ptr_eq(whole, lane) {
        lane.pause(until, status);
    }
    for other in whole.own_lanes() {
        if !Arc::ptr_eq(&other, lane) {
            other.reopen_slowly(until);
        }
    }
    event::pauses(whole, status, until.since(now));
    until
}

/// A span and a share of its tenth, of which no more than fits into `room` turns a wait that fits into one that does not.
fn longer(named: Duration, jitter: u32, room: Duration) -> Duration {
    let most = named / 10;
    let longer = named.saturating_add(most.mul_f64(f64::from(jitter) / f64::from(u32::MAX)));
    if named <= room { longer.min(room) } else { longer }
}

fn chance() -> u32 {
    // Each new state draws other keys, seeded by the machine.
    let bits = std::hash::RandomState::new().hash_one(0_u8);
    u32::try_from(bits >> 32).unwrap_or(u32::MAX)
}

/// The strategy learns. Answers with how long the call has to wait before it is repeated.
fn find(lane: &State, ticket: Ticket, heard: &Heard, now: Moment) -> Option<Duration> {
    let mut guard = lane.lock();
    let live = guard.as_deref_mut()?;
    let found = live.found.as_mut()?;
    let counter = heard.counter.and_then(|told| {
        Some(Counter {
            limit: told.limit,
            remaining: told.remaining,
            resets_at: now + told.resets_in?,
        })
    });
    let answer = Answer {
        outcome: heard.outcome(),
        retry_at: heard.pause.map(|pause| now + pause),
        counter,
    };
    match found.answered(ticket, &answer, now) {
        Next::Again { at, .. } => Some(at.since(now)),
        Next::Settled | Next::GiveUp => None,
    }
}
