//! A rule of `classify`.

use std::collections::BTreeMap;

use adjourn_core::ScopeHint;
use toml::{Spanned, de::DeValue};

use super::{HINTS, KINDS, place};
use crate::{
    contract::{Executed, Pointer, Rule, StatusTest, Test},
    settings::sheet::{Sheet, Table},
};

const KNOWN: [&str; 11] = [
    "status", "headers", "fields", "body", "limited", "kind", "reason", "scope", "time", "executed", "code",
];
const STATUSES: &str = "a status from 100 to 999, \"2xx\" to \"9xx\", or a list of such";
const TESTS: &str =
    "a value, a list of values, { matches = \"pattern\" }, { present = true }, { at_least = 1 } or { at_most = 0 }";

pub(super) fn read(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Rule> {
    sheet.keys(table, &KNOWN, &[]);
    if ["status", "headers", "fields", "body"]
        .iter()
        .all(|key| table.get(key).is_none())
    {
        sheet.missing(table, "status", "a rule needs status, headers, fields or body");
    }
    let rule = Rule {
        status: statuses(sheet, table),
        headers: headers(sheet, table),
        fields: fields(sheet, table),
        body: sheet.pattern(table, "body"),
        limited: sheet.boolean(table, "limited").unwrap_or(true),
        kind: sheet.one_of(table, "kind", &KINDS),
        reason: sheet.owned(table, "reason"),
        scope: scope(sheet, table),
        time: place::time(sheet, table).unwrap_or_default(),
        executed: sheet.one_of(
            table,
            "executed",
            &[
                ("all", Executed::All),
                ("some", Executed::Some),
                ("none", Executed::None),
            ],
        ),
        code: sheet.pointer(table, "code"),
    };
    let may_be_success = rule
        .status
        .iter()
        .any(|status| status.holds(200) || (200..300).any(|s| status.holds(s)));
    if may_be_success && rule.executed.is_none() {
        sheet.missing(
            table,
            "executed",
            "\"none\", \"some\" or \"all\", since the rule takes a 2xx",
        );
    }
    Some(rule)
}

fn statuses(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Vec<StatusTest> {
    let Some(value) = table.get("status") else {
        return Vec::new();
    };
    let items: Vec<&Spanned<DeValue<'_>>> = match value.get_ref().as_array() {
        Some(items) => items.iter().collect(),
        None => vec![value],
    };
    let statuses: Option<Vec<StatusTest>> = items.into_iter().map(|item| status(item.get_ref())).collect();
    match statuses.filter(|statuses| !statuses.is_empty()) {
        Some(statuses) => statuses,
        None => {
            sheet.refuse(table, "status", value, STATUSES);
            Vec::new()
        }
    }
}

fn status(value: &DeValue<'_>) -> Option<StatusTest> {
    if let Some(text) = value.as_str() {
        let hundred = text.strip_suffix("xx")?.parse().ok()?;
        return (2..=9).contains(&hundred).then_some(StatusTest::Class(hundred));
    }
    let number = value.as_integer()?.as_str().parse().ok()?;
    (100..=999).contains(&number).then_some(StatusTest::Is(number))
}

fn headers(sheet: &mut Sheet<'_>, table: &Table<'_>) -> BTreeMap<String, Test> {
    let mut tests = BTreeMap::new();
    let Some(of) = sheet.table(table, "headers") else {
        return tests;
    };
    for (key, value) in of.entries {
        let name: &str = key.get_ref();
        match http::HeaderName::from_bytes(name.as_bytes()) {
            Ok(known) => {
                if let Some(test) = test(sheet, &of, name, value) {
                    tests.insert(known.as_str().to_string(), test);
                }
            }
            Err(_) => sheet.problem(key.span().start, &of.key(name), "is no header's name"),
        }
    }
    tests
}

fn fields(sheet: &mut Sheet<'_>, table: &Table<'_>) -> BTreeMap<Pointer, Test> {
    let mut tests = BTreeMap::new();
    let Some(of) = sheet.table(table, "fields") else {
        return tests;
    };
    for (key, value) in of.entries {
        let text: &str = key.get_ref();
        match Pointer::new(text) {
            Ok(pointer) => {
                if let Some(test) = test(sheet, &of, text, value) {
                    tests.insert(pointer, test);
                }
            }
            Err(words) => sheet.problem(key.span().start, &of.key(text), words),
        }
    }
    tests
}

fn test<'a>(sheet: &mut Sheet<'_>, table: &Table<'a>, key: &str, value: &'a Spanned<DeValue<'a>>) -> Option<Test> {
    if let Some(items) = value.get_ref().as_array() {
        let literals: Option<Vec<String>> = items.iter().map(|item| literal(item.get_ref())).collect();
        if let Some(literals) = literals.filter(|literals| !literals.is_empty()) {
            return Some(Test::Equals(literals));
        }
    } else if value.get_ref().as_table().is_some() {
        let of = sheet.as_table(table, key, value)?;
        sheet.keys(&of, &["matches", "present", "at_least", "at_most"], &[]);
        return if of.entries.len() != 1 {
            sheet.refuse(table, key, value, TESTS);
            None
        } else if of.get("matches").is_some() {
            sheet.pattern(&of, "matches").map(|matches| Test::Matches { matches })
        } else if of.get("present").is_some() {
            sheet.boolean(&of, "present").map(|present| Test::Present { present })
        } else if of.get("at_least").is_some() {
            sheet.signed(&of, "at_least").map(|at_least| Test::AtLeast { at_least })
        } else {
            sheet.signed(&of, "at_most").map(|at_most| Test::AtMost { at_most })
        };
    } else if let Some(literal) = literal(value.get_ref()) {
        return Some(Test::Equals(vec![literal]));
    }
    sheet.refuse(table, key, value, TESTS);
    None
}

fn literal(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn scope(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Vec<ScopeHint> {
    let Some(value) = table.get("scope") else {
        return Vec::new();
    };
    let Some(items) = value.get_ref().as_array() else {
        return sheet.one_of(table, "scope", &HINTS).into_iter().collect();
    };
    let hints: Option<Vec<ScopeHint>> = items
        .iter()
        .map(|item| {
            let found = item.get_ref().as_str();
            HINTS
                .iter()
                .find(|(word, _)| Some(*word) == found)
                .map(|&(_, hint)| hint)
        })
        .collect();
    match hints.filter(|hints| !hints.is_empty()) {
        Some(hints) => hints,
        None => {
            let allowed = "one or more of app, account, user, endpoint, global, unknown";
            sheet.refuse(table, "scope", value, allowed);
            Vec::new()
        }
    }
}
