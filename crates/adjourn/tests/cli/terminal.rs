//! What a person sees on a terminal, which is a pseudo-terminal here.

use std::{process::Command, time::Duration};

use adjourn::demo::{Behaviour, Limit, RetryAfter};
use serde_json::Value;

use crate::scene::{Ended, Scene, Server, ended, job, lines};

/// Runs a command of `scene` with its stdout and stderr on a terminal.
pub(crate) fn on_terminal(scene: &Scene, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
    let plain = scene.command(arguments);
    let mut command = Command::new("python3");
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/terminal.py"))
        .arg(plain.get_program());
    command
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    ended(command)
}

/// Whether a text has a colour in it: a Select Graphic Rendition sequence, which ends in m.
pub(crate) fn is_coloured(text: &str) -> bool {
    text.split("\u{1b}[").skip(1).any(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';')
            .starts_with('m')
    })
}

#[test]
fn the_demo_explains_shows_bars_and_tells_the_gates_closing_and_reopening() {
    let scene = Scene::new();
    let demo = on_terminal(&scene, &["demo", "--jobs", "40"], &[]).ok();
    for part in [
        "A provider on this machine",
        "done  ",
        "waiting  ",
        "refused  ",
        "gate demo closed until",
        "gate open again",
        "Next: ",
    ] {
        assert!(demo.stdout.contains(part), "{part}: {demo:?}");
    }
    assert!(demo.stdout.contains("40 of 40 jobs done"), "{demo:?}");
}

#[test]
fn run_shows_what_is_done_what_waits_until_when_and_the_closed_gate() {
    let server = Server::open(Behaviour {
        limit: Some(Limit {
            burst: 2,
            per_second: 2,
        }),
        retry_after: RetryAfter::Seconds,
        latency: Duration::from_millis(1)..Duration::from_millis(2),
        seed: 1,
    });
    let scene = Scene::calling(&server);
    let jobs: Vec<Value> = (0..7).map(|n| job("t", &format!("j{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    let run = on_terminal(&scene, &["run", "--until-idle"], &[]).ok();
    for part in ["of 7 ended", "waiting, next due 20", "acme closed until 20"] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    assert!(run.stdout.contains("7 done, 0 failed"), "{run:?}");
}

#[test]
fn no_color_is_honoured_by_logs_bars_and_help() {
    let scene = Scene::new();
    let server = Server::unlimited();
    scene.write(
        "adjourn.toml",
        &crate::scene::settings(&server.base_url(), "[retry]\nmax_attempts = 1\n"),
    );
    let mut lost = job("t", "a");
    lost["path"] = "/nowhere".into();
    for (environment, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        scene.adjourn_with(&["send"], &lines(&[lost.clone()])).ok();
        let run = on_terminal(&scene, &["run", "--until-idle", "-v"], environment).ok();
        assert!(run.stdout.contains("ERROR"), "the end is logged: {run:?}");
        assert_eq!(is_coloured(&run.stdout), coloured, "{environment:?}: {run:?}");
        let help = on_terminal(&scene, &["--help"], environment).ok();
        assert_eq!(is_coloured(&help.stdout), coloured, "{environment:?}: {help:?}");
    }
}

#[test]
fn json_on_a_terminal_is_one_object_and_no_explanation() {
    let demo = on_terminal(&Scene::new(), &["demo", "--jobs", "5", "--json"], &[]).ok();
    let last = demo.stdout.lines().last().unwrap();
    let object = last.rfind('{').map(|start| &last[start..]).unwrap();
    assert_eq!(serde_json::from_str::<Value>(object).unwrap()["done"], 5);
    assert!(!demo.stdout.contains("A provider on this machine"), "{demo:?}");
}
