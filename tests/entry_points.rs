//! Every program says how long its calls may wait: a caller that forgets to has five minutes for each call, in a function that
//! is killed after one, and in front of a person who left long ago.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where programs begin, and what makes their calls.
const PLACES: [&str; 4] = [
    "crates/adjourn/src",
    "functions/src",
    "examples",
    "crates/adjourn-sim/src",
];
/// What waits in process.
const WAITS: [&str; 4] = ["Requester::new(", "RetryLayer::", "RateLimitLayer::", "Requester::with"];
/// What says how long: the caller's own word, or a worker, which sets it around every handler.
const SAYS: [&str; 4] = ["Allowance::", "Worker::builder(", ".worker(", "HttpHandler::"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a program's source makes calls that wait, and does not say how long.
fn forgets(text: &str) -> bool {
    WAITS.iter().any(|waits| text.contains(waits)) && !SAYS.iter().any(|says| text.contains(says))
}

#[test]
fn every_program_says_how_long_its_calls_may_wait() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the workspace");
    let mut files = Vec::new();
    for place in PLACES {
        sources(&root.join(place), &mut files);
    }
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a source file");
    let forgetful: Vec<_> = files.iter().filter(|path| forgets(&read(path))).collect();
    assert!(forgetful.is_empty(), "they set no Allowance: {forgetful:#?}");

    let waiting = files
        .iter()
        .filter(|path| WAITS.iter().any(|waits| read(path).contains(waits)));
    assert!(waiting.count() >= 2, "there are examples of it");
    assert!(
        forgets("let shop = RetryLayer::new(\"shop\").layer(client);"),
        "one that forgets is found"
    );
}

#[test]
fn every_program_that_takes_jobs_takes_them_by_a_worker() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the workspace");
    // The function, `run` and `demo`: what makes their calls is a handler, and a worker runs it.
    for (file, by) in [
        ("functions/src/lib.rs", "deployment.worker("),
        ("crates/adjourn/src/command/run.rs", ".worker("),
        ("crates/adjourn/src/command/demo.rs", "store.worker("),
    ] {
        let text = fs::read_to_string(root.join(file)).expect("a program");
        assert!(
            text.contains("HttpHandler::new(") && text.contains(by),
            "{file} takes its jobs some other way"
        );
        assert!(
            text.contains(".policy(") || text.contains("policy)"),
            "{file} gives the worker its caps"
        );
    }
}
