//! [providers.NAME]: where a provider is, what it allows, and how a call of it is made.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjourn_core::RetryPolicy;
use http::{HeaderName, Method};
use url::Url;

use crate::{Contract, HttpJob, Rate, RateRule};

use super::{
    Credential, contract, credential,
    sheet::{Sheet, Table},
    tiers,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// No call may take longer than an invocation of a function may (Lambda DG, quotas).
const LONGEST_TIMEOUT_MS: u32 = 900_000;
const MAX_NAME_BYTES: usize = 64;
/// The most points that a rate may count: more than any provider gives out at once.
const MOST_POINTS: u32 = 1_000_000_000;
const RATE: &str = "rate = { requests = 100, per_ms = 10000 }, or points in place of requests";

const KNOWN: [&str; 11] = [
    "base_url",
    "contract",
    "timeout_ms",
    "idempotency_header",
    "repeat_unknown",
    "credential",
    "lanes",
    "max_in_flight",
    "rate",
    "results",
    "retry",
];

/// A provider that jobs may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    name: String,
    base_url: Url,
    timeout: Duration,
    idempotency_header: Option<HeaderName>,
    repeat_unknown: bool,
    credential: Option<Credential>,
    max_in_flight: Option<u32>,
    rate: Option<Rate>,
    lanes: Vec<RateRule>,
    results: Results,
    retry: Option<RetryPolicy>,
    contract: Option<Arc<Contract>>,
}

/// What becomes of a successful call's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Results {
    /// Nothing.
    #[default]
    None,
    /// It is stored with the job.
    Store,
}

impl Provider {
    /// Its name, as jobs have it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a job's path is appended to.
    #[must_use]
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// How long a call may take, from the connection to the response's last byte.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The header by which it knows a repeat, where it has one.
    #[must_use]
    pub fn idempotency_header(&self) -> Option<&HeaderName> {
        self.idempotency_header.as_ref()
    }

    /// The credential that its calls carry.
    #[must_use]
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// How many calls of one scope may be in flight.
    #[must_use]
    pub fn max_in_flight(&self) -> Option<u32> {
        self.max_in_flight
    }

    /// How fast one scope may be called: so many requests, or so many points of what the contract says that calls cost.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The lane that a job's call belongs to.
    pub(crate) fn lane_of(&self, job: &HttpJob) -> Option<&RateRule> {
        let base = self.base_path();
        self.lanes
            .iter()
            .find(|lane| lane.matches_below(base, job.path.as_str()))
    }

    /// The path that those of jobs are below, without a slash at its end.
    pub(crate) fn base_path(&self) -> &str {
        self.base_url.path().trim_end_matches('/')
    }

    /// The calls of one scope that have a rate of their own, instead of [`Provider::rate`]; the first that matches.
    #[must_use]
    pub fn lanes(&self) -> &[RateRule] {
        &self.lanes
    }

    /// What becomes of a successful call's response.
    #[must_use]
    pub fn results(&self) -> Results {
        self.results
    }

    /// Its own way of retrying failures.
    #[must_use]
    pub fn retry(&self) -> Option<&RetryPolicy> {
        self.retry.as_ref()
    }

    /// What it says about its limits, as data; none: only what providers have in common is known.
    #[must_use]
    pub fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// Whether a call that may have had its effect may be made again: the method is idempotent (RFC 9110, section 9.2.2),
    /// the provider knows a repeat by a header, or the settings say so.
    #[must_use]
    pub fn repeats(&self, method: &Method) -> bool {
        method.is_idempotent() || self.idempotency_header.is_some() || self.repeat_unknown
    }
}

pub(super) fn read_all(sheet: &mut Sheet<'_>, root: &Table<'_>) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
    let Some(all) = sheet.table(root, "providers") else {
        return providers;
    };
    if all.entries.is_empty() {
        sheet.problems.push(super::Problem::new(
            all.line,
            "providers",
            "is empty; allowed: tables [providers.NAME]".to_string(),
        ));
    }
    for (key, value) in all.entries {
        let name: &str = key.get_ref();
        let named = (1..=MAX_NAME_BYTES).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !named {
            let words = format!("is no provider's name; allowed: 1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 - _ .");
            sheet.problem(key.span().start, &all.key(&format!("{name:?}")), words);
        }
        if let Some(table) = sheet.as_table(&all, name, value)
            && let Some(provider) = read(sheet, name, &table)
        {
            providers.insert(name.to_string(), provider);
        }
    }
    providers
}

fn read(sheet: &mut Sheet<'_>, name: &str, table: &Table<'_>) -> Option<Provider> {
    sheet.keys(table, &KNOWN, &[]);
    let base_url = base_url(sheet, table);
    let idempotency_header = sheet
        .text(table, "idempotency_header", "a header's name")
        .and_then(|text| credential::header_name(sheet, table, "idempotency_header", text));
    let credential = credential::read(sheet, table);
    let provider = Provider {
        name: name.to_string(),
        timeout: sheet
            .span(table, "timeout_ms", 1..=LONGEST_TIMEOUT_MS)
            .unwrap_or(DEFAULT_TIMEOUT),
        repeat_unknown: sheet.boolean(table, "repeat_unknown").unwrap_or(false),
        max_in_flight: sheet.whole(table, "max_in_flight", 1..=100_000),
        rate: rate(sheet, table),
        lanes: sheet.each(table, "lanes", lane),
        results: results(sheet, table),
        retry: sheet.table(table, "retry").map(|retry| tiers::retry(sheet, &retry)),
        contract: contract::read(sheet, table),
        // Without a base_url the whole is refused anyway.
        base_url: base_url?,
        idempotency_header,
        credential,
    };
    affordable(sheet, table, &provider);
    if provider.idempotency_header.is_some()
        && provider.idempotency_header.as_ref() == provider.credential.as_ref().map(Credential::header)
        && let Some(value) = table.get("idempotency_header")
    {
        sheet.refuse(
            table,
            "idempotency_header",
            value,
            "another header than the credential's",
        );
    }
    Some(provider)
}

