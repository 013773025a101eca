//! Lanes: calls that have a rate of their own, by their path.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Rate, RateBudget, terms::Terms};

/// Calls whose path has these segments are paced by another rate, instead of the budget's own.
///
/// `/exports` matches `/v2/exports/orders.csv` and not `/v2/exports-archive`: whole segments, next to each other, anywhere in the
/// path. What follows `?` or `#` is no path. An empty fragment matches every call.
pub struct RateRule {
    fragment: Box<str>,
    pub(super) lane: Lane,
    made: OnceLock<RateBudget>,
}

impl Clone for RateRule {
    /// A copy of a rule with a rate of its own has spent nothing.
    fn clone(&self) -> Self {
        Self {
            fragment: self.fragment.clone(),
            lane: self.lane.clone(),
            made: OnceLock::new(),
        }
    }
}

/// Whose rate a lane has.
#[derive(Clone)]
pub(super) enum Lane {
    /// One of its own, for each budget that has the rule.
    Own(Rate),
    /// A budget that others may have, too.
    Shared(RateBudget),
}

impl RateRule {
    /// Calls of these segments at a rate of their own. Pauses and places in flight are the budget's all the same.
    #[must_use]
    pub fn new(fragment: &str, rate: Rate) -> Self {
        Self {
            fragment: trimmed(fragment),
            lane: Lane::Own(rate),
            made: OnceLock::new(),
        }
    }

    /// Calls of these segments out of a budget that others may share: its rate, its pauses and its places in flight. They take a
    /// place in flight of the budget with the rule, too, and pause with it.
    #[must_use]
    pub fn shared(fragment: &str, budget: RateBudget) -> Self {
        Self {
            fragment: trimmed(fragment),
            lane: Lane::Shared(budget),
            made: OnceLock::new(),
        }
    }

    /// The segments.
    #[must_use]
    pub fn fragment(&self) -> &str {
        &self.fragment
    }

    /// The rate; none where it is that of a budget that others may share.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        match self.lane {
            Lane::Own(rate) => Some(rate),
            Lane::Shared(_) => None,
        }
    }

    /// The budget of the lane, made at its first use; for a rule that one budget alone has.
    pub(super) fn budget(&self, terms: &Terms) -> &RateBudget {
        match &self.lane {
            Lane::Shared(budget) => budget,
            Lane::Own(rate) => self.made.get_or_init(|| RateBudget::of(terms.of_lane(*rate))),
        }
    }

    /// The lane with a rate of its own, once it was used.
    pub(super) fn made(&self) -> Option<&RateBudget> {
        self.made.get()
    }

    /// The budget that others may have, too.
    pub(super) fn shared_budget(&self) -> Option<&RateBudget> {
        match &self.lane {
            Lane::Shared(budget) => Some(budget),
            Lane::Own(_) => None,
        }
    }

    /// Whether a call of that path is one.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let end = path.find(['?', '#']).unwrap_or(path.len());
        let mut rest = path.get(..end).unwrap_or_default();
        let wanted: &str = &self.fragment;
        // Each segment's beginning is a place where the fragment may stand.
        loop {
            rest = rest.trim_start_matches('/');
            if let Some(after) = rest.strip_prefix(wanted)
                && (after.is_empty() || after.starts_with('/') || wanted.is_empty())
            {
                return true;
            }
            match rest.find('/').and_then(|slash| rest.get(slash..)) {
                Some(next) => rest = next,
                None => return false,
            }
        }
    }
}

impl RateRule {
    /// Whether a call is one whose path is that, or that below `base`, which ends in no slash: jobs name the latter, and whoever sees
    /// the request itself the former.
    pub(crate) fn matches_below(&self, base: &str, path: &str) -> bool {
        self.matches(path)
            || base
                .match_indices('/')
                .any(|(slash, _)| self.begins_in(base, slash, path))
    }

    /// Whether the fragment stands where that segment of `base` begins, and ends there or in `path`.
    fn begins_in(&self, base: &str, slash: usize, path: &str) -> bool {
        let segments = base.get(slash..).unwrap_or_default().trim_start_matches('/');
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?', '#']);
        if let Some(rest) = segments.strip_prefix(&*self.fragment) {
            return ends(rest);
        }
        let further = self.fragment.strip_prefix(segments);
        let further = further.filter(|further| further.starts_with('/') && !segments.is_empty());
        further.and_then(|further| path.strip_prefix(further)).is_some_and(ends)
    }
}

fn trimmed(fragment: &str) -> Box<str> {
    Box::from(fragment.trim_matches('/'))
}

impl PartialEq for RateRule {
    /// The same calls at the same rate; out of the same budget, where it is a shared one.
    fn eq(&self, other: &Self) -> bool {
        let same_rate = match (&self.lane, &other.lane) {
            (Lane::Own(one), Lane::Own(another)) => one == another,
            (Lane::Shared(one), Lane::Shared(another)) => Arc::ptr_eq(&one.state, &another.state),
            (Lane::Own(_), Lane::Shared(_)) | (Lane::Shared(_), Lane::Own(_)) => false,
        };
        same_rate && self.fragment == other.fragment
    }
}

impl Eq for RateRule {}

impl fmt::Debug for RateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RateRule");
        shown.field("fragment", &self.fragment);
        match &self.lane {
            Lane::Own(rate) => shown.field("rate", rate),
            Lane::Shared(_) => shown.field("rate", &"shared"),
        };
        shown.finish()
    }
}
