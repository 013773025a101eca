//! A response's body, read when something asks for it, and once.

use std::{borrow::Cow, cell::OnceCell};

use serde_json::{Map, Value};

use super::{
    fields::{self, Field},
    scan,
    words::Said,
    xml,
};

/// The most members and elements of a body that is read as JSON.
const MOST_MEMBERS: usize = 8192;

/// The part of a body that is read, at most [`READ_BYTES`](crate::READ_BYTES).
#[derive(Debug)]
pub(super) struct Body<'a> {
    bytes: &'a [u8],
    text: OnceCell<Cow<'a, str>>,
    value: OnceCell<Option<Value>>,
    said: OnceCell<Said>,
}

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.get(..crate::READ_BYTES).unwrap_or(bytes),
            text: OnceCell::new(),
            value: OnceCell::new(),
            said: OnceCell::new(),
        }
    }

    /// Its text; what is no UTF-8 is replaced.
    pub(super) fn text(&self) -> &str {
        self.text_as_sent()
    }

    /// Borrowed where nothing was replaced.
    fn text_as_sent(&self) -> &Cow<'a, str> {
        self.text.get_or_init(|| match std::str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        })
    }

    /// Its JSON, or its XML as objects; none where it is neither, or broken.
    pub(super) fn value(&self) -> Option<&Value> {
        self.value.get_or_init(|| self.parse()).as_ref()
    }

    fn parse(&self) -> Option<Value> {
        let start = self.bytes.trim_ascii_start();
        match start.first()? {
            b'{' | b'[' if is_table(start) => None,
            b'{' | b'[' => serde_json::from_slice(start).ok(),
            b'<' if !self.is_html() => xml::objects(self.text()),
            b'"' => {
                // A text on its own, as some providers send their message.
                let text: String = serde_json::from_slice(start).ok()?;
                Some(Value::Object(Map::from_iter([(
                    "message".to_string(),
                    Value::String(text),
                )])))
            }
            _ => None,
        }
    }

    /// Its fields that name a moment. Where nothing else asked for all of its JSON, the one such field is found without it.
    pub(super) fn moments(&self) -> impl Iterator<Item = Field<'_>> {
        let only = if self.value.get().is_none() {
            self.json().and_then(scan::only_moment)
        } else {
            None
        };
        let (only, all) = match only {
            Some(only) => (only, Vec::new()),
            None => (None, self.value().map(fields::moments).unwrap_or_default()),
        };
        only.into_iter().chain(all)
    }

    /// Its text where that looks like JSON.
    fn json(&self) -> Option<&str> {
        let start = self.bytes.trim_ascii_start();
        let looks = matches!(start.first(), Some(b'{' | b'[')) && !is_table(start);
        match self.text_as_sent() {
            Cow::Borrowed(text) if looks => Some(text.trim_ascii_start()),
            Cow::Borrowed(_) | Cow::Owned(_) => None,
        }
    }

    pub(super) fn is_html(&self) -> bool {
        let start = self.bytes.trim_ascii_start();
        let begins = |with: &[u8]| {
            start
                .get(..with.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(with))
        };
        begins(b"<!doctype html") || begins(b"<html") || begins(b"<head") || begins(b"<body") || begins(b"<h1")
    }

    /// What it says in words that providers share; of a page for people, whether its title says that it is a limit.
    pub(super) fn said(&self) -> Said {
        *self.said.get_or_init(|| {
            if self.is_html() {
                Said::in_title(title(self.text()))
            } else {
                Said::in_text(self.text())
            }
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }
}

/// The title of a page, which stands at its beginning.
fn title(page: &str) -> &str {
    const WITHIN: usize = 4096;
    let head = page.get(..page.floor_char_boundary(WITHIN)).unwrap_or_default();
    let lower = head.to_ascii_lowercase();
    let begin = lower.find("<title>").map(|at| at + "<title>".len());
    let end = lower.find("</title>");
    begin
        .zip(end)
        .and_then(|(begin, end)| head.get(begin..end))
        .unwrap_or_default()
}

/// A refusal is no table: what has so many members is somebody's load, and building it costs more than its size.
fn is_table(json: &[u8]) -> bool {
    json.len() > MOST_MEMBERS && json.iter().filter(|&&byte| byte == b',').count() > MOST_MEMBERS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(body: &[u8]) -> Option<Value> {
        Body::new(body).value().cloned()
    }

    #[test]
    fn json_xml_and_neither() {
        assert_eq!(value(b" {\"a\":1}"), Some(json!({"a": 1})));
        assert_eq!(value(b"\"slow down\""), Some(json!({"message": "slow down"})));
        assert_eq!(
            value(b"<Error><Code>SlowDown</Code></Error>"),
            Some(json!({"Error": {"Code": "SlowDown"}}))
        );
        for nothing in [
            &b""[..],
            b"{\"a\":",
            b"plain",
            b"<html><h1>503</h1></html>",
            b"\x1f\x8b\x08",
            b"{\"a\": \"\xff\xfe\"",
            &[&b"["[..], &b"1,".repeat(MOST_MEMBERS + 1), b"1]"].concat(),
        ] {
            assert_eq!(value(nothing), None, "{nothing:?}");
        }
    }
}
