//! Every program says how long its calls may wait: a caller that forgets to has five minutes for each call, in a function that
//! is killed after one, and in front of a person who left long ago.

mod program;

use std::{
    fs,
    path::{Path, PathBuf},
};

use program::{forgetful, guarded};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the workspace")
}

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

/// The texts of each program: the folders of binaries, and every example by itself.
fn programs() -> Vec<(PathBuf, Vec<String>)> {
    let folders = ["crates/adjourn/src", "crates/adjourn-sim/src", "functions/src"].map(|folder| root().join(folder));
    let mut examples = Vec::new();
    sources(&root().join("examples"), &mut examples);
    let programs = folders.into_iter().map(|folder| {
        let mut files = Vec::new();
        sources(&folder, &mut files);
        (folder, files)
    });
    let examples = examples.into_iter().map(|file| (file.clone(), vec![file]));
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a source file");
    programs
        .chain(examples)
        .map(|(name, files)| (name, files.iter().map(read).collect()))
        .collect()
}

#[test]
fn every_program_says_how_long_its_calls_may_wait() {
    let programs = programs();
    let found: Vec<_> = programs
        .iter()
        .map(|(name, texts)| (name, forgetful(texts.iter().map(String::as_str))))
        .filter(|(_, forgetful)| !forgetful.is_empty())
        .collect();
    assert!(found.is_empty(), "they call outside of every Allowance: {found:#?}");

    for example in ["examples/tower_layers.rs", "examples/reqwest_middleware.rs"] {
        let text = fs::read_to_string(root().join(example)).expect("an example");
        assert!(guarded(&text) >= 2, "{example} shows how to say it");
        // The same program without its allowances is found.
        let careless = text
            .replace("Allowance::front_end().scope", "same")
            .replace("Allowance::of(an_hour).scope", "same");
        assert!(!forgetful([careless.as_str()]).is_empty(), "{example}");
    }
}

#[test]
fn a_call_outside_of_every_allowance_is_found_whatever_else_its_program_says() {
    const CLIENT: &str = "fn shop() -> Shop { RetryLayer::new(\"shop\").scope(key()).layer(client()) }\n";
    for (body, expected) in [
        // Another call has one.
        (
            "#[tokio::main] async fn main() { Allowance::front_end().scope(shop().call(one)).await; shop().call(two).await; }",
            &["main"][..],
        ),
        // It is only spoken of.
        (
            "#[tokio::main] async fn main() { /* Allowance::of(S).scope( */ let words = \"Allowance::worker().scope(\"; shop().oneshot(get()).await; }",
            &["main"],
        ),
        // A layer's scope is a key.
        (
            "#[tokio::main] async fn main() { let limit = Allowance::worker(); RetryLayer::new(\"shop\").scope(key().call(one)).await; }",
            &["main"],
        ),
        // By way of others, one of which says how long.
        (
            "async fn order() { shop().call(one).await }\nasync fn all<'a>(them: &'a str) { order().await }\n\
             #[tokio::test] async fn says() { Allowance::of(S).scope(all(\"them\")).await }\n\
             #[tokio::test(start_paused = true)] async fn forgets() { all(\"them\").await }",
            &["forgets"],
        ),
        (
            "async fn order() { let patience = Allowance::of(S).until(end); patience.scope(async { shop().call(one).await }).await }\n\
             fn main() { block_on(order()) }",
            &[],
        ),
        // A worker runs it, and says how long.
        (
            "impl Handler for Orders { async fn handle(&self, job: Job) -> Result<Done, Interrupt> { shop().call(job).await } }\n\
             #[tokio::main] async fn main() { Worker::builder(Orders, queue()).build().run_batch(batch(), None).await; }",
            &[],
        ),
        // A worker is there, and somebody else calls.
        (
            "impl Handler for Orders { async fn handle(&self, job: Job) -> Result<Done, Interrupt> { shop().call(job).await } }\n\
             #[tokio::main] async fn main() { Worker::builder(Orders, queue()).build(); shop().call(one).await; }",
            &["main"],
        ),
    ] {
        let program = format!("{CLIENT}{body}");
        assert_eq!(forgetful([program.as_str()]), expected, "{body}");
        // The client may be made in another file.
        assert_eq!(forgetful([body, CLIENT]), expected, "{body}");
    }
}

#[test]
fn every_program_that_takes_jobs_takes_them_by_a_worker() {
    // The function, `run` and `demo`: what makes their calls is a handler, and a worker runs it.
    for (file, by) in [
        ("functions/src/lib.rs", "deployment.worker("),
        ("crates/adjourn/src/command/run.rs", ".worker("),
        ("crates/adjourn/src/command/demo.rs", "store.worker("),
    ] {
        let text = fs::read_to_string(root().join(file)).expect("a program");
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
