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
    /// How many of each scope are held, suspects included; asked on every turn of the loop.
    by_scope: HashMap<ScopeKey, u32>,
}

impl Ahead {
    pub(super) fn add(&mut self, lease: Lease) {
        *self.by_scope.entry(lease.scope.clone()).or_insert(0) += 1;
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
    pub(super) fn by_scope(&self) -> &HashMap<ScopeKey, u32> {
        &self.by_scope
    }

    fn gone(&mut self, leases: &[Lease]) {
        for lease in leases {
            let left = self.by_scope.get_mut(&lease.scope).map(|count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == Some(0) {
                self.by_scope.remove(&lease.scope);
            }
        }
    }

    /// Up to `slots` jobs that may start now, in their order, and those whose scope opens too late to wait for here.
    pub(super) fn startable(&mut self, slots: usize, gates: &Gates, now: Timestamp) -> (Vec<Lease>, Vec<Lease>) {
        let (mut start, mut give_back, mut keep) = (Vec::new(), Vec::new(), Vec::new());
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
                keep.push(lease);
            }
        }
        for lease in keep.into_iter().rev() {
            self.leases.push_front(lease);
        }
        self.gone(&start);
        self.gone(&give_back);
        (start, give_back)
    }

    /// The suspects that may run together: those of a first crash up to `slots`, one of several crashes alone.
    pub(super) fn next_suspects(&mut self, slots: usize) -> Vec<Lease> {
        let alone = |lease: &Lease| lease.message.receive_count > 2;
        let together = match self.suspects.front() {
            Some(first) if alone(first) => 1,
            _ => {
                let first_crashes = self.suspects.iter().take_while(|lease| !alone(lease));
                first_crashes.take(slots).count()
            }
        };
        let next: Vec<Lease> = self.suspects.drain(..together).collect();
        self.gone(&next);
        next
    }

    /// When the first of the held scopes opens.
    pub(super) fn opens_at(&self, gates: &Gates, now: Timestamp) -> Option<Timestamp> {
        self.by_scope
            .keys()
            .map(|scope| gates.opens_at(scope, now))
            .filter(|&at| at > now)
            .min()
    }

    /// Those that have been held for longer than [`PATIENCE`].
    pub(super) fn stale(&mut self, now: Timestamp) -> Vec<Lease> {
        let fresh = |lease: &Lease| now.since(lease.message.received_at) <= PATIENCE;
        let (keep, stale): (Vec<Lease>, Vec<Lease>) = self.leases.drain(..).partition(fresh);
        self.leases = keep.into();
        self.gone(&stale);
        stale
    }

    /// All of them.
    pub(super) fn empty(&mut self) -> Vec<Lease> {
        self.by_scope.clear();
        self.leases.drain(..).chain(self.suspects.drain(..)).collect()
    }
}
