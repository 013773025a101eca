//! `adjourn run`: jobs performed by a real server's rules.

use std::{process::Stdio, time::Duration};

use adjourn::demo::{Behaviour, Limit, RetryAfter};
use serde_json::json;

use crate::scene::{Running, Scene, Server, ended, job, lines, settings, until};

/// One call each second, and a refusal that names its moment to the millisecond.
fn one_a_second() -> Behaviour {
    Behaviour {
        limit: Some(Limit {
            burst: 1,
            per_second: 1,
        }),
        retry_after: RetryAfter::Milliseconds,
        latency: Duration::ZERO..Duration::ZERO,
        seed: 1,
    }
}

/// A provider that takes so long to answer that a test can do things meanwhile.
fn slow(latency: Duration) -> Behaviour {
    Behaviour {
        limit: None,
        latency: latency..latency,
        ..Behaviour::default()
    }
}

#[test]
fn sent_jobs_are_performed_and_it_ends_when_nothing_is_left() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    let jobs: Vec<_> = ["a", "b", "c"].map(|id| job("t", id)).into();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    let run = scene.adjourn(&["run", "--until-idle"]).ok();
    assert_eq!(run.stdout, "", "progress is no fact");
    let mut called: Vec<String> = server.accepted().iter().map(|call| call.job.clone()).collect();
    called.sort_unstable();
    assert_eq!(called, ["a", "b", "c"]);
    assert!(
        server
            .accepted()
            .iter()
            .all(|call| call.idempotency_key.as_deref() == Some(call.job.as_str()))
    );
    let status = scene.status();
    assert_eq!(
        (
            &status["done"],
            &status["ready"],
            &status["running"],
            &status["waiting"]
        ),
        (&json!(3), &json!(0), &json!(0), &json!(0))
    );
}

#[test]
fn with_nothing_to_do_it_ends_at_once() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    scene.adjourn(&["run", "--until-idle"]).ok();
    assert_eq!(server.books().calls().len(), 0);
    assert_eq!(scene.status()["done"], 0);
}

#[test]
fn a_refused_job_comes_back_when_the_provider_said_and_never_before() {
    let server = Server::open(one_a_second());
    let scene = Scene::calling(&server);
    let jobs: Vec<_> = ["a", "b", "c"].map(|id| job("t", id)).into();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    let tally = server.books().tally(["a", "b", "c"]);
    assert_eq!(
        (tally.done, tally.lost, tally.duplicates, tally.early_calls),
        (3, 0, 0, 0)
    );
    assert!(tally.refusals >= 1, "the test wants to see a refusal");
    let told = server
        .books()
        .calls()
        .iter()
        .find(|call| !call.is_accepted())
        .cloned()
        .unwrap();
    let shown = scene.adjourn(&["job", &told.job, "--json"]).ok().json();
    let deferred = shown["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|receipt| receipt["transition"] == "deferred")
        .unwrap()
        .clone();
    assert_eq!(deferred["observation"]["status"], 429);
    assert_eq!(deferred["mechanism"], "delay");
    assert!(deferred["until"].as_str().unwrap() >= deferred["observation"]["earliestRetryAt"].as_str().unwrap());
}

#[test]
fn a_job_that_the_provider_refuses_for_good_ends_failed_with_its_reason() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    let mut lost = job("t", "lost");
    lost["path"] = json!("/nowhere");
    scene.adjourn_with(&["send"], &lines(&[lost, job("t", "fine")])).ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    let status = scene.status();
    assert_eq!((&status["done"], &status["failed"]), (&json!(1), &json!(1)));
    let shown = scene.adjourn(&["job", "lost", "--json"]).ok().json();
    assert_eq!((&shown["state"], &shown["lastStatus"]), (&json!("failed"), &json!(404)));
    assert!(shown["reason"].as_str().unwrap().contains("refused"), "{shown}");
}

#[test]
fn a_provider_that_is_not_there_is_tried_again_and_then_given_up() {
    let scene = Scene::new();
    // Nobody listens on a port that was just given back.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    scene.write(
        "adjourn.toml",
        &settings(
            &format!("http://{free}"),
            "[retry]\nmax_attempts = 2\nbackoff_ms = [1]\n",
        ),
    );
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    let shown = scene.adjourn(&["job", "a", "--json"]).ok().json();
    assert_eq!(
        (&shown["state"], &shown["attempts"]),
        (&json!("failed"), &json!(2)),
        "{shown}"
    );
}

