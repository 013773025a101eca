//! `adjourn send`: JSON Lines in, one id a line out, and nothing at all when a line is wrong.

use std::{io::Read, process::Stdio};

use adjourn::demo::Behaviour;
use serde_json::{Value, json};

use crate::scene::{Scene, Server, files, job, lines, settings};

/// A folder whose provider is nowhere: sending calls nobody.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    scene
}

#[test]
fn ids_come_out_one_a_line_in_the_order_of_the_file() {
    let scene = scene();
    scene.write("jobs.jsonl", &lines(&[job("t", "b"), job("t", "a"), job("t", "c")]));
    let sent = scene.adjourn(&["send", "jobs.jsonl"]).ok();
    assert_eq!((sent.stdout.as_str(), sent.stderr.as_str()), ("b\na\nc\n", ""));
    assert_eq!(scene.status()["ready"], 3);
}

#[test]
fn stdin_is_read_without_a_file_and_with_a_dash() {
    let scene = scene();
    for (arguments, id) in [(&["send"][..], "one"), (&["send", "-"], "two")] {
        let sent = scene.adjourn_with(arguments, &lines(&[job("t", id)])).ok();
        assert_eq!(sent.stdout, format!("{id}\n"));
    }
    assert_eq!(scene.status()["ready"], 2);
}

#[test]
fn an_empty_file_is_no_jobs_and_no_error() {
    let scene = scene();
    for input in ["", "\n", "\n  \n\n"] {
        let sent = scene.adjourn_with(&["send"], input).ok();
        assert_eq!((sent.stdout.as_str(), sent.stderr.as_str()), ("", ""));
    }
    assert_eq!(scene.status()["ready"], 0);
}

#[test]
fn a_job_without_an_id_is_given_one_under_which_it_is_found() {
    let scene = scene();
    let mut nameless = job("t", "x");
    nameless.as_object_mut().unwrap().remove("id");
    let sent = scene
        .adjourn_with(&["send"], &lines(&[nameless.clone(), nameless]))
        .ok();
    let ids: Vec<&str> = sent.stdout.lines().collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        assert_eq!(scene.adjourn(&["job", id, "--json"]).ok().json()["id"], id);
    }
}

#[test]
fn an_id_that_is_still_open_is_one_job_said_on_stderr_and_no_error() {
    let scene = scene();
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    let again = scene
        .adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b")]))
        .ok();
    assert_eq!(again.stdout, "a\nb\n", "each line's id, whatever became of it");
    assert!(again.stderr.contains("a is open already"), "{again:?}");
    assert!(!again.stderr.contains("b is open"), "{again:?}");
    assert_eq!(scene.status()["ready"], 2);
}

#[test]
fn the_same_job_twice_in_one_file_is_one_job() {
    let scene = scene();
    let sent = scene
        .adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b"), job("t", "a")]))
        .ok();
    assert_eq!(sent.stdout, "a\nb\na\n");
    assert!(
        sent.stderr.contains("line 3") && sent.stderr.contains("line 1"),
        "{sent:?}"
    );
    assert_eq!(scene.status()["ready"], 2);
}

#[test]
fn two_different_jobs_of_one_id_in_one_file_are_refused_naming_both_lines() {
    let scene = scene();
    let mut other = job("t", "a");
    other["body"] = json!({"job": "another"});
    let sent = scene.adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b"), other]));
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(2), ""));
    assert!(
        sent.stderr.contains("lines 1 and 3") && sent.stderr.contains("\"a\""),
        "{sent:?}"
    );
    assert_eq!(files(&scene.path("")), ["adjourn.toml"], "nothing was queued");
}

#[test]
fn json_says_what_became_of_each_line() {
    let scene = scene();
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    let sent = scene
        .adjourn_with(&["--json", "send"], &lines(&[job("t", "a"), job("t", "b")]))
        .ok();
    assert_eq!(
        sent.json_lines(),
        [
            json!({"id": "a", "outcome": "already-open", "line": 1}),
            json!({"id": "b", "outcome": "added", "line": 2}),
        ]
    );
}

/// A job with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut job = job("t", "bad");
    job[field] = value;
    job
}

