//! `adjourn simulate`: scenarios in virtual time, their figures, pictures and mistakes.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::scene::{Scene, ended, files};

/// What the figures of a run are, in their order.
const FIELDS: [&str; 22] = [
    "scenario",
    "variant",
    "strategy",
    "seed",
    "jobs",
    "done",
    "failed",
    "makespanMs",
    "limitMs",
    "ratio",
    "refusals",
    "refusedShare",
    "earlyCalls",
    "lost",
    "duplicates",
    "maxInFlight",
    "p50LatencyMs",
    "p99LatencyMs",
    "fairness",
    "against",
    "referenceMs",
    "missed",
];

/// Ten jobs, of which ten may be called at once: nobody is refused.
const EASY: &str = "title = \"ten jobs, and room for ten\"
jobs = 10
latency_ms = 100
[[limits]]
kind = \"bucket\"
rate = 10
burst = 10
[must]
refused_share = 0.0
";

#[test]
fn one_run_is_one_object_with_every_figure() {
    let scene = Scene::new();
    scene.write("easy.toml", EASY);
    let said = scene
        .adjourn(&[
            "simulate",
            "--json",
            "--scenario",
            "easy.toml",
            "--strategy",
            "independent",
            "--seed",
            "7",
        ])
        .ok();
    let names: Vec<&str> = FIELDS.to_vec();
    let mut places: Vec<usize> = names
        .iter()
        .map(|name| {
            said.stdout
                .find(&format!("\"{name}\":"))
                .unwrap_or_else(|| panic!("{name}: {said:?}"))
        })
        .collect();
    assert!(places.is_sorted(), "{said:?}");
    places.dedup();
    assert_eq!(places.len(), said.json().as_object().unwrap().len());
    let run = said.json();
    // Ten calls leave at once, pass at once, and are answered after one round trip: the file alone says so.
    for (field, expected) in [
        ("scenario", Value::from("easy")),
        ("variant", Value::Null),
        ("strategy", Value::from("independent")),
        ("seed", Value::from(7)),
        ("jobs", Value::from(10)),
        ("done", Value::from(10)),
        ("failed", Value::from(0)),
        ("makespanMs", Value::from(100)),
        ("limitMs", Value::from(100)),
        ("ratio", Value::from(1.0)),
        ("refusals", Value::from(0)),
        ("refusedShare", Value::from(0.0)),
        ("earlyCalls", Value::from(0)),
        ("lost", Value::from(0)),
        ("duplicates", Value::from(0)),
        ("maxInFlight", Value::from(10)),
        ("p50LatencyMs", Value::from(100)),
        ("p99LatencyMs", Value::from(100)),
        ("fairness", Value::from(1.0)),
    ] {
        assert_eq!(run[field], expected, "{field}");
    }
    assert_eq!(said.stderr, "");
}

#[test]
fn a_scenario_with_variants_has_an_object_for_each_and_each_can_be_named() {
    let scene = Scene::new();
    let said = scene.adjourn(&["simulate", "--scenario", "unlimited", "--strategy", "fixed", "--json"]);
    let variants: Vec<Value> = said.json_lines().iter().map(|run| run["variant"].clone()).collect();
    assert_eq!(variants, ["latency=30", "latency=100", "latency=500"]);
    let one = scene.adjourn(&[
        "simulate",
        "--scenario",
        "unlimited/latency=100",
        "--strategy",
        "fixed",
        "--json",
    ]);
    assert_eq!(one.json(), said.json_lines()[1]);
    let none = scene.adjourn(&["simulate", "--scenario", "unlimited/latency=9"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""));
    assert!(
        none.stderr
            .contains("has no variant \"latency=9\"; allowed: unlimited/latency=30, "),
        "{none:?}"
    );
}

