//! `adjourn job ID`: one job with its history, oldest first.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use crate::{
    ending::{Ended, Failure},
    report,
};

pub(crate) fn run(id: &str, path: &Path, as_json: bool) -> Ended {
    let found = super::block_on(async { super::existing(path)?.job(id).await.map_err(Failure::bad) })?;
    let Some(job) = found else {
        return Err(Failure::no(format!(
            "{}: no job has the id {id:?}; `adjourn jobs` lists them",
            path.display()
        )));
    };
    let mut stdout = BufWriter::new(io::stdout().lock());
    if as_json {
        serde_json::to_writer(&mut stdout, &job).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        report::history(&mut stdout, &job)?;
    }
    stdout.flush()?;
    Ok(())
}
