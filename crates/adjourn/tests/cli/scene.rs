//! A folder with settings, a provider on loopback, and the binary run in it.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use adjourn::demo::{Behaviour, Books, Call, Limit, Provider, RetryAfter};
use adjourn_worker::SystemClock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Each line of stdout as JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
            .collect()
    }

    /// The one JSON object of stdout.
    pub(crate) fn json(&self) -> Value {
        let mut lines = self.json_lines();
        assert_eq!(lines.len(), 1, "one object was expected: {self:?}");
        lines.remove(0)
    }

    /// This end, which has to be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// A temporary folder in which commands run.
#[derive(Debug)]
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A folder whose adjourn.toml names `provider` as "acme".
    pub(crate) fn calling(provider: &Server) -> Self {
        let scene = Self::new();
        scene.write("adjourn.toml", &settings(&provider.base_url(), ""));
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The binary in this folder, with nothing of the tester's own environment that it would listen to.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adjourn"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["ADJOURN_", "AWS_", "RUST_LOG", "NO_COLOR", "CLICOLOR"]
                .iter()
                .any(|own| name.starts_with(own))
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn adjourn(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments))
    }

    /// Runs the binary to its end, with `input` on stdin.
    pub(crate) fn adjourn_with(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_string();
        let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        // A command that ends before it has read everything closes the pipe, which is its right.
        let _ = writing.join().unwrap();
        of(output)
    }

    /// The store as `adjourn status --json` shows it.
    pub(crate) fn status(&self) -> Value {
        self.adjourn(&["status", "--json"]).ok().json()
    }

    /// The ids of the jobs in `state`.
    pub(crate) fn ids_in(&self, state: &str) -> Vec<String> {
        let ended = self.adjourn(&["jobs", "--json", "--state", state]).ok();
        ended
            .json_lines()
            .iter()
            .map(|job| job["id"].as_str().unwrap().to_string())
            .collect()
    }
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command) -> Ended {
    of(command.output().unwrap())
}

fn of(output: std::process::Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Settings that name one provider, "acme", with an idempotency header; `more` is added below.
pub(crate) fn settings(base_url: &str, more: &str) -> String {
    format!(
        "[providers.acme]\nbase_url = \"{base_url}\"\ntimeout_ms = 10000\nidempotency_header = \"Idempotency-Key\"\n{more}"
    )
}

/// A job of acme's that the demo provider understands.
pub(crate) fn job(tenant: &str, id: &str) -> Value {
    json!({
        "provider": "acme",
        "method": "POST",
        "path": Provider::path_of(tenant, id),
        "body": {"job": id},
        "id": id,
        "tenant": tenant,
    })
}

/// Jobs, one a line.
pub(crate) fn lines<'a>(jobs: impl IntoIterator<Item = &'a Value>) -> String {
    jobs.into_iter()
        .fold(String::new(), |text, job| text + &job.to_string() + "\n")
}

/// The demo provider with a runtime of its own, for tests that are no async functions.
#[derive(Debug)]
pub(crate) struct Server {
    // Dropped before the runtime that it runs on.
    provider: Provider,
    _runtime: Runtime,
}

impl Server {
    /// Lets twenty calls a second through, twenty of them at once, and tells nobody when the next one passes.
    pub(crate) fn of_twenty_a_second() -> Self {
        Self::open(Behaviour {
            limit: Some(Limit {
                burst: 20,
                per_second: 20,
            }),
            retry_after: RetryAfter::Absent,
            latency: Duration::ZERO..Duration::ZERO,
            seed: 1,
        })
    }

    pub(crate) fn open(behaviour: Behaviour) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let provider = runtime
            .block_on(Provider::open(behaviour, Arc::new(SystemClock)))
            .unwrap();
        Self {
            provider,
            _runtime: runtime,
        }
    }

    /// A provider that refuses nobody and answers at once.
    pub(crate) fn unlimited() -> Self {
        Self::open(Behaviour {
            limit: None,
            latency: Duration::ZERO..Duration::ZERO,
            ..Behaviour::default()
        })
    }

    pub(crate) fn base_url(&self) -> String {
        self.provider.base_url()
    }

    pub(crate) fn books(&self) -> Books {
        self.provider.books()
    }

    /// The accepted calls, in the order of arrival.
    pub(crate) fn accepted(&self) -> Vec<Call> {
        self.books()
            .calls()
            .iter()
            .filter(|call| call.is_accepted())
            .cloned()
            .collect()
    }
}

/// A process that is killed when the test is over, whatever way.
#[derive(Debug)]
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(Some(
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        ))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Sends a signal by its name, as a shell would.
    pub(crate) fn signal(&mut self, name: &str) {
        let id = self.child().id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(status.success(), "kill -s {name} {id}");
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child().try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Looks until something is seen, for a minute at most. What other processes do has no clock that a test could move.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a pause between two looks at another process")]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}: not seen within a minute");
}

/// Lets other processes go on for a moment, so that what comes next hits them at any point of their work.
#[expect(clippy::disallowed_methods, reason = "a random moment of another process's time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Numbers from a seed: a 64-bit linear congruential generator with Knuth's MMIX constants, its upper half.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Every file below `folder`, for a test that asserts that nothing was left.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}