#[test]
fn the_same_seed_prints_and_draws_the_same_bytes_and_another_does_not() {
    let scene = Scene::new();
    let of = |seed: &str| {
        let arguments = [
            "simulate",
            "--compare",
            "--scenario",
            "flaky-5",
            "--json",
            "--seed",
            seed,
            "--svg",
            "a.svg",
            "--html",
            "a.html",
        ];
        let said = scene.adjourn(&arguments).stdout;
        let read = |name: &str| fs::read_to_string(scene.path(name)).unwrap();
        (said, read("a.svg"), read("a.html"))
    };
    let (one, two, other) = (of("1"), of("1"), of("2"));
    assert!(one == two, "two runs of one seed differ");
    assert!(one.0 != other.0 && one.1 != other.1, "the seed says nothing");
}

#[test]
fn a_missed_must_is_exit_1_and_told_in_words_for_adjourns_own_strategy_alone() {
    let scene = Scene::new();
    // 20 calls of a bucket of 1 take 190 s at the least, and no refusal can be avoided by who does not know it.
    scene.write(
        "hard.toml",
        "title = \"x\"\njobs = 20\n[[limits]]\nkind = \"bucket\"\nrate = 0.1\nburst = 1\n[must]\nratio = 0.5\nrefused_share = 0.0\n",
    );
    let said = scene.adjourn(&["simulate", "--scenario", "hard.toml", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("hard: it took "), "{said:?}");
    assert!(
        said.stderr.contains("190.00 s of the limit itself; allowed: 0.5 times"),
        "{said:?}"
    );
    assert!(said.stderr.contains("of the calls were refused"), "{said:?}");
    assert_eq!(said.json()["missed"].as_array().unwrap().len(), 2);
    assert_eq!(said.json()["limitMs"], 190_000);
    let other = scene
        .adjourn(&["simulate", "--scenario", "hard.toml", "--strategy", "fixed", "--json"])
        .ok();
    assert!(!other.json()["missed"].as_array().unwrap().is_empty());
    assert_eq!(other.stderr, "");
}

#[test]
fn jobs_that_come_to_no_end_are_exit_1_under_any_strategy() {
    let scene = Scene::new();
    scene.write("never.toml", "title = \"x\"\njobs = 3\n[[limits]]\nkind = \"always\"\n");
    let said = scene.adjourn(&["simulate", "--scenario", "never.toml", "--strategy", "ideal", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr
            .contains("never: 3 jobs came to no end (it was broken off after 10001 calls)"),
        "{said:?}"
    );
    let run = said.json();
    assert_eq!(
        (&run["lost"], &run["limitMs"], &run["ratio"]),
        (&Value::from(3), &Value::from(0), &Value::Null)
    );
}

#[test]
fn what_is_not_known_is_exit_2_with_the_nearest_and_all_there_are() {
    let scene = Scene::new();
    scene.write("jobs", EASY);
    scene.write("wrong.toml", "title = \"x\"\njobs = 0\nlatencyms = 3\n");
    scene.write("twice.toml", "title = \"x\"\njobs = 1\n[vary]\nlatency_ms = [30, 30]\n");
    scene.write("empty.toml", "");
    fs::write(scene.path("binary.toml"), b"title = \"\xff\"").unwrap();
    fs::write(scene.path("huge.toml"), vec![b'#'; 1024 * 1024 + 1]).unwrap();
    let table: &[(&[&str], &str)] = &[
        (
            &["--scenario", "bucket10"],
            "the nearest known is \"bucket-10\"; allowed: alone-1, alone-2, ",
        ),
        (
            &["--scenario", "unlimited", "--strategy", "evidense"],
            "the nearest known is \"evidence\"; allowed: evidence, aimd, ",
        ),
        (
            &["--scenario", "none.toml"],
            "none.toml: there is no such file; `adjourn simulate --list`",
        ),
        (&["--scenario", "folder/"], "there is no such file"),
        (&["--scenario", "."], "cannot be read"),
        (
            &["--scenario", "wrong.toml"],
            "line 2: jobs: found 0; allowed: a whole number from 1 to 10000000\nline 3: latencyms: is not known; the nearest known is \"latency_ms\"",
        ),
        (
            &["--scenario", "empty.toml"],
            "empty.toml: 1 problem(s) in the scenario\nline 1: found an empty file",
        ),
        (&["--scenario", "binary.toml"], "the byte at 9 begins no character"),
        (&["--scenario", "huge.toml"], "more than 1048576 bytes"),
        (
            &["--scenario", "unlimited", "--svg", "no/where.svg"],
            "no/where.svg: there is no folder no",
        ),
        (&["--scenario", "unlimited", "--svg", "."], "is there and is no file"),
        (
            &["--scenario", "unlimited", "--svg", "both", "--html", "./both"],
            "--html: found ./both, the file of --svg; name another one",
        ),
        (
            &["--scenario", "twice.toml"],
            "line 4: vary.latency_ms[1]: found 30 a second time; allowed: each value once",
        ),
        (&[], "<--scenario <FILE|NAME>|--list|--compare>"),
        (&["--list", "--scenario", "unlimited"], "cannot be used with"),
        (&["--compare", "--strategy", "fixed"], "cannot be used with"),
        (&["--scenario", "unlimited", "--seed", "x"], "--seed"),
    ];
    let before = files(&scene.path(""));
    for (arguments, expected) in table {
        let said = scene.adjourn(&[&["simulate"], *arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(expected), "{arguments:?}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
    assert_eq!(files(&scene.path("")), before);
    // A file goes by its name where no scenario has it.
    assert_eq!(
        scene.adjourn(&["simulate", "--scenario", "jobs", "--json"]).json()["scenario"],
        "jobs"
    );
}

#[test]
fn the_list_has_every_scenario_with_its_must_and_every_strategy() {
    let scene = Scene::new();
    let said = scene.adjourn(&["simulate", "--list"]).ok();
    let objects = scene.adjourn(&["simulate", "--list", "--json"]).ok().json_lines();
    let names = |field: &str| -> BTreeSet<String> {
        objects
            .iter()
            .filter_map(|object| Some(object[field].as_str()?.to_string()))
            .collect()
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../adjourn-sim/scenarios");
    let in_folder: BTreeSet<String> = files(&folder)
        .iter()
        .map(|name| name.trim_end_matches(".toml").to_string())
        .collect();
    assert_eq!(names("scenario"), in_folder);
    let strategies = [
        "aimd",
        "evidence",
        "fixed",
        "full-jitter",
        "ideal",
        "independent",
        "spacing-gate",
    ];
    assert_eq!(names("strategy"), strategies.map(str::to_string).into());
    for object in &objects {
        let name = object["scenario"].as_str().or(object["strategy"].as_str()).unwrap();
        let line = said
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name} ")))
            .unwrap_or_else(|| panic!("{name}"));
        let about = object["title"].as_str().or(object["about"].as_str()).unwrap();
        assert!(line.contains(about), "{line}");
        if let Some(words) = object["must"]["words"].as_str() {
            assert!(said.stdout.contains(&format!("must: {words}")), "{name}: {words}");
        }
    }
    let defaults: Vec<&Value> = objects.iter().filter(|object| object["default"] == true).collect();
    assert_eq!(
        (defaults.len(), &defaults[0]["strategy"]),
        (1, &Value::from("evidence"))
    );
}

#[test]
fn the_comparison_has_a_column_for_each_strategy_and_marks_what_was_missed() {
    let scene = Scene::new();
    scene.write(
        "slow.toml",
        "title = \"x\"\njobs = 30\n[[limits]]\nkind = \"bucket\"\nrate = 1\nburst = 1\n[must]\nratio = 1.05\nrefused_share = 0.0\n",
    );
    let said = scene.adjourn(&["simulate", "--compare", "--scenario", "slow.toml"]);
    let head = said.stdout.lines().find(|line| line.starts_with("variant")).unwrap();
    let columns: Vec<&str> = head.split_whitespace().skip(1).collect();
    assert_eq!(
        columns,
        [
            "evidence",
            "aimd",
            "spacing-gate",
            "independent",
            "full-jitter",
            "fixed",
            "ideal",
            "against"
        ]
    );
    let line = said.stdout.lines().find(|line| line.starts_with('-')).unwrap();
    // 30 calls at one a second: the fixed pace, told the limit, takes as long as the limit itself and meets no refusal.
    let last: Vec<&str> = line.split_whitespace().rev().take(7).collect();
    assert_eq!(last, ["limit", "%", "0.0", "1.00", "%", "0.0", "1.00"], "{line}");
    assert!(line.contains("gave up"), "independent jobs spend their calls: {line}");
    let runs = scene
        .adjourn(&["simulate", "--compare", "--scenario", "slow.toml", "--json"])
        .json_lines();
    let missed = runs
        .iter()
        .filter(|run| !run["missed"].as_array().unwrap().is_empty())
        .count();
    assert_eq!(line.matches('!').count(), missed, "{line}");
    assert_eq!(runs.len(), 7);
    // The default strategy cannot know the limit before it met it.
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("slow: ") && !said.stderr.contains("gave up"),
        "{said:?}"
    );
}

#[test]
fn pictures_are_whole_files_that_need_nothing_else() {
    let scene = Scene::new();
    scene.write(
        "a&b.toml",
        &EASY.replace("ten jobs", "<script>alert(1)</script> & ten jobs"),
    );
    scene.write("out.html", "what stood there");
    scene
        .adjourn(&[
            "simulate",
            "--compare",
            "--scenario",
            "a&b.toml",
            "--svg",
            "out.svg",
            "--html",
            "out.html",
        ])
        .ok();
    let (svg, html) = (
        fs::read_to_string(scene.path("out.svg")).unwrap(),
        fs::read_to_string(scene.path("out.html")).unwrap(),
    );
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"));
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    for text in [&svg, &html] {
        assert!(text.contains("prefers-color-scheme:dark"));
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; ten jobs"));
        let links = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(
            ["http:", "https:", "url(", "@import", "src="]
                .iter()
                .all(|link| !links.contains(link))
        );
        for strategy in [
            "evidence",
            "aimd",
            "spacing-gate",
            "independent",
            "full-jitter",
            "fixed",
        ] {
            assert!(text.contains(&format!(">{strategy}</text>")), "{strategy}");
        }
        for words in [
            "calls a second",
            "jobs not yet ended",
            ">passed<",
            ">refused<",
            ">who knows the limit<",
            " ms</text>",
        ] {
            assert!(text.contains(words), "{words}");
        }
    }
    assert_eq!(
        files(&scene.path("")),
        ["a&b.toml", "out.html", "out.svg"],
        "nothing half-made is left"
    );
}

#[cfg(unix)]
#[test]
fn a_picture_is_readable_as_any_new_file_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    scene.write("easy.toml", EASY);
    let ordinary = fs::metadata(scene.path("easy.toml")).unwrap().permissions().mode();
    scene.adjourn(&["simulate", "--scenario", "easy.toml", "--svg", "a.svg"]);
    assert_eq!(
        fs::metadata(scene.path("a.svg")).unwrap().permissions().mode(),
        ordinary
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let scene = Scene::new();
    let mut child = scene
        .command(&["simulate", "--list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(said.stderr.is_empty() && said.status.success(), "{said:?}");
}

#[test]
fn colours_are_for_terminals() {
    let scene = Scene::new();
    scene.write("easy.toml", EASY);
    for arguments in [
        &["simulate", "--compare", "--scenario", "easy.toml"][..],
        &["simulate", "--list"],
    ] {
        let said = ended(scene.command(arguments));
        assert!(
            !said.stdout.contains('\u{1b}') && !said.stderr.contains('\u{1b}'),
            "{said:?}"
        );
    }
}

#[test]
fn a_scenario_without_end_in_sight_is_broken_off() {
    let scene = Scene::new();
    // A window of a month for each call: a century is over after 1,200 of them.
    scene.write(
        "ages.toml",
        "title = \"x\"\njobs = 5000\n[[limits]]\nkind = \"window\"\ncalls = 1\nper_ms = 2678400000\n",
    );
    let said = scene.adjourn(&["simulate", "--scenario", "ages.toml", "--strategy", "ideal", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let run = said.json();
    assert_eq!(run["done"], 100 * 365 / 31 + 1, "{run}");
    assert_eq!(run["lost"], 5000 - (100 * 365 / 31 + 1), "{run}");
    assert_eq!(
        (&run["limitMs"], &run["ratio"]),
        (&Value::from(0), &Value::Null),
        "a part's time is no limit"
    );
}
