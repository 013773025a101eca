//! `adjourn redrive`: ended jobs back to ready in a new epoch, their counters at zero, on a slope.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use adjourn_local::Redrive as Which;
use serde_json::json;

use crate::{
    cli::Redrive,
    ending::{Ended, Failure},
};

pub(crate) fn run(redrive: Redrive, path: &Path, as_json: bool) -> Ended {
    let which = if redrive.all {
        Which::All
    } else {
        Which::Ids(redrive.ids)
    };
    let report = super::block_on(async { super::existing(path)?.redrive(which).await.map_err(Failure::bad) })?;
    let mut stdout = BufWriter::new(io::stdout().lock());
    for job in &report.redriven {
        if as_json {
            writeln!(
                stdout,
                "{}",
                json!({ "id": job.id, "outcome": "redriven", "epoch": job.epoch, "retryAt": job.due })
            )?;
        } else {
            writeln!(
                stdout,
                "{} comes back in epoch {}, not before {}",
                job.id, job.epoch, job.due
            )?;
        }
    }
    if as_json {
        for job in &report.not_redrivable {
            writeln!(
                stdout,
                "{}",
                json!({ "id": job.id, "outcome": "not-redrivable", "state": job.state })
            )?;
        }
        for id in &report.unknown {
            writeln!(stdout, "{}", json!({ "id": id, "outcome": "unknown" }))?;
        }
    }
    stdout.flush()?;
    let mut missed: Vec<String> = report
        .not_redrivable
        .iter()
        .map(|job| {
            let stands = if job.state.is_open() {
                format!("still open ({})", job.state)
            } else {
                job.state.to_string()
            };
            format!(
                "{} is {stands}; what failed, was exhausted or is in review can come back",
                job.id
            )
        })
        .collect();
    missed.extend(
        report
            .unknown
            .iter()
            .map(|id| format!("no job has the id {id:?}; `adjourn jobs` lists them")),
    );
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::no(missed.join("\nadjourn: ")))
    }
}
