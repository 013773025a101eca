//! What calls cost where a limit counts points, by a provider's contract.

use http::{HeaderMap, Method};
use serde_json::Value;

use crate::{Contract, Cost};

/// What a provider's calls cost in points.
///
/// A contract says it for each operation, or for any call: a fixed number, and where the response names what the call cost in truth.
/// A budget of points is spent by [`RateBudget::turn_costing`](crate::RateBudget::turn_costing) and set right by
/// [`InFlight::cost_was`](crate::InFlight::cost_was).
///
/// ```
/// use adjourn_http::{Contract, Costs};
/// use http::{HeaderMap, HeaderValue, Method};
///
/// let contract = Contract::parse(
///     r#"
///     [[operations]]
///     name = "search"
///     path = "/search"
///     [[costs]]
///     operation = "search"
///     points = 5
///     header = "X-Cost"
///     "#,
/// )?;
/// let costs = Costs::of(&contract);
/// assert_eq!(costs.points(&Method::GET, "/search/orders"), 5);
/// assert_eq!(costs.points(&Method::GET, "/orders"), 1);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-cost", HeaderValue::from_static("3"));
/// assert_eq!(costs.told(&Method::GET, "/search/orders", &headers, b""), Some(3));
/// # Ok::<(), adjourn_http::ContractError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Costs<'c> {
    contract: &'c Contract,
}

impl<'c> Costs<'c> {
    /// Those that a contract states.
    #[must_use]
    pub fn of(contract: &'c Contract) -> Self {
        Self { contract }
    }

    /// What a call is taken to cost before it is made; 1 where nothing is stated.
    #[must_use]
    pub fn points(&self, method: &Method, path: &str) -> u32 {
        let stated = self.holding(method, path).find_map(|cost| cost.points);
        stated.map_or(1, |points| u32::try_from(points).unwrap_or(u32::MAX))
    }

    /// What a response says that its call cost, rounded up to whole points: by the header or else by the field of the body.
    #[must_use]
    pub fn told(&self, method: &Method, path: &str, headers: &HeaderMap, body: &[u8]) -> Option<u32> {
        let mut parsed = None;
        self.holding(method, path).find_map(|cost| {
            let header = cost.header.as_deref().and_then(|name| headers.get(name)?.to_str().ok());
            let by_header = header.and_then(whole);
            by_header.or_else(|| {
                let field = cost.field.as_ref()?;
                let parsed = parsed.get_or_insert_with(|| serde_json::from_slice::<Value>(body).ok());
                let values = field.values(parsed.as_ref()?);
                values.iter().find_map(|value| match value.as_ref() {
                    Value::Number(number) => whole(&number.to_string()),
                    Value::String(text) => whole(text),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
                })
            })
        })
    }

    /// What is stated of a call: of its operation first, then of any call.
    fn holding(&self, method: &Method, path: &str) -> impl Iterator<Item = &'c Cost> {
        let contract = self.contract;
        let mut operations = contract.operations.iter();
        let operation = operations.find(|operation| operation.takes(method.as_str(), path));
        let name = operation.map(|operation| operation.name.as_str());
        let own = move |cost: &&Cost| name.is_some() && cost.operation.as_deref() == name;
        let any = contract.costs.iter().filter(|cost| cost.operation.is_none());
        contract.costs.iter().filter(own).chain(any)
    }
}

/// A number of points as text; a fraction counts as a whole one.
fn whole(text: &str) -> Option<u32> {
    let (number, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let points: u32 = number.parse().ok()?;
    let more = fraction.bytes().any(|digit| digit != b'0');
    Some(points.saturating_add(u32::from(more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_names_the_cost_and_a_fraction_counts_whole() {
        let contract = Contract::parse(
            "[[costs]]\npoints = 10\nheader = \"X-Cost\"\nfield = \"/extensions/cost/actualQueryCost\"",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let costs = Costs::of(&contract);
        let get = Method::GET;
        assert_eq!(costs.points(&get, "/graphql"), 10);
        for (body, expected) in [
            (r#"{"extensions":{"cost":{"actualQueryCost":7}}}"#, Some(7)),
            (r#"{"extensions":{"cost":{"actualQueryCost":7.2}}}"#, Some(8)),
            (r#"{"extensions":{"cost":{"actualQueryCost":"7.0"}}}"#, Some(7)),
            (r#"{"extensions":{"cost":{"actualQueryCost":-7}}}"#, None),
            (r#"{"extensions":{}}"#, None),
            ("no JSON", None),
        ] {
            assert_eq!(
                costs.told(&get, "/graphql", &HeaderMap::new(), body.as_bytes()),
                expected,
                "{body}"
            );
        }
    }
}
