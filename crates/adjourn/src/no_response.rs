//! Says what was found instead of a response and what is allowed. Nothing of it is repeated: it may hold a credential.

use adjourn_http::PastedError;
use serde_json::Value;

/// What is wrong with a whole input.
pub(crate) fn with_text(text: &[u8], error: &PastedError) -> String {
    let text = text.trim_ascii();
    let found = match text.first() {
        None => "found nothing",
        Some(b'{') => return with_object(text, error),
        Some(b'[') => "found a JSON list (`jq -c '.[]'` makes it one response a line)",
        Some(b'<') => "found markup without a status line (`curl -i` prints it)",
        Some(_) if std::str::from_utf8(text).is_err() || text.contains(&0) => "found bytes that are no text",
        Some(_) => "found text without a status line",
    };
    format!("{found}: {error}")
}

/// Whether a field's value is of the right type.
type IsSound = fn(&Value) -> bool;

/// What is wrong with a JSON object: the field of the wrong type, where that is all.
pub(crate) fn with_object(text: &[u8], error: &PastedError) -> String {
    let Ok(object) = serde_json::from_slice::<Value>(text) else {
        return error.to_string();
    };
    let fields: [(&str, IsSound, &str); 4] = [
        (
            "status",
            |value| value.as_u64().is_some_and(|n| n <= 999),
            "a number from 100 to 999",
        ),
        (
            "headers",
            Value::is_object,
            "an object of names, each with a text or a list of texts",
        ),
        ("received_at", Value::is_string, "RFC 3339, \"2026-07-10T20:13:47Z\""),
        ("receivedAt", Value::is_string, "RFC 3339, \"2026-07-10T20:13:47Z\""),
    ];
    for (field, is_sound, allowed) in fields {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(value) if is_sound(value) => {}
            Some(value) => return format!("{field}: found {}; allowed: {allowed}", word(value)),
        }
    }
    error.to_string()
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number that is not whole",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
