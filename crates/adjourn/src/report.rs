//! Jobs in words, for people.

use std::io::{self, Write};

use adjourn_core::Mechanism;
use adjourn_local::{JobDetail, JobView, State};
use adjourn_worker::{Receipt, Transition};

/// One job in one line: who, where it stands, until when and why.
pub(crate) fn line(job: &JobView) -> String {
    let tenant = job.tenant.as_deref().unwrap_or("-");
    let line = format!(
        "{:<24} {:<9} {:<16} {tenant:<12} {}",
        job.id,
        job.state.as_str(),
        job.scope_key,
        stands(job)
    );
    line.trim_end().to_string()
}

/// Until when it waits and why, or how it ended.
fn stands(job: &JobView) -> String {
    let reason = job.reason.as_deref().unwrap_or_default();
    match (job.state, job.retry_at) {
        (State::Waiting, Some(at)) => format!("until {at} by {}: {reason}", job.mechanism.as_str()),
        (State::Ready | State::Running | State::Waiting, _) => reason.to_string(),
        (State::Done | State::Failed | State::Exhausted | State::Review | State::Cancelled, _) => {
            match (job.last_status, reason) {
                (Some(status), "") => format!("status {status}"),
                (Some(status), reason) => format!("status {status}: {reason}"),
                (None, reason) => reason.to_string(),
            }
        }
    }
}

/// One job with its history, oldest first.
pub(crate) fn history(out: &mut impl Write, detail: &JobDetail) -> io::Result<()> {
    let job = &detail.job;
    writeln!(out, "{}  {}  {}", job.id, job.state.as_str(), stands(job))?;
    writeln!(
        out,
        "provider {}, scope {}, tenant {}, run {}",
        job.provider,
        job.scope_key,
        job.tenant.as_deref().unwrap_or("-"),
        job.run
    )?;
    writeln!(
        out,
        "attempts {}, deferrals {}, hops {}; step {}.{} of {}",
        job.attempts, job.deferrals, job.hops, job.epoch, job.sequence, job.deferral_id
    )?;
    writeln!(out)?;
    for receipt in &detail.receipts {
        writeln!(out, "{}", receipt_line(receipt))?;
    }
    if let Some(result) = &detail.result {
        writeln!(out, "\nresult\n{result}")?;
    }
    Ok(())
}

fn receipt_line(receipt: &Receipt) -> String {
    let mut line = format!("{}  {:<10} {}", receipt.at, word(receipt.transition), receipt.cause);
    if let Some(until) = receipt.until {
        line = format!("{line}; until {until}");
    }
    if receipt.mechanism != Mechanism::None {
        line = format!("{line} by {}", receipt.mechanism.as_str());
    }
    if receipt.jitter_ms > 0 {
        line = format!("{line}, {} ms of it jitter", receipt.jitter_ms);
    }
    if let Some(seen) = &receipt.observation {
        if let Some(status) = seen.status {
            line = format!("{line}; status {status}");
        }
        if let Some(raw) = &seen.raw {
            line = format!("{line}, read from {raw:?}");
        }
    }
    line
}

fn word(transition: Transition) -> &'static str {
    match transition {
        Transition::Sent => "sent",
        Transition::Deferred => "deferred",
        Transition::Retrying => "retrying",
        Transition::Parked => "parked",
        Transition::Done => "done",
        Transition::Dropped => "dropped",
        Transition::Discarded => "discarded",
        Transition::Ended => "ended",
        Transition::Cancelled => "cancelled",
        Transition::Redriven => "redriven",
        Transition::Superseded => "superseded",
    }
}
