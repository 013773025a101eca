//! What a run came to, counted on the provider's side and by a census of the jobs.

use std::time::Duration;

use adjourn_pace::{Answer, Moment, Outcome};

use super::{Scenario, server::ms};

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Jobs that were done.
    pub done: u32,
    /// Jobs that were given up.
    pub failed: u32,
    /// Jobs that were neither, when all had come to rest.
    pub lost: u32,
    /// Jobs that were done more than once.
    pub duplicates: u32,
    /// From the start to the last job's end.
    pub makespan: Duration,
    /// From the start until the last job that was done.
    pub last_done: Duration,
    /// Calls that reached the provider.
    pub calls: u64,
    /// Calls that a limit refused.
    pub refusals: u64,
    /// Calls of a job before the moment that its last answer named.
    pub early: u64,
    /// The most calls that were being worked on at a time.
    pub max_in_flight: u32,
    /// From when a job could be called until it was done: the middle of all.
    pub p50: Duration,
    /// The same: 99 of 100 took no longer.
    pub p99: Duration,
    /// Jain's index over the processes' jobs a second: 1 where all were served alike, 1/n where one had everything.
    pub fairness: f64,
    /// Why it was broken off, where it found no end.
    pub broken_off: Option<BrokenOff>,
    /// Every call that reached the provider, in its order; empty where somebody watched instead.
    pub trace: Vec<Traced>,
}

/// Why a run was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenOff {
    /// Very many calls: what is left is called again and again, and never passes.
    Calls,
    /// A century, or too much happening in it to be played: what is left might still pass.
    Time,
}

/// What can be watched while a scenario plays, in the order of the moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// So many jobs can be called from now on.
    Wanted {
        /// When.
        at: Moment,
        /// How many.
        jobs: u32,
    },
    /// A call reached the provider.
    Called(Traced),
    /// A job came to its end.
    Ended {
        /// When.
        at: Moment,
        /// Whether it was done, and not given up.
        done: bool,
    },
}

/// Who watches, if anybody does.
pub(super) type Watch<'w> = Option<&'w mut dyn FnMut(Seen)>;

/// One call, as the provider saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When it arrived.
    pub at: Moment,
    /// The job.
    pub job: u32,
    /// What it was answered.
    pub outcome: Outcome,
    /// How many calls were in flight then, this one included.
    pub in_flight: u32,
}

pub(super) struct Books<'w> {
    run: Run,
    watch: Watch<'w>,
    ready_at: Vec<Moment>,
    told: Vec<Option<Moment>>,
    ends: Vec<u8>,
    latencies: Vec<Duration>,
    of_process: Vec<(u32, Moment)>,
    in_flight: u32,
    ended_at: Moment,
    last_done: Moment,
    half: Duration,
}

impl<'w> Books<'w> {
    pub(super) fn new(scenario: &Scenario, watch: Watch<'w>) -> Self {
        let jobs = usize::try_from(scenario.jobs).unwrap_or(usize::MAX);
        let processes = usize::try_from(scenario.processes.max(1)).unwrap_or(1);
        Self {
            run: Run::default(),
            watch,
            ready_at: vec![Moment::ORIGIN; jobs],
            told: vec![None; jobs],
            ends: vec![0; jobs],
            latencies: Vec::with_capacity(jobs),
            of_process: vec![(0, Moment::ORIGIN); processes],
            in_flight: 0,
            ended_at: Moment::ORIGIN,
            last_done: Moment::ORIGIN,
            half: ms(scenario.latency_ms) / 2,
        }
    }

    /// So many more jobs can be called.
    pub(super) fn wanted(&mut self, jobs: u32, now: Moment) {
        self.see(Seen::Wanted { at: now, jobs });
    }

    fn see(&mut self, seen: Seen) {
        if let Some(watch) = &mut self.watch {
            watch(seen);
        }
    }

    /// It is broken off here.
    pub(super) fn break_off(&mut self, why: BrokenOff) {
        self.run.broken_off = Some(why);
    }

    pub(super) fn ready(&mut self, job: u32, now: Moment) {
        if let Some(at) = self.ready_at.get_mut(place(job)) {
            *at = now;
        }
    }

    pub(super) fn started(&mut self, job: u32, now: Moment) {
        self.in_flight += 1;
        self.run.max_in_flight = self.run.max_in_flight.max(self.in_flight);
        let told = self.told.get(place(job)).copied().flatten();
        // A call is early by when it arrives.
        self.run.early += u64::from(told.is_some_and(|told| now + self.half < told));
    }

    pub(super) fn arrived(&mut self, job: u32, now: Moment, answer: &Answer) {
        self.run.calls += 1;
        self.run.refusals += u64::from(answer.outcome == Outcome::Refused);
        self.see(Seen::Called(Traced {
            at: now,
            job,
            outcome: answer.outcome,
            in_flight: self.in_flight,
        }));
    }

    pub(super) fn answered(&mut self, job: u32, answer: &Answer) {
        self.in_flight -= 1;
        if let Some(told) = self.told.get_mut(place(job)) {
            *told = answer.retry_at;
        }
    }

    pub(super) fn done(&mut self, process: usize, job: u32, now: Moment) {
        if let Some(end) = self.ends.get_mut(place(job)) {
            self.run.duplicates += u32::from(*end > 0);
            *end = 1;
        }
        self.run.done += 1;
        self.ended_at = self.ended_at.max(now);
        self.last_done = self.last_done.max(now);
        if let Some((count, at)) = self.of_process.get_mut(process) {
            *count += 1;
            *at = now;
        }
        let ready_at = self.ready_at.get(place(job)).copied().unwrap_or_default();
        self.latencies.push(now.since(ready_at));
        self.see(Seen::Ended { at: now, done: true });
    }

    pub(super) fn given_up(&mut self, job: u32, now: Moment) {
        if let Some(end) = self.ends.get_mut(place(job)) {
            *end = 2;
        }
        self.run.failed += 1;
        self.ended_at = self.ended_at.max(now);
        self.see(Seen::Ended { at: now, done: false });
    }

    pub(super) fn close(mut self) -> Run {
        self.latencies.sort_unstable();
        let at = |hundredth: usize| {
            let last = self.latencies.len().saturating_sub(1);
            self.latencies
                .get(last.saturating_mul(hundredth) / 100)
                .copied()
                .unwrap_or_default()
        };
        let (p50, p99) = (at(50), at(99));
        let lost = self.ends.iter().filter(|&&end| end == 0).count();
        Run {
            lost: u32::try_from(lost).unwrap_or(u32::MAX),
            makespan: self.ended_at.since(Moment::ORIGIN),
            last_done: self.last_done.since(Moment::ORIGIN),
            p50,
            p99,
            fairness: jain(&self.of_process),
            ..self.run
        }
    }
}

/// R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination, DEC TR-301, 1984.
fn jain(of_process: &[(u32, Moment)]) -> f64 {
    let rates: Vec<f64> = of_process
        .iter()
        .map(|(count, at)| f64::from(*count) / at.since(Moment::ORIGIN).as_secs_f64().max(1e-3))
        .collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let count: f64 = rates.iter().map(|_| 1.0).sum();
    if squares > 0.0 {
        sum * sum / (count * squares)
    } else {
        1.0
    }
}

fn place(job: u32) -> usize {
    usize::try_from(job).unwrap_or(usize::MAX)
}

impl Run {
    /// Refused calls of all.
    #[must_use]
    pub fn refused_share(&self) -> f64 {
        let count = |calls: u64| f64::from(u32::try_from(calls).unwrap_or(u32::MAX));
        count(self.refusals) / count(self.calls.max(1))
    }
}