fn base_url(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Url> {
    const ALLOWED: &str = "an http or https URL without user, query and fragment";
    if table.get("base_url").is_none() {
        sheet.missing(table, "base_url", ALLOWED);
    }
    let text = sheet.text(table, "base_url", ALLOWED)?;
    let value = table.get("base_url")?;
    // A URL with a password in it is not repeated.
    let start = value.span().start;
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            sheet.problem(
                start,
                &table.key("base_url"),
                format!("is no URL ({error}); allowed: {ALLOWED}"),
            );
            return None;
        }
    };
    let wrong = if !matches!(url.scheme(), "http" | "https") {
        format!("found the scheme {:?}", url.scheme())
    } else if !url.username().is_empty() || url.password().is_some() {
        "found a user in it; use credential".to_string()
    } else if url.query().is_some() {
        "found a query in it".to_string()
    } else if url.fragment().is_some() {
        "found a fragment in it".to_string()
    } else {
        return Some(url);
    };
    sheet.problem(start, &table.key("base_url"), format!("{wrong}; allowed: {ALLOWED}"));
    None
}

pub(super) fn rate(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Rate> {
    let rate = sheet.table(table, "rate")?;
    sheet.keys(&rate, &["requests", "points", "per_ms"], &[]);
    let points = rate.get("points");
    if points.is_none() && rate.get("requests").is_none() {
        sheet.missing(&rate, "requests", RATE);
    }
    if rate.get("per_ms").is_none() {
        sheet.missing(&rate, "per_ms", RATE);
    }
    if let (Some(_), Some(requests)) = (points, rate.get("requests")) {
        sheet.refuse(&rate, "requests", requests, "requests or points, and not both");
    }
    let period = sheet.span(&rate, "per_ms", 1..=31 * 86_400_000);
    let counted = match points {
        Some(_) => sheet.whole(&rate, "points", 1..=MOST_POINTS),
        None => sheet.whole(&rate, "requests", 1..=1_000_000),
    };
    let counted = Rate::new(counted?, period?);
    Some(if points.is_some() { counted.in_points() } else { counted })
}

/// Names the costs of the contract that are more than the rate holds which they are taken from: such a call would never start.
fn affordable(sheet: &mut Sheet<'_>, table: &Table<'_>, provider: &Provider) {
    let Some(contract) = provider.contract() else { return };
    for cost in &contract.costs {
        let Some(points) = cost.points else { continue };
        let operation = cost.operation.as_deref();
        let path = contract
            .operations
            .iter()
            .find(|one| Some(one.name.as_str()) == operation);
        let path = path.map(|operation| operation.path.as_str());
        let base = provider.base_path();
        let lane = path.and_then(|path| provider.lanes.iter().position(|lane| lane.matches_below(base, path)));
        let whole = (operation.is_none() || lane.is_none()).then_some(("rate", "rate".to_string(), provider.rate));
        // What any call costs, calls of each lane cost.
        let lanes = provider.lanes.iter().enumerate();
        let lanes = lanes.filter(|(place, _)| operation.is_none() || lane == Some(*place));
        let lanes = lanes.map(|(place, lane)| ("lanes", format!("lanes[{place}].rate"), lane.rate()));
        for (root, key, rate) in whole.into_iter().chain(lanes) {
            if let Some(rate) = rate.filter(|rate| rate.counts_points())
                && points > u64::from(rate.requests())
            {
                let of = operation.map_or_else(|| "any call".to_string(), |name| format!("the operation {name:?}"));
                let words = format!(
                    "found {}, but {of} costs {points} by the contract; allowed: at least {points}",
                    rate.requests()
                );
                let line = table
                    .get(root)
                    .map_or(table.line, |value| sheet.line(value.span().start));
                let key = table.key(&format!("{key}.points"));
                sheet.problems.push(super::Problem::new(line, &key, words));
            }
        }
    }
}

/// Calls of one path with a rate of their own.
fn lane(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<RateRule> {
    const PATH: &str = "one or more whole segments of a path, such as \"/exports\"";
    sheet.keys(table, &["path", "rate"], &[]);
    for (key, allowed) in [("path", PATH), ("rate", RATE)] {
        if table.get(key).is_none() {
            sheet.missing(table, key, allowed);
        }
    }
    let path = sheet.text(table, "path", PATH);
    if let (Some(path), Some(value)) = (path, table.get("path"))
        && (!path.starts_with('/') || path.trim_matches('/').is_empty() || path.contains(['?', '#']))
    {
        sheet.refuse(table, "path", value, PATH);
        return None;
    }
    Some(RateRule::new(path?, rate(sheet, table)?))
}

fn results(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Results {
    let Some(value) = table.get("results") else {
        return Results::None;
    };
    match value.get_ref().as_str() {
        Some("none") => Results::None,
        Some("store") => Results::Store,
        Some(sink) if !sink.is_empty() => {
            let words = format!("found {sink:?}: sinks for results are not built yet; allowed: \"none\" or \"store\"");
            sheet.problem(value.span().start, &table.key("results"), words);
            Results::None
        }
        _ => {
            sheet.refuse(table, "results", value, "\"none\" or \"store\"");
            Results::None
        }
    }
}
