//! `--store aws` as far as it needs no queue to answer.

use crate::scene::{Scene, ended, job, lines, settings};

#[test]
fn what_needs_a_table_is_exit_2_and_names_the_setting() {
    let scene = Scene::new();
    for arguments in [&["jobs"][..], &["job", "a"], &["cancel", "a"], &["gate", "ls"]] {
        let said = scene.adjourn(&[&["--store", "aws"], arguments].concat());
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}: {said:?}"
        );
        assert!(said.stderr.contains("ADJOURN_TABLE"), "{arguments:?}: {said:?}");
    }
}

#[test]
fn run_and_redrive_say_what_does_their_work_there() {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    for (arguments, instead) in [(&["run"][..], "function"), (&["redrive", "--all"], "dead-letter queue")] {
        let said = scene.adjourn(&[arguments, &["--store", "aws"]].concat());
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}: {said:?}"
        );
        assert!(
            said.stderr.contains("not built yet") && said.stderr.contains(instead),
            "{arguments:?}: {said:?}"
        );
    }
}

#[test]
fn without_a_queue_the_setting_is_named() {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    scene.write("jobs.jsonl", &lines(&[job("t", "a")]));
    let expected = if cfg!(feature = "aws") {
        "ADJOURN_QUEUE_URL: missing"
    } else {
        "this build has no --store aws"
    };
    for arguments in [&["status"][..], &["send", "jobs.jsonl"]] {
        let said = scene.adjourn(&[arguments, &["--store", "aws"]].concat());
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}: {said:?}"
        );
        assert!(said.stderr.contains(expected), "{arguments:?}: {said:?}");
    }
    let mut command = scene.command(&["status"]);
    command.env("ADJOURN_STORE", "aws");
    assert!(ended(command).stderr.contains(expected));
}
