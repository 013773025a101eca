//! What may be typed: commands, options, and the help that documents them.

use std::path::PathBuf;

use adjourn_core::Timestamp;
use adjourn_sim::pacing::DEFAULT_STRATEGY;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::store::Store;

/// Where the settings are looked for when nobody names them.
pub(crate) const DEFAULT_CONFIG: &str = "adjourn.toml";

/// A durable queue worker for jobs that call somebody else's API.
///
/// When the provider says "not now", the job waits until the moment that the provider named: durably, visibly, and
/// without waking everything at once.
#[derive(Debug, Parser)]
#[command(
    name = "adjourn",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  adjourn demo                         see it work, in under half a minute
  adjourn send jobs.jsonl              queue jobs, one JSON object a line
  adjourn run --until-idle             perform them under the limits of adjourn.toml's providers
  adjourn jobs --state waiting         what waits, why, and until when
  curl -i URL | adjourn explain        is this response a limit, and until when

Exit status: 0 success; 1 the answer is no, or some failed; 2 bad usage or bad input."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What may stand before or after any command.
#[derive(Debug, Args)]
pub(crate) struct Everywhere {
    /// Where the state is: sqlite:PATH, or aws for the queues that the environment names
    #[arg(
        long,
        global = true,
        env = "ADJOURN_STORE",
        hide_env_values = true,
        default_value = "sqlite:adjourn.db",
        value_parser = Store::parse,
        value_name = "STORE"
    )]
    pub(crate) store: Store,
    /// The settings: providers, deferral, retry, worker [default: adjourn.toml]
    #[arg(
        long,
        global = true,
        env = "ADJOURN_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) config: Option<String>,
    /// Print facts as JSON: one object, or one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log more on stderr: -v what is decided, -vv how (RUST_LOG sets it exactly)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Everywhere {
    /// The file of settings, for commands that need one.
    pub(crate) fn config(&self) -> &str {
        self.config.as_deref().unwrap_or(DEFAULT_CONFIG)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work: a provider that limits, jobs of three tenants, and the figures
    Demo(Demo),
    /// Queue jobs: JSON Lines in, one id a line out
    Send(Send),
    /// Perform jobs under their providers' limits
    Run(Run),
    /// How many jobs are in each state, what is due next, which gates are closed
    #[command(after_help = "Examples:
  adjourn status
  adjourn status --json | jq .waiting
  adjourn --store aws status           the queues' counts, from ADJOURN_QUEUE_URL and ADJOURN_DLQ_URL")]
    Status,
    /// List jobs, one a line
    Jobs(Jobs),
    /// One job with its history, oldest first
    Job(JobOf),
    /// Cancel jobs that have not started
    Cancel(Cancel),
    /// Bring ended jobs back, with their counters at zero
    Redrive(Redrive),
    /// (comes later) Open and close gates by hand
    Gate(Later),
    /// Read one response, or one a line: is it a limit, until when, and what would become of the job
    Explain(Explain),
    /// The catalogue: whose limits are known, and how they say no
    Providers(Providers),
    /// A whole system in virtual time: a provider that limits, its clients, and how a strategy fares
    Simulate(Simulate),
    /// (comes later) Check the store, the settings and the AWS resources
    Doctor(Later),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn demo
  adjourn demo --jobs 400 --seed 7
  adjourn demo --json | jq '{makespanMs, limitMs}'

Exit status: 1 if a call came early, a job was lost, or a job was done twice. All of it is counted by the provider.")]
pub(crate) struct Demo {
    /// How many jobs
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) jobs: u32,
    /// What the jobs and the provider's answer times are drawn from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn send jobs.jsonl
  echo '{\"provider\":\"acme\",\"method\":\"POST\",\"path\":\"/orders\",\"body\":{\"n\":1},\"id\":\"order-1\"}' | adjourn send
  adjourn send --revise newer.jsonl    a higher \"revision\" takes the place of the waiting job of the same id

All lines are checked before any is queued. A job whose id is still open is not queued again; stderr says so.")]
pub(crate) struct Send {
    /// The file of jobs; - or nothing reads stdin
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Let a higher revision supersede the waiting job of the same id
    #[arg(long)]
    pub(crate) revise: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn run                          until Ctrl-C; jobs may be sent meanwhile, by any process
  adjourn run --until-idle             until nothing is ready, running or waiting
  adjourn --store sqlite:/var/lib/adjourn.db run --concurrency 20 -v

Ctrl-C or SIGTERM lets running jobs finish and gives back what has not started; a second one ends at once.")]
pub(crate) struct Run {
    /// End with status 0 once nothing is ready, running or waiting
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// How many jobs at a time [default: concurrency of [worker] in the settings]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) concurrency: Option<u32>,
}

/// The states of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    Ready,
    Running,
    Waiting,
    Done,
    Failed,
    Exhausted,
    Review,
    Cancelled,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn jobs --state waiting
  adjourn jobs --tenant large --run import-7 --json | jq -r .retryAt")]
pub(crate) struct Jobs {
    /// Only jobs in this state
    #[arg(long, value_name = "S")]
    pub(crate) state: Option<State>,
    /// Only jobs of this tenant
    #[arg(long, value_name = "T")]
    pub(crate) tenant: Option<String>,
    /// Only jobs of this run
    #[arg(long, value_name = "R")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn job order-1
  adjourn job order-1 --json | jq '.receipts[-1].cause'")]
pub(crate) struct JobOf {
    /// The job's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true).multiple(false),
    after_help = "Examples:
  adjourn cancel order-1 order-2
  adjourn cancel --run import-7

Prints each wake-up that it prevented. Exit status: 1 names those that are running or have ended."
)]
pub(crate) struct Cancel {
    /// The jobs' ids
    #[arg(value_name = "ID", group = "which")]
    pub(crate) ids: Vec<String>,
    /// Every open job of this run
    #[arg(long, value_name = "R", group = "which")]
    pub(crate) run: Option<String>,
    /// Every open job of this tenant
    #[arg(long, value_name = "T", group = "which")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true).multiple(false),
    after_help = "Examples:
  adjourn redrive order-1
  adjourn redrive --all

Failed, exhausted and review jobs come back in a new epoch, on a slope. Exit status: 1 names those that cannot."
)]
pub(crate) struct Redrive {
    /// The jobs' ids
    #[arg(value_name = "ID", group = "which")]
    pub(crate) ids: Vec<String>,
    /// Every job that ended failed, exhausted or in review
    #[arg(long, group = "which")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  curl -si https://api.example/orders | adjourn explain
  adjourn explain response.txt --provider github
  adjourn explain responses.jsonl --json | jq -r .retryAt

It reads what `curl -i` or `curl -sD -` prints, or JSON:
  {\"status\":429,\"headers\":{\"Retry-After\":\"3\"},\"body\":...,\"received_at\":\"2026-07-10T20:13:47Z\"}
With one JSON response a line it gives one answer a line. A credential in it is never shown.

Exit status: 0 the response could be read, limit or not; 2 it is no response, or the provider is not known.")]
pub(crate) struct Explain {
    /// The file with the response; - or nothing reads stdin
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Whose response it is: a provider of adjourn.toml, or a name, title or alias of the catalogue
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// When it was received, RFC 3339 [default: what it says itself, its Date header, or now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) received_at: Option<Timestamp>,
}

/// A moment that was typed.
fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "is no time; allowed: RFC 3339, such as 2026-07-10T20:13:47Z".to_string())
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  adjourn providers
  adjourn providers \"Jira Cloud\"
  adjourn providers --json | jq -r 'select(.scope == \"app\") | .name'

Exit status: 1 if the catalogue has no provider of that name.")]
pub(crate) struct Providers {
    /// One provider, by name, title or alias
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The page docs/providers.md
    #[arg(long, hide = true, conflicts_with_all = ["name", "json"])]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).multiple(true).args(["scenario", "list", "compare"]),
    after_help = "Examples:
  adjourn simulate --list                                  scenarios and strategies
  adjourn simulate --scenario bucket-10 --json | jq .ratio
  adjourn simulate --scenario mine.toml --strategy full-jitter --svg mine.svg
  adjourn simulate --compare --html comparison.html        every strategy on every scenario

docs/scenarios.md explains what a scenario file may say. A scenario with several variants has one
line for each; one alone is named as bucket-10/latency=100. The same seed always plays the same.

Exit status: 1 if a call came early, a job was lost or done twice, or adjourn's own strategy
missed what the scenario must reach; stderr says which. 2 if the scenario is not known or wrong."
)]
pub(crate) struct Simulate {
    /// The scenario: a file, or the name of one that comes with adjourn
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) scenario: Option<String>,
    /// The strategy that the clients keep to
    #[arg(long, value_name = "NAME", default_value = DEFAULT_STRATEGY, conflicts_with = "compare")]
    pub(crate) strategy: String,
    /// What all chance is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// List the scenarios and the strategies
    #[arg(long, conflicts_with_all = ["scenario", "compare", "strategy", "seed", "svg", "html"])]
    pub(crate) list: bool,
    /// Play every strategy, on one scenario or on all
    #[arg(long)]
    pub(crate) compare: bool,
    /// Write a picture of rate, refusals and backlog over time
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a page with the figures and the pictures
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// A command that is not built yet takes anything and says so.
#[derive(Debug, Args)]
#[command(after_help = "Example of what exists today:
  adjourn jobs --state waiting --json")]
pub(crate) struct Later {
    /// Whatever it will take
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub(crate) rest: Vec<String>,
}
