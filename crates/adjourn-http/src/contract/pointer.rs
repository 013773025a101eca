//! Pointers into a body: JSON pointers (RFC 6901) with a wildcard.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The most values that one pointer gives; a response that has more says the same over and over.
const MOST_VALUES: usize = 64;
/// The most elements that a wildcard looks at in one response.
const MOST_STEPS: usize = 4096;
const MAX_BYTES: usize = 200;

/// A JSON pointer in which the segment `*` stands for every element of a list and every member of an object. A text on the
/// way is read as JSON, since some providers put JSON into strings. Where the whole body is a list of one object, a pointer
/// that begins with a name leads into that object, since some providers answer so where they stream. An XML body is read as objects: see
/// [`Response`](crate::Response).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    text: String,
    segments: Vec<String>,
}

impl Pointer {
    /// A pointer.
    ///
    /// # Errors
    /// In words, where the text does not begin with `/`.
    pub fn new(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/').filter(|_| text.len() <= MAX_BYTES) else {
            return Err(format!(
                "is no pointer; allowed: /name/of/field, where * stands for any element, at most {MAX_BYTES} bytes"
            ));
        };
        Ok(Self {
            text: text.to_string(),
            segments: rest
                .split('/')
                .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
                .collect(),
        })
    }

    /// The pointer as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Every value that it leads to, as far as there are few.
    #[must_use]
    pub fn values<'v>(&self, root: &'v Value) -> Vec<Cow<'v, Value>> {
        let mut found = Vec::new();
        let mut steps = MOST_STEPS;
        follow(
            &self.segments,
            Cow::Borrowed(self.entered(root)),
            &mut found,
            &mut steps,
        );
        found
    }

    /// The one object of a list, where this pointer names a member of it.
    fn entered<'v>(&self, root: &'v Value) -> &'v Value {
        let names = |segment: &String| segment != "*" && segment.parse::<usize>().is_err();
        let only = root.as_array().and_then(|items| match items.as_slice() {
            [only @ Value::Object(_)] => Some(only),
            _ => None,
        });
        only.filter(|_| self.segments.first().is_some_and(names))
            .unwrap_or(root)
    }
}

fn follow<'v>(segments: &[String], at: Cow<'v, Value>, found: &mut Vec<Cow<'v, Value>>, steps: &mut usize) {
    if found.len() >= MOST_VALUES || *steps == 0 {
        return;
    }
    *steps -= 1;
    let Some((segment, rest)) = segments.split_first() else {
        found.push(at);
        return;
    };
    match at {
        Cow::Borrowed(Value::String(text)) => {
            if let Some(inner) = inside(text) {
                follow_owned(segments, inner, found, steps);
            }
        }
        Cow::Borrowed(Value::Array(items)) if segment == "*" => {
            items
                .iter()
                .for_each(|item| follow(rest, Cow::Borrowed(item), found, steps));
        }
        Cow::Borrowed(Value::Object(members)) if segment == "*" => {
            members
                .values()
                .for_each(|member| follow(rest, Cow::Borrowed(member), found, steps));
        }
        Cow::Borrowed(Value::Array(items)) => {
            if let Some(item) = segment.parse::<usize>().ok().and_then(|index| items.get(index)) {
                follow(rest, Cow::Borrowed(item), found, steps);
            }
        }
        Cow::Borrowed(Value::Object(members)) => {
            if let Some(member) = members.get(segment) {
                follow(rest, Cow::Borrowed(member), found, steps);
            }
        }
        Cow::Borrowed(Value::Null | Value::Bool(_) | Value::Number(_)) => {}
        Cow::Owned(value) => follow_owned(segments, value, found, steps),
    }
}

/// As [`follow`], through a value that stood in a text.
fn follow_owned(segments: &[String], root: Value, found: &mut Vec<Cow<'_, Value>>, steps: &mut usize) {
    let mut inner = Vec::new();
    follow(segments, Cow::Borrowed(&root), &mut inner, steps);
    found.extend(inner.into_iter().map(|value| Cow::Owned(value.into_owned())));
}

fn inside(text: &str) -> Option<Value> {
    let begins = text.trim_ascii_start().starts_with(['{', '[']);
    if begins { serde_json::from_str(text).ok() } else { None }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(pointer: &str, root: &Value) -> Vec<Value> {
        let pointer = Pointer::new(pointer).unwrap();
        pointer.values(root).into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn leads_to_members_elements_and_all_of_them() {
        let root = json!({"error": {"code": 4, "a/b": 1, "m~n": 2}, "list": [{"x": 1}, {"x": 2}, {"y": 3}], "o": {"p": {"x": 9}}});
        assert_eq!(values("/error/code", &root), [json!(4)]);
        assert_eq!(values("/error/a~1b", &root), [json!(1)]);
        assert_eq!(values("/error/m~0n", &root), [json!(2)]);
        assert_eq!(values("/list/1/x", &root), [json!(2)]);
        assert_eq!(values("/list/*/x", &root), [json!(1), json!(2)]);
        assert_eq!(values("/o/*/x", &root), [json!(9)]);
        assert_eq!(values("/nothing/here", &root), [] as [Value; 0]);
        assert_eq!(values("/error/code/deeper", &root), [] as [Value; 0]);
    }

    #[test]
    fn json_in_a_text_is_read() {
        let root = json!([{"body": "{\"error\":{\"code\":4}}"}, {"body": "plain"}, {"body": "{broken"}]);
        assert_eq!(values("/*/body/error/code", &root), [json!(4)]);
        assert_eq!(values("/1/body", &root), [json!("plain")]);
    }

    #[test]
    fn a_list_of_one_object_is_entered_by_a_name() {
        let one = json!([{"error": {"code": 4}}]);
        assert_eq!(values("/error/code", &one), [json!(4)]);
        assert_eq!(values("/*/error/code", &one), [json!(4)]);
        assert_eq!(values("/0/error/code", &one), [json!(4)]);
        for other in [
            json!([{"error": {"code": 4}}, {"error": {"code": 4}}]),
            json!([[{"error": {"code": 4}}]]),
            json!([]),
        ] {
            assert_eq!(values("/error/code", &other), [] as [Value; 0], "{other}");
        }
    }

    #[test]
    fn a_hostile_body_is_looked_at_in_part() {
        let root = Value::Array(vec![Value::Array(vec![json!(1); 1000]); 1000]);
        assert_eq!(values("/*/*", &root).len(), MOST_VALUES);
        assert!(values("/*/*/none", &root).is_empty());
        assert!(Pointer::new("error").is_err() && Pointer::new(&"/a".repeat(101)).is_err());
    }
}
