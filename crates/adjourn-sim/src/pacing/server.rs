//! A simulated provider: what it answers to each call, with books of its own.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use adjourn_pace::{Answer, Chance, Counter, Moment, Outcome};

use super::{
    Hint, Limit, Scenario,
    scenario::{Change, Other},
};

/// The most calls of the other client: more would take minutes to play.
const CALLS_OF_THE_OTHER: u64 = 20_000_000;
/// A token is there when no more than rounding lacks.
const ROUNDING: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Server {
    limits: Vec<State>,
    hint: Hint,
    late: Duration,
    counter: bool,
    other: Option<(Duration, Moment)>,
    calls_of_the_other: u64,
    chance: Chance,
    calls_of: HashMap<u32, u32>,
    pub(super) arrived: u64,
}

#[derive(Debug)]
enum State {
    Bucket {
        rate: f64,
        burst: f64,
        tokens: f64,
        at: Moment,
        changes: VecDeque<Change>,
    },
    Window {
        calls: u32,
        per: Duration,
        phase: Duration,
        number: u128,
        used: u32,
    },
    Sliding {
        calls: u32,
        per: Duration,
        passed: VecDeque<Moment>,
    },
    Concurrent {
        most: u32,
        working: u32,
    },
    /// What has no state of its own.
    Rule(Limit),
}

/// Whether a limit lets a call pass.
enum Verdict {
    Pass,
    /// Answered with this status; a hint of its own, if it has one.
    Stop {
        status: u16,
        own: Option<Option<Moment>>,
    },
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Server {
    pub(super) fn new(scenario: &Scenario, chance: Chance) -> Self {
        Self {
            limits: scenario.limits.iter().map(State::of).collect(),
            hint: scenario.hint,
            late: ms(scenario.late_ms),
            counter: scenario.counter,
            other: scenario.other.map(|Other { rate, from_ms }| {
                (
                    Duration::from_secs_f64(1.0 / rate.max(1e-6)),
                    Moment::after(ms(from_ms)),
                )
            }),
            calls_of_the_other: 0,
            chance,
            calls_of: HashMap::new(),
            arrived: 0,
        }
    }

    /// The same limits for somebody who leaves the other client its share.
    pub(super) fn shared(scenario: &Scenario, chance: Chance) -> Self {
        let mut scenario = scenario.clone();
        if let Some(other) = scenario.other.take() {
            for limit in &mut scenario.limits {
                if let Limit::Bucket { rate, changes, .. } = limit {
                    changes.push(Change {
                        at_ms: other.from_ms,
                        rate: *rate - other.rate,
                    });
                }
            }
        }
        Self::new(&scenario, chance)
    }

    /// A call of `job` arrives. A call that passes is worked on until [`Self::finished`].
    pub(super) fn ask(&mut self, job: u32, now: Moment) -> Answer {
        self.others(now);
        self.arrived += 1;
        let of_job = self.calls_of.entry(job).or_insert(0);
        *of_job += 1;
        let of_job = *of_job;
        let stop = self.limits.iter_mut().find_map(|limit| {
            match limit.verdict(job, of_job, self.arrived, &mut self.chance, now) {
                Verdict::Pass => None,
                Verdict::Stop { status, own } => Some((status, own)),
            }
        });
        let Some((status, own)) = stop else {
            self.limits.iter_mut().for_each(|limit| limit.take(now));
            return Answer {
                outcome: Outcome::Passed,
                retry_at: None,
                counter: self.count(now),
            };
        };
        let retry_at = own.unwrap_or_else(|| self.hint_of(now));
        Answer {
            outcome: if status == 429 {
                Outcome::Refused
            } else {
                Outcome::Failed
            },
            retry_at,
            counter: self.count(now),
        }
    }

    /// A call that passed is worked on no longer.
    pub(super) fn finished(&mut self) {
        for limit in &mut self.limits {
            if let State::Concurrent { working, .. } = limit {
                *working = working.saturating_sub(1);
            }
        }
    }

    /// When a call would pass, as far as that depends on time; none where it depends on a call's end.
    pub(super) fn opens_at(&mut self, now: Moment) -> Option<Moment> {
        self.others(now);
        self.limits
            .iter_mut()
            .try_fold(now, |latest, limit| Some(latest.max(limit.opens_at(now)?)))
    }

    fn others(&mut self, now: Moment) {
        let Some((every, mut at)) = self.other else { return };
        while at <= now && !self.is_overrun() {
            self.calls_of_the_other += 1;
            if self.limits.iter_mut().all(|limit| limit.opens_at(at) == Some(at)) {
                self.limits.iter_mut().for_each(|limit| limit.take(at));
            }
            at += every;
        }
        self.other = Some((every, at));
    }

    /// Whether the other client has called so often that the run is broken off.
    pub(super) fn is_overrun(&self) -> bool {
        self.calls_of_the_other >= CALLS_OF_THE_OTHER
    }

    fn hint_of(&mut self, now: Moment) -> Option<Moment> {
        let opens_at = self
            .limits
            .iter_mut()
            .filter_map(|limit| limit.opens_at(now))
            .max()
            .unwrap_or(now);
        match self.hint {
            Hint::None => None,
            Hint::Honest => Some(opens_at),
            Hint::Zero => Some(now),
            Hint::Seconds => {
                let wait = opens_at.since(now);
                let more = u64::from(wait.subsec_nanos() > 0);
                Some(now + Duration::from_secs(wait.as_secs().saturating_add(more)))
            }
            Hint::Late => Some(opens_at + self.late),
        }
    }

    /// What remains, of the limit that has least left.
    fn count(&self, now: Moment) -> Option<Counter> {
        let counters = self.limits.iter().filter_map(|limit| limit.counter(now));
        self.counter
            .then(|| counters.min_by_key(|counter| counter.remaining))
            .flatten()
    }
}

impl State {
    fn of(limit: &Limit) -> Self {
        match limit {
            Limit::Bucket { rate, burst, changes } => Self::Bucket {
                rate: *rate,
                burst: *burst,
                tokens: *burst,
                at: Moment::ORIGIN,
                changes: changes.iter().copied().collect(),
            },
            Limit::Window {
                calls,
                per_ms,
                phase_ms,
            } => Self::Window {
                calls: *calls,
                per: ms(*per_ms),
                phase: ms(*phase_ms),
                number: 0,
                used: 0,
            },
            Limit::Sliding { calls, per_ms } => Self::Sliding {
                calls: *calls,
                per: ms(*per_ms),
                passed: VecDeque::new(),
            },
            Limit::Concurrent { most } => Self::Concurrent {
                most: *most,
                working: 0,
            },
            Limit::Chance { .. }
            | Limit::Outage { .. }
            | Limit::Once { .. }
            | Limit::Job { .. }
            | Limit::First { .. }
            | Limit::Always { .. } => Self::Rule(limit.clone()),
        }
    }

