//! Who waits for a place in flight: the first call of each lane, in order of arrival.
//!
//! A lane's calls wait in the lane's queue, whose pace is the lane's own. A place is the whole budget's. So a first call that has
//! its start and lacks a place is written down where places are given, by when it arrived; one that its lane's rate holds is
//! not, and holds up nobody for whom a place is free.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::Ordering},
};

use super::{
    queue,
    state::{Live, State},
};

/// Whose first calls wait for a place of a budget, and where its own first call does.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The lanes, the budget itself included, by when their first calls arrived.
    wanted_by: BTreeMap<u64, Weak<State>>,
    /// The budget where this one's first call is written down, and when that call arrived.
    wants: Option<(Weak<State>, u64)>,
}

impl Places {
    /// Whether a call that arrived before that one waits for a place.
    pub(super) fn are_wanted_before(&self, arrival: u64) -> bool {
        self.wanted_by
            .first_key_value()
            .is_some_and(|(first, _)| *first < arrival)
    }
}

impl State {
    /// Whether a call that arrived before that one waits for a place here.
    pub(super) fn is_wanted_before(&self, arrival: u64) -> bool {
        self.terms.max_in_flight.is_some()
            && self.waiting.load(Ordering::SeqCst) > 0
            && self
                .lock()
                .as_deref()
                .is_some_and(|live| live.places.are_wanted_before(arrival))
    }
}

/// The first call of `lane` waits for a place of `at`. Says whether that is news. `live` is the lane's; whoever has a lane's lock may
/// take that of the budget with the lane, and never the other way round.
pub(super) fn want(at: &Arc<State>, lane: &Arc<State>, live: &mut Live, arrival: u64) -> bool {
    let known = live.places.wants.as_ref();
    if known.is_some_and(|(there, since)| *since == arrival && there.as_ptr() == Arc::as_ptr(at)) {
        return false;
    }
    want_none(lane, live);
    live.places.wants = Some((Arc::downgrade(at), arrival));
    if Arc::ptr_eq(at, lane) {
        live.places.wanted_by.insert(arrival, Arc::downgrade(lane));
    } else {
        let mut there = at.lock();
        let places = &mut there.get_or_insert_default().places;
        places.wanted_by.insert(arrival, Arc::downgrade(lane));
        at.waiting.fetch_add(1, Ordering::SeqCst);
    }
    true
}

/// The first call of `lane` waits for no place, or there is none any more.
pub(super) fn want_none(lane: &Arc<State>, live: &mut Live) {
    let Some((at, arrival)) = live.places.wants.take() else {
        return;
    };
    if at.as_ptr() == Arc::as_ptr(lane) {
        live.places.wanted_by.remove(&arrival);
    } else if let Some(at) = at.upgrade() {
        forget(&at, arrival);
    }
}

fn forget(at: &State, arrival: u64) {
    let mut there = at.lock();
    let places = there.as_deref_mut().map(|live| &mut live.places);
    if places.and_then(|places| places.wanted_by.remove(&arrival)).is_some() {
        at.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A place in flight became free: it is for the call that has waited longest of those that lack nothing else.
pub(super) fn place_is_free(budget: &Arc<State>) {
    while budget.waiting.load(Ordering::SeqCst) > 0 && !budget.is_full() {
        let first = budget.lock().as_deref().and_then(|live| {
            let (arrival, lane) = live.places.wanted_by.first_key_value()?;
            Some((*arrival, Weak::clone(lane)))
        });
        let Some((arrival, lane)) = first else { break };
        let Some(lane) = lane.upgrade() else {
            forget(budget, arrival);
            continue;
        };
        // It stays written down until it has its place, so that nobody who comes meanwhile takes that.
        for other in queue::look_after(&lane).into_iter().flatten() {
            if !Arc::ptr_eq(&other, budget) {
                place_is_free(&other);
            }
        }
    }
    queue::drive(budget);
}
