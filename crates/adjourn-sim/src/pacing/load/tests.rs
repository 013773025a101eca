//! Mistakes in scenario files; the list of fields against the structs and the docs.

use std::{fs, path::Path};

use super::{
    schema::{CHANGE, Field, LIMITS, MUST, OTHER, SCENARIO, Takes, VARY, Without},
    *,
};

fn mistakes(text: &str) -> Vec<String> {
    let error = Scenario::parse("mine", text).expect_err(text);
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn every_mistake_is_told_at_once_with_its_line() {
    let told = mistakes(
        "titel = \"x\"
jobs = 0
latency_ms = -5
hint = \"honset\"
counter = 1

[[limits]]
kind = \"bukcet\"

[[limits]]
kind = \"bucket\"
rate = 0
burst = 0.5
changes = [{ at_ms = 10, rate = 1 }, { at_ms = 10, rate = inf }]

[[limits]]
rate = 1

[must]
ratios = 1
refused_share = 1.5
",
    );
    let expected = [
        "line 1: titel: is not known; the nearest known is \"title\"; allowed: name, title, jobs,",
        "line 1: title: is missing; it is required: a text of 1 to 200 characters on one line",
        "line 2: jobs: found 0; allowed: a whole number from 1 to 10000000",
        "line 3: latency_ms: found -5; allowed: a whole number from 0 to 3600000",
        "line 4: hint: found \"honset\"; the nearest known is \"honest\"; allowed: \"none\", \"honest\",",
        "line 5: counter: found 1; allowed: true or false",
        "line 8: limits[0].kind: found \"bukcet\"; the nearest known is \"bucket\"; allowed: bucket, window,",
        "line 12: limits[1].rate: found 0; allowed: a number from 0.001 to 1000000",
        "line 13: limits[1].burst: found 0.5; allowed: a number from 1 to 1000000",
        "line 14: limits[1].changes[1].at_ms: found 10; allowed: more than 10, as changes stand in their order",
        "line 14: limits[1].changes[1].rate: found inf; allowed: a number from 0.001 to 1000000",
        "line 16: limits[2].kind: is missing; it is required: one of bucket, window,",
        "line 20: must.ratios: is not known; the nearest known is \"ratio\"; allowed: ratio, against,",
        "line 21: must.refused_share: found 1.5; allowed: a number from 0 to 1",
    ];
    assert_eq!(told.len(), expected.len(), "{}", told.join("\n"));
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\nis not\n{expected}");
    }
}

#[test]
fn fields_are_held_against_each_other() {
    let top = "title = \"x\"\njobs = 10\n";
    for (more, expected) in [
        (
            "[[limits]]\nkind = \"window\"\ncalls = 1\nper_ms = 10\nphase_ms = 10",
            "limits[0].phase_ms: found 10; allowed: less than per_ms, 10",
        ),
        (
            "[[limits]]\nkind = \"outage\"\nfrom_ms = 10\nuntil_ms = 10",
            "limits[0].until_ms: found 10; allowed: more than from_ms, 10",
        ),
        (
            "[[limits]]\nkind = \"job\"\njob = 10",
            "limits[0].job: found 10; allowed: at most the last job, which counts from 0: 9",
        ),
        (
            "[must]\ngiven_up = 11",
            "must.given_up: found 11; allowed: at most jobs 10",
        ),
        (
            "[[limits]]\nkind = \"bucket\"\nrate = 5.0\nburst = 1\nchanges = [{ at_ms = 9, rate = 2 }]\n[other]\nrate = 2",
            "other.rate: found 2; allowed: less than the lowest rate of the limits, 2",
        ),
        (
            "[vary]\nlatency_ms = [1,2,3,4,5,6,7,8,9,10,11]\nconcurrency = [1,2,3,4,5,6,7,8,9,10]",
            "vary: makes 110 variants; allowed: at most 100",
        ),
        (
            "[vary]\nlatency_ms = [30, 0, 0x1e]",
            "vary.latency_ms[2]: found 30 a second time; allowed: each value once",
        ),
        (
            "[vary]\nhint = [\"zero\", \"zero\"]\nconcurrency = [1, 2]",
            "vary.hint[1]: found \"zero\" a second time; allowed: each value once",
        ),
    ] {
        let told = mistakes(&format!("{top}{more}"));
        assert!(told.len() == 1 && told[0].ends_with(expected), "{told:?}\n{expected}");
    }
}

