//! What the name of a header says of a limit: its part, what it counts in, and what tells its limit from others.

use adjourn_core::Kind;

use crate::Unit;

/// A header's part in the state of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Limit,
    Remaining,
    Used,
    Reset,
}

/// What a header's name says: its part, what it counts in, and what tells its limit from others.
pub(super) fn by_name(name: &str) -> Option<(Role, Unit, String)> {
    // The commonest names, without taking them apart.
    let common = name
        .strip_prefix("x-ratelimit-")
        .or_else(|| name.strip_prefix("x-rate-limit-"));
    match common {
        Some("limit") => return Some((Role::Limit, Unit::Auto, String::new())),
        Some("remaining") => return Some((Role::Remaining, Unit::Auto, String::new())),
        Some("reset") => return Some((Role::Reset, Unit::Auto, String::new())),
        Some(_) | None => {}
    }
    if !is_related(name) || name.len() > 80 || is_ietf(name) {
        return None;
    }
    let (mut role, mut unit, mut stem) = (None, Unit::Auto, String::new());
    // A word for a limit is its part of the state only where no other word is.
    let (mut limit, mut after_rate) = (false, false);
    for token in name.split(['-', '_']) {
        let of_rate = std::mem::replace(&mut after_rate, token == "rate");
        match token {
            "x" | "ratelimit" | "ratelimits" | "rate" => {}
            "limit" if of_rate => {}
            "retry" => return None,
            "remaining" | "left" | "available" if role.is_none() => role = Some(Role::Remaining),
            "reset" | "resets" | "resettime" | "resetat" | "resetsat" | "reseton" | "resetson" | "next"
                if role.is_none() =>
            {
                role = Some(Role::Reset);
            }
            "resetafter" | "resetin" | "resetsin" | "wait" if role.is_none() => {
                role = Some(Role::Reset);
                unit = Unit::S;
            }
            "used" | "usage" | "consumed" | "current" if role.is_none() => role = Some(Role::Used),
            "after" | "in" | "seconds" | "secs" if role == Some(Role::Reset) => unit = Unit::S,
            "minutes" | "mins" if role == Some(Role::Reset) => unit = Unit::Min,
            "ms" | "milliseconds" | "millis" if role == Some(Role::Reset) => unit = Unit::Ms,
            "at" | "time" | "on" | "date" | "epoch" | "timestamp" | "utc" if role == Some(Role::Reset) => {}
            "limit" | "max" | "total" | "quota" if !limit => limit = true,
            _ => {
                let (token, part) = joined(token);
                role = role.or(part);
                if !stem.is_empty() {
                    stem.push('-');
                }
                stem.push_str(token);
            }
        }
    }
    let role = role.or_else(|| limit.then_some(Role::Limit))?;
    Some((role, unit, stem))
}

/// A word of a name and its part, where they are written as one: `userremaining`.
fn joined(token: &str) -> (&str, Option<Role>) {
    for (part, role) in [("remaining", Role::Remaining), ("reset", Role::Reset)] {
        if let Some(word) = token.strip_suffix(part) {
            return (word, Some(role));
        }
    }
    (token, None)
}

/// Whether a name has a word for a limit: most have not, and their third letters tell.
fn is_related(name: &str) -> bool {
    let bytes = name.as_bytes();
    let thirds = bytes.iter().enumerate().skip(2);
    thirds
        .filter(|(_, third)| matches!(third, b'm' | b'o' | b'r'))
        .any(|(index, _)| {
            let word = bytes.get(index - 2..index + 3);
            matches!(word, Some(b"limit" | b"quota" | b"throt"))
        })
}

/// The fields of the IETF draft, which have their own parser.
fn is_ietf(name: &str) -> bool {
    matches!(
        name,
        "ratelimit" | "ratelimit-policy" | "ratelimit-limit" | "ratelimit-remaining" | "ratelimit-reset"
    )
}

pub(super) fn kind_by_name(stem: &str) -> Kind {
    if stem.is_empty() {
        return Kind::Unknown;
    }
    let has = |words: &[&str]| words.iter().any(|word| stem.contains(word));
    if has(&["month"]) {
        Kind::Monthly
    } else if has(&["day", "daily", "24h"]) {
        Kind::Daily
    } else if has(&["concurren"]) {
        Kind::Concurrency
    } else if has(&["second", "minute", "hour", "burst", "minlimit"]) {
        Kind::Short
    } else {
        Kind::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_spelling() {
        for (name, role, unit, stem) in [
            ("x-ratelimit-limit", Role::Limit, Unit::Auto, ""),
            ("x-ratelimit-remaining", Role::Remaining, Unit::Auto, ""),
            ("x-ratelimit-reset", Role::Reset, Unit::Auto, ""),
            ("x-rate-limit-limit", Role::Limit, Unit::Auto, ""),
            ("x-rate-limit-remaining", Role::Remaining, Unit::Auto, ""),
            ("x-rate-limit-reset-after", Role::Reset, Unit::S, ""),
            ("x-ratelimit-reset-after", Role::Reset, Unit::S, ""),
            ("x-ratelimit-reset-ms", Role::Reset, Unit::Ms, ""),
            (
                "x-ratelimit-remaining-requests",
                Role::Remaining,
                Unit::Auto,
                "requests",
            ),
            ("x-ratelimit-reset-requests", Role::Reset, Unit::Auto, "requests"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                Role::Reset,
                Unit::Auto,
                "anthropic-input-tokens",
            ),
            (
                "anthropic-ratelimit-input-tokens-remaining",
                Role::Remaining,
                Unit::Auto,
                "anthropic-input-tokens",
            ),
            ("x-ratelimit-day-limit", Role::Limit, Unit::Auto, "day"),
            ("x-ratelimit-day-reset", Role::Reset, Unit::Auto, "day"),
            (
                "x-app-limit-24hour-remaining",
                Role::Remaining,
                Unit::Auto,
                "app-24hour",
            ),
            ("x-app-limit-24hour-reset", Role::Reset, Unit::Auto, "app-24hour"),
            ("x-sib-ratelimit-reset", Role::Reset, Unit::Auto, "sib"),
            ("x-daylimit-remaining", Role::Remaining, Unit::Auto, "daylimit"),
            ("ratelimit-resets-at", Role::Reset, Unit::Auto, ""),
            ("x-ratelimit-reset-seconds", Role::Reset, Unit::S, ""),
            ("x-ratelimit-reset-minutes", Role::Reset, Unit::Min, ""),
            ("x-mws-quota-resetson", Role::Reset, Unit::Auto, "mws"),
            ("x-ratelimit-next", Role::Reset, Unit::Auto, ""),
            ("x-throttle-wait-seconds", Role::Reset, Unit::S, "throttle"),
            ("x-rate-limit-time-reset-ms", Role::Reset, Unit::Ms, "time"),
            ("x-ratelimit-userremaining", Role::Remaining, Unit::Auto, "user"),
            ("x-ratelimit-userreset", Role::Reset, Unit::Auto, "user"),
            ("x-ratelimit-remaining-second", Role::Remaining, Unit::Auto, "second"),
            ("x-quota-used", Role::Used, Unit::Auto, ""),
            ("throttle-remaining", Role::Remaining, Unit::Auto, "throttle"),
        ] {
            assert_eq!(by_name(name), Some((role, unit, stem.to_string())), "{name}");
        }
        for name in [
            "ratelimit-reset",
            "retry-after",
            "x-ratelimit-retry-after",
            "content-type",
            "limi",
            "imit",
            "x-thro",
            "x-ratelimit-scope",
            "reset",
        ] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }
}
