//! Evidence: a refusal is a measurement of the bucket. adjourn's own.

use std::{collections::VecDeque, time::Duration};

use crate::{Answer, Chance, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, fixed::interval};

/// Finds a limit's pace from what passes and what is refused.
#[derive(Clone, Debug)]
pub struct Evidence {
    ladder: Ladder,
    mode: Mode,
    started: u64,
    in_flight: u32,
    passed: u64,
    /// Answers to calls up to this one say nothing about the present pace.
    changed_at: u64,
    anchors: VecDeque<Anchor>,
    recent: Recent,
    since: u32,
    last_start: Option<Moment>,
    pace: f64,
    cap: f64,
    lower: f64,
    closed_at: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Anchor {
    at: Moment,
    passed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Open {
        window: f64,
    },
    Closed {
        wait: Duration,
        next_at: Moment,
        probe: Option<u64>,
        probes: u32,
    },
    Second {
        guess: f64,
    },
    Grow,
    Hold,
}

/// The last answers, refused or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Recent {
    refused: u32,
    known: u32,
}

impl Recent {
    const KEPT: u32 = (1 << 30) - 1;

    fn push(&mut self, refused: bool) {
        self.refused = ((self.refused << 1) | u32::from(refused)) & Self::KEPT;
        self.known = ((self.known << 1) | 1) & Self::KEPT;
    }

    fn refusals(self) -> u32 {
        self.refused.count_ones()
    }

    fn share(self) -> f64 {
        f64::from(self.refusals()) / f64::from(self.known.count_ones().max(1))
    }

    fn last(self, count: u32) -> bool {
        let mask = (1 << count) - 1;
        self.refused & mask == mask
    }
}

const OVER: f64 = 1.02;
const KEEP: usize = 32;
const NOISE: f64 = 0.34;
const PROBE: Duration = Duration::from_millis(100);

fn count(calls: u64) -> f64 {
    f64::from(u32::try_from(calls).unwrap_or(u32::MAX))
}

impl Evidence {
    /// Repeats what is refused by `ladder` where nothing has passed yet.
    #[must_use]
    pub fn new(ladder: Ladder, _chance: Chance) -> Self {
        Self {
            ladder,
            mode: Mode::Open { window: 1.0 },
            started: 0,
            in_flight: 0,
            passed: 0,
            changed_at: 0,
            anchors: VecDeque::new(),
            recent: Recent::default(),
            since: 0,
            last_start: None,
            pace: f64::INFINITY,
            cap: f64::INFINITY,
            lower: 0.0,
            closed_at: Moment::ORIGIN,
        }
    }

    fn close(&mut self, now: Moment) {
        let wait = if self.passed == 0 { self.ladder.rung(1) } else { PROBE };
        self.mode = Mode::Closed {
            wait,
            next_at: now + wait,
            probe: None,
            probes: 1,
        };
        self.closed_at = now;
        self.changed_at = self.started;
        self.since = 0;
        self.recent = Recent::default();
        self.cap = f64::INFINITY;
        self.lower = 0.0;
    }

    fn update(&mut self, now: Moment) {
        let (mut upper, mut lower) = (f64::INFINITY, 0.0_f64);
        for anchor in &self.anchors {
            let span = now.since(anchor.at).as_secs_f64();
            let passed = count(self.passed - anchor.passed);
            if span > 1e-9 {
                upper = upper.min((passed + 1.0) / span);
                if passed >= 8.0 {
                    lower = lower.max((passed - 1.0) / span);
                }
            }
        }
        let due = 1.0 / (OVER - 1.0);
        let late = (f64::from(self.since) - due).max(0.0) / (due / 5.0);
        let factor = 1.0 + ((OVER - 1.0) * 1.5_f64.powf(late)).min(1.0);
        self.lower = lower;
        self.pace = upper.min(self.cap).max(lower) * factor;
    }

    fn success(&mut self, ticket: Ticket, now: Moment) {
        self.passed += 1;
        self.since += 1;
        self.recent.push(false);
        match self.mode {
            Mode::Open { window } => self.mode = Mode::Open { window: window + 1.0 },
            Mode::Closed { wait, probe, .. } => {
                if probe != Some(ticket.number) {
                    return;
                }
                self.since = 1;
                self.recent = Recent::default();
                self.anchors.clear();
                self.anchors.push_back(Anchor {
                    at: self.closed_at,
                    passed: self.passed - 1,
                });
                let span = now.since(self.closed_at).as_secs_f64().max(1e-3);
                if wait == PROBE {
                    self.mode = Mode::Grow;
                    self.pace = 2.0 / span;
                } else {
                    self.mode = Mode::Second { guess: 1.0 / span };
                    self.pace = 1.0 / PROBE.as_secs_f64();
                    self.changed_at = self.started;
                }
            }
            Mode::Second { .. } => {
                if ticket.number > self.changed_at
                    && self
                        .anchors
                        .front()
                        .is_some_and(|first| self.passed - first.passed >= 3)
                {
                    self.mode = Mode::Grow;
                }
            }
            Mode::Grow => {
                if ticket.number > self.changed_at {
                    self.pace *= 1.25;
                }
            }
            Mode::Hold => self.update(now),
        }
    }

