//! A place in a response that holds a moment.

use super::UNITS;
use crate::{
    contract::{Place, Time},
    settings::sheet::{Sheet, Table},
};

pub(super) const ALLOWED: &str = "{ header = \"x-reset\", unit = \"s\" }, { field = \"/error/wait\", unit = \"ms\" } or { pattern = \"in ([0-9]+) s\", unit = \"s\" }";

pub(super) fn read(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Place> {
    sheet.keys(table, &["header", "field", "pattern", "unit"], &[]);
    if ["header", "field", "pattern"]
        .iter()
        .all(|key| table.get(key).is_none())
    {
        sheet.missing(table, "header", ALLOWED);
    }
    if let Some(value) = table.get("pattern")
        && table.get("field").is_some()
    {
        sheet.refuse(table, "pattern", value, "field or pattern, not both");
    }
    Some(Place {
        header: sheet.header(table, "header"),
        field: sheet.pointer(table, "field"),
        pattern: sheet.pattern(table, "pattern"),
        unit: sheet.one_of(table, "unit", &UNITS).unwrap_or_default(),
    })
}

/// Where a rule finds the moment.
pub(super) fn time(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Time> {
    let allowed = format!("\"parsers\", \"none\", \"window\", {{ delay_ms = 30000 }}, {ALLOWED}, or a list of such");
    let value = table.get("time")?;
    if value.get_ref().as_str().is_some() {
        let words = [("parsers", 0_u8), ("none", 1), ("window", 2)];
        return sheet.one_of(table, "time", &words).map(|word| match word {
            0 => Time::Parsers,
            1 => Time::None,
            _ => Time::Window,
        });
    }
    if let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) {
        let mut places = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let of = sheet.as_table(table, &format!("time[{index}]"), item);
            places.extend(of.and_then(|of| read(sheet, &of)));
        }
        return Some(Time::At(places));
    }
    if value.get_ref().as_table().is_none() {
        sheet.refuse(table, "time", value, &allowed);
        return None;
    }
    let of = sheet.as_table(table, "time", value)?;
    if of.get("delay_ms").is_some() {
        sheet.keys(&of, &["delay_ms"], &[]);
        return sheet.wide(&of, "delay_ms", 1, super::YEAR_MS).map(Time::Delay);
    }
    read(sheet, &of).map(|place| Time::At(vec![place]))
}
