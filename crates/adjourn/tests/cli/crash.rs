//! Processes that are killed, stopped, or share a file: nothing is lost, and only calls in flight are repeated.
//!
//! A dead process's leases run out by the wall clock, 15 s after they were last renewed. The wall clock of another process
//! cannot be moved (a time namespace moves the monotonic clocks only), and the shipped binary has no shorter lease for
//! tests; so each of the two tests that need it waits for one lease, and they wait side by side.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use adjourn::demo::{Behaviour, Call};
use serde_json::Value;

use crate::scene::{Random, Running, Scene, Server, job, lines, pause, until};

fn answering_within(latency: std::ops::Range<Duration>) -> Server {
    Server::open(Behaviour {
        limit: None,
        latency,
        ..Behaviour::default()
    })
}

fn jobs(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| job(["x", "y", "z"][n % 3], &format!("j{n}")))
        .collect()
}

fn by_job(calls: &[Call]) -> BTreeMap<String, Vec<usize>> {
    let mut by_job: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        by_job.entry(call.job.clone()).or_default().push(index);
    }
    by_job
}

/// A kill as seen from outside: how many calls the provider had seen, and what the store knew to be done.
struct Kill {
    calls: usize,
    done: BTreeSet<String>,
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_only_calls_in_flight_are_repeated() {
    const JOBS: usize = 160;
    const KILLS: usize = 6;
    const CONCURRENCY: usize = 4;
    let seed = 20_260_710;
    println!("seed {seed}");
    let mut random = Random::seeded(seed);
    let server = answering_within(Duration::from_millis(5)..Duration::from_millis(60));
    let scene = Scene::calling(&server);
    scene.adjourn_with(&["send"], &lines(&jobs(JOBS))).ok();
    let concurrency = CONCURRENCY.to_string();
    let start = || Running::start(scene.command(&["run", "--until-idle", "--concurrency", &concurrency]));
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let mut run = start();
        let until_calls = server.books().calls().len() + 1 + random.below(12);
        until("some calls", || {
            (server.books().calls().len() >= until_calls).then_some(())
        });
        pause(Duration::from_micros(u64::try_from(random.below(40_000)).unwrap()));
        run.signal("KILL");
        drop(run);
        kills.push(Kill {
            calls: server.books().calls().len(),
            done: scene.ids_in("done").into_iter().collect(),
        });
    }
    start().end().ok();

    let calls = server.books().calls().to_vec();
    let by_job = by_job(&calls);
    assert_eq!(by_job.len(), JOBS, "seed {seed}: every job was called");
    assert_eq!(scene.ids_in("done").len(), JOBS, "seed {seed}: every job is done");
    let mut repeats = 0;
    for (id, indices) in &by_job {
        let keys: BTreeSet<_> = indices
            .iter()
            .map(|&index| calls[index].idempotency_key.clone())
            .collect();
        assert_eq!(keys.len(), 1, "seed {seed}: {id} has one key on every call");
        assert!(keys.iter().all(Option::is_some), "seed {seed}: {id} has a key");
        for pair in indices.windows(2) {
            repeats += 1;
            let killed_between = kills.iter().find(|kill| pair[0] < kill.calls && pair[1] >= kill.calls);
            let kill = killed_between
                .unwrap_or_else(|| panic!("seed {seed}: {id} was called twice without a kill in between"));
            assert!(
                !kill.done.contains(id),
                "seed {seed}: {id} was settled before the kill and called after it"
            );
        }
    }
    println!(
        "{} calls of {JOBS} jobs, {repeats} repeated, {KILLS} kills",
        calls.len()
    );
    // In flight is what runs, and what was answered while its settlement was on its way to the disk.
    assert!(
        repeats <= KILLS * 2 * CONCURRENCY,
        "seed {seed}: {repeats} repeats after {KILLS} kills of {CONCURRENCY} calls at a time"
    );
}

#[test]
fn two_processes_on_one_file_share_the_work_and_double_none_of_it() {
    const JOBS: usize = 200;
    let server = answering_within(Duration::from_millis(2)..Duration::from_millis(10));
    let scene = Scene::calling(&server);
    scene.adjourn_with(&["send"], &lines(&jobs(JOBS))).ok();
    let both = [(); 2].map(|()| Running::start(scene.command(&["run", "--until-idle", "--concurrency", "4"])));
    // More work arrives while both are at it.
    let late: Vec<Value> = (0..50).map(|n| job("late", &format!("late{n}"))).collect();
    scene.adjourn_with(&["send"], &lines(&late)).ok();
    for run in both {
        run.end().ok();
    }
    let calls = server.books().calls().to_vec();
    assert_eq!(calls.len(), JOBS + 50, "each job once");
    assert_eq!(by_job(&calls).len(), JOBS + 50);
    let status = scene.status();
    assert_eq!(
        (status["done"].as_u64(), status["ready"].as_u64()),
        (Some(250), Some(0))
    );
}

#[test]
fn a_process_that_was_stopped_for_longer_than_its_lease_changes_nothing_when_it_wakes() {
    let server = answering_within(Duration::from_secs(1)..Duration::from_secs(1));
    let scene = Scene::calling(&server);
    scene.adjourn_with(&["send"], &lines(&[job("t", "a")])).ok();
    let mut stopped = Running::start(scene.command(&["run", "--concurrency", "1"]));
    until("the call in flight", || {
        (server.books().calls().len() == 1).then_some(())
    });
    stopped.signal("STOP");
    // The other process waits for the lease to run out, and does the job.
    let other = scene.adjourn(&["run", "--until-idle"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert_eq!(server.books().calls().len(), 2, "the call in flight may be repeated");
    let before = scene.adjourn(&["job", "a", "--json"]).ok().json();
    assert_eq!(before["state"], "done");
    stopped.signal("CONT");
    // It goes on: a job that is sent now is done by it.
    scene.adjourn_with(&["send"], &lines(&[job("t", "b")])).ok();
    until("the next job's end", || {
        scene.ids_in("done").contains(&"b".to_string()).then_some(())
    });
    stopped.signal("TERM");
    assert_eq!(stopped.end().code, Some(0));
    assert_eq!(
        scene.adjourn(&["job", "a", "--json"]).ok().json(),
        before,
        "its late settlement was refused"
    );
    let calls = server.books().calls().to_vec();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].idempotency_key, calls[1].idempotency_key);
}
