//! What fields must be to each other: moments in order, places that exist, variants that stay few.

use toml::de::DeTable;

use super::{
    check::{Sheet, Value, number, whole},
    schema::VALUES,
};

/// The most variants of a scenario.
const VARIANTS: usize = 100;

/// Checks what can be checked, whatever else is wrong.
pub(super) fn check(sheet: &mut Sheet<'_>, root: &DeTable<'_>) {
    let jobs = root.get("jobs").and_then(whole);
    let limits = root.get("limits").and_then(|limits| limits.get_ref().as_array());
    for (place, limit) in limits.into_iter().flat_map(|limits| limits.iter().enumerate()) {
        let Some(limit) = limit.get_ref().as_table() else {
            continue;
        };
        of_limit(sheet, &format!("limits[{place}]"), limit, jobs);
    }
    let table = |name: &str| root.get(name).and_then(|value| value.get_ref().as_table());
    if let Some(given_up) = table("must").and_then(|must| must.get("given_up")) {
        no_more(sheet, "must.given_up", given_up, jobs, "jobs");
    }
    if let Some(rate) = table("other").and_then(|other| other.get("rate")) {
        other(sheet, rate, root);
    }
    if let Some(vary) = root.get("vary") {
        for (name, list) in vary.get_ref().as_table().into_iter().flatten() {
            each_once(sheet, &format!("vary.{}", name.get_ref()), list);
        }
        let lists = vary.get_ref().as_table().into_iter().flat_map(|vary| vary.iter());
        let lengths = lists.filter_map(|(_, list)| list.get_ref().as_array().map(|list| list.len()));
        let count = lengths.filter(|&length| length > 0).fold(1, usize::saturating_mul);
        if count > VARIANTS {
            let words = format!("makes {count} variants; allowed: at most {VARIANTS}");
            sheet.problem(vary.span().start, "vary", &words);
        }
    }
}

/// The variants of equal values would have one name.
fn each_once(sheet: &mut Sheet<'_>, path: &str, list: &Value<'_>) {
    let values = list.get_ref().as_array();
    let mut seen = Vec::new();
    for (place, value) in values
        .into_iter()
        .flat_map(|values| values.iter().enumerate())
        .take(VALUES)
    {
        let Some(said) = said(value) else { continue };
        if seen.contains(&said) {
            let words = format!("found {said} a second time; allowed: each value once");
            sheet.problem(value.span().start, &format!("{path}[{place}]"), &words);
        }
        seen.push(said);
    }
}

/// A value as it would be written, whichever way it was.
fn said(value: &Value<'_>) -> Option<String> {
    // A longer one is no hint and refused for that.
    let word = value.get_ref().as_str().filter(|word| word.len() <= 20);
    let word = word.map(|word| format!("{word:?}"));
    word.or_else(|| whole(value).map(|number| number.to_string()))
}

fn of_limit(sheet: &mut Sheet<'_>, path: &str, limit: &DeTable<'_>, jobs: Option<u64>) {
    let kind = limit
        .get("kind")
        .and_then(|kind| kind.get_ref().as_str())
        .unwrap_or_default();
    let at = |name: &str| limit.get(name).and_then(whole);
    match kind {
        "bucket" => {
            let changes = limit.get("changes").and_then(|changes| changes.get_ref().as_array());
            let mut before = None;
            for (place, change) in changes.into_iter().flat_map(|changes| changes.iter().enumerate()) {
                let Some(value) = change.get_ref().as_table().and_then(|change| change.get("at_ms")) else {
                    continue;
                };
                let Some(at_ms) = whole(value) else { continue };
                if let Some(before) = before.filter(|&before| at_ms <= before) {
                    let words = format!("found {at_ms}; allowed: more than {before}, as changes stand in their order");
                    sheet.problem(value.span().start, &format!("{path}.changes[{place}].at_ms"), &words);
                }
                before = Some(at_ms);
            }
        }
        "window" => {
            if let (Some(per), Some(phase), Some(value)) = (at("per_ms"), at("phase_ms"), limit.get("phase_ms"))
                && phase >= per
            {
                let words = format!("found {phase}; allowed: less than per_ms, {per}");
                sheet.problem(value.span().start, &format!("{path}.phase_ms"), &words);
            }
        }
        "outage" => {
            if let (Some(from), Some(until), Some(value)) = (at("from_ms"), at("until_ms"), limit.get("until_ms"))
                && until <= from
            {
                let words = format!("found {until}; allowed: more than from_ms, {from}");
                sheet.problem(value.span().start, &format!("{path}.until_ms"), &words);
            }
        }
        "job" => {
            if let Some(job) = limit.get("job") {
                let last = jobs.and_then(|jobs| jobs.checked_sub(1));
                no_more(
                    sheet,
                    &format!("{path}.job"),
                    job,
                    last,
                    "the last job, which counts from 0:",
                );
            }
        }
        _ => {}
    }
}

fn no_more(sheet: &mut Sheet<'_>, key: &str, value: &Value<'_>, most: Option<u64>, what: &str) {
    let Some(most) = most else { return };
    if let Some(found) = whole(value).filter(|&found| found > most) {
        let words = format!("found {found}; allowed: at most {what} {most}");
        sheet.problem(value.span().start, key, &words);
    }
}

/// Another client that takes the whole limit leaves nothing that could be measured.
fn other(sheet: &mut Sheet<'_>, value: &Value<'_>, root: &DeTable<'_>) {
    let Some(rate) = number(value) else { return };
    let limits = root.get("limits").and_then(|limits| limits.get_ref().as_array());
    let rates = limits.into_iter().flat_map(|limits| limits.iter()).filter_map(|limit| {
        let limit = limit.get_ref().as_table()?;
        let of = |table: &DeTable<'_>| table.get("rate").and_then(number);
        let changes = limit.get("changes").and_then(|changes| changes.get_ref().as_array());
        let changed = changes.into_iter().flat_map(|changes| changes.iter());
        let changed = changed.filter_map(|change| of(change.get_ref().as_table()?));
        Some(changed.fold(of(limit)?, f64::min))
    });
    let lowest = rates.fold(f64::INFINITY, f64::min);
    if rate >= lowest {
        let words = format!("found {rate}; allowed: less than the lowest rate of the limits, {lowest}");
        sheet.problem(value.span().start, "other.rate", &words);
    }
}
