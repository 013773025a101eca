//! `adjourn send`: JSON Lines in, one id a line out. All lines are checked before any is queued.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, BufWriter, Write},
    path::Path,
};

use adjourn_core::DeferralId;
use adjourn_http::{HttpJob, JobLines, LineProblem, LinesError, MAX_JOB_BYTES, Settings, read_lines};
use adjourn_local::{NewJob, SendOutcome};
use serde_json::json;

use crate::{
    cli::{Everywhere, Send},
    ending::{Ended, Failure},
    settings_file,
    store::Store,
};

/// So many problems of a file are told; who has more has one mistake many times.
const TOLD: usize = 100;

/// What became of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: usize,
    /// The job's id; none where the queue did not take it.
    pub(crate) id: Option<String>,
    /// One word for programs.
    pub(crate) outcome: &'static str,
    /// A sentence for people, where there is something to say.
    pub(crate) note: Option<String>,
}

pub(crate) fn run(send: &Send, everywhere: &Everywhere) -> Ended {
    let settings = settings_file::read(everywhere.config())?;
    let jobs = read(&send.file, &settings)?;
    let lines = match &everywhere.store {
        Store::Sqlite(path) => into_file(path, &jobs, &settings, send.revise)?,
        Store::Aws => super::aws::send(&jobs, send.revise)?,
    };
    tell(lines, &jobs, everywhere.json)
}

fn read(file: &Path, settings: &Settings) -> Result<JobLines, Failure> {
    let read = if file == Path::new("-") {
        read_lines(io::stdin().lock(), settings, MAX_JOB_BYTES)
    } else {
        File::open(file)
            .map_err(LinesError::Io)
            .and_then(|opened| read_lines(BufReader::new(opened), settings, MAX_JOB_BYTES))
    };
    let name = if file == Path::new("-") {
        "stdin".into()
    } else {
        file.to_string_lossy()
    };
    read.map_err(|error| {
        if let LinesError::Bad(problems) = &error {
            return Failure::bad(format!("{name}: nothing was queued{}", wrong(problems)));
        }
        Failure::bad(format!("{name}: {error}"))
    })
}

/// Each problem on a line of its own.
fn wrong(problems: &[LineProblem]) -> String {
    let told: Vec<String> = problems
        .iter()
        .flat_map(|line| {
            line.error
                .problems()
                .iter()
                .map(|problem| format!("\n  line {}: {problem}", line.line))
        })
        .collect();
    let more = told.len().saturating_sub(TOLD);
    let rest = if more > 0 {
        format!("\n  and {more} more")
    } else {
        String::new()
    };
    told.into_iter().take(TOLD).chain([rest]).collect()
}

/// The job as the store takes it. A job without an id gets one that sorts by its time. Its scope is the one that its
/// provider's contract gives it, or its row would not be held by the gate that a refusal closes.
fn new_job(text: &str, job: &HttpJob, settings: &Settings) -> NewJob {
    let provider = settings.provider(&job.provider);
    let id = job.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    NewJob {
        deferral_id: DeferralId::new(&id),
        id,
        body: text.to_string(),
        provider: job.provider.clone(),
        scope_key: provider.map_or_else(|| job.scope_key(), |provider| job.scope_key_at(provider)),
        tenant: job.tenant.clone(),
        run: job.run.clone(),
        not_before: job.not_before,
        revision: job.revision,
        attributes: BTreeMap::new(),
        trace_header: None,
    }
}

/// The jobs of a file as the store takes them.
pub(crate) fn new_jobs(jobs: &JobLines, settings: &Settings) -> Vec<NewJob> {
    jobs.jobs
        .iter()
        .map(|line| new_job(&line.text, &line.job, settings))
        .collect()
}

fn into_file(path: &Path, jobs: &JobLines, settings: &Settings, revise: bool) -> Result<Vec<Line>, Failure> {
    let sent = super::block_on(async {
        super::open(path)?
            .send(new_jobs(jobs, settings), revise)
            .await
            .map_err(Failure::bad)
    })?;
    Ok(jobs
        .jobs
        .iter()
        .zip(sent)
        .map(|(line, sent)| {
            let id = &sent.id;
            let (outcome, note) = match sent.outcome {
                SendOutcome::Added | SendOutcome::AddedAgain => ("added", None),
                SendOutcome::Revised => ("revised", None),
                SendOutcome::AlreadyOpen => (
                    "already-open",
                    Some(format!(
                        "{id} is open already; it was not queued again (--revise lets a higher revision take its place)"
                    )),
                ),
                SendOutcome::RunningAlready => (
                    "running",
                    Some(format!(
                        "{id} is running; a running job cannot be revised, and it was not queued again"
                    )),
                ),
                SendOutcome::NotNewer => (
                    "not-newer",
                    Some(format!(
                        "{id} has this revision or a higher one already; only a higher revision takes its place"
                    )),
                ),
            };
            Line {
                number: line.line,
                id: Some(sent.id.clone()),
                outcome,
                note,
            }
        })
        .collect())
}

/// Facts to stdout, one line for each line of the file; what a person has to know beside them to stderr.
fn tell(mut lines: Vec<Line>, jobs: &JobLines, as_json: bool) -> Ended {
    lines.extend(jobs.repeats.iter().map(|repeat| Line {
        number: repeat.line,
        id: Some(repeat.id.clone()),
        outcome: "repeated",
        note: Some(format!(
            "{} is the job of line {} again; it was queued once",
            repeat.id, repeat.first
        )),
    }));
    lines.sort_by_key(|line| line.number);
    let mut stderr = BufWriter::new(io::stderr().lock());
    for line in &lines {
        if let Some(note) = &line.note {
            // Without a reader of stderr, the facts are still wanted on stdout.
            let _ = writeln!(stderr, "adjourn: line {}: {note}", line.number);
        }
    }
    drop(stderr);
    let mut stdout = BufWriter::new(io::stdout().lock());
    for line in &lines {
        if as_json {
            writeln!(
                stdout,
                "{}",
                json!({ "id": line.id, "outcome": line.outcome, "line": line.number })
            )?;
        } else if let Some(id) = &line.id {
            writeln!(stdout, "{id}")?;
        }
    }
    stdout.flush()?;
    let refused = lines.iter().filter(|line| line.id.is_none()).count();
    if refused > 0 {
        return Err(Failure::no(format!(
            "the queue did not take {refused} of {} jobs; send those lines again",
            lines.len()
        )));
    }
    Ok(())
}
