//! Every response of the corpus, field by field: with the contract of the line's provider, or without one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use adjourn_core::{Kind, ScopeHint, Timestamp};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use crate::answers;

/// How much later than told a moment may be read: a `Date` is cut to a second, and spans are rounded up.
const LATER_MS: u64 = 1500;
/// The most lines, in a hundred, whose expectation may be shown to be wrong.
const MOST_DISAGREEMENTS: usize = 2;

#[derive(Deserialize)]
struct Line {
    id: String,
    provider: String,
    status: u16,
    headers: BTreeMap<String, Value>,
    body: Value,
    received_at: Timestamp,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    rate_limited: bool,
    kind: Kind,
    scope_hint: ScopeHint,
    retry_at: Option<Timestamp>,
    wait_ms: Option<u64>,
    #[serde(default)]
    saturates: bool,
}

/// One expectation that is shown to be wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disagreement {
    id: String,
    fields: Vec<String>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disagreements {
    #[serde(default)]
    disagreement: Vec<Disagreement>,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

fn lines() -> Vec<Line> {
    let text = std::fs::read_to_string(corpus().join("responses.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn disagreements() -> Vec<Disagreement> {
    let text = std::fs::read_to_string(corpus().join("disagreements.toml")).unwrap();
    toml::from_str::<Disagreements>(&text).unwrap().disagreement
}

fn headers(line: &Line) -> HeaderMap {
    let lines = line.headers.iter().flat_map(|(name, value)| {
        let single = std::slice::from_ref(value);
        let values = value.as_array().map_or(single, Vec::as_slice);
        values.iter().map(move |value| (name.as_str(), value.as_str().unwrap()))
    });
    answers::headers(lines)
}

/// The fields in which a line's reading differs from what is expected, each in words.
fn differences(line: &Line) -> Vec<(&'static str, String)> {
    let contract = (line.provider != "(synthetic)").then(|| answers::contract(&line.provider));
    let body = match line.body.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None if line.body.is_null() => Vec::new(),
        None => serde_json::to_vec(&line.body).unwrap(),
    };
    let reading = answers::read(contract, line.status, &headers(line), &body, line.received_at);
    let (signal, expect) = (reading.signal(), &line.expect);
    let mut found = Vec::new();
    if reading.is_limited() != expect.rate_limited {
        found.push((
            "rate_limited",
            format!("{} for {}", reading.is_limited(), expect.rate_limited),
        ));
    }
    if signal.limit_kind() != expect.kind {
        found.push(("kind", format!("{:?} for {:?}", signal.limit_kind(), expect.kind)));
    }
    if signal.concerns() != expect.scope_hint {
        found.push((
            "scope_hint",
            format!("{:?} for {:?}", signal.concerns(), expect.scope_hint),
        ));
    }
    let told = expect.retry_at.map(|at| at.since(line.received_at).as_millis());
    let told = told.or(expect.wait_ms.map(u128::from));
    let read = signal.wait().map(|wait| wait.as_millis());
    let agrees = match (read, told) {
        (Some(read), Some(told)) => read >= told && read <= told + u128::from(LATER_MS),
        (None, None) => true,
        (Some(_), None) => expect.saturates && signal.earliest_retry_at() == Some(Timestamp::MAX),
        (None, Some(_)) => false,
    };
    if !agrees {
        found.push((
            "retry_at",
            format!("{read:?} ms for {told:?} ms, by {:?}", signal.parser()),
        ));
    }
    if signal.is_saturated() != expect.saturates {
        found.push((
            "saturates",
            format!("{} for {}", signal.is_saturated(), expect.saturates),
        ));
    }
    found
}

#[test]
fn every_response_of_the_corpus_is_read_as_it_should_be() {
    let (lines, disagreements) = (lines(), disagreements());
    let mut passed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in &lines {
        let differences = differences(line);
        for field in ["rate_limited", "kind", "scope_hint", "retry_at", "saturates"] {
            *passed.entry(field).or_default() += usize::from(differences.iter().all(|(name, _)| *name != field));
        }
        for (field, words) in differences {
            let shown = disagreements
                .iter()
                .any(|one| one.id == line.id && one.fields.iter().any(|name| name == field));
            if !shown {
                wrong.push(format!("{}: {field}: {words}", line.id));
            }
        }
    }
    for (field, passed) in passed {
        println!("{field}: {passed} of {}", lines.len());
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_disagreement_is_real_has_a_reason_and_they_are_few() {
    let (lines, disagreements) = (lines(), disagreements());
    assert!(
        disagreements.len() * 100 <= lines.len() * MOST_DISAGREEMENTS,
        "{} are too many",
        disagreements.len()
    );
    for one in &disagreements {
        let line = lines
            .iter()
            .find(|line| line.id == one.id)
            .unwrap_or_else(|| panic!("{} is no line", one.id));
        let differ: BTreeSet<&str> = differences(line).iter().map(|(field, _)| *field).collect();
        let listed: BTreeSet<&str> = one.fields.iter().map(String::as_str).collect();
        assert_eq!(differ, listed, "{}: the listed fields are those that differ", one.id);
        assert!(one.reason.len() > 40, "{}: say why the expectation is wrong", one.id);
    }
}
