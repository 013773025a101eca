//! The README's worked example: its files are what it shows, and its commands do what it says.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use crate::scene::Scene;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The text of the fenced block of `language` at `n`.
fn block(text: &str, language: &str, n: usize) -> String {
    let fence = format!("```{language}\n");
    let after = text.split(&fence).nth(n + 1).expect("the README has the block");
    after.split("```").next().unwrap().to_string()
}

/// A provider that refuses its first call for a second and answers every other one; it keeps each request's head.
fn provider() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heads);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut stream = BufReader::new(connection.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")
                        .map(|n| n.trim().parse().unwrap())
                })
                .unwrap_or(0);
            stream.read_exact(&mut vec![0; length]).unwrap();
            let first = {
                let mut kept = kept.lock().unwrap();
                kept.push(head);
                kept.len() == 1
            };
            let answer = if first {
                "429 Too Many Requests\r\nRetry-After: 1"
            } else {
                "200 OK"
            };
            let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (base, heads)
}

#[test]
fn the_readme_shows_the_example_files_as_they_are() {
    let readme = read("README.md");
    assert_eq!(block(&readme, "toml", 0), read("examples/contacts/adjourn.toml"));
    assert_eq!(block(&readme, "json", 0), read("examples/contacts/jobs.jsonl"));
}

#[test]
fn the_readmes_example_runs_as_it_says() {
    let (base, heads) = provider();
    let scene = Scene::new();
    let config = read("examples/contacts/adjourn.toml");
    let here = config.replace("https://api.crm.example/v2", &base);
    assert_ne!(here, config, "the example's provider is swapped for one on loopback");
    scene.write("adjourn.toml", &here);
    scene.write("jobs.jsonl", &read("examples/contacts/jobs.jsonl"));
    let sent = scene.adjourn(&["send", "jobs.jsonl"]).ok();
    assert_eq!(sent.stdout, "contact-1\ncontact-2\nexport-1\n");
    let mut run = scene.command(&["run", "--until-idle"]);
    run.env("CRM_TOKEN", "t0p-secret");
    let run = crate::scene::ended(run).ok();
    assert!(!run.stderr.contains("t0p-secret"));
    assert_eq!(scene.status()["done"], 3);
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 4, "one call was refused and made again: {heads:?}");
    assert!(
        heads
            .iter()
            .all(|head| head.to_lowercase().contains("authorization: bearer t0p-secret"))
    );
    let deferred: Vec<String> = ["contact-1", "contact-2", "export-1"]
        .into_iter()
        .filter(|id| scene.adjourn(&["job", id, "--json"]).ok().json()["deferrals"] == 1)
        .map(String::from)
        .collect();
    assert_eq!(
        deferred.len(),
        1,
        "one job was deferred, and its history says so: {deferred:?}"
    );
}

#[test]
fn the_readme_s_response_is_explained_as_it_shows() {
    let readme = read("README.md");
    let scene = Scene::new();
    scene.write("response.txt", &block(&readme, "http", 0));
    let mut explain = scene.command(&["explain", "response.txt", "--provider", "github"]);
    explain.env("TZ", "UTC");
    let said = crate::scene::ended(explain).ok();
    assert_eq!(said.stdout, block(&readme, "text", 0));
}
