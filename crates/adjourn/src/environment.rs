//! What the environment says, read once, where the program starts.

use std::{env::VarError, io::IsTerminal};

/// The environment of this process, as far as the commands ask for it.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// RUST_LOG, where it is set.
    pub(crate) log_filter: Option<String>,
    /// Whether colours are unwanted: NO_COLOR is set to anything but nothing.
    pub(crate) no_color: bool,
    /// Whether stdin is a terminal.
    pub(crate) stdin_is_terminal: bool,
    /// Whether stdout is a terminal.
    pub(crate) stdout_is_terminal: bool,
    /// Whether stderr is a terminal.
    pub(crate) stderr_is_terminal: bool,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self {
            log_filter: Self::variable("RUST_LOG").ok().filter(|filter| !filter.is_empty()),
            no_color: Self::variable("NO_COLOR").is_ok_and(|value| !value.is_empty()),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// One variable, for settings that name theirs: credentials, queues.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the command line reads the environment"
    )]
    pub(crate) fn variable(name: &str) -> Result<String, VarError> {
        std::env::var(name)
    }
}