#[test]
fn concurrency_is_how_many_calls_are_in_flight_at_most() {
    let server = Server::open(slow(Duration::from_millis(40)));
    let scene = Scene::calling(&server);
    let jobs: Vec<_> = (0..12).map(|n| job("t", &format!("j{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    scene.adjourn(&["run", "--until-idle", "--concurrency", "3"]).ok();
    let calls = server.accepted();
    let most = calls
        .iter()
        .map(|call| {
            calls
                .iter()
                .filter(|other| other.arrived_at <= call.arrived_at && other.answered_at.unwrap() > call.arrived_at)
                .count()
        })
        .max();
    assert_eq!(most, Some(3));
}

#[test]
fn jobs_sent_while_it_runs_are_performed() {
    let server = Server::unlimited();
    let scene = Scene::calling(&server);
    let mut run = Running::start(scene.command(&["run"]));
    for id in ["a", "b"] {
        scene.adjourn_with(&["send"], &lines(&[job("t", id)])).ok();
        until("the job's call", || {
            server.accepted().iter().any(|call| call.job == id).then_some(())
        });
    }
    assert!(!run.is_over(), "without --until-idle it waits for more");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn logs_and_progress_go_to_stderr_without_bars_or_colours_where_there_is_no_terminal() {
    let server = Server::open(one_a_second());
    let scene = Scene::calling(&server);
    scene
        .adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b")]))
        .ok();
    let run = scene.adjourn(&["run", "--until-idle", "-v"]).ok();
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("RATE_LIMITED"), "-v logs each refusal: {run:?}");
    assert!(!run.stderr.contains('\u{1b}') && !run.stderr.contains('\r'), "{run:?}");
}

#[test]
fn nobody_reading_stderr_stops_no_job_and_cuts_no_call_off() {
    let server = Server::open(slow(Duration::from_millis(300)));
    let scene = Scene::calling(&server);
    let mut lost = job("t", "lost");
    lost["path"] = json!("/nowhere");
    scene
        .adjourn_with(&["send"], &lines(&[lost, job("t", "a"), job("t", "b")]))
        .ok();
    let mut run = Running::start(scene.command(&["run", "-vv"]));
    drop(run.child().stderr.take());
    until("a call in flight", || {
        (!server.books().calls().is_empty()).then_some(())
    });
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
    let calls = server.accepted();
    assert!(calls.iter().all(|call| call.answered_at.is_some()), "{calls:?}");
    assert_eq!(scene.status()["done"], json!(calls.len()));
    // The same for what `send` has to say beside its ids.
    let mut command = scene.command(&["send", "jobs.jsonl"]);
    scene.write("jobs.jsonl", &lines(&[job("t", "again"), job("t", "again")]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let said = child.wait_with_output().unwrap();
    assert_eq!(
        (said.status.code(), said.stdout.as_slice()),
        (Some(0), &b"again\nagain\n"[..])
    );
}

#[test]
fn a_credential_is_sent_and_never_shown() {
    let server = Server::open(one_a_second());
    let scene = Scene::new();
    let credential =
        "credential = { header = \"Authorization\", prefix = \"Bearer \", env = \"ACME_TOKEN_OF_THE_TEST\" }\n";
    scene.write("adjourn.toml", &settings(&server.base_url(), credential));
    scene
        .adjourn_with(&["send"], &lines(&[job("t", "a"), job("t", "b")]))
        .ok();
    let mut command = scene.command(&["run", "--until-idle", "-vv"]);
    command.env("ACME_TOKEN_OF_THE_TEST", "s3cret-of-the-test");
    let run = ended(command).ok();
    assert!(
        !run.stderr.contains("s3cret-of-the-test") && !run.stdout.contains("s3cret-of-the-test"),
        "{run:?}"
    );
    let shown = scene.adjourn(&["job", "a", "--json"]).ok();
    assert!(!shown.stdout.contains("s3cret-of-the-test"), "{shown:?}");
    assert_eq!(scene.status()["done"], 2);
}

#[test]
fn a_pace_that_nobody_told_is_found_and_kept() {
    let server = Server::of_twenty_a_second();
    let scene = Scene::calling(&server);
    // Ten calls at a time: some have passed before one is refused. Whoever waited on this ladder would wait for ten minutes.
    let ladder = "[deferral]\nladder_ms = [600000]\n";
    scene.write("adjourn.toml", &format!("{}{ladder}", settings(&server.base_url(), "")));
    let jobs: Vec<_> = (0..80).map(|number| job("t", &format!("job-{number}"))).collect();
    scene.adjourn_with(&["send"], &lines(&jobs)).ok();
    scene.adjourn(&["run", "--until-idle"]).ok();
    assert_eq!(scene.status()["done"], 80);
    let (accepted, refused) = server.books().counts();
    assert_eq!(accepted, 80);
    assert!(
        refused > 0 && refused <= 40,
        "{refused} of {} calls were refused",
        accepted + refused
    );
}
