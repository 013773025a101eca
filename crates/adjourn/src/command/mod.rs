//! The commands, one file each.

mod aws;
mod cancel;
mod demo;
mod explain;
mod job;
mod jobs;
mod later;
mod providers;
mod redrive;
mod run;
mod send;
mod simulate;
mod status;

use std::{path::Path, sync::Arc};

use adjourn_local::Store as Jobs;
use adjourn_worker::SystemClock;
use tokio::runtime::Builder;

use crate::{
    cli::{Cli, Command},
    ending::{Ended, Failure},
    environment::Environment,
    store::Store,
};

/// Runs what was typed.
pub(crate) fn run(cli: Cli, environment: &Environment) -> Ended {
    let everywhere = &cli.everywhere;
    match (cli.command, &everywhere.store) {
        (Command::Demo(demo), _) => demo::run(&demo, everywhere, environment),
        (Command::Send(send), _) => send::run(&send, everywhere),
        (Command::Run(run), Store::Sqlite(path)) => run::run(&run, path, everywhere, environment),
        (Command::Run(_), Store::Aws) => {
            aws::comes_later("run", "there, the deployed function performs the queue's jobs")
        }
        (Command::Status, Store::Sqlite(path)) => status::run(path, everywhere.json),
        (Command::Status, Store::Aws) => aws::status(everywhere.json),
        (Command::Jobs(jobs), Store::Sqlite(path)) => jobs::run(&jobs, path, everywhere.json),
        (Command::Jobs(_), Store::Aws) => aws::needs_a_table("jobs"),
        (Command::Job(job), Store::Sqlite(path)) => job::run(&job.id, path, everywhere.json),
        (Command::Job(_), Store::Aws) => aws::needs_a_table("job"),
        (Command::Cancel(cancel), Store::Sqlite(path)) => cancel::run(cancel, path, everywhere.json),
        (Command::Cancel(_), Store::Aws) => aws::needs_a_table("cancel"),
        (Command::Redrive(redrive), Store::Sqlite(path)) => redrive::run(redrive, path, everywhere.json),
        (Command::Redrive(_), Store::Aws) => aws::comes_later(
            "redrive",
            "until then SQS itself moves messages back from the dead-letter queue (StartMessageMoveTask)",
        ),
        (Command::Gate(_), Store::Sqlite(_)) => later::gate(),
        (Command::Gate(_), Store::Aws) => aws::needs_a_table("gate"),
        (Command::Explain(explain), _) => explain::run(&explain, everywhere, environment),
        (Command::Providers(providers), _) => providers::run(&providers, everywhere.json, environment),
        (Command::Simulate(simulate), _) => simulate::run(&simulate, everywhere.json, environment),
        (Command::Doctor(_), _) => later::doctor(),
    }
}

/// Runs a future to its end on this thread; what blocks has threads of its own.
fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| Failure::no(format!("cannot start: {error}")))?
        .block_on(future)
}

/// Runs a future to its end, its tasks on as many threads as the machine has processors.
fn block_on_many<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime
        .map_err(|error| Failure::no(format!("cannot start: {error}")))?
        .block_on(future)
}

/// Opens a store to look at it or to change its jobs. It has to be there: a path that was mistyped makes no new one.
fn existing(path: &Path) -> Result<Jobs, Failure> {
    Jobs::open_existing(path, Arc::new(SystemClock)).map_err(Failure::bad)
}

/// Opens a store for jobs, and makes it where there is none.
fn open(path: &Path) -> Result<Jobs, Failure> {
    Jobs::open(path, Arc::new(SystemClock)).map_err(Failure::bad)
}
