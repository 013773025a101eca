//! Processes that a measurement starts: this program again in another part, or a function's binary.

use std::{io::Write as _, path::PathBuf, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
};

use crate::Failure;

/// The part of the provider.
pub(crate) const PROVIDER: &str = "--provider";
/// The part of one of several pollers on a file.
pub(crate) const POLLER: &str = "--poller";

/// A started process that talks in lines. It ends with this value.
pub(crate) struct Child {
    process: tokio::process::Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// This program in another part.
    pub(crate) fn of_this_program(arguments: &[&str]) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a child has no pipes".into());
        };
        let output = BufReader::new(output).lines();
        Ok(Self { process, input, output })
    }

    /// Its next line.
    pub(crate) async fn line(&mut self) -> Result<String, Failure> {
        let line = self.output.next_line().await?;
        line.ok_or_else(|| "a child ended before its time".into())
    }

    /// Writes a line to it.
    pub(crate) async fn say(&mut self, line: &str) -> Result<(), Failure> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        let status = self.process.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a child ended with {status}").into())
        }
    }
}

/// Writes a line to who started this process.
pub(crate) fn tell(line: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// A binary that was built beside this program.
pub(crate) fn beside(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is not built; `make bench` builds it", path.display()).into())
    }
}

/// A directory for files, on the disk on which this program lies: in a file system in memory a commit would cost nothing.
pub(crate) fn directory() -> Result<tempfile::TempDir, Failure> {
    let program = std::env::current_exe()?;
    let place = program.parent().ok_or("this program lies nowhere")?;
    Ok(tempfile::tempdir_in(place)?)
}
