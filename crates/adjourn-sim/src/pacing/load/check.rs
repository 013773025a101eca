//! Holds a file against the list of fields, and keeps every mistake with its line.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    problem::{Problem, SHOWN_PROBLEMS},
    schema::{Field, LIMITS, Takes, VALUES, Without},
};
use crate::pacing::nearest;

/// The most characters of a found value that an error repeats.
const SHOWN: usize = 60;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// The text of a file and what is wrong with it so far.
pub(super) struct Sheet<'t> {
    text: &'t str,
    /// Where each line but the first begins.
    lines: Vec<usize>,
    pub(super) problems: Vec<Problem>,
}

impl<'t> Sheet<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: text.match_indices('\n').map(|(place, _)| place + 1).collect(),
            problems: Vec::new(),
        }
    }

    pub(super) fn problem(&mut self, offset: usize, key: &str, words: &str) {
        let line = 1 + self.lines.partition_point(|&begins| begins <= offset);
        self.problems.push(Problem::new(line, key, words));
    }

    /// Checks the fields of a table that stands at `offset`. `known` are names that somebody else has checked.
    pub(super) fn table(&mut self, path: &str, offset: usize, table: &DeTable<'_>, fields: &[Field], known: &[&str]) {
        let names: Vec<&str> = known
            .iter()
            .copied()
            .chain(fields.iter().map(|field| field.name))
            .collect();
        for (key, value) in table {
            let name: &str = key.get_ref();
            match fields.iter().find(|field| field.name == name) {
                Some(field) => self.value(&joined(path, name), value, &field.takes),
                None if known.contains(&name) => {}
                None => {
                    let shown: String = name.chars().take(SHOWN).collect();
                    // Nobody reads more of them, and comparing names takes its time.
                    let known = if self.problems.len() < SHOWN_PROBLEMS {
                        nearest::known(&shown, &names)
                    } else {
                        String::new()
                    };
                    let words = format!("is not known{known}");
                    self.problem(key.span().start, &joined(path, &shown), &words);
                }
            }
        }
        for field in fields {
            if field.without == Without::Wrong && !table.contains_key(field.name) {
                let words = format!("is missing; it is required: {}", field.takes);
                self.problem(offset, &joined(path, field.name), &words);
            }
        }
    }

    fn value(&mut self, key: &str, value: &Value<'_>, takes: &Takes) {
        let offset = value.span().start;
        let is = |right: bool| (!right).then_some(());
        let wrong = match takes {
            Takes::Text(most) => {
                let is_line = |text: &str| {
                    let count = text.chars().take(most + 1).count();
                    (1..=*most).contains(&count) && !text.trim().is_empty() && !text.chars().any(char::is_control)
                };
                is(value.get_ref().as_str().is_some_and(is_line))
            }
            Takes::Flag => is(value.get_ref().as_bool().is_some()),
            Takes::Whole(range) => is(whole(value).is_some_and(|found| range.contains(&found))),
            Takes::Number(range) => is(number(value).is_some_and(|found| range.contains(&found))),
            Takes::Word(words) => {
                if value.get_ref().as_str().is_some_and(|found| words.contains(&found)) {
                    return;
                }
                let meant = value
                    .get_ref()
                    .as_str()
                    .map_or_else(String::new, |found| meant(found, words));
                let words = format!("found {}{meant}; allowed: {takes}", self.found(value));
                return self.problem(offset, key, &words);
            }
            Takes::Wholes(range) => return self.list(key, value, takes, VALUES, &Takes::Whole(range.clone())),
            Takes::Words(words) => return self.list(key, value, takes, VALUES, &Takes::Word(words)),
            Takes::Table(fields) => match value.get_ref().as_table() {
                Some(table) => return self.table(key, offset, table, fields, &[]),
                None => Some(()),
            },
            Takes::Tables(fields, most) => return self.list(key, value, takes, *most, &Takes::Table(fields)),
            Takes::Limits(most) => {
                let Some(limits) = value.get_ref().as_array().filter(|limits| limits.len() <= *most) else {
                    return self.refuse(key, value, &format!("{takes}, each [[limits]]"));
                };
                for (place, limit) in limits.iter().enumerate() {
                    self.limit(&format!("{key}[{place}]"), limit);
                }
                None
            }
        };
        if wrong.is_some() {
            self.refuse(key, value, &takes.to_string());
        }
    }

    fn list(&mut self, key: &str, value: &Value<'_>, takes: &Takes, most: usize, each: &Takes) {
        match value.get_ref().as_array().filter(|items| items.len() <= most) {
            None => self.refuse(key, value, &takes.to_string()),
            Some(items) => items
                .iter()
                .enumerate()
                .for_each(|(place, item)| self.value(&format!("{key}[{place}]"), item, each)),
        }
    }

    fn limit(&mut self, key: &str, value: &Value<'_>) {
        let offset = value.span().start;
        let Some(table) = value.get_ref().as_table() else {
            return self.refuse(key, value, "a table with a kind");
        };
        let kinds: Vec<&str> = LIMITS.iter().map(|(kind, _)| *kind).collect();
        let Some(kind) = table.get("kind") else {
            let words = format!("is missing; it is required: one of {}", kinds.join(", "));
            return self.problem(offset, &joined(key, "kind"), &words);
        };
        let found = kind.get_ref().as_str();
        match LIMITS.iter().find(|(name, _)| Some(*name) == found) {
            Some((_, fields)) => self.table(key, offset, table, fields, &["kind"]),
            None => {
                let meant = found.map_or_else(String::new, |found| meant(found, &kinds));
                let words = format!("found {}{meant}; allowed: {}", self.found(kind), kinds.join(", "));
                self.problem(kind.span().start, &joined(key, "kind"), &words);
            }
        }
    }

    fn refuse(&mut self, key: &str, value: &Value<'_>, allowed: &str) {
        let words = format!("found {}; allowed: {allowed}", self.found(value));
        self.problem(value.span().start, key, &words);
    }

    /// What stands there, on one line.
    fn found(&self, value: &Value<'_>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "a table".to_string(),
            DeValue::Array(items) => format!("a list of {}", items.len()),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {
                let text = self.text.get(value.span()).unwrap_or_default();
                let shown: String = text.lines().next().unwrap_or_default().chars().take(SHOWN).collect();
                let more = if shown.len() < text.len() { "..." } else { "" };
                format!("{shown}{more}")
            }
        }
    }
}

fn meant(found: &str, words: &[&str]) -> String {
    let shown: String = found.chars().take(SHOWN).collect();
    nearest::of(&shown, words).map_or_else(String::new, |word| format!("; the nearest known is {word:?}"))
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_string()
    } else {
        format!("{path}.{name}")
    }
}

/// A whole number that is not negative.
pub(super) fn whole(value: &Value<'_>) -> Option<u64> {
    let integer = value.get_ref().as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A number, written with a point or without.
pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    if let Some(float) = value.get_ref().as_float() {
        return float.as_str().parse().ok().filter(|number: &f64| number.is_finite());
    }
    // Larger ones are beyond every range.
    whole(value).and_then(|whole| u32::try_from(whole).ok()).map(f64::from)
}
