//! `adjourn status`, `adjourn jobs` and `adjourn job`: what a person sees.

use std::{collections::BTreeSet, io::Read, process::Stdio, time::Duration};

use adjourn::demo::{Behaviour, Limit, RetryAfter};
use serde_json::{Value, json};

use crate::scene::{Running, Scene, Server, files, job, lines, settings, until};

const LATER: &str = "2999-01-01T00:00:00.000Z";

/// Five jobs of two tenants and two runs, one of them not due for a long time.
fn five() -> Scene {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    let mut jobs: Vec<Value> = Vec::new();
    for (id, tenant, run) in [
        ("a", "x", "r1"),
        ("b", "x", "r2"),
        ("c", "y", "r1"),
        ("d", "y", "r2"),
        ("e", "y", "r2"),
    ] {
        let mut job = job(tenant, id);
        job["run"] = json!(run);
        if id == "e" {
            job["notBefore"] = json!(LATER);
        }
        jobs.push(job);
    }
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    scene
}

fn ids(scene: &Scene, arguments: &[&str]) -> Vec<String> {
    let listed = scene.adjourn(&[&["jobs", "--json"], arguments].concat()).ok();
    let mut ids: Vec<String> = listed
        .json_lines()
        .iter()
        .map(|job| job["id"].as_str().unwrap().to_string())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn status_has_every_count_and_the_next_due_time() {
    let status = five().status();
    assert_eq!(
        status,
        json!({
            "ready": 4, "running": 0, "waiting": 1, "done": 0, "failed": 0, "exhausted": 0, "review": 0, "cancelled": 0,
            "nextDueAt": LATER, "gates": [],
        })
    );
}

#[test]
fn status_for_people_names_what_waits_and_when_it_is_due() {
    let said = five().adjourn(&["status"]).ok();
    for part in ["ready", "4", "waiting", "1", LATER] {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
}

#[test]
fn jobs_are_filtered_by_state_tenant_and_run() {
    let scene = five();
    assert_eq!(ids(&scene, &[]), ["a", "b", "c", "d", "e"]);
    assert_eq!(ids(&scene, &["--state", "waiting"]), ["e"]);
    assert_eq!(ids(&scene, &["--tenant", "x"]), ["a", "b"]);
    assert_eq!(ids(&scene, &["--run", "r2"]), ["b", "d", "e"]);
    assert_eq!(
        ids(&scene, &["--run", "r2", "--tenant", "y", "--state", "ready"]),
        ["d"]
    );
    assert_eq!(ids(&scene, &["--tenant", "nobody"]), Vec::<String>::new());
}

#[test]
fn a_job_has_every_field_of_the_contract() {
    let scene = five();
    let waiting = scene.adjourn(&["jobs", "--json", "--state", "waiting"]).ok().json();
    let fields = [
        "id",
        "state",
        "provider",
        "scopeKey",
        "tenant",
        "run",
        "attempts",
        "deferrals",
        "hops",
        "mechanism",
        "retryAt",
        "reason",
        "lastStatus",
        "deferralId",
        "epoch",
        "sequence",
        "createdAt",
        "updatedAt",
    ];
    for field in fields {
        assert!(waiting.get(field).is_some(), "{field}: {waiting}");
    }
    assert_eq!(
        (&waiting["state"], &waiting["mechanism"], &waiting["retryAt"]),
        (&json!("waiting"), &json!("schedule"), &json!(LATER))
    );
    assert_eq!(
        (&waiting["provider"], &waiting["scopeKey"], &waiting["tenant"]),
        (&json!("acme"), &json!("acme"), &json!("y"))
    );
    let shown = scene.adjourn(&["job", "e", "--json"]).ok().json();
    for field in fields {
        assert_eq!(shown[field], waiting[field], "{field}");
    }
    assert!(shown["receipts"].is_array(), "{shown}");
}

#[test]
fn jobs_for_people_is_one_line_a_job_with_its_moment_and_its_reason() {
    let scene = five();
    let said = scene.adjourn(&["jobs"]).ok();
    assert_eq!(said.stdout.lines().count(), 5, "{said:?}");
    let waiting = said.stdout.lines().find(|line| line.starts_with("e ")).unwrap();
    assert!(
        waiting.contains("waiting") && waiting.contains(LATER) && waiting.contains("not before"),
        "{waiting}"
    );
    assert!(said.stdout.lines().all(|line| line == line.trim_end()), "{said:?}");
}

#[test]
fn a_job_that_is_not_there_is_exit_1_and_says_how_to_find_one() {
    let said = five().adjourn(&["job", "z", "--json"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert!(
        said.stderr.contains("\"z\"") && said.stderr.contains("adjourn jobs"),
        "{said:?}"
    );
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking_at_it() {
    let scene = Scene::new();
    for command in [
        &["status"][..],
        &["jobs"],
        &["job", "a"],
        &["cancel", "a"],
        &["redrive", "--all"],
    ] {
        let said = scene.adjourn(command);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{command:?}: {said:?}"
        );
        assert!(
            said.stderr.contains("adjourn.db") && said.stderr.contains("--store"),
            "{command:?}: {said:?}"
        );
    }
    assert_eq!(files(&scene.path("")), Vec::<String>::new());
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    scene.write(
        "notes.txt",
        "these are my notes, and no database at all; they go on for a while",
    );
    for command in [
        &["--store", "sqlite:notes.txt", "status"][..],
        &["--store", "sqlite:notes.txt", "run", "--until-idle"],
    ] {
        let said = scene.adjourn(command);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{command:?}: {said:?}"
        );
        assert!(said.stderr.contains("notes.txt"), "{command:?}: {said:?}");
    }
    assert!(
        std::fs::read_to_string(scene.path("notes.txt"))
            .unwrap()
            .starts_with("these are my notes")
    );
}

#[test]
fn a_reader_that_leaves_early_ends_the_listing_quietly() {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    let jobs: Vec<Value> = (0..5000).map(|n| job("t", &format!("j{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    for arguments in [&["jobs"][..], &["jobs", "--json"]] {
        let mut child = scene
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 2]).unwrap();
        drop(stdout);
        let said = child.wait_with_output().unwrap();
        assert!(
            said.status.success() && said.stderr.is_empty(),
            "{arguments:?}: {said:?}"
        );
    }
}

#[test]
fn a_closed_gate_is_shown_while_jobs_wait_behind_it() {
    let server = Server::open(Behaviour {
        limit: Some(Limit {
            burst: 1,
            per_second: 1,
        }),
        retry_after: RetryAfter::Seconds,
        latency: Duration::ZERO..Duration::ZERO,
        seed: 1,
    });
    let scene = Scene::calling(&server);
    let jobs: Vec<Value> = (0..6).map(|n| job("t", &format!("j{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    let mut run = Running::start(scene.command(&["run"]));
    let gate = until("a closed gate", || {
        let gates = scene.status()["gates"].as_array().unwrap().clone();
        gates.first().cloned()
    });
    assert_eq!(gate["scopeKey"], "acme");
    assert!(
        gate["closedUntil"].is_string() && gate["reason"].is_string() && gate.get("paceMs").is_some(),
        "{gate}"
    );
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn a_pace_that_was_found_is_shown_with_its_moment_and_closes_no_gate() {
    let server = Server::of_twenty_a_second();
    let scene = Scene::calling(&server);
    let jobs: Vec<Value> = (0..400).map(|n| job("t", &format!("j{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    let mut run = Running::start(scene.command(&["run"]));
    let gate = until("a found pace", || {
        let gates = scene.status()["gates"].as_array().unwrap().clone();
        gates.into_iter().find(|gate| gate["paceMs"].is_u64())
    });
    let fields: BTreeSet<&str> = gate.as_object().unwrap().keys().map(String::as_str).collect();
    let all = ["closedUntil", "paceFoundAt", "paceMs", "reason", "scopeKey"];
    assert_eq!(fields, all.into(), "in whatever order");
    assert_eq!(
        (&gate["scopeKey"], &gate["closedUntil"], &gate["reason"]),
        (&json!("acme"), &Value::Null, &json!("found"))
    );
    assert!(gate["paceMs"].as_u64() >= Some(1), "{gate}");
    assert!(gate["paceFoundAt"].as_str().unwrap().ends_with('Z'), "{gate}");
    let line = until("a line of it", || {
        let shown = scene.adjourn(&["status"]).ok().stdout;
        let line = shown.lines().find(|line| line.starts_with("gate acme one call each "));
        line.map(ToString::to_string)
    });
    assert!(line.contains(" ms, found at 20"), "{line}");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}