    /// Brings the state up to the moment.
    fn advance(&mut self, now: Moment) {
        match self {
            Self::Bucket {
                rate,
                burst,
                tokens,
                at,
                changes,
            } => {
                let mut fill = |until: Moment, rate: f64| {
                    *tokens = (*tokens + until.since(*at).as_secs_f64() * rate).min(*burst);
                    *at = (*at).max(until);
                };
                while let Some(change) = changes.front().filter(|change| Moment::after(ms(change.at_ms)) <= now) {
                    fill(Moment::after(ms(change.at_ms)), *rate);
                    *rate = change.rate;
                    changes.pop_front();
                }
                fill(now, *rate);
            }
            Self::Window {
                per,
                phase,
                number,
                used,
                ..
            } => {
                let present = window(now, *per, *phase);
                if present != *number {
                    (*number, *used) = (present, 0);
                }
            }
            Self::Sliding { per, passed, .. } => {
                while passed.front().is_some_and(|&first| first + *per <= now) {
                    passed.pop_front();
                }
            }
            Self::Concurrent { .. } | Self::Rule(_) => {}
        }
    }

    fn verdict(&mut self, job: u32, of_job: u32, arrived: u64, chance: &mut Chance, now: Moment) -> Verdict {
        let own = |wait: &Option<u64>| Some(wait.map(|wait| now + ms(wait)));
        let stop = |status: u16, own| Verdict::Stop { status, own };
        match self {
            Self::Bucket { .. } | Self::Window { .. } | Self::Sliding { .. } | Self::Concurrent { .. } => {
                if self.opens_at(now) == Some(now) {
                    Verdict::Pass
                } else {
                    stop(429, None)
                }
            }
            Self::Rule(rule) => match rule {
                Limit::Chance {
                    share,
                    status,
                    retry_after_ms,
                } if chance.share() < *share => stop(*status, own(retry_after_ms)),
                Limit::Outage {
                    from_ms,
                    until_ms,
                    status,
                } if (Moment::after(ms(*from_ms))..Moment::after(ms(*until_ms))).contains(&now) => {
                    stop(*status, Some(None))
                }
                Limit::Once { call, retry_after_ms } if *call == arrived => stop(429, own(retry_after_ms)),
                Limit::Job { job: always } if *always == job => stop(429, Some(None)),
                Limit::First { calls, retry_after_ms } if of_job <= *calls => stop(429, own(retry_after_ms)),
                Limit::Always { retry_after_ms } => stop(429, own(retry_after_ms)),
                Limit::Bucket { .. }
                | Limit::Window { .. }
                | Limit::Sliding { .. }
                | Limit::Concurrent { .. }
                | Limit::Chance { .. }
                | Limit::Outage { .. }
                | Limit::Once { .. }
                | Limit::Job { .. }
                | Limit::First { .. } => Verdict::Pass,
            },
        }
    }

