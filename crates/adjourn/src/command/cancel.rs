//! `adjourn cancel`: prevents wake-ups, prints each, and names what it came too late for.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use adjourn_local::{CancelReport, Selection};
use serde_json::json;

use crate::{
    cli::Cancel,
    ending::{Ended, Failure},
};

/// Of a run or a tenant with a long past, so many ended jobs are named.
const NAMED: usize = 20;

pub(crate) fn run(cancel: Cancel, path: &Path, as_json: bool) -> Ended {
    let (selection, asked) = match (cancel.run, cancel.tenant) {
        (Some(run), _) => (Selection::Run(run.clone()), format!("of run {run:?}")),
        (None, Some(tenant)) => (Selection::Tenant(tenant.clone()), format!("of tenant {tenant:?}")),
        (None, None) => (Selection::Ids(cancel.ids), String::new()),
    };
    let by_name = asked.is_empty();
    let report = super::block_on(async { super::existing(path)?.cancel(selection).await.map_err(Failure::bad) })?;
    print(&report, as_json)?;
    let mut missed: Vec<String> = report
        .running
        .iter()
        .map(|id| format!("{id} is running; it is not stopped"))
        .collect();
    let named = if by_name { report.ended.len() } else { NAMED };
    missed.extend(
        report
            .ended
            .iter()
            .take(named)
            .map(|ended| format!("{} has ended ({})", ended.id, ended.state)),
    );
    if let Some(more) = report.ended.len().checked_sub(named).filter(|&more| more > 0) {
        missed.push(format!("{more} more {asked} have ended"));
    }
    missed.extend(
        report
            .unknown
            .iter()
            .map(|id| format!("no job has the id {id:?}; `adjourn jobs` lists them")),
    );
    if missed.is_empty() && report.prevented.is_empty() {
        missed.push(format!("there is no job {asked}; `adjourn jobs` lists them"));
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::no(missed.join("\nadjourn: ")))
    }
}

fn print(report: &CancelReport, as_json: bool) -> Ended {
    let mut stdout = BufWriter::new(io::stdout().lock());
    for job in &report.prevented {
        if as_json {
            let line = json!({
                "id": job.id, "outcome": "cancelled", "retryAt": job.due, "mechanism": job.mechanism, "reason": job.reason,
            });
            writeln!(stdout, "{line}")?;
        } else {
            match job.due {
                Some(at) => writeln!(stdout, "{} cancelled; it would have woken up at {at}", job.id)?,
                None => writeln!(stdout, "{} cancelled; it was ready to start", job.id)?,
            }
        }
    }
    if as_json {
        for id in &report.running {
            writeln!(stdout, "{}", json!({ "id": id, "outcome": "running" }))?;
        }
        for job in &report.ended {
            writeln!(
                stdout,
                "{}",
                json!({ "id": job.id, "outcome": "ended", "state": job.state })
            )?;
        }
        for id in &report.unknown {
            writeln!(stdout, "{}", json!({ "id": id, "outcome": "unknown" }))?;
        }
    }
    stdout.flush()?;
    Ok(())
}