    fn refusal(&mut self, ticket: Ticket, now: Moment) {
        if let Mode::Open { .. } = self.mode {
            self.recent.push(true);
            let shut = self.recent.refusals() >= 2 && self.recent.share() > NOISE
                || self.recent.last(3) && self.recent.share() > 0.3;
            if shut || self.passed == 0 {
                self.close(now);
            }
            return;
        }
        if ticket.number <= self.changed_at {
            return;
        }
        self.recent.push(true);
        match self.mode {
            Mode::Open { .. } => {}
            Mode::Closed {
                wait, probe, probes, ..
            } => {
                if probe == Some(ticket.number) {
                    let wait = if self.passed == 0 {
                        self.ladder.rung(probes + 1)
                    } else {
                        wait.saturating_mul(2)
                    };
                    self.mode = Mode::Closed {
                        wait,
                        next_at: now + wait,
                        probe: None,
                        probes: probes + 1,
                    };
                }
            }
            Mode::Second { guess } => {
                self.mode = Mode::Hold;
                self.cap = 2.0 * guess;
                self.changed_at = self.started;
                self.anchors.push_back(Anchor {
                    at: now,
                    passed: self.passed,
                });
                self.recent = Recent::default();
                self.since = 0;
                self.update(now);
                self.cap = f64::INFINITY;
            }
            Mode::Grow => {
                self.mode = Mode::Hold;
                self.cap = self.pace / 1.25;
                self.pace = self.cap / 1.25;
                self.anchors.clear();
                self.anchors.push_back(Anchor {
                    at: now,
                    passed: self.passed,
                });
                self.since = 0;
                self.changed_at = self.started;
                self.recent = Recent::default();
            }
            Mode::Hold => {
                let unexplained = self.lower > 0.0
                    && self.anchors.iter().any(|anchor| {
                        self.lower * now.since(anchor.at).as_secs_f64() - count(self.passed - anchor.passed) >= 2.0
                    });
                if unexplained && self.recent.share() <= NOISE {
                    return;
                }
                if self.recent.last(4) {
                    self.close(now);
                    return;
                }
                if unexplained {
                    while self.anchors.len() > 2 {
                        self.anchors.pop_front();
                    }
                }
                self.since = 0;
                self.cap = f64::INFINITY;
                self.anchors.push_back(Anchor {
                    at: now,
                    passed: self.passed,
                });
                while self.anchors.len() > KEEP {
                    self.anchors.pop_front();
                }
                self.changed_at = self.started;
                self.update(now);
            }
        }
    }
}

impl Strategy for Evidence {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        match self.mode {
            Mode::Open { window } => {
                if f64::from(self.in_flight) + 1.0 <= window {
                    Turn::Now
                } else {
                    Turn::AfterAnswer
                }
            }
            Mode::Closed { probe: Some(_), .. } => Turn::AfterAnswer,
            Mode::Closed { probes, .. } if self.passed == 0 && probes >= self.ladder.attempts() => Turn::Defer,
            Mode::Closed { next_at, .. } if next_at > now => Turn::At(next_at),
            Mode::Closed { .. } => Turn::Now,
            Mode::Second { .. } | Mode::Grow | Mode::Hold => {
                match self.last_start.map(|last| last + interval(self.pace)) {
                    Some(at) if at > now => Turn::At(at),
                    _ => Turn::Now,
                }
            }
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.started += 1;
        self.in_flight += 1;
        self.last_start = Some(now);
        if let Mode::Closed { probe, .. } = &mut self.mode {
            *probe = Some(self.started);
        }
        Ticket {
            sent_at: now,
            number: self.started,
            tries,
        }
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Mode::Closed { probe, .. } = &mut self.mode
            && *probe == Some(ticket.number)
        {
            *probe = None;
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        self.in_flight = self.in_flight.saturating_sub(1);
        match answer.outcome {
            Outcome::Passed => {
                self.success(ticket, now);
                Next::Settled
            }
            Outcome::Refused => {
                self.refusal(ticket, now);
                Next::Again { at: now, spent: false }
            }
            Outcome::Failed => {
                if let Mode::Closed { probe, .. } = &mut self.mode
                    && *probe == Some(ticket.number)
                {
                    *probe = None;
                }
                crate::fixed::on_its_own(&self.ladder, ticket, answer, now)
            }
        }
    }

    fn rate(&self) -> Option<f64> {
        match self.mode {
            Mode::Open { .. } => None,
            Mode::Closed { .. } => Some(0.0),
            Mode::Second { .. } | Mode::Grow | Mode::Hold => Some(self.pace),
        }
    }
}