    /// A call passed.
    fn take(&mut self, now: Moment) {
        self.advance(now);
        match self {
            Self::Bucket { tokens, .. } => *tokens -= 1.0,
            Self::Window { used, .. } => *used += 1,
            Self::Sliding { passed, .. } => passed.push_back(now),
            Self::Concurrent { working, .. } => *working += 1,
            Self::Rule(_) => {}
        }
    }

    fn opens_at(&mut self, now: Moment) -> Option<Moment> {
        self.advance(now);
        match self {
            Self::Bucket {
                rate, tokens, changes, ..
            } => {
                if *tokens >= 1.0 - ROUNDING {
                    return Some(now);
                }
                let lacking = (1.0 - *tokens) / rate.max(1e-9);
                let full = now + Duration::from_secs_f64(lacking.min(1e9)).max(Duration::from_nanos(1));
                let change = changes.front().map(|change| Moment::after(ms(change.at_ms)));
                Some(change.map_or(full, |change| full.min(change)))
            }
            Self::Window {
                calls,
                per,
                phase,
                number,
                used,
            } => Some(if *used < *calls {
                now
            } else {
                start_of(*number + 1, *per, *phase)
            }),
            Self::Sliding { calls, per, passed } => {
                let full = passed.len() >= usize::try_from(*calls).unwrap_or(usize::MAX);
                Some(passed.front().filter(|_| full).map_or(now, |&first| first + *per))
            }
            Self::Concurrent { most, working } => (*working < *most).then_some(now),
            Self::Rule(Limit::Outage { from_ms, until_ms, .. }) => {
                let until = Moment::after(ms(*until_ms));
                let out = (Moment::after(ms(*from_ms))..until).contains(&now);
                Some(if out { until } else { now })
            }
            Self::Rule(_) => Some(now),
        }
    }

    fn counter(&self, now: Moment) -> Option<Counter> {
        match self {
            Self::Window {
                calls,
                per,
                phase,
                number,
                used,
            } => Some(Counter {
                limit: Some(u64::from(*calls)),
                remaining: u64::from(calls.saturating_sub(*used)),
                resets_at: start_of(*number + 1, *per, *phase),
            }),
            Self::Sliding { calls, per, passed } => Some(Counter {
                limit: Some(u64::from(*calls)),
                remaining: u64::from(*calls).saturating_sub(u64::try_from(passed.len()).unwrap_or(u64::MAX)),
                resets_at: passed.front().map_or(now, |&first| first + *per),
            }),
            Self::Bucket { .. } | Self::Concurrent { .. } | Self::Rule(_) => None,
        }
    }
}

fn window(now: Moment, per: Duration, phase: Duration) -> u128 {
    (now + phase).since(Moment::ORIGIN).as_nanos() / per.as_nanos().max(1)
}

fn start_of(number: u128, per: Duration, phase: Duration) -> Moment {
    let nanos = u64::try_from(number.saturating_mul(per.as_nanos())).unwrap_or(u64::MAX);
    Moment::from_nanos(nanos) - phase
}
