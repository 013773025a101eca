//! Fields of bodies that name a moment, by the names that many providers use.

use std::borrow::Cow;

use serde_json::Value;

use crate::Unit;

/// How deep and how far a body is looked through.
pub(super) const DEEPEST: usize = 8;
pub(super) const MOST: usize = 2000;

/// What a field's value is counted in, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// As `Retry-After`: seconds, or a date.
    Wait,
    /// Milliseconds from now.
    WaitMs,
    /// A moment or a span, in that unit; mostly by its form and size.
    In(Unit),
}

/// A field that names a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field<'v> {
    pub(super) name: Cow<'v, str>,
    pub(super) text: Cow<'v, str>,
    pub(super) named: Named,
}

/// Every such field, in the order in which the tree has them.
pub(super) fn moments(root: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    let mut left = MOST;
    look(root, "", 0, &mut left, &mut found);
    found
}

fn look<'v>(value: &'v Value, parent: &str, depth: usize, left: &mut usize, found: &mut Vec<Field<'v>>) {
    if depth > DEEPEST || *left == 0 || found.len() >= 16 {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                *left = left.saturating_sub(1);
                look(item, parent, depth + 1, left, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                *left = left.saturating_sub(1);
                if let Some(text) = duration(name, parent, member) {
                    found.push(Field {
                        name: Cow::Borrowed(name),
                        text: Cow::Owned(text),
                        named: Named::Wait,
                    });
                } else if matches!(member, Value::Array(_) | Value::Object(_)) {
                    look(member, name, depth + 1, left, found);
                } else if let Some(named) = by_name(name, parent)
                    && let Some(text) = scalar(member)
                {
                    found.push(Field {
                        name: Cow::Borrowed(name),
                        text,
                        named,
                    });
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A wait that stands in its parts, as protobuf's Duration does where a printer does not know it:
/// `"retry_delay": {"seconds": 12, "nanos": 500000000}`.
fn duration(name: &str, parent: &str, member: &Value) -> Option<String> {
    let parts = member.as_object()?;
    let seconds = scalar(parts.get("seconds")?)?;
    if by_name(name, parent) != Some(Named::Wait) {
        return None;
    }
    let nanos = parts.get("nanos").and_then(Value::as_u64).unwrap_or_default();
    Some(format!("{seconds}.{nanos:09}")).filter(|_| nanos < 1_000_000_000)
}

/// A number or a text, as text.
pub(super) fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) => Some(Cow::Owned(plain(number))),
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(truth) => Some(Cow::Borrowed(if *truth { "true" } else { "false" })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// As [`scalar`], of a value that nobody else needs.
pub(super) fn scalar_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            scalar(&value).map(Cow::into_owned)
        }
    }
}

/// A number without an exponent: a double has at most some 310 digits before its point.
fn plain(number: &serde_json::Number) -> String {
    let text = number.to_string();
    match number.as_f64() {
        Some(float) if text.contains(['e', 'E']) => format!("{float}"),
        _ => text,
    }
}

