//! The jobs that a poller holds leases of and has not started.

use std::collections::{HashMap, VecDeque};

use adjourn_core::{ScopeKey, Timestamp};
use adjourn_worker::Gates;

use crate::Lease;

/// A lease that cannot start within this time is given back: others may start it, and a cancellation reaches it.
pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_millis(250);

/// Leases ahead of the slots, so that a slot never waits for the disk; suspects apart.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    leases: VecDeque<Lease>,
    suspects: VecDeque<Lease>,
}

impl Ahead {
    pub(super) fn add(&mut self, lease: Lease) {
        if lease.is_suspect {
            self.suspects.push_back(lease);
        } else {
            self.leases.push_back(lease);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len() + self.suspects.len()
    }

    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// How many of each scope are held.
    pub(super) fn by_scope(&self) -> HashMap<ScopeKey, u32> {
        let mut counts = HashMap::new();
        for lease in self.leases.iter().chain(&self.suspects) {
            *counts.entry(lease.scope.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// Up to `slots` jobs that may start now, in their order, and those whose scope opens too late to wait for here.
    pub(super) fn startable(&mut self, slots: usize, gates: &Gates, now: Timestamp) -> (Vec<Lease>, Vec<Lease>) {
        let (mut start, mut give_back, mut keep) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut left: HashMap<ScopeKey, u32> = HashMap::new();
        while start.len() < slots
            && let Some(lease) = self.leases.pop_front()
        {
            let left = left
                .entry(lease.scope.clone())
                .or_insert_with(|| gates.startable(&lease.scope, now, u32::try_from(slots).unwrap_or(u32::MAX)));
            if *left > 0 {
                *left -= 1;
                start.push(lease);
            } else if gates.opens_at(&lease.scope, now).since(now) > PATIENCE {
                give_back.push(lease);
            } else {
                keep.push_back(lease);
            }
        }
        keep.append(&mut self.leases);
        self.leases = keep;
        (start, give_back)
    }

    /// The suspects that may run together: those of a first crash up to `slots`, one of several crashes alone.
    pub(super) fn next_suspects(&mut self, slots: usize) -> Vec<Lease> {
        let alone = |lease: &Lease| lease.message.receive_count > 2;
        if self.suspects.front().is_some_and(alone) {
            return self.suspects.pop_front().into_iter().collect();
        }
        let together = self
            .suspects
            .iter()
            .take(slots)
            .take_while(|lease| !alone(lease))
            .count();
        self.suspects.drain(..together).collect()
    }

    /// When the first of the held scopes opens.
    pub(super) fn opens_at(&self, gates: &Gates, now: Timestamp) -> Option<Timestamp> {
        self.leases
            .iter()
            .map(|lease| gates.opens_at(&lease.scope, now))
            .filter(|&at| at > now)
            .min()
    }

    /// Those that have been held for longer than [`PATIENCE`].
    pub(super) fn stale(&mut self, now: Timestamp) -> Vec<Lease> {
        let fresh = |lease: &Lease| now.since(lease.message.received_at) <= PATIENCE;
        let (keep, stale) = self.leases.drain(..).partition(fresh);
        self.leases = keep;
        stale.into()
    }

    /// All of them.
    pub(super) fn empty(&mut self) -> Vec<Lease> {
        self.leases.drain(..).chain(self.suspects.drain(..)).collect()
    }
}