#[test]
fn a_wrong_line_is_named_with_its_field_what_was_found_and_what_is_allowed() {
    let table: Vec<(String, &[&str])> = vec![
        ("{".into(), &["JSON"]),
        ("[1]".into(), &["object"]),
        (
            with("provider", json!("acmee")).to_string(),
            &["provider", "acmee", "acme"],
        ),
        (with("method", json!("FETCH")).to_string(), &["method", "FETCH", "GET"]),
        (with("pth", json!("/x")).to_string(), &["pth", "path"]),
        (with("path", json!("orders")).to_string(), &["path", "orders"]),
        (with("path", json!("/../admin")).to_string(), &["path", ".."]),
        (with("path", json!("/%2e%2e/admin")).to_string(), &["path"]),
        (with("path", json!("/a\\b")).to_string(), &["path"]),
        (
            with("headers", json!({"Host": "evil.example"})).to_string(),
            &["headers", "Host"],
        ),
        (
            with("headers", json!({"Idempotency-Key": "x"})).to_string(),
            &["headers", "idempotencyKey"],
        ),
        (with("bodyText", json!("x")).to_string(), &["body", "bodyText"]),
        (
            with("deadline", json!("tomorrow")).to_string(),
            &["deadline", "tomorrow"],
        ),
        (
            with("priority", json!("high")).to_string(),
            &["priority", "high", "normal"],
        ),
        (
            with("scope", json!({"entity": "1", "custom": "2"})).to_string(),
            &["scope"],
        ),
        (with("id", json!("")).to_string(), &["id"]),
    ];
    for (wrong, expected) in table {
        let scene = scene();
        let input = format!("{}\n{wrong}\n", job("t", "good"));
        let sent = scene.adjourn_with(&["send"], &input);
        assert_eq!((sent.code, sent.stdout.as_str()), (Some(2), ""), "{wrong}: {sent:?}");
        assert!(sent.stderr.contains("line 2"), "{wrong}: {sent:?}");
        assert!(
            expected.iter().all(|part| sent.stderr.contains(part)),
            "{wrong}: {expected:?}: {sent:?}"
        );
        assert_eq!(
            files(&scene.path("")),
            ["adjourn.toml"],
            "{wrong}: the good line was not queued either"
        );
    }
}

#[test]
fn every_wrong_line_is_named_at_once() {
    let scene = scene();
    let wrong = [
        with("method", json!("FETCH")),
        job("t", "good"),
        with("provider", json!("nobody")),
    ];
    let sent = scene.adjourn_with(&["send"], &lines(&wrong));
    assert_eq!(sent.code, Some(2));
    assert!(
        sent.stderr.contains("line 1") && sent.stderr.contains("line 3"),
        "{sent:?}"
    );
    assert!(!sent.stderr.contains("line 2"), "{sent:?}");
}

#[test]
fn one_mistake_many_times_does_not_flood_the_terminal() {
    let scene = scene();
    let sent = scene.adjourn_with(&["send"], &"{}\n".repeat(200));
    assert_eq!(sent.code, Some(2));
    assert!(
        sent.stderr.lines().count() <= 102,
        "{} lines",
        sent.stderr.lines().count()
    );
    let last = sent.stderr.lines().last().unwrap();
    assert!(last.contains("and ") && last.contains(" more"), "{last}");
}