#[test]
fn a_value_of_another_type_is_no_scenario() {
    for (line, expected) in [
        (
            "limits = 3",
            "limits: found 3; allowed: a list of at most 20 tables, each [[limits]]",
        ),
        ("limits = [3]", "limits[0]: found 3; allowed: a table with a kind"),
        (
            "[limits]",
            "limits: found a table; allowed: a list of at most 20 tables, each [[limits]]",
        ),
        ("must = []", "must: found a list of 0; allowed: a table"),
        ("other = 2000-01-01", "other: found 2000-01-01; allowed: a table"),
        (
            "vary = { hint = \"late\" }",
            "vary.hint: found \"late\"; allowed: a list of at most 20 of \"none\", ",
        ),
        (
            "concurrency = 10.5",
            "concurrency: found 10.5; allowed: a whole number from 1 to 100000",
        ),
        (
            "concurrency = 0x7fffffffffffffff",
            "concurrency: found 0x7fffffffffffffff; allowed: a whole",
        ),
        (
            "name = \"  \"",
            "name: found \"  \"; allowed: a text of 1 to 60 characters on one line",
        ),
        ("name = \"a\\u001b[2J\"", "name: found \"a\\u001b[2J\"; allowed: a text"),
    ] {
        let told = mistakes(&format!("title = \"x\"\njobs = 10\n{line}"));
        assert!(
            told.len() == 1 && told[0].starts_with(&format!("line 3: {expected}")),
            "{told:?}"
        );
    }
}

#[test]
fn no_text_panics_hangs_or_floods() {
    let deep = format!("title = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let dotted = format!("{}= 1", "a.".repeat(50_000));
    let many: String = (0..100_000).map(|n| format!("k{n}=1\n")).collect();
    let long = format!("{} = 1", "k".repeat(1_000_000));
    let big = "#".repeat(MAX_SCENARIO_BYTES + 1);
    for text in [
        "",
        " \n",
        "\0",
        "title",
        "title = ",
        "[[limits]",
        "[must",
        "=",
        "\"\\u001b[2J\" = 1",
        &deep,
        &dotted,
        &many,
        &long,
        &big,
    ] {
        let error = Scenario::parse("mine", text).expect_err("it is no scenario");
        let words = error.to_string();
        assert!(words.len() < 100_000, "{} bytes of words", words.len());
        assert!(words.lines().all(|line| !line.contains(char::is_control)), "{words:?}");
        assert!(error.problems().iter().all(|problem| problem.line() > 0), "{words}");
    }
}

#[test]
fn numbers_may_be_written_with_a_point_or_without() {
    let of = |rate: &str| {
        let text = format!("title = \"x\"\njobs = 1_000\n[[limits]]\nkind = \"bucket\"\nburst = 1\nrate = {rate}");
        Scenario::parse("mine", &text).unwrap()
    };
    assert_eq!(of("1000"), of("1_000.0"));
    assert_eq!((of("5").name.as_str(), of("5").jobs), ("mine", 1000));
}

/// A table of the file that has each required field, and the text around it.
struct Sample {
    section: &'static str,
    fields: &'static [Field],
    before: String,
    after: &'static str,
}

fn samples() -> Vec<Sample> {
    let top = "title = \"x\"\njobs = 10\n";
    let bucket = "[[limits]]\nkind = \"bucket\"\nrate = 5\nburst = 5\n";
    let mut samples = vec![
        Sample {
            section: "## The file",
            fields: SCENARIO,
            before: top.to_string(),
            after: "",
        },
        Sample {
            section: "## `[other]`",
            fields: OTHER,
            before: format!("{top}[other]\nrate = 1\n"),
            after: "",
        },
        Sample {
            section: "## `[vary]`",
            fields: VARY,
            before: format!("{top}[vary]\n"),
            after: "",
        },
        Sample {
            section: "## `[must]`",
            fields: MUST,
            before: format!("{top}[must]\n"),
            after: "",
        },
        Sample {
            section: "### `changes`",
            fields: CHANGE,
            before: format!("{top}{bucket}changes = [{{ at_ms = 1, rate = 1,\n"),
            after: " }]",
        },
    ];
    for (section, kind, required) in [
        ("### `bucket`", "bucket", "rate = 5\nburst = 5"),
        ("### `window`", "window", "calls = 5\nper_ms = 5"),
        ("### `sliding`", "sliding", "calls = 5\nper_ms = 5"),
        ("### `concurrent`", "concurrent", "most = 5"),
        ("### `chance`", "chance", "share = 0.5"),
        ("### `outage`", "outage", "from_ms = 5\nuntil_ms = 6"),
        ("### `once`", "once", "call = 5"),
        ("### `job`", "job", "job = 5"),
        ("### `first`", "first", "calls = 5"),
        ("### `always`", "always", ""),
    ] {
        let (_, fields) = LIMITS.iter().find(|(name, _)| *name == kind).unwrap();
        let before = format!("{top}[[limits]]\nkind = \"{kind}\"\n{required}\n");
        samples.push(Sample {
            section,
            fields,
            before,
            after: "",
        });
    }
    samples
}

fn by_serde(text: &str) -> Result<Scenario, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_string())
}

