//! What the demo provider wrote down: every call, and what that says of the caller.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use adjourn_core::Timestamp;

use super::provider::is_early;

/// One call as the provider saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whose job it was.
    pub tenant: String,
    /// Which job.
    pub job: String,
    /// The key by which the caller marks the attempts of one job.
    pub idempotency_key: Option<String>,
    /// When it came.
    pub arrived_at: Timestamp,
    /// When its answer was ready; none while it is being answered, and for good when the caller went away meanwhile.
    pub answered_at: Option<Timestamp>,
    /// For a refusal the moment that it named, or that of the refusal itself where it named none; none for an accepted call.
    pub refused_until: Option<Timestamp>,
}

impl Call {
    /// Whether the provider did what was asked.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.refused_until.is_none()
    }
}

/// The provider's books.
#[derive(Clone, Debug)]
pub struct Books {
    opened_at: Timestamp,
    calls: Vec<Call>,
    accepted: usize,
    refused: usize,
}

/// What the books say of a set of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Jobs that the provider did.
    pub done: usize,
    /// Jobs that it refused at least once.
    pub deferred: usize,
    /// Refusals.
    pub refusals: usize,
    /// Calls of a job before the moment that its refusal had named.
    pub early_calls: usize,
    /// Jobs that it never did.
    pub lost: usize,
    /// Times that it did a job again.
    pub duplicates: usize,
    /// From the opening of the books to the last answer of an accepted call.
    pub makespan: Duration,
    /// For each tenant, from the opening of the books to its last accepted call's answer.
    pub tenants: BTreeMap<String, Duration>,
}

impl Books {
    pub(super) fn opened_at(now: Timestamp) -> Self {
        Self {
            opened_at: now,
            calls: Vec::new(),
            accepted: 0,
            refused: 0,
        }
    }

    pub(super) fn accepted(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.accepted = self.accepted.saturating_add(1);
        self.calls.len().saturating_sub(1)
    }

    pub(super) fn refused(&mut self, call: Call) {
        self.calls.push(call);
        self.refused = self.refused.saturating_add(1);
    }

    pub(super) fn answered(&mut self, number: usize, at: Timestamp) {
        if let Some(call) = self.calls.get_mut(number) {
            call.answered_at = Some(at);
        }
    }

    /// Every call, in the order of arrival.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// How many calls were accepted, and how many refused.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.accepted, self.refused)
    }

    /// What the books say of `jobs`. A call for any other job counts as a duplicate: nobody asked for it.
    #[must_use]
    pub fn tally<'a>(&self, jobs: impl IntoIterator<Item = &'a str>) -> Tally {
        let asked: HashSet<&str> = jobs.into_iter().collect();
        let mut done: HashSet<&str> = HashSet::new();
        let mut refused_until: HashMap<&str, Option<Timestamp>> = HashMap::new();
        let mut tally = Tally {
            done: 0,
            deferred: 0,
            refusals: self.refused,
            early_calls: 0,
            lost: 0,
            duplicates: 0,
            makespan: Duration::ZERO,
            tenants: BTreeMap::new(),
        };
        for call in &self.calls {
            let told = refused_until.get(call.job.as_str()).copied().flatten();
            tally.early_calls = tally
                .early_calls
                .saturating_add(usize::from(is_early(told, call.arrived_at)));
            if let Some(until) = call.refused_until {
                refused_until.insert(&call.job, told.max(Some(until)));
                continue;
            }
            if !asked.contains(call.job.as_str()) || !done.insert(&call.job) {
                tally.duplicates = tally.duplicates.saturating_add(1);
            }
            let took = call.answered_at.unwrap_or(call.arrived_at).since(self.opened_at);
            tally.makespan = tally.makespan.max(took);
            let tenants_own = tally.tenants.entry(call.tenant.clone()).or_default();
            *tenants_own = took.max(*tenants_own);
        }
        tally.done = done.intersection(&asked).count();
        tally.lost = asked.len().saturating_sub(tally.done);
        tally.deferred = refused_until.len();
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(ms)
    }

    fn call(job: &str, arrived: i64, refused_until: Option<i64>) -> Call {
        Call {
            tenant: "t".to_string(),
            job: job.to_string(),
            idempotency_key: None,
            arrived_at: at(arrived),
            answered_at: Some(at(arrived + 10)),
            refused_until: refused_until.map(at),
        }
    }

    fn books(calls: &[Call]) -> Books {
        let mut books = Books::opened_at(at(1_000));
        for call in calls {
            if call.is_accepted() {
                books.accepted(call.clone());
            } else {
                books.refused(call.clone());
            }
        }
        books
    }

    #[test]
    fn a_job_that_came_back_when_it_was_told_is_deferred_and_done() {
        let tally = books(&[call("a", 1_100, Some(2_100)), call("a", 2_100, None)]).tally(["a"]);
        assert_eq!(
            (
                tally.done,
                tally.deferred,
                tally.refusals,
                tally.early_calls,
                tally.lost,
                tally.duplicates
            ),
            (1, 1, 1, 0, 0, 0)
        );
        assert_eq!(tally.makespan, Duration::from_millis(1_110));
    }

    #[test]
    fn an_early_call_a_lost_job_and_a_repeated_job_are_each_seen() {
        let early = books(&[call("a", 1_100, Some(2_100)), call("a", 2_099, None)]).tally(["a"]);
        assert_eq!(early.early_calls, 1);
        let lost = books(&[call("a", 1_100, None)]).tally(["a", "b"]);
        assert_eq!((lost.done, lost.lost), (1, 1));
        let twice = books(&[call("a", 1_100, None), call("a", 1_200, None)]).tally(["a"]);
        assert_eq!((twice.done, twice.duplicates), (1, 1));
        let stranger = books(&[call("x", 1_100, None)]).tally(["a"]);
        assert_eq!((stranger.done, stranger.duplicates, stranger.lost), (0, 1, 1));
    }

    #[test]
    fn a_later_refusal_that_names_an_earlier_moment_does_not_shorten_the_first() {
        let tally = books(&[
            call("a", 1_100, Some(5_000)),
            call("a", 1_200, Some(1_300)),
            call("a", 4_000, None),
        ])
        .tally(["a"]);
        assert_eq!(tally.early_calls, 2);
    }
}
