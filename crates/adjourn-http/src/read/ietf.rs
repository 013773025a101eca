//! `RateLimit` and `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers, in all of its generations.
//!
//! -00 to -03: `RateLimit-Limit: 100, 100;w=10` with `RateLimit-Remaining` and `RateLimit-Reset`. -04 to -06: the same three, with
//! the policies in `RateLimit-Policy: 100;w=10`. -07: `RateLimit: limit=100, remaining=50, reset=5`. From -08:
//! `RateLimit: "default";r=50;t=30` and `RateLimit-Policy: "default";q=100;w=10`. Which it is, the fields and keys tell.

use std::borrow::Cow;

use adjourn_core::Kind;
use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parameters, Parser};

use super::{
    Ignored,
    bucket::{Bucket, Reset, kind_of},
    clock::{ProviderClock, is_cached},
    number, retry_after, value,
};
use crate::Unit;

/// A policy: quota, and window in seconds.
struct Policy {
    name: Option<String>,
    quota: Option<i64>,
    seconds: Option<u64>,
    /// Whether its quota unit (`qu`) is another one than requests.
    counts_others: bool,
}

/// Every limit that the fields tell of. What is malformed is `ignored`, as the draft demands.
pub(super) fn buckets<'h>(
    headers: &'h HeaderMap,
    clock: &ProviderClock,
    ignored: &mut Vec<Ignored>,
) -> Vec<Bucket<'h>> {
    let tells = |name: &str| matches!(name, "ratelimit" | "ratelimit-reset" | "ratelimit-remaining");
    if !headers.keys().any(|name| tells(name.as_str())) {
        return Vec::new();
    }
    if is_cached(headers) {
        ignored.push(Ignored::new("ratelimit", "", "the response comes out of a cache"));
        return Vec::new();
    }
    let policies = policies(headers);
    if let Some(text) = joined(headers, "ratelimit") {
        let buckets = combined(&text, &policies, clock);
        if buckets.is_empty() {
            ignored.push(Ignored::new("ratelimit", &text, "is malformed"));
        }
        return buckets;
    }
    single(headers, &policies, clock, ignored).into_iter().collect()
}

fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers
        .get_all(name)
        .iter()
        .map(|value| retry_after::text(value.as_bytes()));
    let first = values.next()?.into_owned();
    Some(values.fold(first, |all, value| format!("{all}, {value}")))
}

/// The `RateLimit` field of -07 and later. What is malformed of it is left out.
fn combined<'h>(text: &str, policies: &[Policy], clock: &ProviderClock) -> Vec<Bucket<'h>> {
    if let Ok(list) = Parser::new(text).parse::<List>() {
        let items = list.iter().filter_map(|entry| match entry {
            ListEntry::Item(item) => Some(item),
            ListEntry::InnerList(_) => None,
        });
        return items.filter_map(|item| by_item(item, policies, clock)).collect();
    }
    let Ok(dictionary) = Parser::new(text).parse::<Dictionary>() else {
        return Vec::new();
    };
    let get = |name: &str| {
        dictionary.iter().find_map(|(key, entry)| match entry {
            ListEntry::Item(item) if key.as_str() == name => Some(&item.bare_item),
            ListEntry::Item(_) | ListEntry::InnerList(_) => None,
        })
    };
    let Some((remaining, after)) = state(get("remaining"), get("reset")) else {
        return Vec::new();
    };
    let limit = get("limit").and_then(decimal).as_deref().and_then(number::amount);
    vec![Bucket {
        limit,
        remaining,
        kind: kind(policies, None, limit),
        reset: after.and_then(|seconds| reset_of("ratelimit", &seconds.to_string(), clock)),
        ..Bucket::default()
    }]
}

fn by_item<'h>(item: &Item, policies: &[Policy], clock: &ProviderClock) -> Option<Bucket<'h>> {
    let name = name(&item.bare_item)?;
    let get = |key: &str| item.params.iter().find(|(name, _)| name.as_str() == key);
    let (remaining, after) = state(get("r").map(|(_, r)| r), get("t").map(|(_, t)| t))?;
    let policy = policies.iter().find(|policy| policy.name.as_ref() == Some(&name));
    Some(Bucket {
        limit: policy.and_then(|policy| policy.quota),
        remaining,
        kind: kind(policies, Some(&name), None),
        reset: after.and_then(|seconds| reset_of("ratelimit", &seconds.to_string(), clock)),
        counts_others: policy.is_some_and(|policy| policy.counts_others),
        name,
        ..Bucket::default()
    })
}

