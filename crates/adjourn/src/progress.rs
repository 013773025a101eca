//! Progress of `adjourn run` on a terminal: what is done, what waits and until when, which gates are closed.

use adjourn_local::{Progress, Status};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;

use crate::environment::Environment;

/// Where bars are drawn: on stderr where that is a terminal, and nowhere else.
pub(crate) fn bars(environment: &Environment) -> MultiProgress {
    if environment.stderr_is_terminal {
        MultiProgress::with_draw_target(ProgressDrawTarget::stderr())
    } else {
        MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
    }
}

/// A bar of this template; the plain one, should the template be wrong.
pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// Shows how far a run has come, until there is nobody left who tells.
pub(crate) async fn show(mut told: watch::Receiver<Progress>, bars: &MultiProgress) {
    let work = bars.add(ProgressBar::new(0).with_style(style("{bar:28} {pos} of {len} ended  {msg}")));
    let gates = bars.add(ProgressBar::new_spinner().with_style(style("{msg}")));
    while told.changed().await.is_ok() {
        let progress = told.borrow_and_update().clone();
        let ended = progress.done.saturating_add(progress.failed);
        let open = progress
            .ready
            .saturating_add(progress.running)
            .saturating_add(progress.waiting);
        work.set_length(ended.saturating_add(open));
        work.set_position(ended);
        work.set_message(counts(&progress));
        gates.set_message(closed(&progress));
    }
}

fn counts(progress: &Progress) -> String {
    let mut words = format!(
        "{} running, {} ready, {} waiting",
        progress.running, progress.ready, progress.waiting
    );
    if let Some(at) = progress.next_due {
        words = format!("{words}, next due {at}");
    }
    if progress.failed > 0 {
        words = format!("{words}, {} failed", progress.failed);
    }
    words
}

/// The first few closed gates, each with the moment of its opening.
fn closed(progress: &Progress) -> String {
    const SHOWN: usize = 3;
    let shown = progress.gates.iter().take(SHOWN);
    let gates: Vec<String> = shown
        .filter_map(|gate| Some(format!("{} closed until {}", gate.scope_key, gate.closed_until?)))
        .collect();
    match progress.gates.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        Some(more) => format!("{}, and {more} more", gates.join(", ")),
        None => gates.join(", "),
    }
}

/// How a store stands, in one line.
pub(crate) fn summary(status: &Status) -> String {
    format!(
        "{} done, {} failed, {} exhausted, {} cancelled; {} ready, {} running, {} waiting",
        status.done, status.failed, status.exhausted, status.cancelled, status.ready, status.running, status.waiting
    )
}
