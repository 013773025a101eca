//! Explaining JSON Lines beside parsing the same lines.

use std::time::Duration;

use adjourn_http::{Explainer, Pasted};
use adjourn_worker::{Clock as _, SystemClock};
use serde_json::{Map, Value};

use crate::{
    Failure,
    pairs::{Stopwatch, alternate},
    table::{Bound, Table, rate},
};

/// Responses as providers document them and as people reported them, each with its source, notes and what is expected of it.
const CORPUS: &str = include_str!("../../tests/corpus/responses.jsonl");
/// What of a line is the response.
const RESPONSE: [&str; 4] = ["status", "headers", "body", "received_at"];
/// How often all lines stand in one run.
const ROUNDS: u32 = 60;
const PAIRS: u32 = 20;
/// How many responses a second are asked for.
const ASKED: u32 = 20_000;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let lines: Vec<String> = CORPUS.lines().map(str::to_string).collect();
    let rows = [
        (
            "explain: JSON Lines beside serde_json parsing them",
            &lines,
            Bound::AtMost(3.0),
        ),
        (
            "explain: the same, nothing but the response on a line",
            &bare(&lines)?,
            Bound::Reported,
        ),
    ];
    for (what, lines, bound) in rows {
        let compared = alternate(PAIRS, async |ours| if ours { explain(lines) } else { parse(lines) }).await?;
        let count = u32::try_from(lines.len())? * ROUNDS;
        let (ours, other) = (rate(count, compared.ours), rate(count, compared.other));
        table.add(what, ours.clone(), other, compared.ratio, bound);
        if matches!(bound, Bound::AtMost(_)) {
            let times = f64::from(count) / compared.ours / f64::from(ASKED);
            let asked = format!("{ASKED}/s asked");
            table.add(
                "explain: responses a second, one processor",
                ours,
                asked,
                times,
                Bound::Reported,
            );
        }
    }
    Ok(())
}

fn bare(lines: &[String]) -> Result<Vec<String>, Failure> {
    let bare = lines.iter().map(|line| {
        let mut line: Map<String, Value> = serde_json::from_str(line)?;
        line.retain(|name, _| RESPONSE.contains(&name.as_str()));
        Ok(serde_json::to_string(&line)?)
    });
    bare.collect()
}

/// As `adjourn explain --json` does it on each processor: an answer of one line for each line.
fn explain(lines: &[String]) -> Result<Duration, Failure> {
    let explainer = Explainer::default();
    let mut answers = Vec::new();
    let watch = Stopwatch::start();
    for _ in 0..ROUNDS {
        answers.clear();
        for line in lines {
            for pasted in Pasted::read_lines(line.as_bytes(), None, SystemClock.now()) {
                serde_json::to_writer(&mut answers, &explainer.explain(&pasted.response?))?;
                answers.push(b'\n');
            }
        }
    }
    let took = watch.read();
    let answered = answers.iter().filter(|&&byte| byte == b'\n').count();
    if answered != lines.len() {
        return Err(format!("{answered} of {} responses were explained", lines.len()).into());
    }
    Ok(took)
}

fn parse(lines: &[String]) -> Result<Duration, Failure> {
    let watch = Stopwatch::start();
    for _ in 0..ROUNDS {
        for line in lines {
            std::hint::black_box(serde_json::from_str::<Value>(line)?);
        }
    }
    Ok(watch.read())
}
