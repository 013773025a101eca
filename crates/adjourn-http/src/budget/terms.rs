//! What a budget is set to.

use std::sync::Arc;

use adjourn_pace::{Quota, Throttle};

use super::{Rate, RateRule, clock::Clock};
use crate::Contract;

/// What a budget is set to; shared by all scopes of a provider.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// None where nobody tells it.
    pub(super) rate: Option<Rate>,
    /// The same in the algorithm's terms.
    pub(super) quota: Option<Quota>,
    pub(super) max_in_flight: Option<u32>,
    pub(super) rules: Vec<RateRule>,
    /// What calls' paths may be below: the path of the provider's `base_url`, without a slash at its end.
    pub(super) base: Box<str>,
    pub(super) throttle: Option<Throttle>,
    pub(super) clock: Clock,
    pub(super) provider: Box<str>,
    pub(super) contract: Option<Arc<Contract>>,
    /// Whether many scopes share these terms, each with lanes of its own.
    pub(super) of_scopes: bool,
}

impl Terms {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self {
            rate,
            quota: rate.map(Rate::quota),
            max_in_flight: None,
            rules: Vec::new(),
            base: Box::from(""),
            throttle: Some(Throttle::default()),
            clock: Clock::default(),
            provider: Box::from(""),
            contract: None,
            of_scopes: false,
        }
    }

    /// Those of a lane with a rate of its own.
    pub(super) fn of_lane(&self, rate: Rate) -> Self {
        Self {
            throttle: self.throttle,
            clock: self.clock.clone(),
            provider: self.provider.clone(),
            ..Self::new(Some(rate))
        }
    }
}
