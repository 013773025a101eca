//! One scenario under one strategy, from its first call to its end, in virtual time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap, VecDeque},
    time::Duration,
};

use adjourn_pace::{Answer, Chance, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn};

use super::{
    Scenario,
    books::{Books, BrokenOff, Run, Watch},
    server::{Server, ms},
};

/// A strategy that finds no end is broken off after so many calls for each job,
const CALLS_PER_JOB: u64 = 200;
/// so many in all beside ten for each job,
const CALLS: u64 = 20_000_000;
/// or after so long, well before time stands still.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
/// More happens than calls: a turn may be asked for again and again while another process's call is worked on.
const EVENTS: u64 = 20_000_000;

/// Whom the calls obey.
pub(super) enum Pacers<'a> {
    /// A strategy for each process, made from a seed.
    Each(&'a dyn Fn(u64) -> Box<dyn Strategy>),
    /// Who knows the limits, and calls in the very moment in which a call passes.
    Ideal,
}

/// Plays a scenario to its end.
pub(super) fn run<'a>(scenario: &'a Scenario, pacers: &Pacers<'_>, seed: u64, watch: Watch<'a>) -> Run {
    let mut stage = Stage::new(scenario, pacers, seed, watch);
    stage.play();
    stage.books.close()
}

struct Stage<'a> {
    scenario: &'a Scenario,
    server: Server,
    processes: Vec<Process>,
    events: BinaryHeap<Reverse<Event>>,
    sequence: u64,
    now: Moment,
    called_for: u32,
    books: Books<'a>,
    ideal: bool,
}

struct Process {
    strategy: Option<Box<dyn Strategy>>,
    fresh: VecDeque<u32>,
    retries: BTreeMap<(Moment, u64), (u32, Tries)>,
    in_flight: u32,
    wakes_at: Option<Moment>,
}

#[derive(Clone, Copy)]
struct Event {
    at: Moment,
    sequence: u64,
    process: usize,
    what: What,
}

/// Events come in the order of their moments, and those of one moment in the order in which they were planned.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

#[derive(Clone, Copy)]
enum What {
    Wake,
    Arrive(Call),
    Reply(Call, Answer),
}

#[derive(Clone, Copy)]
struct Call {
    job: u32,
    ticket: Ticket,
}

impl<'a> Stage<'a> {
    fn new(scenario: &'a Scenario, pacers: &Pacers<'_>, seed: u64, watch: Watch<'a>) -> Self {
        let mut chance = Chance::of(seed);
        let of_the_server = Chance::of(chance.bits());
        let server = match pacers {
            Pacers::Each(_) => Server::new(scenario, of_the_server),
            Pacers::Ideal => Server::shared(scenario, of_the_server),
        };
        let count = scenario.processes.max(1);
        let mut processes: Vec<Process> = (0..count)
            .map(|_| Process {
                strategy: match pacers {
                    Pacers::Each(make) => Some(make(chance.bits())),
                    Pacers::Ideal => None,
                },
                fresh: VecDeque::new(),
                retries: BTreeMap::new(),
                in_flight: 0,
                wakes_at: None,
            })
            .collect();
        let first = if scenario.children.is_some() {
            1.min(scenario.jobs)
        } else {
            scenario.jobs
        };
        let mut books = Books::new(scenario, watch);
        books.wanted(first, Moment::ORIGIN);
        let mut deal = (0..processes.len()).cycle();
        for job in 0..first {
            if let Some(process) = deal.next().and_then(|place| processes.get_mut(place)) {
                process.fresh.push_back(job);
            }
        }
        Self {
            scenario,
            server,
            processes,
            events: BinaryHeap::new(),
            sequence: 0,
            now: Moment::ORIGIN,
            called_for: first,
            books,
            ideal: matches!(pacers, Pacers::Ideal),
        }
    }

    fn play(&mut self) {
        for process in 0..self.processes.len() {
            self.start(process);
        }
        let jobs = u64::from(self.scenario.jobs);
        let calls = jobs.saturating_mul(CALLS_PER_JOB).min(jobs.saturating_mul(10) + CALLS);
        let most = calls.max(10_000);
        let horizon = Moment::after(CENTURY);
        while let Some(Reverse(event)) = self.events.pop() {
            self.now = event.at;
            if self.now > horizon || self.sequence > 8 * most + EVENTS || self.server.is_overrun() {
                return self.books.break_off(BrokenOff::Time);
            }
            match event.what {
                What::Wake => {
                    if let Some(process) = self.processes.get_mut(event.process) {
                        process.wakes_at = process.wakes_at.filter(|&at| at > event.at);
                    }
                }
                What::Arrive(call) => {
                    let answer = self.arrive(call);
                    self.reply(event.process, call, &answer, ms(self.scenario.latency_ms) / 2);
                    continue;
                }
                What::Reply(call, answer) => self.answered(event.process, call, &answer),
            }
            if self.server.arrived > most {
                return self.books.break_off(BrokenOff::Calls);
            }
            self.start(event.process);
        }
    }

    fn push(&mut self, at: Moment, process: usize, what: What) {
        self.sequence += 1;
        self.events.push(Reverse(Event {
            at,
            sequence: self.sequence,
            process,
            what,
        }));
    }

