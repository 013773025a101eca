//! `adjourn explain`: what one response says, or each line of JSON Lines, and what would become of the job.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    num::NonZero,
    path::Path,
    thread,
};

use adjourn_core::Timestamp;
use adjourn_http::{Explainer, Pasted};
use adjourn_worker::{Clock, SystemClock};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::{
    cli::{Everywhere, Explain},
    ending::{Ended, Failure},
    environment::Environment,
    explained::{self, Reader},
    lines::Lines,
    named, no_response,
    paint::Paint,
    settings_file,
};

/// The most lines that are read ahead of their answers.
const BATCH: usize = 2048;
/// The least lines that are worth a thread of their own.
const LEAST_SHARE: usize = 64;

pub(crate) fn run(explain: &Explain, everywhere: &Everywhere, environment: &Environment) -> Ended {
    let settings = settings_file::read_if_there(everywhere)?;
    let mut policy = settings
        .as_ref()
        .map(|settings| settings.policy().clone())
        .unwrap_or_default();
    let mut explainer = Explainer::default();
    let mut reader = Reader::Generic;
    if let Some(name) = &explain.provider {
        let found = named::find(name, settings.as_ref()).map_err(|unknown| unknown.bad("--provider"))?;
        explainer = explainer.provider(&found.name);
        policy.retry = found.retry.unwrap_or(policy.retry);
        reader = Reader::of(&found.name, found.contract.as_deref());
        if let Some(contract) = found.contract {
            explainer = explainer.contract((*contract).clone());
        }
    }
    let answers = Answers {
        explainer: explainer.policy(policy),
        reader,
        received_at: explain.received_at,
        as_json: everywhere.json,
        paint: Paint::stdout(environment),
    };
    if explain.file == Path::new("-") {
        if environment.stdin_is_terminal {
            // Without a reader of stderr, the answer is still wanted on stdout.
            let _ = writeln!(io::stderr(), "Paste the response, then press Ctrl-D on an empty line.");
        }
        return answers.to("stdin", io::stdin().lock());
    }
    let name = explain.file.to_string_lossy();
    let file = File::open(&explain.file).map_err(|error| cannot_read(&name, &error))?;
    answers.to(&name, file)
}

fn cannot_read(name: &str, error: &io::Error) -> Failure {
    Failure::bad(format!("{name}: cannot be read: {error}"))
}

/// How answers are given.
struct Answers {
    explainer: Explainer,
    reader: Reader,
    received_at: Option<Timestamp>,
    as_json: bool,
    paint: Paint,
}

impl Answers {
    fn to(&self, name: &str, input: impl Read) -> Ended {
        let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        let unread = |error: io::Error| cannot_read(name, &error);
        let mut lines = Lines::of(input);
        // The first line that is not blank says what the input is.
        if lines.peek().map_err(unread)?.is_some_and(is_whole_object) {
            return self.lines(name, lines, &mut out);
        }
        let text = lines.rest().map_err(unread)?;
        let pasted = Pasted::read(&text, self.received_at, SystemClock.now())
            .map_err(|error| Failure::bad(format!("{name}: {}", no_response::with_text(&text, &error))))?;
        self.one(&mut out, &pasted)?;
        Ok(out.flush()?)
    }

    fn one(&self, out: &mut impl Write, pasted: &Pasted) -> io::Result<()> {
        let explanation = self.explainer.explain(pasted);
        if self.as_json {
            serde_json::to_writer(&mut *out, &explanation)?;
            return writeln!(out);
        }
        explained::answer(out, &explanation, &self.reader, self.paint)
    }

    /// One answer a line, as the lines come; a line that is no response hurts itself alone.
    fn lines(&self, name: &str, mut lines: Lines<impl Read>, out: &mut impl Write) -> Ended {
        let unread = |error: io::Error| cannot_read(name, &error);
        let (mut responses, mut wrong) = (0_usize, 0_usize);
        while let Some((number, line)) = lines.next().map_err(unread)? {
            // In words, a lone response has a whole answer.
            if responses == 0 && !self.as_json && lines.peek().map_err(unread)?.is_none() {
                let pasted = Pasted::read(&line, self.received_at, SystemClock.now())
                    .map_err(|error| Failure::bad(format!("{name}: {}", no_response::with_text(&line, &error))))?;
                self.one(out, &pasted)?;
                return Ok(out.flush()?);
            }
            let mut batch = vec![(number, line)];
            while !lines.would_wait()
                && batch.len() < BATCH
                && let Some(next) = lines.next().map_err(unread)?
            {
                batch.push(next);
            }
            responses += batch.len();
            for share in self.shares(&batch)? {
                out.write_all(&share.answers)?;
                wrong += share.errors.len();
                for (number, error) in share.errors {
                    let _ = writeln!(io::stderr(), "adjourn: {name}: line {number}: {error}");
                }
            }
            if lines.would_wait() {
                out.flush()?;
            }
        }
        out.flush()?;
        if wrong > 0 {
            return Err(Failure::bad(format!(
                "{name}: {wrong} of {responses} lines are no response"
            )));
        }
        Ok(())
    }

    /// Answers a batch, in shares for the processors that there are: lines have nothing to do with each other. A few lines
    /// are not worth a thread.
    fn shares(&self, batch: &[(usize, Vec<u8>)]) -> io::Result<Vec<Share>> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let size = batch.len().div_ceil(threads).max(LEAST_SHARE);
        let mut shares = batch.chunks(size);
        let own = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = shares.map(|share| scope.spawn(move || self.share(share))).collect();
            let mut answered = vec![self.share(own)?];
            for other in others {
                let share = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                answered.push(share?);
            }
            Ok(answered)
        })
    }

    fn share(&self, lines: &[(usize, Vec<u8>)]) -> io::Result<Share> {
        let mut share = Share::default();
        for (number, line) in lines {
            if let Some(error) = self.line(&mut share.answers, *number, line)? {
                share.errors.push((*number, error));
            }
        }
        Ok(share)
    }

    /// Answers one line; why not, where it is no response.
    fn line(&self, out: &mut impl Write, number: usize, line: &[u8]) -> io::Result<Option<String>> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let read = Pasted::read_lines(line, self.received_at, SystemClock.now()).next();
        let error = match read.map(|line| line.response) {
            Some(Ok(pasted)) => {
                let explanation = self.explainer.explain(&pasted);
                if self.as_json {
                    serde_json::to_writer(&mut *out, &explanation)?;
                    writeln!(out)?;
                } else {
                    explained::line(out, number, &explanation, self.paint)?;
                }
                return Ok(None);
            }
            Some(Err(error)) => no_response::with_object(line, &error),
            None => return Ok(None),
        };
        // Its place in the answers is kept, so that they can be told apart by position.
        if self.as_json {
            writeln!(out, "{}", json!({ "error": error, "line": number }))?;
        } else {
            writeln!(out, "{number:>6}  no response")?;
        }
        Ok(Some(error))
    }
}

/// The answers to some lines in a row, and which of them are no response.
#[derive(Default)]
struct Share {
    answers: Vec<u8>,
    errors: Vec<(usize, String)>,
}

/// Whether a line is all of a JSON object, or of a broken one: not the beginning of one that goes on.
fn is_whole_object(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.first() == Some(&b'{') && !serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}
