//! `adjourn demo`: a whole system in front of one's eyes, judged by the provider's books.

use crate::scene::{Scene, files};

#[test]
fn it_ends_with_nothing_early_lost_or_doubled_and_the_figures_as_json() {
    let scene = Scene::new();
    let demo = scene.adjourn(&["demo", "--jobs", "60", "--seed", "7", "--json"]).ok();
    let figures = demo.json();
    let mut fields: Vec<&str> = figures.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "deferred",
            "done",
            "duplicates",
            "earlyCalls",
            "jobs",
            "limitMs",
            "lost",
            "makespanMs",
            "refusals"
        ]
    );
    let figure = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((figure("jobs"), figure("done")), (60, 60));
    assert_eq!((figure("earlyCalls"), figure("lost"), figure("duplicates")), (0, 0, 0));
    // 60 calls at 20 a second with 20 saved up.
    assert_eq!(figure("limitMs"), 2000);
    assert!(
        figure("makespanMs") >= figure("limitMs"),
        "faster than the provider allows: {figures}"
    );
    assert!(
        figure("refusals") >= figure("deferred") && figure("deferred") >= 1,
        "{figures}"
    );
    assert_eq!(
        files(&scene.path("")),
        Vec::<String>::new(),
        "its store was a temporary one"
    );
}

#[test]
fn without_a_terminal_it_prints_a_short_summary_and_no_bars() {
    let scene = Scene::new();
    let demo = scene.adjourn(&["demo", "--jobs", "30"]).ok();
    for part in [
        "30 jobs",
        "0 early",
        "0 lost",
        "0 duplicates",
        "large",
        "small",
        "tiny",
        "makespan",
        "limit",
    ] {
        assert!(demo.stdout.contains(part), "{part}: {demo:?}");
    }
    assert!(demo.stdout.lines().count() <= 15, "{demo:?}");
    for text in [&demo.stdout, &demo.stderr] {
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{demo:?}");
    }
}

#[test]
fn one_job_is_a_demo_too() {
    let figures = Scene::new().adjourn(&["demo", "--jobs", "1", "--json"]).ok().json();
    assert_eq!(
        (
            figures["done"].as_u64(),
            figures["refusals"].as_u64(),
            figures["limitMs"].as_u64()
        ),
        (Some(1), Some(0), Some(0))
    );
}