/// What remains, and in how many seconds the limit starts anew. Both are integers that are not negative; where one is anything
/// else, the whole is malformed, and so it is where there is neither.
fn state(remaining: Option<&BareItem>, after: Option<&BareItem>) -> Option<(Option<i64>, Option<i64>)> {
    let count = |item: Option<&BareItem>| match item {
        None => Some(None),
        Some(item) => item.as_integer().map(i64::from).filter(|count| *count >= 0).map(Some),
    };
    let (remaining, after) = (count(remaining)?, count(after)?);
    (remaining.is_some() || after.is_some()).then_some((remaining, after))
}

/// The three fields of -00 to -06.
fn single<'h>(
    headers: &'h HeaderMap,
    policies: &[Policy],
    clock: &ProviderClock,
    ignored: &mut Vec<Ignored>,
) -> Option<Bucket<'h>> {
    let get = |name: &str| headers.get(name).map(|value| retry_after::text(value.as_bytes()));
    let limit = get("ratelimit-limit").and_then(|text| text.split(',').next().and_then(number::amount));
    let raw = get("ratelimit-reset");
    let reset = raw.as_deref().and_then(|raw| reset_of("ratelimit-reset", raw, clock));
    if let Some(raw) = &raw
        && reset.is_none()
    {
        ignored.push(Ignored::new("ratelimit-reset", raw, "is no time that can be believed"));
    }
    let remaining = get("ratelimit-remaining").and_then(|text| number::amount(&text));
    (remaining.is_some() || reset.is_some()).then(|| Bucket {
        limit,
        remaining,
        kind: kind(policies, None, limit),
        reset,
        ..Bucket::default()
    })
}

fn reset_of<'h>(header: &'h str, text: &str, clock: &ProviderClock) -> Option<Reset<'h>> {
    let found = value::moment(text, Unit::S, clock)?;
    Some(Reset {
        header: Cow::Borrowed(header),
        raw: Cow::Owned(text.to_string()),
        found,
    })
}

/// The policies of `RateLimit-Policy`, or of the older `RateLimit-Limit` behind its first member.
fn policies(headers: &HeaderMap) -> Vec<Policy> {
    let texts = ["ratelimit-policy", "ratelimit-limit"]
        .into_iter()
        .filter_map(|name| joined(headers, name));
    texts
        .filter_map(|text| Parser::new(&text).parse::<List>().ok())
        .flatten()
        .filter_map(|entry| match entry {
            ListEntry::Item(item) => Some(policy(&item)),
            ListEntry::InnerList(_) => None,
        })
        .collect()
}

fn policy(item: &Item) -> Policy {
    let bare = decimal(&item.bare_item);
    let mut parameters = item.params.iter();
    let unit = parameters.find(|(key, _)| key.as_str() == "qu");
    Policy {
        name: name(&item.bare_item),
        quota: bare
            .or_else(|| parameter(&item.params, "q"))
            .as_deref()
            .and_then(number::amount),
        seconds: parameter(&item.params, "w").and_then(|text| number::scaled(&text, 0)),
        counts_others: unit
            .and_then(|(_, unit)| name(unit))
            .is_some_and(|unit| unit != "requests"),
    }
}

/// A string, or the token that some write instead.
fn name(item: &BareItem) -> Option<String> {
    let text = item.as_string().map(|text| text.as_str().to_string());
    text.or_else(|| item.as_token().map(|token| token.as_str().to_string()))
}

/// The kind of the policy of that name, or of that quota, or of the only one.
fn kind(policies: &[Policy], name: Option<&str>, quota: Option<i64>) -> Kind {
    let with_window = || policies.iter().filter(|policy| policy.seconds.is_some());
    let mut named = with_window().filter(|policy| name.is_some() && policy.name.as_deref() == name);
    let mut sized = with_window().filter(|policy| quota.is_some() && policy.quota == quota);
    let only = || {
        if with_window().count() == 1 {
            with_window().next()
        } else {
            None
        }
    };
    let found = named.next().or_else(|| sized.next()).or_else(only);
    found
        .and_then(|policy| policy.seconds)
        .map_or(Kind::Unknown, |seconds| kind_of(seconds.saturating_mul(1000)))
}

fn parameter(parameters: &Parameters, name: &str) -> Option<String> {
    let (_, value) = parameters.iter().find(|(key, _)| key.as_str() == name)?;
    decimal(value)
}

fn decimal(item: &BareItem) -> Option<String> {
    let integer = item.as_integer().map(|integer| i64::from(integer).to_string());
    integer.or_else(|| item.as_decimal().map(|decimal| decimal.to_string()))
}
