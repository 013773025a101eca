//! Parsers that only one provider needs.

use adjourn_core::{Interpretation, Source};
use serde_json::Value;

use super::{body::Body, clock::ProviderClock, fields, number, time::Told};

/// Shopify's GraphQL: `extensions.cost` holds what a query asks for, what its bucket has, and what comes back a second
/// (Shopify API limits, "throttle status"). The wait is the time in which the rest comes back.
pub(super) fn shopify_cost(body: &Body<'_>, clock: &ProviderClock) -> Option<Told<'static>> {
    let cost = body.value()?.pointer("/extensions/cost")?;
    let thousandths = |pointer: &str| {
        let value: &Value = cost.pointer(pointer)?;
        number::scaled(&fields::scalar(value)?, 3)
    };
    let wanted = thousandths("/requestedQueryCost")?;
    let there = thousandths("/throttleStatus/currentlyAvailable")?;
    let a_second = thousandths("/throttleStatus/restoreRate").filter(|&rate| rate > 0)?;
    let ms = u128::from(wanted.saturating_sub(there))
        .saturating_mul(1000)
        .div_ceil(u128::from(a_second));
    Some(Told {
        found: clock.span(u64::try_from(ms).unwrap_or(u64::MAX), Interpretation::Delay),
        source: Source::Parser,
        parser: "shopify-cost",
        place: "extensions.cost".into(),
        raw: format!("{} of {} at {} a second", there / 1000, wanted / 1000, a_second / 1000).into(),
    })
}
