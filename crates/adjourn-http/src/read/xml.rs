//! XML faults as objects, so that one kind of pointer serves both.

use quick_xml::{Reader, events::Event};
use serde_json::{Map, Value};

/// The most elements, one inside the other, that are followed, and the most in all.
const DEEPEST: usize = 32;
const MOST: usize = 4096;

/// An element is an object of its children by local name, a repeated child a list, and an element without children its text.
/// Attributes, comments and processing instructions are left out; no entity but the five of XML is resolved. What stands
/// before a fault in the markup is kept.
pub(super) fn objects(text: &str) -> Option<Value> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<(String, Element)> = vec![(String::new(), Element::default())];
    let mut elements = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                elements += 1;
                if open.len() > DEEPEST || elements > MOST {
                    break;
                }
                open.push((start.name().local_name().as_ref().to_string(), Element::default()));
            }
            Ok(Event::Empty(empty)) => {
                elements += 1;
                if elements > MOST {
                    break;
                }
                let name = empty.name().local_name().as_ref().to_string();
                if let Some((_, parent)) = open.last_mut() {
                    parent.add(name, Value::Null);
                }
            }
            Ok(Event::End(_)) if open.len() > 1 => close(&mut open),
            Ok(Event::Text(piece)) => {
                if let Some((_, element)) = open.last_mut() {
                    element.text.push_str(&piece);
                }
            }
            Ok(Event::CData(piece)) => {
                if let Some((_, element)) = open.last_mut() {
                    element.text.push_str(&piece);
                }
            }
            Ok(Event::GeneralRef(entity)) => {
                if let Some((_, element)) = open.last_mut() {
                    element.text.push_str(resolved(&entity));
                }
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(Event::End(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let (_, root) = open.pop()?;
    (!root.children.is_empty()).then_some(Value::Object(root.children))
}

#[derive(Default)]
struct Element {
    children: Map<String, Value>,
    text: String,
}

impl Element {
    fn add(&mut self, name: String, value: Value) {
        match self.children.get_mut(&name) {
            None => {
                self.children.insert(name, value);
            }
            Some(Value::Array(items)) => items.push(value),
            Some(single) => *single = Value::Array(vec![single.take(), value]),
        }
    }
}

fn close(open: &mut Vec<(String, Element)>) {
    let Some((name, element)) = open.pop() else { return };
    let value = if element.children.is_empty() {
        Value::String(element.text.trim().to_string())
    } else {
        Value::Object(element.children)
    };
    if let Some((_, parent)) = open.last_mut() {
        parent.add(name, value);
    }
}

fn resolved(entity: &str) -> &'static str {
    match entity {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        _ => " ",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_by_local_name() {
        for (text, expected) in [
            ("<a><b>x</b></a>", json!({"a": {"b": "x"}})),
            (
                "<?xml version=\"1.0\"?><!-- c --><s:a xmlns:s=\"u\"><s:b>1 &lt; 2</s:b></s:a>",
                json!({"a": {"b": "1 < 2"}}),
            ),
            (
                "<a><b>1</b><b>2</b><b>3</b><c/></a>",
                json!({"a": {"b": ["1", "2", "3"], "c": null}}),
            ),
            ("<a><![CDATA[<raw>]]></a>", json!({"a": "<raw>"})),
            ("<a><b>cut", json!({"a": {"b": "cut"}})),
            ("<a><b>1</c></a>", json!({"a": {"b": "1"}})),
        ] {
            assert_eq!(objects(text), Some(expected), "{text}");
        }
        assert_eq!(objects("no markup"), None);
    }

    #[test]
    fn entities_are_not_expanded_and_depth_is_bounded() {
        let bomb = "<!DOCTYPE a [<!ENTITY x \"yyyyyyyy\">]><a>&x;&x;&x;</a>";
        assert_eq!(objects(bomb), Some(json!({"a": ""})));
        let deep = "<a>".repeat(20_000);
        assert!(objects(&deep).is_some());
    }
}
