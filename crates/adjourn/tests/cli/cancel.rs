//! `adjourn cancel` and `adjourn redrive`: what a person does to jobs.

use std::time::Duration;

use adjourn::demo::Behaviour;
use serde_json::{Value, json};

use crate::scene::{Running, Scene, Server, job, lines, settings, until};

/// A job that is not due for a long time.
fn waiting(tenant: &str, id: &str, run: &str) -> Value {
    let mut job = job(tenant, id);
    job["notBefore"] = json!("2999-01-01T00:00:00Z");
    job["run"] = json!(run);
    job
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", ""));
    let jobs = [
        waiting("x", "a", "r1"),
        waiting("x", "b", "r2"),
        waiting("y", "c", "r1"),
        waiting("y", "d", "r3"),
    ];
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    scene
}

#[test]
fn each_prevented_wake_up_is_printed() {
    let scene = scene();
    let said = scene.adjourn(&["cancel", "a", "d"]).ok();
    let printed: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(printed.len(), 2, "{said:?}");
    for (line, id) in printed.iter().zip(["a", "d"]) {
        assert!(
            line.starts_with(id) && line.contains("2999-01-01T00:00:00.000Z"),
            "{line}"
        );
    }
    assert_eq!(scene.status()["cancelled"], 2);
    assert_eq!(scene.status()["waiting"], 2);
}

#[test]
fn a_whole_run_or_a_whole_tenant_is_cancelled() {
    let scene = scene();
    let said = scene.adjourn(&["cancel", "--run", "r1", "--json"]).ok();
    let mut ids: Vec<String> = said
        .json_lines()
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_string())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "c"]);
    assert!(
        said.json_lines()
            .iter()
            .all(|line| line["outcome"] == "cancelled" && line["retryAt"] == "2999-01-01T00:00:00.000Z")
    );
    let said = scene.adjourn(&["cancel", "--tenant", "x"]);
    assert_eq!(
        said.code,
        Some(1),
        "one of the tenant's jobs had ended before: {said:?}"
    );
    assert!(
        said.stdout.starts_with("b ") && said.stdout.lines().count() == 1,
        "{said:?}"
    );
    assert!(said.stderr.contains("a has ended (cancelled)"), "{said:?}");
}

#[test]
fn nothing_to_cancel_is_exit_1_and_names_what_was_asked() {
    let scene = scene();
    for (arguments, named) in [(&["cancel", "--run", "nobody"][..], "nobody"), (&["cancel", "z"], "z")] {
        let said = scene.adjourn(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains(named), "{said:?}");
    }
}

#[test]
fn ended_jobs_are_named_and_the_others_are_cancelled_all_the_same() {
    let scene = scene();
    scene.adjourn(&["cancel", "a"]).ok();
    let said = scene.adjourn(&["cancel", "a", "b"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.stdout.starts_with("b ") && said.stdout.lines().count() == 1,
        "{said:?}"
    );
    assert!(said.stderr.contains("a has ended (cancelled)"), "{said:?}");
}

#[test]
fn a_running_job_is_named_and_not_stopped() {
    let slow = Duration::from_millis(1500);
    let server = Server::open(Behaviour {
        limit: None,
        latency: slow..slow,
        ..Behaviour::default()
    });
    let scene = Scene::calling(&server);
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    let run = Running::start(scene.command(&["run", "--until-idle"]));
    until("the call in flight", || {
        (server.books().calls().len() == 1).then_some(())
    });
    let said = scene.adjourn(&["cancel", "a"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert!(said.stderr.contains("a is running"), "{said:?}");
    assert_eq!(run.end().code, Some(0));
    assert_eq!(server.accepted().len(), 1);
}

#[test]
fn a_cancelled_job_is_never_called() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    scene
        .adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b")]))
        .ok();
    scene.adjourn(&["cancel", "a"]).ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    let called: Vec<String> = server.accepted().iter().map(|call| call.job.clone()).collect();
    assert_eq!(called, ["b"]);
}

#[test]
fn ended_jobs_come_back_in_a_new_epoch_with_counters_at_zero() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    let broken = |id: &str| {
        let mut job = job("t", id);
        job["path"] = json!("/nowhere");
        job
    };
    scene
        .adjourn_with(&["send"], &lines(&[broken("a"), broken("b"), job("t", "c")]))
        .ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    assert_eq!(scene.status()["failed"], 2);
    let said = scene.adjourn(&["redrive", "a"]).ok();
    assert_eq!(said.stdout.lines().count(), 1, "{said:?}");
    let shown = scene.adjourn(&["job", "a", "--json"]).ok().json();
    assert!(shown["state"] == "ready" || shown["state"] == "waiting", "{shown}");
    assert_eq!(
        (&shown["epoch"], &shown["attempts"], &shown["deferrals"], &shown["hops"]),
        (&json!(1), &json!(0), &json!(0), &json!(0))
    );
    let said = scene.adjourn(&["redrive", "--all", "--json"]).ok();
    assert_eq!(
        said.json_lines()
            .iter()
            .map(|line| line["id"].clone())
            .collect::<Vec<_>>(),
        ["b"]
    );
    scene.adjourn(&["run", "--until-idle"]).ok();
    assert_eq!(scene.status()["failed"], 2, "the path is still wrong");
}

#[test]
fn what_cannot_be_redriven_is_exit_1_and_named() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    scene
        .adjourn_with(&["send"], &lines(&[job("t", "done"), waiting("t", "open", "r")]))
        .ok();
    let mut run = Running::start(scene.command(&["run"]));
    until("the call", || {
        scene.ids_in("done").contains(&"done".to_string()).then_some(())
    });
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
    for (id, words) in [("done", "done is done"), ("open", "open is still open"), ("z", "z")] {
        let said = scene.adjourn(&["redrive", id]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{id}: {said:?}");
        assert!(said.stderr.contains(words), "{id}: {said:?}");
    }
    let said = scene.adjourn(&["redrive", "--all"]).ok();
    assert_eq!(said.stdout, "", "nothing to bring back is no error: {said:?}");
}
