//! The catalogue as it is listed.

use std::{collections::BTreeSet, fs, path::Path};

use adjourn_core::Timestamp;
use adjourn_http::{CatalogueEntry, Contract, Explainer, Pasted};
use serde_json::{Value, json};

use crate::{
    scene::Scene,
    terminal::{is_coloured, on_terminal},
};

#[test]
fn every_provider_is_one_object_with_all_fields() {
    let listed = Scene::new().adjourn(&["providers", "--json"]).ok().json_lines();
    let names: Vec<&str> = listed.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, CatalogueEntry::names());
    assert!(names.len() >= 66, "{}", names.len());
    for one in &listed {
        let name = &one["name"];
        for list in [
            "aliases",
            "windows",
            "signals",
            "limits",
            "operations",
            "costs",
            "headers",
        ] {
            assert!(one[list].is_array(), "{name}: {list}");
        }
        assert!(!one["signals"].as_array().unwrap().is_empty(), "{name}");
        assert!(one["title"].is_string() && one["scope"].is_string(), "{name}");
        assert!(one["source"].as_str().unwrap().starts_with("https://"), "{name}");
        let read_on = one["readOn"].as_str().unwrap();
        assert!(read_on.len() == 10 && read_on.starts_with("20"), "{name}: {read_on}");
    }
}

/// Every key below a value, but those that are names that a contract gives.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                if key != "userHints" {
                    keys(value, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn keys_are_in_camel_case() {
    let mut found = BTreeSet::new();
    for one in Scene::new().adjourn(&["providers", "--json"]).ok().json_lines() {
        keys(&one, &mut found);
    }
    assert!(found.contains("perMs") && found.contains("readOn"), "{found:?}");
    let odd: Vec<&String> = found.iter().filter(|key| key.contains(['_', '-'])).collect();
    assert!(odd.is_empty(), "{odd:?}");
}

#[test]
fn one_provider_is_found_by_name_title_and_alias() {
    let scene = Scene::new();
    for name in ["github", "GitHub", "GitHub GraphQL", "GITHUB graphql"] {
        let one = scene.adjourn(&["providers", name, "--json"]).ok().json();
        assert_eq!(
            (&one["name"], &one["title"]),
            (&json!("github"), &json!("GitHub")),
            "{name}"
        );
        assert_eq!(one["scope"], "credential");
        let primary = one["windows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|window| window["name"] == "primary");
        assert_eq!(
            primary.unwrap(),
            &json!({"name": "primary", "limit": 5000, "perMs": 3_600_000, "resets": null, "kind": "short", "scope": null})
        );
    }
    let jira = scene.adjourn(&["providers", "Jira Cloud", "--json"]).ok().json();
    assert_eq!(jira["name"], "jira");
    assert_eq!(jira["scope"], "unknown", "what is not known is written as unknown");
}

#[test]
fn an_unknown_name_is_exit_1_and_the_nearest_is_named() {
    let said = Scene::new().adjourn(&["providers", "hubsport"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(
        said.stderr.contains("\"hubsport\"") && said.stderr.contains("the nearest is \"hubspot\""),
        "{said:?}"
    );
}

#[test]
fn people_see_a_table_and_one_provider_in_full() {
    let scene = Scene::new();
    let table = scene.adjourn(&["providers"]).ok();
    let mut lines = table.stdout.lines();
    assert!(lines.next().unwrap().starts_with("NAME "), "{table:?}");
    assert_eq!(lines.count(), CatalogueEntry::names().len());
    assert!(table.stdout.contains("primary 5000 in 1 h"), "{}", table.stdout);
    assert!(!is_coloured(&table.stdout));

    let one = scene.adjourn(&["providers", "github"]).ok();
    for part in [
        "GitHub (github)",
        "also     GitHub REST, GitHub GraphQL",
        "scope    credential",
        "windows  primary: 5000 in 1 h",
        "at once  100 calls",
        "source   https://docs.github.com/",
    ] {
        assert!(one.stdout.contains(part), "{part}: {}", one.stdout);
    }
    for (environment, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let said = on_terminal(&scene, &["providers"], environment).ok();
        assert_eq!(is_coloured(&said.stdout), coloured, "{environment:?}");
    }
}

#[test]
fn the_page_of_the_documentation_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let page = Scene::new().adjourn(&["providers", "--markdown"]).ok().stdout;
    let found = fs::read_to_string(path).unwrap_or_default();
    let differs = found.lines().zip(page.lines()).position(|(found, page)| found != page);
    assert!(
        found == page,
        "docs/providers.md is not what the catalogue says (line {}): run `make docs`",
        differs.unwrap_or_else(|| found.lines().count().min(page.lines().count())) + 1
    );
}

#[test]
fn the_provider_that_contributing_shows_is_one_with_a_case_that_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CONTRIBUTING.md");
    let page = fs::read_to_string(path).unwrap();
    let file = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let contract = Contract::parse(file).unwrap_or_else(|error| panic!("{error}"));
    assert!(contract.title.is_some() && contract.source.is_some() && contract.read_on.is_some());
    assert!(contract.basis.is_some() && !contract.limits.is_empty() && !contract.signals.is_empty());
    let [case] = contract.cases.as_slice() else {
        panic!("it shows one case")
    };
    let response = json!({"status": case.status, "headers": case.headers, "received_at": case.received_at});
    let now = Timestamp::EPOCH;
    let pasted = Pasted::read(response.to_string().as_bytes(), None, now).unwrap();
    let told = Explainer::default().contract(contract.clone()).explain(&pasted);
    assert_eq!(
        (told.rate_limited, told.kind, told.scope_hint, told.retry_at),
        (
            case.expect.limited,
            case.expect.kind,
            case.expect.scope,
            Timestamp::parse(case.expect.retry_at.as_deref().unwrap())
        )
    );
}
