//! Help, wrong usage, and pipes that close.

use std::process::Stdio;

use crate::scene::{Scene, ended, files};

const COMMANDS: [&str; 13] = [
    "demo",
    "send",
    "run",
    "status",
    "jobs",
    "job",
    "cancel",
    "redrive",
    "gate",
    "explain",
    "providers",
    "simulate",
    "doctor",
];

#[test]
fn every_command_has_help_with_an_example_on_stdout() {
    let scene = Scene::new();
    for command in COMMANDS {
        let help = scene.adjourn(&[command, "--help"]).ok();
        assert!(help.stdout.contains("Example"), "{command}: {help:?}");
        assert!(help.stdout.contains(&format!(
            "adjourn {}",
            if help.stdout.contains("comes later") {
                "jobs"
            } else {
                command
            }
        )));
        assert_eq!(help.stderr, "", "{command}");
    }
    let help = scene.adjourn(&["--help"]).ok();
    assert!(COMMANDS.iter().all(|command| help.stdout.contains(command)), "{help:?}");
    assert!(help.stdout.contains("Exit status: 0 success; 1"), "{help:?}");
}

#[test]
fn the_version_is_the_crates() {
    let said = Scene::new().adjourn(&["--version"]).ok();
    assert_eq!(said.stdout, format!("adjourn {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_exit_2_on_stderr_and_says_what_is_allowed() {
    let table: &[(&[&str], &str)] = &[
        (&[], "Usage: adjourn"),
        (&["stats"], "a similar subcommand exists: 'status'"),
        (&["status", "--jsn"], "--json"),
        (
            &["--store", "postgres://x/y", "status"],
            "the scheme \"postgres\" is not known; allowed are sqlite:PATH and aws",
        ),
        (&["status", "--store", "jobs.db"], "write sqlite:jobs.db"),
        (&["status", "--store", "sqlite:"], "needs a path"),
        (
            &["jobs", "--state", "wating"],
            "possible values: ready, running, waiting, done, failed, exhausted, review, cancelled",
        ),
        (&["job"], "<ID>"),
        (&["cancel"], "<ID|--run <R>|--tenant <T>>"),
        (&["cancel", "a", "--run", "b"], "cannot be used with"),
        (&["redrive"], "<ID|--all>"),
        (&["redrive", "a", "--all"], "cannot be used with"),
        (&["run", "--concurrency", "0"], "1..=1000"),
        (&["demo", "--jobs", "0"], "1..=100000"),
        (&["demo", "--seed", "x"], "--seed"),
        (&["simulate"], "<--scenario <FILE|NAME>|--list|--compare>"),
        (
            &["explain", "--received-at", "tomorrow"],
            "is no time; allowed: RFC 3339, such as 2026-07-10T20:13:47Z",
        ),
        (&["providers", "--markdown", "github"], "cannot be used with"),
    ];
    let scene = Scene::new();
    for (arguments, expected) in table {
        let said = scene.adjourn(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(expected), "{arguments:?}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
    assert_eq!(
        files(&scene.path("")),
        Vec::<String>::new(),
        "wrong usage makes no store"
    );
}

#[test]
fn a_wrong_store_in_the_environment_is_told_like_one_on_the_command_line() {
    let scene = Scene::new();
    let mut command = scene.command(&["status"]);
    command.env("ADJOURN_STORE", "mysql:x");
    let said = ended(command);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("the scheme \"mysql\" is not known"), "{said:?}");
}

#[test]
fn a_wrong_log_filter_names_the_variable() {
    let scene = Scene::new();
    let mut command = scene.command(&["run", "--until-idle"]);
    command.env("RUST_LOG", "adjourn=shout");
    let said = ended(command);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("RUST_LOG: found \"adjourn=shout\""), "{said:?}");
}

#[test]
fn help_into_a_closed_pipe_ends_quietly() {
    let scene = Scene::new();
    let mut child = scene
        .command(&["--help"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
}
