//! Logs on stderr, between the bars where there are any.

use std::io::{self, Write};

use indicatif::MultiProgress;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::{
    ending::{Ended, Failure},
    environment::Environment,
};

/// Starts logging. `bars` makes room for each line; RUST_LOG wins over `verbose`.
pub(crate) fn start(verbose: u8, environment: &Environment, bars: &MultiProgress) -> Ended {
    let filter = match &environment.log_filter {
        Some(text) => EnvFilter::try_new(text).map_err(|error| {
            Failure::bad(format!(
                "RUST_LOG: found \"{text}\" ({error}); allowed are levels and targets such as info or adjourn_worker=debug"
            ))
        })?,
        None => EnvFilter::new(match verbose {
            0 => "warn",
            1 => "info",
            2 => "info,adjourn=debug,adjourn_core=debug,adjourn_http=debug,adjourn_local=debug,adjourn_worker=debug",
            _ => "trace",
        }),
    };
    let between = Between(bars.clone());
    // A second start in one process keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(environment.stderr_is_terminal && !environment.no_color)
        .with_writer(between)
        // It would tell of a closed stderr on stderr, and panic in whatever job it was that logged.
        .log_internal_errors(false)
        .try_init();
    Ok(())
}

/// Writes whole lines to stderr while the bars step aside.
#[derive(Clone, Debug)]
struct Between(MultiProgress);

impl Write for Between {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write_all(line)).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for Between {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
