//! `adjourn status`: counts by state, the next due time, the closed gates and the found paces.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use adjourn_local::Status;

use crate::ending::{Ended, Failure};

pub(crate) fn run(path: &Path, as_json: bool) -> Ended {
    let status = super::block_on(async { super::existing(path)?.status().await.map_err(Failure::bad) })?;
    let mut stdout = BufWriter::new(io::stdout().lock());
    if as_json {
        serde_json::to_writer(&mut stdout, &status).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        print(&mut stdout, &status)?;
    }
    stdout.flush()?;
    Ok(())
}

fn print(out: &mut impl Write, status: &Status) -> io::Result<()> {
    writeln!(out, "ready      {:>8}", status.ready)?;
    writeln!(out, "running    {:>8}", status.running)?;
    match status.next_due_at {
        Some(at) => writeln!(out, "waiting    {:>8}  next due {at}", status.waiting)?,
        None => writeln!(out, "waiting    {:>8}", status.waiting)?,
    }
    writeln!(out, "done       {:>8}", status.done)?;
    for (state, count, hint) in [
        ("failed", status.failed, "adjourn jobs --state failed"),
        ("exhausted", status.exhausted, "adjourn jobs --state exhausted"),
        ("review", status.review, "adjourn jobs --state review"),
        ("cancelled", status.cancelled, ""),
    ] {
        if count > 0 && !hint.is_empty() {
            writeln!(out, "{state:<10} {count:>8}  see {hint}")?;
        } else {
            writeln!(out, "{state:<10} {count:>8}")?;
        }
    }
    for gate in &status.gates {
        if let Some(until) = gate.closed_until {
            writeln!(out, "gate {} closed until {until}: {}", gate.scope_key, gate.reason)?;
        }
        if let (Some(ms), Some(at)) = (gate.pace_ms, gate.pace_found_at) {
            writeln!(out, "gate {} one call each {ms} ms, found at {at}", gate.scope_key)?;
        }
    }
    Ok(())
}
