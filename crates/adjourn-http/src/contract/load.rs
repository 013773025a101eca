//! Reads a contract out of TOML: strictly, and with every mistake on its line.

mod place;
mod rule;
mod typed;

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint, Timestamp};
use chrono::NaiveDate;
use toml::de::DeTable;

use super::{
    Basis, Calendar, Case, Contract, ContractError, Cost, Expectation, LimitHeaders, LimitScope, Link, Operation,
    Parser, Resets, Unit, UserHint, Window,
};
use crate::settings::sheet::{Sheet, Table};

/// The parsers by name.
pub(super) const PARSERS: [(&str, Parser); 6] = [
    ("retry-after", Parser::RetryAfter),
    ("retry-after-ms", Parser::RetryAfterMs),
    ("ietf", Parser::Ietf),
    ("reset-headers", Parser::ResetHeaders),
    ("body", Parser::Body),
    ("shopify-cost", Parser::ShopifyCost),
];

const KINDS: [(&str, Kind); 6] = [
    ("short", Kind::Short),
    ("daily", Kind::Daily),
    ("monthly", Kind::Monthly),
    ("concurrency", Kind::Concurrency),
    ("account_disabled", Kind::AccountDisabled),
    ("unknown", Kind::Unknown),
];

const HINTS: [(&str, ScopeHint); 6] = [
    ("app", ScopeHint::App),
    ("account", ScopeHint::Account),
    ("user", ScopeHint::User),
    ("endpoint", ScopeHint::Endpoint),
    ("global", ScopeHint::Global),
    ("unknown", ScopeHint::Unknown),
];

const UNITS: [(&str, Unit); 10] = [
    ("auto", Unit::Auto),
    ("s", Unit::S),
    ("ms", Unit::Ms),
    ("min", Unit::Min),
    ("h", Unit::H),
    ("epoch-s", Unit::EpochS),
    ("epoch-ms", Unit::EpochMs),
    ("epoch-us", Unit::EpochUs),
    ("date", Unit::Date),
    ("duration", Unit::Duration),
];

const KNOWN: [&str; 21] = [
    "name",
    "title",
    "aliases",
    "source",
    "read_on",
    "basis",
    "scope",
    "kind",
    "limits",
    "signals",
    "idempotency_window_ms",
    "max_concurrency",
    "min_retry_after_ms",
    "parsers",
    "windows",
    "operations",
    "costs",
    "headers",
    "classify",
    "user_hints",
    "cases",
];

const YEAR_MS: u64 = 366 * 86_400_000;

impl Contract {
    /// Reads a contract.
    ///
    /// # Errors
    /// Every mistake at once, each with its line, what was found and what is allowed.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        let (document, syntax) = DeTable::parse_recoverable(text);
        let mut sheet = Sheet::new(text);
        for error in &syntax {
            let start = error.span().map_or(0, |span| span.start);
            sheet.problem(start, "", format!("is not TOML: {}", error.message()));
        }
        let root = Table {
            path: String::new(),
            line: 1,
            entries: document.get_ref(),
        };
        sheet.keys(&root, &KNOWN, &[]);
        let contract = contract(&mut sheet, &root, None);
        ContractError::check(sheet.problems)?;
        Ok(contract)
    }
}

/// A contract out of a table of a larger file, which may extend `base`, and which names that by `extends`.
pub(crate) fn inline(sheet: &mut Sheet<'_>, table: &Table<'_>, base: Option<&Contract>) -> Contract {
    let known: Vec<&str> = KNOWN.into_iter().chain(["extends"]).collect();
    sheet.keys(table, &known, &[]);
    contract(sheet, table, base)
}

fn contract(sheet: &mut Sheet<'_>, table: &Table<'_>, base: Option<&Contract>) -> Contract {
    let of = table;
    let contract = Contract {
        name: sheet.owned(of, "name"),
        title: sheet.owned(of, "title"),
        aliases: sheet.texts(of, "aliases").unwrap_or_default(),
        source: sheet.url(of, "source"),
        read_on: date(sheet, of, "read_on"),
        basis: sheet.one_of(
            of,
            "basis",
            &[("page", Basis::Page), ("second-hand", Basis::SecondHand)],
        ),
        scope: sheet.one_of(of, "scope", &scopes()),
        kind: sheet.one_of(of, "kind", &KINDS),
        limits: sheet.texts(of, "limits").unwrap_or_default(),
        signals: sheet.texts(of, "signals").unwrap_or_default(),
        idempotency_window_ms: sheet.wide(of, "idempotency_window_ms", 1, YEAR_MS),
        max_concurrency: sheet.whole(of, "max_concurrency", 1..=1_000_000),
        min_retry_after_ms: sheet.wide(of, "min_retry_after_ms", 1, YEAR_MS),
        parsers: parsers(sheet, of),
        windows: sheet.each(of, "windows", window),
        operations: sheet.each(of, "operations", operation),
        costs: sheet.each(of, "costs", cost),
        headers: sheet.each(of, "headers", headers),
        classify: sheet.each(of, "classify", rule::read),
        user_hints: hints(sheet, of),
        cases: sheet.each(of, "cases", case),
    };
    references(sheet, of, &contract, base);
    contract
}