/// What serde says that it knows, in the words of its message.
fn expected_by_serde(message: &str) -> Vec<&str> {
    let (_, list) = message.split_once("expected").unwrap_or_else(|| panic!("{message}"));
    let mut names: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_list_of_fields_is_that_of_the_structs() {
    for sample in samples() {
        let unknown = format!("{}zzz = 1{}", sample.before, sample.after);
        let message = by_serde(&unknown).expect_err(&unknown);
        let mut names: Vec<&str> = sample.fields.iter().map(|field| field.name).collect();
        names.sort_unstable();
        assert_eq!(expected_by_serde(&message), names, "{}: {message}", sample.section);
    }
    let message = by_serde("title = \"x\"\njobs = 1\n[[limits]]\nkind = \"zzz\"").unwrap_err();
    let mut kinds: Vec<&str> = LIMITS.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    assert_eq!(expected_by_serde(&message), kinds);
}

#[test]
fn what_is_required_and_what_counts_instead_is_what_the_structs_do() {
    for sample in samples() {
        let whole = format!("{}{}", sample.before, sample.after);
        let without = Scenario::parse("", &whole).unwrap_or_else(|error| panic!("{whole}: {error}"));
        for field in sample.fields {
            match field.without {
                Without::Value(value) => {
                    let with = format!("{}{} = {value}{}", sample.before, field.name, sample.after);
                    assert_eq!(Scenario::parse("", &with).as_ref(), Ok(&without), "{with}");
                }
                Without::Wrong => {
                    let line = format!("{} = ", field.name);
                    let start = whole.rfind(&line).unwrap_or_else(|| panic!("{whole} has {line}"));
                    let end = whole[start..]
                        .find(['\n', ','])
                        .map_or(whole.len(), |end| start + end + 1);
                    let cut = format!("{}{}", &whole[..start], &whole[end..]);
                    let message = by_serde(&cut).expect_err(&cut);
                    assert!(
                        message.contains(&format!("missing field `{}`", field.name)),
                        "{cut}: {message}"
                    );
                    assert!(Scenario::parse("", &cut).is_err(), "{cut}");
                }
                Without::Words(_) => {}
            }
        }
    }
}

#[test]
fn the_words_and_bounds_that_are_allowed_are_read() {
    for sample in samples() {
        for field in sample.fields.iter().filter(|field| field.without != Without::Wrong) {
            let values: Vec<String> = match &field.takes {
                Takes::Word(words) => words.iter().map(|word| format!("{word:?}")).collect(),
                Takes::Words(words) => vec![format!("{words:?}")],
                Takes::Wholes(range) => vec![format!("[{}, {}]", range.start(), range.end())],
                Takes::Flag => vec!["true".to_string()],
                Takes::Whole(range) => vec![range.start().to_string()],
                Takes::Number(range) => vec![range.start().to_string(), range.end().to_string()],
                Takes::Text(most) => vec![format!("{:?}", "x".repeat(*most))],
                Takes::Table(_) | Takes::Tables(..) | Takes::Limits(_) => continue,
            };
            for value in values {
                let with = format!("{}{} = {value}{}", sample.before, field.name, sample.after);
                assert!(
                    Scenario::parse("x", &with).is_ok(),
                    "{with}: {:?}",
                    Scenario::parse("x", &with)
                );
            }
        }
    }
}

#[test]
fn the_docs_have_each_field_with_what_it_takes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let docs = fs::read_to_string(path).unwrap();
    let mut lacking = Vec::new();
    let mut rows = 0;
    for sample in samples() {
        let (_, section) = docs
            .split_once(&format!("\n{}\n", sample.section))
            .unwrap_or_else(|| panic!("{}", sample.section));
        let section = section.split("\n#").next().unwrap();
        for field in sample.fields {
            let without = match field.without {
                Without::Wrong => "required".to_string(),
                Without::Value(value) => format!("`{value}`"),
                Without::Words(words) => words.to_string(),
            };
            let row = format!("| `{}` | {} | {without} | ", field.name, field.takes);
            rows += 1;
            if !section
                .lines()
                .any(|line| line.starts_with(&row) && line.len() > row.len() + 2)
            {
                lacking.push(format!("{}: {row}", sample.section));
            }
        }
    }
    assert_eq!(lacking, Vec::<String>::new());
    let in_docs = docs.matches("| without it |").count() + rows;
    let all = docs
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches(" | ").count() >= 3)
        .count();
    let rules = docs
        .lines()
        .filter(|line| line.starts_with("| --- | --- | --- |"))
        .count();
    assert_eq!(all - rules, in_docs, "the docs have no field that a file does not");
}

#[test]
fn the_example_of_the_docs_is_a_scenario() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let docs = fs::read_to_string(path).unwrap();
    let (_, example) = docs.split_once("```toml\n").unwrap();
    let scenario = Scenario::parse("mine", example.split("```").next().unwrap()).unwrap();
    let names: Vec<String> = scenario.variants().into_iter().map(|variant| variant.name).collect();
    assert_eq!(names, ["mine/hint=none", "mine/hint=seconds"]);
}
