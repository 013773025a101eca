//! The turns of one call: each request that it makes takes its own, right before it is sent.

use std::time::Duration;

use adjourn_core::{Outcome, Signal, Timestamp};
use http::{HeaderMap, StatusCode};

use super::{Answer, Attempt, Requester, outgoing::Order};
use crate::{
    Allowance, Costs, InFlight, RateBudget,
    budget::PauseBounds,
    waiting::{self, TooLate},
};

/// What paces a call: the budget of its scope, as far as whoever called may be kept waiting.
#[derive(Clone, Copy)]
pub(super) struct Pacing<'a> {
    pub(super) budget: &'a RateBudget,
    pub(super) allowance: &'a Allowance,
}

/// A request's turn, taken.
pub(super) struct Started {
    pub(super) in_flight: InFlight,
    /// The path by which it cost points, where the rate counts them.
    costs_by: Option<Box<str>>,
}

impl Started {
    /// Sets right what the request cost, where its response says that.
    pub(super) fn cost_told_by(&self, order: &Order<'_>, headers: &HeaderMap, body: &[u8]) {
        if let (Some(path), Some(contract)) = (&self.costs_by, order.provider.contract())
            && let Some(points) = Costs::of(contract).told(&order.job.method, path, headers, body)
        {
            self.in_flight.cost_was(points);
        }
    }
}

/// A request had no turn in time and was not made. It is the caller's at once: there is nothing to wait for that would fit.
pub(super) struct Unmade {
    pub(super) signal: Box<Signal>,
}

impl Unmade {
    /// The same after a request that was answered with that status: not all of the call was left undone.
    fn after(self, answered: Option<StatusCode>) -> Self {
        let Some(status) = answered else { return self };
        let reason = format!("{}; the request before it was answered {status}", self.signal.why());
        Self {
            signal: Box::new(self.signal.reason(&reason)),
        }
    }
}

impl From<Unmade> for Attempt {
    fn from(unmade: Unmade) -> Self {
        Answer::of(Outcome::Throttled(*unmade.signal)).into()
    }
}

impl Requester {
    /// Waits for the turn of a request for that path and takes it; none where nothing paces. `answered` is the status of the request
    /// that led to this one. Nothing may be waited for between this and the send.
    pub(super) async fn turn(
        &self,
        order: &Order<'_>,
        path: &str,
        answered: Option<StatusCode>,
    ) -> Result<Option<Started>, Unmade> {
        let Some(Pacing { budget, allowance }) = order.pacing else {
            return Ok(None);
        };
        // Few contracts state costs, and few rates count them.
        let costs = order.provider.contract().filter(|contract| !contract.costs.is_empty());
        let costs = costs.filter(|_| budget.counts_points(path));
        let cost = costs.map_or(1, |contract| Costs::of(contract).points(&order.job.method, path));
        let timeout = order.provider.timeout();
        match waiting::turn(budget, path, cost, allowance, &self.inner.now, timeout).await {
            Ok(in_flight) => Ok(Some(Started {
                in_flight,
                costs_by: costs.map(|_| Box::from(path)),
            })),
            Err(too_late) => Err(self.unmade(order, too_late).after(answered)),
        }
    }

    pub(super) fn unmade(&self, order: &Order<'_>, too_late: TooLate) -> Unmade {
        let signal = waiting::refused(order.provider.name(), too_late, (self.inner.now)());
        Unmade {
            signal: Box::new(signal),
        }
    }

    /// When a further request of a call has to be over, which began to wait for its turn at that moment: what was waited is no time of the
    /// provider's.
    pub(super) fn ends_later(&self, order: &Order<'_>, ends_at: Timestamp, waits_since: Timestamp) -> Timestamp {
        let ends_at = ends_at + (self.inner.now)().since(waits_since);
        order.must_end_by.map_or(ends_at, |at| at.min(ends_at))
    }

    /// What the caller knows of a pause that a response asks for.
    pub(super) fn pause_bounds(&self, order: &Order<'_>, now: Timestamp) -> PauseBounds {
        let timeout = order.provider.timeout();
        let contract = order.provider.contract();
        let room = order.pacing.map(|pacing| pacing.allowance.budget(now, timeout));
        PauseBounds {
            least: self
                .waits
                .least(contract.and_then(|contract| contract.min_retry_after_ms)),
            room: room.unwrap_or(Duration::MAX),
        }
    }

    /// How long a token may take: as long as the caller may be kept waiting, and one request.
    pub(super) fn token_within(&self, order: &Order<'_>, allowance: &Allowance) -> Duration {
        let (now, timeout) = ((self.inner.now)(), order.provider.timeout());
        let within = waiting::patience(allowance, now, timeout).saturating_add(timeout);
        order.must_end_by.map_or(within, |at| within.min(at.since(now)))
    }
}
