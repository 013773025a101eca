//! Reads typed values out of a TOML table and keeps every mistake with its line.

use std::{ops::RangeInclusive, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::problem::Problem;
use crate::nearest;

/// The most characters of a found value that an error repeats.
const SHOWN: usize = 60;

/// The text of the settings and what is wrong with it so far.
#[derive(Debug)]
pub(crate) struct Sheet<'t> {
    text: &'t str,
    pub(crate) problems: Vec<Problem>,
}

/// A table of the settings with the key that leads to it.
#[derive(Clone, Debug)]
pub(crate) struct Table<'a> {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.get(key)
    }

    /// The whole key of an entry.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

impl<'t> Sheet<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            problems: Vec::new(),
        }
    }

    /// The line of a place in the text, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    pub(crate) fn problem(&mut self, offset: usize, key: &str, words: impl Into<String>) {
        self.problems.push(Problem::new(self.line(offset), key, words.into()));
    }

    /// Something that a table lacks.
    pub(crate) fn missing(&mut self, table: &Table<'_>, key: &str, allowed: &str) {
        self.problems.push(Problem::new(
            table.line,
            &table.key(key),
            format!("is missing; it is required: {allowed}"),
        ));
    }

    /// What stands there, on one line.
    fn found(&self, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "a table".to_string(),
            DeValue::Array(_) => "a list".to_string(),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {
                let text = self.text.get(value.span()).unwrap_or_default();
                let line = text.lines().next().unwrap_or_default();
                let shown: String = line.chars().take(SHOWN).collect();
                if shown.len() < text.len() {
                    format!("{shown}...")
                } else {
                    shown
                }
            }
        }
    }

    pub(crate) fn refuse(&mut self, table: &Table<'_>, key: &str, value: &Spanned<DeValue<'_>>, allowed: &str) {
        let words = format!("found {}; allowed: {allowed}", self.found(value));
        self.problem(value.span().start, &table.key(key), words);
    }

    /// Names the keys that are not known, and those that are known and come later.
    pub(crate) fn keys(&mut self, table: &Table<'_>, known: &[&str], later: &[(&str, &str)]) {
        for (key, _) in table.entries {
            let name: &str = key.get_ref();
            if let Some((_, what)) = later.iter().find(|(later, _)| *later == name) {
                self.problem(
                    key.span().start,
                    &table.key(name),
                    format!("{what}: not built yet; leave it out"),
                );
            } else if !known.contains(&name) {
                self.problem(key.span().start, &table.key(name), nearest::unknown(known, name));
            }
        }
    }

    pub(crate) fn table<'a>(&mut self, table: &Table<'a>, key: &str) -> Option<Table<'a>> {
        let value = table.get(key)?;
        self.as_table(table, key, value)
    }

    pub(crate) fn as_table<'a>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Option<Table<'a>> {
        let Some(entries) = value.get_ref().as_table() else {
            // A table's place may hold a secret that somebody wrote in its stead: its text is not repeated.
            let kind = value.get_ref().type_str();
            let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
            let words = format!("found {article} {kind}; allowed: a table");
            self.problem(value.span().start, &table.key(key), words);
            return None;
        };
        Some(Table {
            path: table.key(key),
            line: self.line(value.span().start),
            entries,
        })
    }

    pub(crate) fn text<'a>(&mut self, table: &Table<'a>, key: &str, allowed: &str) -> Option<&'a str> {
        let value = table.get(key)?;
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        if text.is_none() {
            self.refuse(table, key, value, allowed);
        }
        text
    }

    pub(crate) fn boolean(&mut self, table: &Table<'_>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.refuse(table, key, value, "true or false");
        }
        found
    }

    pub(crate) fn whole(&mut self, table: &Table<'_>, key: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = table.get(key)?;
        let found = in_range(value, &range);
        if found.is_none() {
            self.refuse(
                table,
                key,
                value,
                &format!("a whole number from {} to {}", range.start(), range.end()),
            );
        }
        found
    }

    /// A span that its key names in milliseconds.
    pub(crate) fn span(&mut self, table: &Table<'_>, key: &str, range: RangeInclusive<u32>) -> Option<Duration> {
        self.whole(table, key, range)
            .map(|ms| Duration::from_millis(u64::from(ms)))
    }

    /// A list of spans, each in milliseconds; not empty.
    pub(crate) fn spans(&mut self, table: &Table<'_>, key: &str, range: RangeInclusive<u32>) -> Option<Vec<Duration>> {
        let value = table.get(key)?;
        let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
            let allowed = format!(
                "a list of one or more whole numbers from {} to {}",
                range.start(),
                range.end()
            );
            self.refuse(table, key, value, &allowed);
            return None;
        };
        let mut spans = Vec::new();
        let mut whole = true;
        for (index, item) in items.iter().enumerate() {
            match in_range(item, &range) {
                Some(ms) => spans.push(Duration::from_millis(u64::from(ms))),
                None => {
                    let allowed = format!("a whole number from {} to {}", range.start(), range.end());
                    self.refuse(table, &format!("{key}[{index}]"), item, &allowed);
                    whole = false;
                }
            }
        }
        whole.then_some(spans)
    }

    pub(crate) fn one_of<T: Copy>(&mut self, table: &Table<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = table.get(key)?;
        let found = value.get_ref().as_str();
        let choice = words
            .iter()
            .find(|(word, _)| Some(*word) == found)
            .map(|&(_, choice)| choice);
        if choice.is_none() {
            let allowed: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            self.refuse(table, key, value, &allowed.join(" or "));
        }
        choice
    }
}

fn in_range(value: &Spanned<DeValue<'_>>, range: &RangeInclusive<u32>) -> Option<u32> {
    let integer = value.get_ref().as_integer()?;
    u32::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .filter(|number| range.contains(number))
}