fn scopes() -> [(&'static str, LimitScope); 5] {
    [
        ("credential", LimitScope::Credential),
        ("entity", LimitScope::Entity),
        ("app", LimitScope::App),
        ("function", LimitScope::Function),
        ("custom", LimitScope::Custom),
    ]
}

/// Names that have to stand elsewhere in the contract, or in the one that it extends.
fn references(sheet: &mut Sheet<'_>, table: &Table<'_>, contract: &Contract, base: Option<&Contract>) {
    let both = || [Some(contract), base].into_iter().flatten();
    let windows: Vec<&str> = both()
        .flat_map(|one| &one.windows)
        .map(|window| window.name.as_str())
        .collect();
    let operations: Vec<&str> = both()
        .flat_map(|one| &one.operations)
        .map(|one| one.name.as_str())
        .collect();
    sheet.known_in(table, "headers", "windows", &windows);
    sheet.known_in(table, "operations", "window", &windows);
    sheet.known_in(table, "operations", "shares", &operations);
    sheet.known_in(table, "costs", "window", &windows);
    sheet.known_in(table, "costs", "operation", &operations);
}

fn date(sheet: &mut Sheet<'_>, table: &Table<'_>, key: &str) -> Option<String> {
    const ALLOWED: &str = "a day as text, \"2026-07-10\"";
    let text = sheet.text(table, key, ALLOWED)?;
    let value = table.get(key)?;
    if NaiveDate::parse_from_str(text, "%Y-%m-%d").is_err() || text.len() != 10 {
        sheet.refuse(table, key, value, ALLOWED);
        return None;
    }
    Some(text.to_string())
}

fn parsers(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Vec<Parser>> {
    let value = table.get("parsers")?;
    let names: Vec<&str> = PARSERS.iter().map(|(name, _)| *name).collect();
    let allowed = format!("a list of {} or {}", names.join(", "), place::ALLOWED);
    let Some(items) = value.get_ref().as_array() else {
        sheet.refuse(table, "parsers", value, &allowed);
        return None;
    };
    let mut parsers = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let key = format!("parsers[{index}]");
        if let Some(name) = item.get_ref().as_str() {
            match PARSERS.iter().find(|(known, _)| *known == name) {
                Some((_, parser)) => parsers.push(parser.clone()),
                None => {
                    let words = format!("{name:?} {}", crate::nearest::unknown(&names, name));
                    sheet.problem(item.span().start, &table.key(&key), words);
                }
            }
        } else if item.get_ref().as_table().is_some() {
            if let Some(place) = sheet
                .as_table(table, &key, item)
                .and_then(|table| place::read(sheet, &table))
            {
                parsers.push(Parser::From(place));
            }
        } else {
            sheet.refuse(table, &key, item, &allowed);
        }
    }
    Some(parsers)
}

fn window(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Window> {
    sheet.keys(table, &["name", "limit", "per_ms", "kind", "resets", "scope"], &[]);
    Some(Window {
        limit: sheet.wide(table, "limit", 0, u64::from(u32::MAX) * 1000),
        per_ms: sheet.wide(table, "per_ms", 1, YEAR_MS),
        kind: sheet.one_of(table, "kind", &KINDS),
        resets: resets(sheet, table),
        scope: sheet.one_of(table, "scope", &HINTS),
        name: sheet.required(table, "name", "a window's name, such as \"day\"")?,
    })
}

fn resets(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Resets> {
    const ALLOWED: &str = "\"rolling\" or { at = \"day\", tz = \"America/Los_Angeles\" }";
    let value = table.get("resets")?;
    if value.get_ref().as_str() == Some("rolling") {
        return Some(Resets::Rolling);
    }
    if value.get_ref().as_table().is_none() {
        sheet.refuse(table, "resets", value, ALLOWED);
        return None;
    }
    let of = sheet.as_table(table, "resets", value)?;
    sheet.keys(&of, &["at", "tz"], &[]);
    if of.get("at").is_none() {
        sheet.missing(&of, "at", ALLOWED);
    }
    let at = sheet.one_of(
        &of,
        "at",
        &[
            ("minute", Calendar::Minute),
            ("quarter-hour", Calendar::QuarterHour),
            ("hour", Calendar::Hour),
            ("day", Calendar::Day),
            ("week", Calendar::Week),
            ("month", Calendar::Month),
        ],
    )?;
    let zone = match sheet.text(&of, "tz", ZONES) {
        None => None,
        Some(name) => {
            let zone = name.parse().ok();
            if zone.is_none()
                && let Some(value) = of.get("tz")
            {
                sheet.refuse(&of, "tz", value, ZONES);
            }
            zone
        }
    };
    Some(Resets::At { at, zone })
}

const ZONES: &str =
    "a zone of the IANA database, such as \"UTC\" or \"America/Los_Angeles\"; leave it out where nobody knows it";

fn operation(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Operation> {
    const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    sheet.keys(table, &["name", "methods", "path", "window", "shares"], &[]);
    let methods = sheet.texts(table, "methods").unwrap_or_default();
    if let Some(value) = table.get("methods")
        && methods.iter().any(|method| !METHODS.contains(&method.as_str()))
    {
        sheet.refuse(table, "methods", value, "a list of GET, HEAD, POST, PUT, PATCH, DELETE");
    }
    let path = sheet.required(table, "path", "the beginning of a path, such as \"/exports\"");
    if let Some(value) = table.get("path")
        && path.as_ref().is_some_and(|path| !path.starts_with('/'))
    {
        sheet.refuse(table, "path", value, "a path that begins with /");
    }
    Some(Operation {
        methods,
        window: sheet.owned(table, "window"),
        shares: sheet.owned(table, "shares"),
        name: sheet.required(table, "name", "an operation's name, such as \"export\"")?,
        path: path?,
    })
}

fn cost(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Cost> {
    sheet.keys(table, &["operation", "points", "field", "header", "window"], &[]);
    Some(Cost {
        operation: sheet.owned(table, "operation"),
        points: sheet.wide(table, "points", 0, u64::from(u32::MAX)),
        field: sheet.pointer(table, "field"),
        header: sheet.header(table, "header"),
        window: sheet.owned(table, "window"),
    })
}

fn headers(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<LimitHeaders> {
    let known = ["limit", "remaining", "used", "reset", "unit", "windows"];
    sheet.keys(table, &known, &[]);
    let windows = sheet.texts(table, "windows");
    Some(LimitHeaders {
        limit: sheet.header(table, "limit"),
        remaining: sheet.header(table, "remaining"),
        used: sheet.header(table, "used"),
        reset: sheet.header(table, "reset"),
        unit: sheet.one_of(table, "unit", &UNITS).unwrap_or_default(),
        windows: windows.unwrap_or_default(),
    })
}

fn hints(sheet: &mut Sheet<'_>, table: &Table<'_>) -> BTreeMap<String, UserHint> {
    let mut hints = BTreeMap::new();
    let Some(all) = sheet.table(table, "user_hints") else {
        return hints;
    };
    for (key, value) in all.entries {
        let reason: &str = key.get_ref();
        let Some(of) = sheet.as_table(&all, reason, value) else {
            continue;
        };
        sheet.keys(&of, &["text", "links"], &[]);
        let links = sheet.each(&of, "links", |sheet, table| {
            sheet.keys(table, &["label", "url"], &[]);
            if table.get("url").is_none() {
                sheet.missing(table, "url", "an https URL");
            }
            let label = sheet.required(table, "label", "what the link leads to");
            Some(Link {
                url: sheet.url(table, "url")?,
                label: label?,
            })
        });
        if let Some(text) = sheet.required(&of, "text", "a sentence for the person who waits") {
            hints.insert(reason.to_string(), UserHint { text, links });
        }
    }
    hints
}

fn case(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Case> {
    sheet.keys(
        table,
        &["name", "status", "headers", "body", "received_at", "expect"],
        &[],
    );
    if table.get("status").is_none() {
        sheet.missing(table, "status", "a status, such as 429");
    }
    let status = sheet.whole(table, "status", 100..=999);
    let mut lines = BTreeMap::new();
    if let Some(of) = sheet.table(table, "headers") {
        for (key, _) in of.entries {
            let name: &str = key.get_ref();
            if let Some(values) = sheet.texts(&of, name) {
                lines.insert(name.to_string(), values);
            }
        }
    }
    let received_at = sheet.time(table, "received_at");
    let expect = match sheet.table(table, "expect") {
        Some(of) => expectation(sheet, &of),
        None => {
            sheet.missing(table, "expect", "{ limited = true, kind = \"short\", wait_ms = 1000 }");
            None
        }
    };
    Some(Case {
        headers: lines,
        body: sheet.owned(table, "body"),
        received_at,
        name: sheet.required(table, "name", "what the case shows")?,
        status: u16::try_from(status?).ok()?,
        expect: expect?,
    })
}

fn expectation(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Expectation> {
    sheet.keys(table, &["limited", "kind", "scope", "wait_ms", "retry_at"], &[]);
    if table.get("limited").is_none() {
        sheet.missing(table, "limited", "true or false");
    }
    Some(Expectation {
        kind: sheet.one_of(table, "kind", &KINDS).unwrap_or_default(),
        scope: sheet.one_of(table, "scope", &HINTS).unwrap_or_default(),
        wait_ms: sheet.wide(table, "wait_ms", 0, YEAR_MS),
        retry_at: sheet.time(table, "retry_at"),
        limited: sheet.boolean(table, "limited")?,
    })
}

impl Sheet<'_> {
    /// A moment as text.
    fn time(&mut self, table: &Table<'_>, key: &str) -> Option<String> {
        const ALLOWED: &str = "a time as text, \"2026-07-10T20:13:47Z\"";
        let text = self.text(table, key, ALLOWED)?;
        if Timestamp::parse(text).is_none()
            && let Some(value) = table.get(key)
        {
            self.refuse(table, key, value, ALLOWED);
            return None;
        }
        Some(text.to_string())
    }
}