    fn arrive(&mut self, call: Call) -> Answer {
        let answer = self.server.ask(call.job, self.now);
        self.books.arrived(call.job, self.now, &answer);
        answer
    }

    fn reply(&mut self, process: usize, call: Call, answer: &Answer, way: Duration) {
        let service = if answer.outcome == Outcome::Passed {
            ms(self.scenario.service_ms)
        } else {
            Duration::ZERO
        };
        self.push(self.now + service + way, process, What::Reply(call, *answer));
    }

    fn answered(&mut self, place: usize, call: Call, answer: &Answer) {
        let now = self.now;
        if answer.outcome == Outcome::Passed {
            self.server.finished();
        }
        self.books.answered(call.job, answer);
        let Some(process) = self.processes.get_mut(place) else {
            return;
        };
        process.in_flight -= 1;
        let next = match &mut process.strategy {
            Some(strategy) => strategy.answered(call.ticket, answer, now),
            None if answer.outcome == Outcome::Passed => Next::Settled,
            None => Next::Again { at: now, spent: false },
        };
        match next {
            Next::Settled => {
                self.books.done(place, call.job, now);
                self.call_for_children(place);
            }
            Next::Again { at, spent } => {
                self.sequence += 1;
                // Whatever a strategy says, no job is called before the moment that its own refusal named.
                let before = call.ticket.tries;
                let tries = Tries {
                    spent: before.spent.saturating_add(u32::from(spent)),
                    free: before.free.saturating_add(u32::from(!spent)),
                };
                let due = at.max(answer.retry_at.unwrap_or(now)).max(now);
                process.retries.insert((due, self.sequence), (call.job, tries));
            }
            Next::GiveUp => self.books.given_up(call.job, now),
        }
    }

    fn call_for_children(&mut self, place: usize) {
        let Some(children) = self.scenario.children else { return };
        let until = self.called_for.saturating_add(children).min(self.scenario.jobs);
        let fresh = self.called_for..until;
        self.called_for = until;
        if let Some(process) = self.processes.get_mut(place) {
            process.fresh.extend(fresh.clone());
        }
        self.books.wanted(until - fresh.start, self.now);
        fresh.for_each(|job| self.books.ready(job, self.now));
    }

    /// Starts what may be started in this moment, retries that are due before newer work.
    fn start(&mut self, place: usize) {
        let now = self.now;
        let half = ms(self.scenario.latency_ms) / 2;
        loop {
            let Some(process) = self.processes.get_mut(place) else {
                return;
            };
            if process.in_flight >= self.scenario.concurrency {
                return;
            }
            let retry = process.retries.first_key_value().map(|(&key, &job)| (key, job));
            let due = retry.filter(|((at, _), _)| *at <= now);
            if due.is_none() && process.fresh.is_empty() {
                if let Some(((at, _), _)) = retry {
                    self.wake(place, at);
                }
                return;
            }
            let turn = match &mut process.strategy {
                Some(strategy) => strategy.turn(now),
                None => match self.server.opens_at(now + half) {
                    Some(at) if at <= now + half => Turn::Now,
                    Some(at) => Turn::At(at - half),
                    None => Turn::AfterAnswer,
                },
            };
            match turn {
                Turn::Now => {}
                Turn::At(at) => {
                    let at = at.max(now + Duration::from_nanos(1));
                    let at = if due.is_some() || retry.is_none() || !process.fresh.is_empty() {
                        at
                    } else {
                        at.max(retry.map_or(at, |((due, _), _)| due))
                    };
                    return self.wake(place, at);
                }
                Turn::Defer => {
                    let waiting = process.retries.values().map(|&(job, _)| job);
                    let waiting: Vec<u32> = waiting.chain(process.fresh.iter().copied()).collect();
                    process.retries.clear();
                    process.fresh.clear();
                    waiting.iter().for_each(|&job| self.books.given_up(job, now));
                    return;
                }
                Turn::AfterAnswer if process.in_flight > 0 => return,
                // With nothing in flight no answer would come: the strategy is asked again.
                Turn::AfterAnswer => return self.wake(place, now + Duration::from_millis(1)),
            }
            let (job, tries) = match due {
                Some((key, job)) => {
                    process.retries.remove(&key);
                    job
                }
                None => match process.fresh.pop_front() {
                    Some(job) => (job, Tries::default()),
                    None => return,
                },
            };
            process.in_flight += 1;
            let ticket = match &mut process.strategy {
                Some(strategy) => strategy.started(tries, now),
                // Who knows the limits learns nothing from answers.
                None => Ticket {
                    sent_at: now,
                    number: 0,
                    tries,
                },
            };
            let call = Call { job, ticket };
            self.books.started(job, now);
            if self.ideal {
                // It knows what the provider will say, so the call is decided as it leaves.
                self.now = now + half;
                let answer = self.arrive(call);
                self.reply(place, call, &answer, half);
                self.now = now;
            } else {
                self.push(now + half, place, What::Arrive(call));
            }
        }
    }

    fn wake(&mut self, place: usize, at: Moment) {
        let Some(process) = self.processes.get_mut(place) else {
            return;
        };
        if process.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            process.wakes_at = Some(at);
            self.push(at, place, What::Wake);
        }
    }
}
