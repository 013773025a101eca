//! Reads one field of a job, or says in words what was found and what is allowed.

use adjourn_core::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most bytes of a found value that an error repeats.
const SHOWN: usize = 60;

/// A JSON object's fields in their order; a field that stands twice is kept twice.
pub(super) struct Fields<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> serde::de::Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("one JSON object")
            }
            fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// What stands there, in words that fit on a line.
pub(super) fn found(raw: &RawValue) -> String {
    let text = raw.get().trim();
    match text.bytes().next() {
        Some(b'{') => "an object".to_string(),
        Some(b'[') => "a list".to_string(),
        _ if text.len() <= SHOWN => text.to_string(),
        _ => format!(
            "{}... ({} bytes)",
            text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default(),
            text.len()
        ),
    }
}

/// A string of 1 to `most` bytes without control characters.
pub(super) fn text(raw: &RawValue, most: usize) -> Result<String, String> {
    let allowed = || {
        format!(
            "found {}; allowed: a string of 1 to {most} bytes without control characters",
            found(raw)
        )
    };
    let text: String = serde_json::from_str(raw.get()).map_err(|_| allowed())?;
    let fits = !text.is_empty() && text.len() <= most && !text.chars().any(char::is_control);
    if fits { Ok(text) } else { Err(allowed()) }
}

/// Any string.
pub(super) fn any_text(raw: &RawValue) -> Result<String, String> {
    serde_json::from_str(raw.get()).map_err(|_| format!("found {}; allowed: a string", found(raw)))
}

/// A moment.
pub(super) fn time(raw: &RawValue) -> Result<Timestamp, String> {
    serde_json::from_str::<String>(raw.get())
        .ok()
        .and_then(|text| Timestamp::parse(&text))
        .ok_or_else(|| {
            format!(
                "found {}; allowed: an RFC 3339 time, such as \"2026-07-10T20:13:47.000Z\"",
                found(raw)
            )
        })
}

/// A whole number from 0 on.
pub(super) fn whole(raw: &RawValue) -> Result<u64, String> {
    serde_json::from_str(raw.get())
        .map_err(|_| format!("found {}; allowed: a whole number from 0 to {}", found(raw), u64::MAX))
}

/// An object's fields; each at most once.
pub(super) fn object<'a>(raw: &'a RawValue, allowed: &str) -> Result<Vec<(String, &'a RawValue)>, String> {
    let Fields(fields) =
        serde_json::from_str(raw.get()).map_err(|_| format!("found {}; allowed: {allowed}", found(raw)))?;
    for (index, (name, _)) in fields.iter().enumerate() {
        if fields.iter().take(index).any(|(other, _)| other == name) {
            return Err(format!("found {name:?} twice"));
        }
    }
    Ok(fields)
}