/// What a member of that name inside a member of the other counts in.
pub(super) fn by_name(name: &str, parent: &str) -> Option<Named> {
    // No such name is shorter or longer; the names of a customer's own fields may be.
    let mut letters = [0; 40];
    if name.len() < 5 || name.len() > letters.len() {
        return None;
    }
    let mut length = 0;
    for (place, byte) in letters.iter_mut().zip(name.bytes().filter(u8::is_ascii_alphanumeric)) {
        *place = byte.to_ascii_lowercase();
        length += 1;
    }
    let letters = letters.get(..length)?;
    // The headers' names stand in bodies too.
    let letters = match letters.strip_prefix(b"x") {
        Some(name) if name.starts_with(b"rate") || name.starts_with(b"retry") => name,
        _ => letters,
    };
    Some(match letters {
        b"retryafter"
        | b"retryafterseconds"
        | b"retryaftersecs"
        | b"retryaftersec"
        | b"retryafters"
        | b"retryin"
        | b"retryinseconds"
        | b"retryinsecs"
        | b"retrydelay"
        | b"retrydelayseconds"
        | b"retryseconds"
        | b"retrytime"
        | b"waitseconds"
        | b"waitsecs"
        | b"waitinseconds"
        | b"waittime"
        | b"waittimeseconds"
        | b"waittimeinseconds"
        | b"waitfor"
        | b"secondsuntilreset"
        | b"secondstoreset"
        | b"secondstowait"
        | b"secondsuntilretry"
        | b"secondsuntilnextrequest"
        | b"throttleseconds"
        | b"backoff"
        | b"backoffseconds"
        | b"cooldown"
        | b"cooldownseconds"
        | b"availablein"
        | b"availableinseconds"
        | b"tryagainin"
        | b"tryagaininseconds"
        | b"tryagainafter"
        | b"ratelimitretryafter"
        | b"quotaresetdelay"
        | b"secondsremaining" => Named::Wait,
        b"retryafterms"
        | b"retryaftermillis"
        | b"retryaftermilliseconds"
        | b"retryinms"
        | b"retryinmilliseconds"
        | b"retrydelayms"
        | b"waitms"
        | b"waittimems"
        | b"waitmilliseconds"
        | b"resetinms"
        | b"resetafterms"
        | b"msuntilreset"
        | b"msbeforenext"
        | b"backoffms"
        | b"cooldownms"
        | b"timetoresetms" => Named::WaitMs,
        b"retryafterminutes" | b"retryinminutes" | b"waitminutes" | b"waittimeminutes" | b"minutesuntilreset" => {
            Named::In(Unit::Min)
        }
        // A span or an epoch, which its size tells.
        b"resetms" | b"ratelimitresetms" | b"resetatms" | b"resettimems" => Named::In(Unit::Ms),
        b"ratelimitreset"
        | b"ratelimitresets"
        | b"ratelimitresettime"
        | b"ratelimitresettimestamp"
        | b"ratelimitresetat"
        | b"ratelimitresetson"
        | b"ratelimitresetin"
        | b"ratelimitresetafter"
        | b"ratelimitresetseconds"
        | b"ratelimitnext"
        | b"ratelimiteduntil"
        | b"resetat"
        | b"resetsat"
        | b"resettime"
        | b"resettimestamp"
        | b"resetdate"
        | b"reseton"
        | b"resetson"
        | b"resetin"
        | b"resetsin"
        | b"resetinseconds"
        | b"resetsinseconds"
        | b"resetseconds"
        | b"resetafter"
        | b"resetafterseconds"
        | b"retryat"
        | b"retryafterat"
        | b"retryafterdate"
        | b"retryaftertime"
        | b"retryaftertimestamp"
        | b"retrytimestamp"
        | b"retrynotbefore"
        | b"recommendedretrytime"
        | b"nextretryat"
        | b"nextretrytime"
        | b"nextallowedat"
        | b"nextallowedtime"
        | b"nextaccesstime"
        | b"nextattemptat"
        | b"nextavailableat"
        | b"nextavailabletime"
        | b"nextrequestat"
        | b"nextrequesttime"
        | b"nextreset"
        | b"nextresetat"
        | b"nextresettime"
        | b"availableat"
        | b"nextvalidrequestdate"
        | b"quotaresetat"
        | b"quotaresetsat"
        | b"quotaresetdate"
        | b"quotaresettime"
        | b"quotaresettimestamp"
        | b"limitreset"
        | b"limitresetat"
        | b"limitresetsat"
        | b"limitresettime"
        | b"ratereset"
        | b"windowresetat"
        | b"windowresetsat"
        | b"waituntil"
        | b"throttleduntil"
        | b"banneduntil"
        | b"blockeduntil"
        | b"lockeduntil"
        | b"timetoreset" => Named::In(Unit::Auto),
        b"reset" | b"resets"
            if ["limit", "rate", "quota", "throttl", "error"]
                .iter()
                .any(|word| contains(parent, word)) =>
        {
            Named::In(Unit::Auto)
        }
        _ => return None,
    })
}

fn contains(name: &str, word: &str) -> bool {
    name.len() <= 40 && name.to_ascii_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_by_their_names() {
        let body = json!({
            "error": {"message": "slow", "retry_after": 64.57, "details": [{"retryDelay": "34.07s"}]},
            "retryAfterMs": "250", "RateLimitResetTime": "2026-07-10T20:38:49Z", "limit": {"reset": 1_783_714_457},
            "form": {"reset": true}, "huge": {"Retry-After": 1e308}
        });
        let found: Vec<(String, String, Named)> = moments(&body)
            .into_iter()
            .map(|field| (field.name.into_owned(), field.text.into_owned(), field.named))
            .collect();
        let has = |name: &str, text: &str, named| found.contains(&(name.to_string(), text.to_string(), named));
        assert!(has("retry_after", "64.57", Named::Wait));
        assert!(has("retryDelay", "34.07s", Named::Wait));
        assert!(has("retryAfterMs", "250", Named::WaitMs));
        assert!(has("RateLimitResetTime", "2026-07-10T20:38:49Z", Named::In(Unit::Auto)));
        assert!(has("reset", "1783714457", Named::In(Unit::Auto)));
        assert!(
            found
                .iter()
                .any(|(name, text, _)| name == "Retry-After" && text.len() == 309),
            "{found:?}"
        );
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn fields_in_other_units_under_headers_names_and_in_parts() {
        let unit = |name: &str| by_name(name, "");
        for (name, expected) in [
            ("X-RateLimit-Reset", Some(Named::In(Unit::Auto))),
            ("x-retry-after", Some(Named::Wait)),
            ("recommendedRetryTime", Some(Named::In(Unit::Auto))),
            ("rateLimitNext", Some(Named::In(Unit::Auto))),
            ("quotaResetDelay", Some(Named::Wait)),
            ("resetMs", Some(Named::In(Unit::Ms))),
            ("retry_after_minutes", Some(Named::In(Unit::Min))),
            ("ThrottleSeconds", Some(Named::Wait)),
            ("xreset", None),
            ("occurredAt", None),
        ] {
            assert_eq!(unit(name), expected, "{name}");
        }
        for (body, expected) in [
            (
                json!({"retry_delay": {"seconds": 12, "nanos": 500_000_000}}),
                Some("12.500000000"),
            ),
            (json!({"retryDelay": {"seconds": "37"}}), Some("37.000000000")),
            (json!({"retryDelay": {"nanos": 1}}), None),
            (json!({"retryDelay": {"seconds": 1, "nanos": 1_000_000_000}}), None),
            (json!({"delay": {"seconds": 12}}), None),
        ] {
            let found = moments(&body);
            assert_eq!(found.first().map(|field| &*field.text), expected, "{body}");
        }
    }

    #[test]
    fn a_large_body_is_looked_through_in_part() {
        let body = json!(vec![json!({"x": 1}); 50_000]);
        assert!(moments(&body).is_empty());
    }
}
