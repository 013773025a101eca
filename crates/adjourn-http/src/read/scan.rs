//! The field of a JSON text that names a moment, found as the text is parsed: most refusals have one at most, and the tree of
//! a text costs more than all else that is read of it.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::fields::{self, Field};

/// The field of a JSON text that names a moment, as [`fields::moments`] gives it; none inside where no field does, or the text
/// is no JSON.
///
/// None where only the tree tells: several such fields, a member that stands twice, a large text.
pub(super) fn only_moment(text: &str) -> Option<Option<Field<'_>>> {
    let mut scan = Scan {
        left: fields::MOST,
        found: None,
        undecided: false,
    };
    let root = Inside {
        scan: &mut scan,
        name: "",
        depth: 0,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let whole = root.deserialize(&mut json).and_then(|()| json.end());
    match (scan.undecided, whole) {
        (true, _) => None,
        (false, Err(_)) => Some(None),
        (false, Ok(())) => Some(scan.found),
    }
}

struct Scan<'de> {
    left: usize,
    found: Option<Field<'de>>,
    undecided: bool,
}

impl<'de> Scan<'de> {
    fn step<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { self.give_up() } else { Ok(()) }
    }

    fn add<E: serde::de::Error>(&mut self, field: Field<'de>) -> Result<(), E> {
        if self.found.is_some() {
            return self.give_up();
        }
        self.found = Some(field);
        Ok(())
    }

    /// Nobody sees the error.
    fn give_up<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.undecided = true;
        Err(E::custom(""))
    }
}

/// A value that is looked through: the member of that name, or an element of it.
struct Inside<'s, 'de> {
    scan: &'s mut Scan<'de>,
    name: &'s str,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Inside<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Inside<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        loop {
            let item = Inside {
                scan: &mut *self.scan,
                name: self.name,
                depth: self.depth + 1,
            };
            if items.next_element_seed(item)?.is_none() {
                return Ok(());
            }
            self.scan.step()?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        // Of members of the same name the tree keeps the last.
        let mut holder: Option<Cow<'de, str>> = None;
        while let Some(name) = members.next_key_seed(Name)? {
            self.scan.step()?;
            if holder.as_ref() == Some(&name) {
                return self.scan.give_up();
            }
            let before = self.scan.found.is_some();
            let named = if self.depth > fields::DEEPEST {
                None
            } else {
                fields::by_name(&name, self.name)
            };
            if let Some(named) = named {
                match members.next_value::<Value>()? {
                    Value::Array(_) | Value::Object(_) => self.scan.give_up()?,
                    scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                        if let Some(text) = fields::scalar_of(scalar) {
                            self.scan.add(Field {
                                name: name.clone(),
                                text: Cow::Owned(text),
                                named,
                            })?;
                        }
                    }
                }
            } else {
                members.next_value_seed(Inside {
                    scan: &mut *self.scan,
                    name: &name,
                    depth: self.depth + 1,
                })?;
            }
            if self.scan.found.is_some() && !before {
                holder = Some(name);
            }
        }
        Ok(())
    }
}

/// A member's name, borrowed where nothing in it is escaped.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_the_tree(text: &str) -> Vec<Field<'static>> {
        let root: Option<Value> = serde_json::from_str(text).ok();
        let found = root.as_ref().map(fields::moments).unwrap_or_default();
        found.into_iter().map(owned).collect()
    }

    fn owned(field: Field<'_>) -> Field<'static> {
        Field {
            name: Cow::Owned(field.name.into_owned()),
            text: Cow::Owned(field.text.into_owned()),
            named: field.named,
        }
    }

    #[test]
    fn one_field_or_none_is_told_and_all_else_is_left_to_the_tree() {
        for (text, expected) in [
            (
                r#"{"error":{"code":429,"details":[{"a":"b"},{}],"retry_after":12}}"#,
                Some(Some("12")),
            ),
            (r#"{"a":[{"Retry-After":"34.07s","b":[1]}]}"#, Some(Some("34.07s"))),
            (r#"{"retry\u005fafter":1e308}"#, Some(Some("1"))),
            (r#"{"retry_after":null,"b":true}"#, Some(None)),
            (r#"{"limit":{"reset":true}}"#, Some(Some("true"))),
            (r#"{"form":{"reset":true}}"#, Some(None)),
            (r#"{"retry_after":5"#, Some(None)),
            (r#"{"retry_after":5} x"#, Some(None)),
            (r#"{"retry_after":5,"a":1e999}"#, Some(None)),
            (r#"{"retry_after":5,"retry_in":6}"#, None),
            (r#"{"retry_after":5,"retry_after":null}"#, None),
            (r#"{"e":{"retry_after":5},"e":{}}"#, None),
            (r#"{"e":{"a":1},"e":{"retry_after":5}}"#, Some(Some("5"))),
            (r#"{"retry_after":[5]}"#, None),
            ("12", Some(None)),
        ] {
            let told = only_moment(text);
            if let Some(field) = &told {
                let told: Vec<_> = field.iter().cloned().map(owned).collect();
                assert_eq!(told, by_the_tree(text), "{text}");
            }
            let begins = told.map(|field| field.map(|field| field.text.into_owned()));
            match (begins, expected) {
                (Some(Some(found)), Some(Some(begin))) => assert!(found.starts_with(begin), "{text}: {found}"),
                (found, expected) => assert_eq!(found.map(|_| None), expected, "{text}"),
            }
        }
    }

    #[test]
    fn a_large_text_and_a_deep_one() {
        let list = |items: usize| format!("[{}{{\"retry_after\":5}}]", "1,".repeat(items));
        assert!(only_moment(&list(fields::MOST)).is_none());
        for text in [
            list(fields::MOST - 3),
            format!("{}{}{}", "[".repeat(8), r#"{"retry_after":5}"#, "]".repeat(8)),
            format!("{}{}{}", "[".repeat(9), r#"{"retry_after":5}"#, "]".repeat(9)),
            format!("{}{}", "[".repeat(200), "]".repeat(200)),
        ] {
            let told: Option<Vec<_>> = only_moment(&text).map(|field| field.into_iter().map(owned).collect());
            assert_eq!(told, Some(by_the_tree(&text)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn as_the_tree_tells_it(
            text in r#"(?:\{|\}|\[|\]|,|:|"e":|"e":\{|"retry_after":|"reset":|"resetAt":|"limit":\{|5|-1\.5|null|"x"|"\\u00e9"| ){0,16}"#,
        ) {
            if let Some(field) = only_moment(&text) {
                let told: Vec<_> = field.into_iter().map(owned).collect();
                prop_assert_eq!(told, by_the_tree(&text));
            }
        }

        #[test]
        fn as_the_tree_tells_it_of_sound_json(root in tree()) {
            let text = serde_json::to_string(&root).unwrap();
            if let Some(field) = only_moment(&text) {
                let told: Vec<_> = field.into_iter().map(owned).collect();
                prop_assert_eq!(told, by_the_tree(&text));
            }
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ -~é]{0,4}".prop_map(Value::from),
        ];
        let name = prop::sample::select(vec!["retry_after", "reset", "limit", "resetAt", "a", "b\"", "rate"]);
        leaf.prop_recursive(10, 24, 3, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec((name.clone(), inner), 0..3).prop_map(|members| {
                    Value::Object(
                        members
                            .into_iter()
                            .map(|(name, value)| (name.to_string(), value))
                            .collect(),
                    )
                }),
            ]
        })
    }
}
