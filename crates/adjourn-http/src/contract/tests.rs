//! What a contract's text may hold, and what is said of what it may not.

use super::*;

fn problems(text: &str) -> Vec<String> {
    let error = Contract::parse(text).unwrap_err();
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_contract_is_one() {
    assert_eq!(Contract::parse("").unwrap(), Contract::default());
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let text = r#"
scope = "tenant"
parsers = ["retry-aftre", 7, { heder = "x" }]
windoes = []
[[windows]]
per_ms = 0
resets = { at = "noon", tz = "Mars/Olympus" }
[[classify]]
status = [429, 42]
fields = { "error" = 1, "/a" = { matches = "(" } }
kind = "weekly"
time = "soon"
[[classify]]
status = 200
[[headers]]
windows = ["day"]
"#;
    let found = problems(text);
    let expected = [
        "line 2: scope: found \"tenant\"; allowed: \"credential\" or \"entity\" or \"app\" or \"function\" or \"custom\"",
        "line 3: parsers[0]: \"retry-aftre\" is not known; the nearest known is \"retry-after\"; allowed: retry-after, retry-after-ms, ietf, reset-headers, body, shopify-cost",
        "line 3: parsers[1]: found 7; allowed: a list of retry-after",
        "line 3: parsers[2].heder: is not known; the nearest known is \"header\"",
        "line 3: parsers[2].header: is missing",
        "line 4: windoes: is not known; the nearest known is \"windows\"",
        "line 5: windows[0].name: is missing",
        "line 6: windows[0].per_ms: found 0; allowed: a whole number from 1 to",
        "line 7: windows[0].resets.at: found \"noon\"; allowed: \"minute\"",
        "line 9: classify[0].status: found a list; allowed: a status from 100 to 999",
        "line 10: classify[0].fields./a.matches: is no regular expression",
        "line 10: classify[0].fields.error: is no pointer",
        "line 11: classify[0].kind: found \"weekly\"; allowed: \"short\"",
        "line 12: classify[0].time: found \"soon\"; allowed: \"parsers\"",
        "line 13: classify[1].executed: is missing; it is required: \"none\", \"some\" or \"all\"",
        "line 16: headers[0].windows: \"day\" is not known",
    ];
    for words in expected {
        assert!(
            found.iter().any(|found| found.starts_with(words)),
            "{words}\nis not among\n{}",
            found.join("\n")
        );
    }
}

#[test]
fn a_catalogue_entry_is_written_and_read_back() {
    for entry in crate::CatalogueEntry::all() {
        let contract = entry
            .contract()
            .unwrap_or_else(|error| panic!("{}: {error}", entry.name()));
        let again = Contract::parse(&contract.to_toml()).unwrap_or_else(|error| panic!("{}: {error}", entry.name()));
        assert_eq!(again, contract, "{}", entry.name());
    }
}

#[test]
fn a_catalogue_entry_says_who_what_and_where_it_was_read() {
    for entry in crate::CatalogueEntry::all() {
        let name = entry.name();
        let contract = entry.contract().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(contract.name.as_deref(), Some(name), "the name is the file's");
        let whole = contract.title.is_some()
            && contract
                .source
                .as_ref()
                .is_some_and(|source| source.starts_with("https://"))
            && contract.read_on.is_some()
            && contract.basis.is_some()
            && !contract.limits.is_empty()
            && !contract.signals.is_empty()
            && !contract.cases.is_empty();
        assert!(
            whole,
            "{name} lacks title, source, read_on, basis, limits, signals or a case"
        );
        let title = contract.title.as_deref().unwrap();
        for spoken in contract.aliases.iter().map(String::as_str).chain([name, title]) {
            let found = crate::CatalogueEntry::find(spoken).map(crate::CatalogueEntry::name);
            assert_eq!(
                found,
                Some(name),
                "{spoken:?} leads to another entry, or stands on another line than the first"
            );
        }
    }
}
