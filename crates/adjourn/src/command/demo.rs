//! `adjourn demo`: a provider that limits, jobs of three tenants, the real engine, and what the provider counted.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use adjourn::demo::{Behaviour, IDEMPOTENCY_HEADER, PROVIDER_NAME, Provider, Tally, Workload};
use adjourn_core::Timestamp;
use adjourn_http::{Credentials, HttpHandler, MAX_JOB_BYTES, Settings, read_lines};
use adjourn_local::{Poller, PollerOptions, Store};
use adjourn_worker::{Clock, SystemClock, Worker};
use indicatif::{MultiProgress, ProgressBar};
use serde_json::json;

use crate::{
    cli::{Demo, Everywhere},
    ending::{Ended, Failure},
    environment::Environment,
    logging, progress,
    signals::Signals,
};

/// How often the bars and the gate are looked at.
const EVERY: Duration = Duration::from_millis(50);
/// The most calls in flight: the default of `[worker]`.
const CONCURRENCY: usize = 10;

/// What the demo came to.
struct Outcome {
    workload: Workload,
    tally: Tally,
    /// The time that the provider's limit alone needs.
    limit: Duration,
    /// How often the gate closed.
    closings: usize,
}

pub(crate) fn run(demo: &Demo, everywhere: &Everywhere, environment: &Environment) -> Ended {
    let bars = progress::bars(environment);
    logging::start(everywhere.verbose, environment, &bars)?;
    let watched = environment.stdout_is_terminal && !everywhere.json;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::no(format!("cannot make a temporary folder: {error}")))?;
    let behaviour = Behaviour {
        seed: demo.seed,
        ..Behaviour::default()
    };
    if watched {
        introduce(demo.jobs, &behaviour)?;
    }
    let path = folder.path().join("demo.db");
    let outcome = super::block_on_many(play(demo, behaviour, &path, &bars, watched))?;
    if everywhere.json {
        figures_as_json(demo, &outcome)?;
    } else {
        figures(demo, &outcome)?;
    }
    let Tally {
        early_calls,
        lost,
        duplicates,
        ..
    } = outcome.tally;
    if (early_calls, lost, duplicates) == (0, 0, 0) {
        return Ok(());
    }
    Err(Failure::no(format!(
        "the provider counted {early_calls} early calls, {lost} lost jobs and {duplicates} duplicates; each of them should be 0"
    )))
}

fn introduce(jobs: u32, behaviour: &Behaviour) -> Ended {
    let mut stdout = io::stdout().lock();
    if let Some(limit) = behaviour.limit {
        writeln!(
            stdout,
            "A provider on this machine lets {} calls a second through, {} at once, and answers the rest with 429 and Retry-After.",
            limit.per_second, limit.burst
        )?;
    }
    writeln!(
        stdout,
        "{jobs} jobs call it: nearly all are tenant large's and stand first in the queue, a few are small's and tiny's.\n\
         One refusal closes the gate for every job; each waits in an SQLite file, then they come back in turns.\n"
    )?;
    Ok(())
}

async fn play(
    demo: &Demo,
    behaviour: Behaviour,
    path: &Path,
    bars: &MultiProgress,
    watched: bool,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limit = behaviour
        .limit
        .map_or(Duration::ZERO, |limit| limit.least_time(demo.jobs));
    let provider = Provider::open(behaviour, Arc::clone(&clock))
        .await
        .map_err(|error| Failure::no(format!("cannot open a port on 127.0.0.1: {error}")))?;
    let settings = settings(&provider.base_url())?;
    let workload = Workload::new(demo.jobs, demo.seed);
    let jobs = read_lines(workload.lines().as_bytes(), &settings, MAX_JOB_BYTES).map_err(Failure::no)?;
    let store = Store::open(path, Arc::clone(&clock)).map_err(Failure::no)?;
    let policy = settings.policy().clone();
    let new_jobs = super::send::new_jobs(&jobs, &settings);
    let handler = HttpHandler::new(settings, Credentials::default(), clock).map_err(Failure::no)?;
    let worker = store.worker(handler).policy(policy).concurrency(CONCURRENCY).build();
    store.send(new_jobs, false).await.map_err(Failure::no)?;
    let options = PollerOptions::default().concurrency(CONCURRENCY).until_idle();
    let polling = Poller::run(worker.clone(), store.clone(), options, std::future::pending());
    let mut watching = Watching::new(bars, demo.jobs, watched);
    tokio::select! {
        polled = polling => polled.map_err(Failure::no)?,
        () = watching.watch(&provider, &worker) => {}
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
    }
    watching.look(&provider, &worker);
    let _ = bars.clear();
    let tally = provider.with_books(|books| books.tally(workload.ids()));
    Ok(Outcome {
        workload,
        tally,
        limit,
        closings: watching.closings,
    })
}

fn settings(base_url: &str) -> Result<Settings, Failure> {
    let text = format!(
        "[providers.{PROVIDER_NAME}]\nbase_url = \"{base_url}\"\nidempotency_header = \"{IDEMPOTENCY_HEADER}\"\n"
    );
    Settings::parse(&text).map_err(Failure::no)
}

