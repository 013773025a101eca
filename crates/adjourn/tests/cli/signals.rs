//! Ctrl-C and SIGTERM: what runs is finished, what has not started is given back, and a second one ends at once.

use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

use adjourn::demo::Behaviour;
use serde_json::{Value, json};

use crate::scene::{Running, Scene, Server, job, lines, until};

fn slow(latency: Duration) -> Server {
    Server::open(Behaviour {
        limit: None,
        latency: latency..latency,
        ..Behaviour::default()
    })
}

#[test]
fn one_signal_lets_running_jobs_finish_and_gives_the_others_back() {
    for signal in ["INT", "TERM"] {
        let server = slow(Duration::from_millis(500));
        let scene = Scene::calling(&server);
        let jobs: Vec<Value> = (0..6).map(|n| job("t", &format!("j{n}"))).collect();
        scene.adjourn_with(&["send"], &lines(&jobs)).ok();
        let mut run = Running::start(scene.command(&["run", "--concurrency", "2"]));
        until("two calls in flight", || {
            (server.books().calls().len() == 2).then_some(())
        });
        run.signal(signal);
        let said = run.end();
        assert_eq!(said.code, Some(0), "{signal}: {said:?}");
        let calls = server.accepted();
        assert!(
            calls.len() < 6,
            "{signal}: it started nothing more than what was under way: {calls:?}"
        );
        assert!(
            calls.iter().all(|call| call.answered_at.is_some()),
            "{signal}: no call was cut off: {calls:?}"
        );
        let status = scene.status();
        assert_eq!(
            status["done"],
            json!(calls.len()),
            "{signal}: what was answered is settled"
        );
        assert_eq!(status["running"], 0, "{signal}: no lease is left to run out");
        assert_eq!(
            status["ready"],
            json!(6 - calls.len()),
            "{signal}: the others can be taken at once"
        );
    }
}

#[test]
fn a_second_signal_ends_at_once_and_the_job_is_still_there() {
    let server = slow(Duration::from_secs(8));
    let scene = Scene::calling(&server);
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    let mut run = Running::start(scene.command(&["run"]));
    until("the call in flight", || {
        (server.books().calls().len() == 1).then_some(())
    });
    let mut stderr = BufReader::new(run.child().stderr.take().unwrap());
    run.signal("INT");
    let mut line = String::new();
    while !line.contains("again") {
        line.clear();
        assert_ne!(
            stderr.read_line(&mut line).unwrap(),
            0,
            "it has to say what a second signal does"
        );
    }
    assert!(!run.is_over(), "it waits for the call");
    run.signal("INT");
    assert_eq!(run.end().code, Some(130));
    assert_eq!(server.accepted()[0].answered_at, None, "the call was cut off");
    assert_eq!(
        scene.status()["running"],
        1,
        "its lease runs out by itself; the job is not lost"
    );
}
