//! The kinds of values that only contracts have.

use toml::{Spanned, de::DeValue};

use crate::{
    contract::{Pattern, Pointer},
    nearest,
    settings::sheet::{Sheet, Table},
};

impl Sheet<'_> {
    pub(super) fn owned(&mut self, table: &Table<'_>, key: &str) -> Option<String> {
        self.text(table, key, "a text that is not empty").map(str::to_string)
    }

    pub(super) fn required(&mut self, table: &Table<'_>, key: &str, allowed: &str) -> Option<String> {
        if table.get(key).is_none() {
            self.missing(table, key, allowed);
        }
        self.text(table, key, allowed).map(str::to_string)
    }

    /// A text or a list of them.
    pub(super) fn texts(&mut self, table: &Table<'_>, key: &str) -> Option<Vec<String>> {
        const ALLOWED: &str = "a text or a list of texts";
        let value = table.get(key)?;
        if let Some(text) = value.get_ref().as_str() {
            return Some(vec![text.to_string()]);
        }
        let texts: Option<Vec<String>> = value.get_ref().as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_string))
                .collect()
        });
        if texts.is_none() {
            self.refuse(table, key, value, ALLOWED);
        }
        texts
    }

    /// A whole number of up to 64 bits.
    pub(super) fn wide(&mut self, table: &Table<'_>, key: &str, from: u64, to: u64) -> Option<u64> {
        let value = table.get(key)?;
        let found = value
            .get_ref()
            .as_integer()
            .and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok())
            .filter(|number| (from..=to).contains(number));
        if found.is_none() {
            self.refuse(table, key, value, &format!("a whole number from {from} to {to}"));
        }
        found
    }

    /// A whole number that may be negative.
    pub(super) fn signed(&mut self, table: &Table<'_>, key: &str) -> Option<i64> {
        let value = table.get(key)?;
        let found = value
            .get_ref()
            .as_integer()
            .and_then(|integer| i64::from_str_radix(integer.as_str(), integer.radix()).ok());
        if found.is_none() {
            self.refuse(table, key, value, "a whole number");
        }
        found
    }

    /// Each table of a list of tables.
    pub(crate) fn each<T>(
        &mut self,
        table: &Table<'_>,
        key: &str,
        mut read: impl FnMut(&mut Self, &Table<'_>) -> Option<T>,
    ) -> Vec<T> {
        self.tables(table, key)
            .iter()
            .filter_map(|table| read(self, table))
            .collect()
    }

    fn tables<'a>(&mut self, table: &Table<'a>, key: &str) -> Vec<Table<'a>> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            self.refuse(table, key, value, &format!("a list of tables, [[{key}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            tables.extend(self.as_table(table, &format!("{key}[{index}]"), item));
        }
        tables
    }

    pub(super) fn pointer(&mut self, table: &Table<'_>, key: &str) -> Option<Pointer> {
        let text = self.text(table, key, "a pointer, such as \"/error/code\"")?;
        let value = table.get(key)?;
        self.keep(table, key, value, Pointer::new(text))
    }

    pub(super) fn pattern(&mut self, table: &Table<'_>, key: &str) -> Option<Pattern> {
        let text = self.text(table, key, "a regular expression")?;
        let value = table.get(key)?;
        self.keep(table, key, value, Pattern::new(text))
    }

    /// What was made of a value, or the words of the problem.
    pub(super) fn keep<T>(
        &mut self,
        table: &Table<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        made: Result<T, String>,
    ) -> Option<T> {
        match made {
            Ok(made) => Some(made),
            Err(words) => {
                self.problem(value.span().start, &table.key(key), words);
                None
            }
        }
    }

    /// A header's name, in lower case.
    pub(super) fn header(&mut self, table: &Table<'_>, key: &str) -> Option<String> {
        const ALLOWED: &str = "a header's name";
        let text = self.text(table, key, ALLOWED)?;
        let name = http::HeaderName::from_bytes(text.as_bytes()).ok();
        if name.is_none()
            && let Some(value) = table.get(key)
        {
            self.refuse(table, key, value, ALLOWED);
        }
        name.map(|name| name.as_str().to_string())
    }

    pub(super) fn url(&mut self, table: &Table<'_>, key: &str) -> Option<String> {
        const ALLOWED: &str = "an https URL";
        let text = self.text(table, key, ALLOWED)?;
        let sound = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
        if !sound && let Some(value) = table.get(key) {
            self.refuse(table, key, value, ALLOWED);
            return None;
        }
        Some(text.to_string())
    }

    /// Refuses what a key of a list of tables names and the contract has not.
    pub(super) fn known_in(&mut self, table: &Table<'_>, list: &str, key: &str, known: &[&str]) {
        for of in self.tables(table, list) {
            let Some(value) = of.get(key) else { continue };
            let named: Vec<&str> = match value.get_ref() {
                DeValue::String(text) => vec![text],
                DeValue::Array(items) => items.iter().filter_map(|item| item.get_ref().as_str()).collect(),
                DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Table(_) => Vec::new(),
            };
            for name in named.into_iter().filter(|name| !known.contains(name)) {
                let words = format!("{name:?} {}", nearest::unknown(known, name));
                self.problem(value.span().start, &of.key(key), words);
            }
        }
    }
}