#[test]
fn a_job_over_the_size_of_a_message_is_refused_and_one_just_under_it_is_not() {
    let most = 1_048_576 - 2_048;
    let frame = with("bodyText", json!(""))
        .to_string()
        .replace(r#""body":{"job":"bad"},"#, "");
    for (length, code) in [(most, 0), (most + 1, 2)] {
        let scene = scene();
        let text = "x".repeat(length - frame.len());
        let line = frame.replace(r#""bodyText":"""#, &format!(r#""bodyText":"{text}""#));
        assert_eq!(line.len(), length);
        let sent = scene.adjourn_with(&["send"], &line);
        assert_eq!(sent.code, Some(code), "{length}: {:?}", sent.stderr);
        assert_eq!(
            sent.stderr.contains("1046528"),
            code == 2,
            "{length}: {:?}",
            sent.stderr
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let scene = scene();
    let said = scene.adjourn(&["send", "nowhere.jsonl"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    assert!(said.stderr.contains("nowhere.jsonl"), "{said:?}");
    let said = scene.adjourn(&["send", "."]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    assert!(said.stderr.contains("adjourn: .: "), "{said:?}");
}

#[test]
fn a_higher_revision_takes_the_place_of_the_waiting_job() {
    let scene = scene();
    let revision = |number: u64, body: &str| {
        let mut job = job("t", "a");
        job["revision"] = json!(number);
        job["body"] = json!(body);
        job["notBefore"] = json!("2999-01-01T00:00:00Z");
        job
    };
    scene.adjourn_with(&["send"], &lines(&[revision(1, "first")])).ok();
    let newer = scene
        .adjourn_with(&["send", "--revise"], &lines(&[revision(2, "second")]))
        .ok();
    assert_eq!((newer.stdout.as_str(), newer.stderr.as_str()), ("a\n", ""));
    let older = scene
        .adjourn_with(&["send", "--revise"], &lines(&[revision(2, "third")]))
        .ok();
    assert!(
        older.stderr.contains("a ") && older.stderr.contains("revision"),
        "{older:?}"
    );
    assert_eq!(scene.status()["waiting"], 1);
    let receipts = scene.adjourn(&["job", "a", "--json"]).ok().json()["receipts"].clone();
    let superseded: Vec<&Value> = receipts
        .as_array()
        .unwrap()
        .iter()
        .filter(|receipt| receipt["transition"] == "superseded")
        .collect();
    assert_eq!(superseded.len(), 1, "{receipts}");
}

#[test]
fn ten_thousand_lines_are_queued_by_one_command() {
    let scene = scene();
    let jobs: Vec<Value> = (0..10_000).map(|n| job("t", &format!("j{n}"))).collect();
    let sent = scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    assert_eq!(sent.stdout.lines().count(), 10_000);
    assert!(sent.stdout.lines().enumerate().all(|(n, id)| id == format!("j{n}")));
    assert_eq!(scene.status()["ready"], 10_000);
}

#[test]
fn a_reader_that_leaves_early_ends_it_quietly_and_loses_no_job() {
    let scene = scene();
    let jobs: Vec<Value> = (0..20_000).map(|n| job("t", &format!("job-number-{n}"))).collect();
    scene.write("jobs.jsonl", &lines(&jobs));
    let mut command = scene.command(&["send", "jobs.jsonl"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 13];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let said = child.wait_with_output().unwrap();
    assert_eq!(&first, b"job-number-0\n");
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    assert_eq!(scene.status()["ready"], 20_000);
}

#[test]
fn settings_store_and_json_may_stand_before_or_after_the_command() {
    let server = Server::open(Behaviour::default());
    let scene = Scene::new();
    scene.write("other.toml", &settings(&server.base_url(), ""));
    let input = lines(&[job("t", "a")]);
    let before = scene
        .adjourn_with(
            &["--config", "other.toml", "--store", "sqlite:one.db", "--json", "send"],
            &input,
        )
        .ok();
    let after = scene
        .adjourn_with(
            &["send", "--config", "other.toml", "--store", "sqlite:two.db", "--json"],
            &input,
        )
        .ok();
    assert_eq!(before.stdout, after.stdout);
    for store in ["one.db", "two.db"] {
        assert_eq!(
            scene
                .adjourn(&["--store", &format!("sqlite:{store}"), "status", "--json"])
                .ok()
                .json()["ready"],
            1
        );
    }
    let mut command = scene.command(&["status", "--json"]);
    command.env("ADJOURN_STORE", "sqlite:two.db");
    assert_eq!(crate::scene::ended(command).ok().json()["ready"], 1);
}

#[test]
fn a_job_waits_under_the_scope_that_its_providers_contract_gives_it() {
    let scene = Scene::new();
    scene.write(
        "adjourn.toml",
        "[providers.hub]\nbase_url = \"http://127.0.0.1:9\"\ncontract = \"github\"\n",
    );
    let search = json!({"provider": "hub", "method": "GET", "path": "/search/code", "id": "search"});
    let plain = json!({"provider": "hub", "method": "GET", "path": "/user", "id": "plain"});
    scene.adjourn_with(&["send"], &lines([&search, &plain])).ok();
    let scope = |id: &str| scene.adjourn(&["job", id, "--json"]).ok().json()["scopeKey"].clone();
    assert_eq!(
        (scope("search"), scope("plain")),
        (json!("hub:function:search"), json!("hub"))
    );
}

#[test]
fn a_job_of_a_lane_waits_under_the_lanes_own_scope() {
    let scene = Scene::new();
    scene.write(
        "adjourn.toml",
        r#"
        [providers.acme]
        base_url = "http://127.0.0.1:9"
        rate = { requests = 10, per_ms = 1000 }
        lanes = [ { path = "/exports", rate = { requests = 6, per_ms = 60000 } } ]
        "#,
    );
    let export =
        json!({"provider": "acme", "method": "GET", "path": "/exports/7", "scope": {"entity": "7"}, "id": "export"});
    let plain =
        json!({"provider": "acme", "method": "GET", "path": "/orders", "scope": {"entity": "7"}, "id": "plain"});
    scene.adjourn_with(&["send"], &lines([&export, &plain])).ok();
    let scope = |id: &str| scene.adjourn(&["job", id, "--json"]).ok().json()["scopeKey"].clone();
    assert_eq!(scope("export"), "acme:lane:exports:7");
    assert_eq!(scope("plain"), "acme:entity:7");
}
