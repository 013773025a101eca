//! JSON Lines: a file of jobs, all of it checked before any job is used.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    io::{self, BufRead, Read},
};

use super::{HttpJob, JobError};
use crate::settings::Settings;

/// What a file of jobs holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JobLines {
    /// Each job once, in the file's order.
    pub jobs: Vec<JobLine>,
    /// Lines that say again what an earlier line said.
    pub repeats: Vec<Repeat>,
}

/// One job with the line that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLine {
    /// The line's number, from 1.
    pub line: usize,
    /// The line as it was written, without its end: what is sent.
    pub text: String,
    /// The job.
    pub job: HttpJob,
}

/// A line that is the same job as an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The job's id.
    pub id: String,
    /// The line's number, from 1.
    pub line: usize,
    /// The line that said it first.
    pub first: usize,
}

/// Why a file of jobs was refused as a whole.
#[derive(Debug)]
#[non_exhaustive]
pub enum LinesError {
    /// It could not be read.
    Io(io::Error),
    /// Lines of it are no jobs; each of them is named.
    Bad(Vec<LineProblem>),
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineProblem {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with it, by field.
    pub error: JobError,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl fmt::Display for LinesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the jobs cannot be read: {error}"),
            Self::Bad(problems) => {
                write!(f, "nothing was sent: {} problem(s) in the file", problems.len())?;
                problems.iter().try_for_each(|problem| write!(f, "\n{problem}"))
            }
        }
    }
}

impl std::error::Error for LinesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Bad(_) => None,
        }
    }
}

/// Reads every line of `reader` as a job of at most `max_bytes` under `settings`. Blank lines are skipped; no line at all is
/// no job.
///
/// # Errors
/// When the reader fails, or with every line that is no job: not JSON, a bad field, a provider that the settings do not
/// name, or another job under an id that an earlier line has.
pub fn read_lines(mut reader: impl BufRead, settings: &Settings, max_bytes: usize) -> Result<JobLines, LinesError> {
    let mut read = JobLines::default();
    let mut problems = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut bytes = Vec::new();
    let mut line = 0;
    while next_line(&mut reader, max_bytes, &mut bytes).map_err(LinesError::Io)? {
        line += 1;
        // A byte order mark is no part of the first line.
        let text = if line == 1 {
            bytes.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&bytes)
        } else {
            &bytes
        };
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        match job(text, settings, max_bytes) {
            Err(error) => problems.push(LineProblem { line, error }),
            Ok((text, job)) => {
                if let Some(id) = &job.id {
                    match by_id.entry(id.clone()) {
                        Entry::Vacant(free) => {
                            free.insert(read.jobs.len());
                        }
                        Entry::Occupied(taken) => {
                            let Some(first) = read.jobs.get(*taken.get()) else {
                                continue;
                            };
                            if first.job == job {
                                read.repeats.push(Repeat {
                                    id: id.clone(),
                                    line,
                                    first: first.line,
                                });
                            } else {
                                let words = format!(
                                    "lines {} and {line} are two different jobs of the id {id:?}; allowed: one job for each id",
                                    first.line
                                );
                                problems.push(LineProblem {
                                    line,
                                    error: JobError::of("id", words),
                                });
                            }
                            continue;
                        }
                    }
                }
                read.jobs.push(JobLine {
                    line,
                    text: text.to_string(),
                    job,
                });
            }
        }
    }
    if problems.is_empty() {
        Ok(read)
    } else {
        Err(LinesError::Bad(problems))
    }
}

fn job<'a>(bytes: &'a [u8], settings: &Settings, max_bytes: usize) -> Result<(&'a str, HttpJob), JobError> {
    if bytes.len() > max_bytes {
        return Err(JobError::whole(format!(
            "found a job of more than {max_bytes} bytes; allowed: at most that"
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        JobError::whole(format!(
            "found a byte that is no UTF-8 after {} bytes; allowed: UTF-8",
            error.valid_up_to()
        ))
    })?;
    let job = HttpJob::parse_within(text, max_bytes)?;
    job.check(settings)?;
    Ok((text, job))
}

/// Reads one line; of one that is too long to be a job, just as much as shows that. False at the end.
fn next_line(reader: &mut impl BufRead, max_bytes: usize, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    // Room for blanks around the job and for the line's end.
    let most = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1024);
    if reader.by_ref().take(most).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() != Some(&b'\n') {
        skip_line(reader)?;
    }
    Ok(true)
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let (used, over) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        if over {
            return Ok(());
        }
    }
}