/// The bars, and the gate as it was last seen.
struct Watching {
    bars: MultiProgress,
    done: ProgressBar,
    waiting: ProgressBar,
    refused: ProgressBar,
    jobs: u32,
    /// Whether somebody reads lines about the gate.
    told: bool,
    closed_until: Option<Timestamp>,
    closings: usize,
    /// When the pace was looked at last, and how many jobs were done then.
    paced: Option<(Timestamp, u64)>,
}

/// Over how long the pace is measured.
const PACE_OVER: Duration = Duration::from_secs(1);

impl Watching {
    fn new(bars: &MultiProgress, jobs: u32, told: bool) -> Self {
        let bar = |name: &str| {
            let style = progress::style(&format!("{name:<8} {{bar:40}} {{pos:>4}} {{msg}}"));
            bars.add(ProgressBar::new(u64::from(jobs)).with_style(style))
        };
        Self {
            done: bar("done"),
            waiting: bar("waiting"),
            refused: bar("refused"),
            bars: bars.clone(),
            jobs,
            told,
            closed_until: None,
            closings: 0,
            paced: None,
        }
    }

    async fn watch<H: adjourn_worker::Handler>(&mut self, provider: &Provider, worker: &Worker<H>) {
        loop {
            self.look(provider, worker);
            worker.clock().sleep(EVERY).await;
        }
    }

    fn look<H: adjourn_worker::Handler>(&mut self, provider: &Provider, worker: &Worker<H>) {
        let (accepted, refused) = provider.with_books(adjourn::demo::Books::counts);
        let accepted = u64::try_from(accepted).unwrap_or(u64::MAX);
        self.done.set_position(accepted);
        self.waiting.set_position(u64::from(self.jobs).saturating_sub(accepted));
        self.refused.set_position(u64::try_from(refused).unwrap_or(u64::MAX));
        let now = worker.clock().now();
        self.look_at_pace(now, accepted);
        let closed = worker.gates().closed(now).into_iter().next();
        match (self.closed_until, closed) {
            (before, Some((scope, until, why))) if before != Some(until) => {
                self.closed_until = Some(until);
                self.closings = self.closings.saturating_add(usize::from(before.is_none()));
                self.tell(&format!("{now}  gate {scope} closed until {until}: {why}"));
            }
            (Some(_), None) => {
                self.closed_until = None;
                self.tell(&format!("{now}  gate open again"));
            }
            (_, _) => {}
        }
    }

    /// The pace of the last second, beside the bar of what is done.
    fn look_at_pace(&mut self, now: Timestamp, accepted: u64) {
        let Some((before, done)) = self.paced else {
            self.paced = Some((now, accepted));
            return;
        };
        let span = now.since(before);
        if span >= PACE_OVER {
            let jobs = u32::try_from(accepted.saturating_sub(done)).unwrap_or(u32::MAX);
            let pace = f64::from(jobs) / span.as_secs_f64();
            self.done.set_message(format!("{pace:.0} a second"));
            self.paced = Some((now, accepted));
        }
    }

    fn tell(&self, line: &str) {
        if self.told {
            // A terminal that has gone away is noticed when the figures are printed.
            let _ = self.bars.println(line);
        }
    }
}

fn figures_as_json(demo: &Demo, outcome: &Outcome) -> Ended {
    let tally = &outcome.tally;
    let figures = json!({
        "jobs": demo.jobs,
        "done": tally.done,
        "deferred": tally.deferred,
        "refusals": tally.refusals,
        "earlyCalls": tally.early_calls,
        "lost": tally.lost,
        "duplicates": tally.duplicates,
        "makespanMs": millis(tally.makespan),
        "limitMs": millis(outcome.limit),
    });
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn figures(demo: &Demo, outcome: &Outcome) -> Ended {
    let tally = &outcome.tally;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(
        out,
        "{} of {} jobs done; {} were refused and came back, {} refusals in all, the gate closed {} times",
        tally.done, demo.jobs, tally.deferred, tally.refusals, outcome.closings
    )?;
    writeln!(
        out,
        "{} early calls, {} lost jobs, {} duplicates (counted by the provider)",
        tally.early_calls, tally.lost, tally.duplicates
    )?;
    writeln!(
        out,
        "makespan {} s; the provider's limit alone needs {} s{}",
        seconds(tally.makespan),
        seconds(outcome.limit),
        ratio(tally.makespan, outcome.limit)
    )?;
    let tenants: Vec<String> = tally
        .tenants
        .iter()
        .map(|(tenant, took)| {
            format!(
                "{tenant}'s {} by {} s",
                outcome.workload.count_of(tenant),
                seconds(*took)
            )
        })
        .collect();
    writeln!(out, "fair turns: {}", tenants.join(", "))?;
    writeln!(
        out,
        "\nNext: name a provider in adjourn.toml, then `adjourn send jobs.jsonl` and `adjourn run --until-idle`."
    )?;
    out.flush()?;
    Ok(())
}

/// Seconds with one decimal, in whole numbers.
fn seconds(span: Duration) -> String {
    let tenths = span.as_millis().saturating_add(50).checked_div(100).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// How many times the limit it took; nothing where the limit needs no time.
fn ratio(makespan: Duration, limit: Duration) -> String {
    let hundredths = makespan.as_millis().saturating_mul(100).checked_div(limit.as_millis());
    hundredths.map_or_else(String::new, |ratio| format!(" ({}.{:02}x)", ratio / 100, ratio % 100))
}
