//! The command line: reads what was typed and the environment, runs one command, and says how it ended.

mod cli;
mod command;
mod ending;
mod environment;
mod explained;
mod lines;
mod listed;
mod logging;
mod moment;
mod named;
mod no_response;
mod paint;
mod progress;
mod report;
mod settings_file;
mod signals;
mod store;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use crate::{cli::Cli, environment::Environment};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => {
            // Help and wrong usage; whoever closed the pipe does not want them.
            let _ = said.print();
            return ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2));
        }
    };
    let environment = Environment::read();
    let Err(failure) = command::run(cli, &environment) else {
        return ExitCode::SUCCESS;
    };
    if let Some(words) = failure.words() {
        // There is nobody left to tell when stderr is closed, too.
        let _ = writeln!(std::io::stderr(), "adjourn: {words}");
    }
    ExitCode::from(failure.status())
}
