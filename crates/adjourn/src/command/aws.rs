//! `--store aws`: what works on the queues alone, and a clear word about what does not.

use crate::ending::{Ended, Failure};

/// A command that needs to know single jobs, which a queue does not.
pub(crate) fn needs_a_table(command: &str) -> Ended {
    Err(Failure::bad(format!(
        "`adjourn {command}` on --store aws needs a table of jobs (ADJOURN_TABLE), and the ledger that keeps one is not built \
         yet; `adjourn --store aws status` gives the queues' counts, and --store sqlite:PATH has every command"
    )))
}

/// A command that only the deployed function or a later part does.
pub(crate) fn comes_later(command: &str, instead: &str) -> Ended {
    Err(Failure::bad(format!(
        "`adjourn {command}` on --store aws is not built yet; {instead}"
    )))
}

#[cfg(not(feature = "aws"))]
pub(crate) use absent::{send, status};
#[cfg(feature = "aws")]
pub(crate) use present::{send, status};

#[cfg(not(feature = "aws"))]
mod absent {
    use adjourn_http::JobLines;

    use super::super::send::Line;
    use crate::ending::{Ended, Failure};

    fn absent() -> Failure {
        Failure::bad(
            "this build has no --store aws; the one that `make build` puts at target/release/adjourn has it (cargo feature `aws`)",
        )
    }

    pub(crate) fn send(_: &JobLines, _: bool) -> Result<Vec<Line>, Failure> {
        Err(absent())
    }

    pub(crate) fn status(_: bool) -> Ended {
        Err(absent())
    }
}

#[cfg(feature = "aws")]
mod present {
    use std::{
        io::{self, Write},
        time::Duration,
    };

    use adjourn_aws::{Clients, Environment, Outgoing, Patience, QueueSettings, SqsQueue};
    use adjourn_core::{DeferralId, QueueKind};
    use adjourn_http::{HttpJob, JobLines};
    use adjourn_worker::{Clock, SystemClock};
    use serde_json::json;

    use super::super::{block_on, send::Line};
    use crate::ending::{Ended, Failure};

    /// The longest delay of a message (SQS API, SendMessage); a longer `notBefore` is waited out by the worker.
    const MAX_DELAY: Duration = Duration::from_secs(900);

    async fn queue() -> Result<(SqsQueue, QueueKind), Failure> {
        let environment = Environment::of_process();
        let settings = QueueSettings::for_operator(&environment).map_err(Failure::bad)?;
        let kind = settings.kind;
        let clients = Clients::connect(&environment, &settings, Patience::OPERATOR)
            .await
            .map_err(Failure::bad)?;
        Ok((SqsQueue::new(&clients, settings), kind))
    }

    pub(crate) fn send(jobs: &JobLines, revise: bool) -> Result<Vec<Line>, Failure> {
        if revise {
            return Err(Failure::bad(
                "--revise on --store aws needs a table of jobs (ADJOURN_TABLE), and the ledger that keeps one is not built yet",
            ));
        }
        let answers = block_on(async {
            let (queue, kind) = queue().await?;
            let messages = jobs
                .jobs
                .iter()
                .map(|line| outgoing(&line.text, &line.job, kind))
                .collect();
            Ok(queue.send(messages).await)
        })?;
        Ok(jobs
            .jobs
            .iter()
            .zip(answers)
            .map(|(line, answer)| match answer {
                Ok(message_id) => Line {
                    number: line.line,
                    id: Some(line.job.id.clone().unwrap_or(message_id)),
                    outcome: "added",
                    note: None,
                },
                Err(error) => Line {
                    number: line.line,
                    id: None,
                    outcome: "refused",
                    note: Some(format!("not queued: {error}")),
                },
            })
            .collect())
    }

    /// The tenant is the message group, which on a standard queue is what fair turns go by. A FIFO queue needs a group
    /// and a deduplication id from everyone: the limit's scope where there is no tenant, and the job's identity.
    fn outgoing(text: &str, job: &HttpJob, kind: QueueKind) -> (Outgoing, Duration) {
        let mut message = Outgoing::new(text);
        message.group.clone_from(&job.tenant);
        let delay = match kind {
            QueueKind::Standard => job
                .not_before
                .map_or(Duration::ZERO, |at| at.since(SystemClock.now()).min(MAX_DELAY)),
            QueueKind::Fifo => {
                message.group = message
                    .group
                    .or_else(|| Some(DeferralId::new(job.scope_key().as_str()).to_string()));
                let id = job.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
                message.deduplication_id = Some(DeferralId::new(&id).to_string());
                Duration::ZERO
            }
        };
        (message, delay)
    }

    /// The queues' own counts, under the names that the SQLite store gives to the same things.
    pub(crate) fn status(as_json: bool) -> Ended {
        let counts = block_on(async { queue().await?.0.counts().await.map_err(Failure::no) })?;
        let queue = counts.queue;
        let dead = counts
            .dead_letters
            .map(|dead| dead.visible.saturating_add(dead.in_flight).saturating_add(dead.delayed));
        let mut stdout = io::stdout().lock();
        if as_json {
            let facts = json!({
                "ready": queue.visible,
                "running": queue.in_flight,
                "waiting": queue.delayed,
                // What a queue cannot know of its jobs.
                "done": null, "failed": null, "exhausted": null, "review": null, "cancelled": null,
                "nextDueAt": null, "gates": null,
                "deadLettered": dead,
                "approximate": true,
            });
            writeln!(stdout, "{facts}")?;
            return Ok(());
        }
        writeln!(stdout, "ready      {:>8}", queue.visible)?;
        writeln!(stdout, "running    {:>8}  or held invisible", queue.in_flight)?;
        writeln!(
            stdout,
            "waiting    {:>8}  by a delay; one-time schedules are not counted",
            queue.delayed
        )?;
        match dead {
            Some(dead) => writeln!(stdout, "dead       {dead:>8}")?,
            None => writeln!(stdout, "dead              ?  ADJOURN_DLQ_URL is not set")?,
        }
        writeln!(stdout, "\nThe queue's own numbers, approximate.")?;
        Ok(())
    }
}
