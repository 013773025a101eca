//! Evidence: a refusal is a measurement of the limit. adjourn's own strategy.

mod bracket;
mod gaps;
mod recent;

use std::time::Duration;

use crate::{Answer, Counter, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, fixed::interval};

use bracket::{Bracket, count};
use gaps::Gaps;
use recent::Recent;

/// The first question after everything was refused, and the least wait before a refused call is repeated.
const PROBE: Duration = Duration::from_millis(100);
/// Questions come twice as late each time until they are this far apart, and then by [`SLOWER`].
const FAR: Duration = Duration::from_secs(4);
const SLOWER: f64 = 1.3;
/// A greater share of refused calls is a limit, whatever else is known.
const NOISE: f64 = 0.34;
/// Successes between two refusals that make a measurement without closing.
const ENOUGH: f64 = 3.0;
/// Calls that pass at once after a closure, and it is taken to be over.
const REOPENED: u64 = 5;
/// What a success adds to a pace that nothing bounds.
const GROWTH: f64 = 1.25;
/// Refusals that fit no bucket before they are taken for noise.
const STRAYS: u32 = 3;
/// Successes after which one more call at a time is tried, where calls at a time are what is limited.
const ROOM: u32 = 50;

/// Finds a limit's pace from what passes and what is refused.
#[derive(Clone, Debug)]
pub struct Evidence {
    ladder: Ladder,
    mode: Mode,
    started: u64,
    passed: u64,
    in_flight: u32,
    last_start: Moment,
    last_passed: Moment,
    /// Calls a second.
    pace: f64,
    next_at: Moment,
    /// Refusals of calls up to this one are older than the last slowing down.
    slowed_at: u64,
    /// Successes of calls up to this one are older than the last speeding up.
    raised_at: u64,
    recent: Recent,
    bracket: Bracket,
    /// What the gaps say, as long as they fit a bucket that saves nothing up.
    gaps: Option<Gaps>,
    /// Whether the next call tries a shorter gap, and the one in flight that does: one at a time.
    tests_gap: bool,
    tested_by: Option<u64>,
    crowd: Crowd,
    /// The last answer was a refusal: before more is sent, another answer is waited for.
    wary: bool,
    noisy: bool,
    strays: u32,
    counter: Option<Counter>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// No limit is known: so many in flight as have passed so far.
    Open { window: f64 },
    /// Nothing passes: one call at a time asks whether that has changed.
    Closed(Closed),
    /// A question was answered after a while: is it one token, or is all open again?
    Second {
        /// How long nothing passed, in seconds.
        span: f64,
    },
    /// It passes: faster with each success.
    Grow {
        /// Calls that had passed when it began, and at the last raise but one.
        passed: u64,
        raised: [u64; 2],
    },
    /// At the pace that the evidence says.
    Hold,
}

/// A closure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Closed {
    since: Moment,
    /// The longest gap since the last call that passed after which a question was refused, in seconds.
    refused_after: f64,
    wait: Duration,
    next_at: Moment,
    asked: Option<u64>,
    questions: u32,
}

/// How many calls at a time pass, where that is what is limited.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    most: Option<u32>,
    since: u32,
    /// The shortest time that a call took which passed, and one that was refused.
    passed_in: Duration,
    refused_in: Duration,
}

impl Crowd {
    /// Where refusals come at once while calls that pass take long, it is the calls at a time that are too many.
    fn suspected(&self) -> bool {
        self.passed_in < Duration::MAX && self.refused_in < self.passed_in / 2
    }

    fn passes(&mut self) {
        self.since += 1;
        if self.since >= ROOM {
            self.since = 0;
            self.most = self.most.map(|most| most.saturating_add(1));
        }
    }

    fn refuses(&mut self, others: u32) {
        self.since = 0;
        self.most = Some(self.most.map_or(others, |most| most.min(others)));
    }
}

impl Evidence {
    /// Nothing is known yet: one call at first, then more with each success. Until something has passed, refused calls are repeated by
    /// `ladder`; whatever fails is repeated as often as the ladder has calls.
    #[must_use]
    pub fn new(ladder: Ladder) -> Self {
        Self {
            ladder,
            mode: Mode::Open { window: 1.0 },
            started: 0,
            passed: 0,
            in_flight: 0,
            last_start: Moment::ORIGIN,
            last_passed: Moment::ORIGIN,
            pace: f64::INFINITY,
            next_at: Moment::ORIGIN,
            slowed_at: 0,
            raised_at: 0,
            recent: Recent::default(),
            bracket: Bracket::unknown(),
            gaps: Some(Gaps::between(0.0, f64::INFINITY)),
            tests_gap: false,
            tested_by: None,
            crowd: Crowd {
                most: None,
                since: 0,
                passed_in: Duration::MAX,
                refused_in: Duration::MAX,
            },
            wary: false,
            noisy: false,
            strays: 0,
            counter: None,
        }
    }

    fn gap(&self, ticket: Ticket) -> f64 {
        ticket.sent_at.since(self.last_passed).as_secs_f64()
    }

    /// From now on at this pace; the next start is as far from the last one as that says.
    fn set_pace(&mut self, pace: f64) {
        self.pace = pace;
        self.next_at = self.last_start + interval(pace);
    }

    fn close(&mut self, now: Moment) {
        let wait = if self.passed == 0 { self.ladder.rung(1) } else { PROBE };
        self.mode = Mode::Closed(Closed {
            since: now,
            refused_after: 0.0,
            wait,
            next_at: now + wait,
            asked: None,
            questions: 1,
        });
        self.slowed_at = self.started;
        self.recent = Recent::default();
        self.strays = 0;
    }

    fn hold(&mut self) {
        self.mode = Mode::Hold;
        self.recent = Recent::default();
        self.slowed_at = self.started;
        self.strays = 0;
    }

    fn success(&mut self, ticket: Ticket, now: Moment) {
        self.passed += 1;
        self.recent.push(false);
        self.crowd.passed_in = self.crowd.passed_in.min(now.since(ticket.sent_at));
        self.crowd.passes();
        let gap = self.gap(ticket);
        self.last_passed = self.last_passed.max(ticket.sent_at);
        let news = ticket.number > self.raised_at.max(self.slowed_at);
        match self.mode {
            Mode::Open { window } => {
                if self.passed > 1 {
                    self.fits(|gaps| gaps.pass(gap));
                }
                self.mode = Mode::Open { window: window + 1.0 };
            }
            Mode::Closed(closed) if closed.asked == Some(ticket.number) => self.reopen(closed, ticket, gap, now),
            Mode::Closed(_) => {}
            Mode::Second { .. } => {
                self.fits(|gaps| gaps.pass(gap));
                self.next_at = now + PROBE;
                if self.bracket.passed_since_first(self.passed) >= REOPENED {
                    self.mode = Mode::Grow {
                        passed: self.passed,
                        raised: [self.passed; 2],
                    };
                    self.raised_at = self.started;
                    self.set_pace(1.0 / PROBE.as_secs_f64());
                }
            }
            Mode::Grow { passed, raised } => {
                self.fits(|gaps| gaps.pass(gap));
                if news {
                    self.mode = Mode::Grow {
                        passed,
                        raised: [raised[1], self.passed],
                    };
                    self.raised_at = self.started;
                    self.set_pace(self.pace * GROWTH);
                }
            }
            Mode::Hold => {
                self.fits(|gaps| gaps.pass(gap));
                if self.gaps.is_some() {
                    self.keep();
                } else if ticket.number > self.slowed_at && self.bracket.pass(news, now, self.passed) {
                    self.raised_at = self.started;
                    self.set_pace(self.bracket.pace());
                }
            }
        }
    }

    /// A question passed.
    fn reopen(&mut self, closed: Closed, ticket: Ticket, gap: f64, now: Moment) {
        self.recent = Recent::default();
        self.slowed_at = self.started;
        self.raised_at = self.started;
        let span = ticket.sent_at.since(closed.since).as_secs_f64().max(1e-3);
        self.bracket = Bracket::unknown();
        self.fits(|gaps| gaps.pass(gap));
        if closed.questions <= 1 {
            self.bracket.empty(closed.since, self.passed - 1);
            self.mode = Mode::Grow {
                        passed: self.passed,
                        raised: [self.passed; 2],
                    };
            self.slowed_at = ticket.number;
            self.set_pace(2.0 / span);
        } else {
            self.bracket.begin(now, self.passed);
            // Whatever was saved up was used up when it closed: gaps tell again.
            self.gaps = self.gaps.or_else(|| Some(Gaps::between(closed.refused_after, gap)));
            self.mode = Mode::Second { span };
            self.next_at = now + PROBE;
        }
    }

    /// Tells the gaps something; they are given up when it does not fit.
    fn fits(&mut self, tell: impl FnOnce(&mut Gaps) -> bool) {
        if let Some(gaps) = &mut self.gaps
            && !tell(gaps)
        {
            self.gaps = None;
        }
    }

    /// Says whether the refusal was the job's own: whether the limit explains it.
    fn refusal(&mut self, ticket: Ticket, now: Moment) -> bool {
        self.wary = true;
        self.crowd.refused_in = self.crowd.refused_in.min(now.since(ticket.sent_at));
        if self.passed == 0 {
            return self.refused_while_nothing_passes(ticket, now);
        }
        if self.in_flight > 0 && self.crowd.suspected() {
            self.crowd.refuses(self.in_flight);
            return false;
        }
        let stale = ticket.number <= self.slowed_at;
        match self.mode {
            Mode::Open { .. } => {
                let gap = self.gap(ticket);
                self.fits(|gaps| gaps.refuse(gap));
                self.refused_while_open(stale, now)
            }
            Mode::Closed(closed) if closed.asked == Some(ticket.number) => {
                self.ask_later(closed, ticket, now);
                false
            }
            _ if stale => false,
            Mode::Closed(_) => false,
            Mode::Second { span } => {
                let gap = self.gap(ticket);
                self.only_tokens(span, gap);
                false
            }
            Mode::Grow { raised, .. } => {
                let gap = self.gap(ticket);
                self.hold();
                self.bracket.refused(self.pace, now, self.passed);
                if self.passed - raised[0] >= REOPENED {
                    // So many passed at little less: what was saved up is used up.
                    self.bracket.guess(self.bracket.upper().max(self.pace / (GROWTH * GROWTH)));
                }
                // Tokens that were saved up in the meantime have bent that measurement.
                self.bracket.doubt(now, self.passed);
                self.fits(|gaps| gaps.refuse(gap));
                self.keep();
                false
            }
            Mode::Hold => self.refused_while_holding(ticket, now),
        }
    }

    fn refused_while_nothing_passes(&mut self, ticket: Ticket, now: Moment) -> bool {
        match self.mode {
            Mode::Closed(closed) => {
                if closed.asked == Some(ticket.number) {
                    self.ask_later(closed, ticket, now);
                }
            }
            Mode::Open { .. } | Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold => self.close(now),
        }
        false
    }

    fn ask_later(&mut self, closed: Closed, ticket: Ticket, now: Moment) {
        let questions = closed.questions + 1;
        let gap = self.gap(ticket);
        if self.passed > 0 {
            self.fits(|gaps| gaps.refuse(gap));
        }
        let wait = if self.passed == 0 {
            self.ladder.rung(questions)
        } else {
            closed.wait.mul_f64(if closed.wait < FAR { 2.0 } else { SLOWER })
        };
        self.mode = Mode::Closed(Closed {
            refused_after: gap,
            wait,
            next_at: now + wait,
            asked: None,
            questions,
            ..closed
        });
    }

    fn refused_while_open(&mut self, stale: bool, now: Moment) -> bool {
        self.recent.push(true);
        if !stale {
            let measured = self.bracket.measure(now, self.passed);
            if measured.is_some_and(|(_, between)| between >= ENOUGH) && !self.noisy {
                // Two refusals with successes between them are a measurement.
                self.hold();
                self.bracket.refused(f64::INFINITY, now, self.passed);
                self.keep();
                return false;
            }
            self.bracket.forget();
            self.bracket.empty(now, self.passed);
            self.slowed_at = self.started;
        }
        let share = self.recent.share();
        if self.recent.refusals() >= 2 && share > NOISE || self.recent.ends_with(3) && share > 0.3 {
            self.close(now);
            return false;
        }
        true
    }

    /// After a closure some calls passed and then no more: so many tokens had come in that time.
    fn only_tokens(&mut self, span: f64, gap: f64) {
        let tokens = count(self.bracket.passed_since_first(self.passed)) + 1.0;
        self.hold();
        self.bracket.guess(tokens / span);
        if tokens > 1.0 {
            self.gaps = None;
        }
        self.fits(|gaps| gaps.refuse(gap));
        self.keep();
    }

    fn refused_while_holding(&mut self, ticket: Ticket, now: Moment) -> bool {
        self.recent.push(true);
        if self.gaps.is_some() {
            let gap = self.gap(ticket);
            self.fits(|gaps| gaps.refuse(gap));
            if let Some(gaps) = self.gaps {
                self.slowed_at = self.started;
                self.bracket.empty(now, self.passed);
                self.keep();
                if self.in_flight == 0 {
                    self.tests_gap = false;
                    self.next_at = self.last_passed + Duration::from_secs_f64(gaps.safe());
                }
                return false;
            }
            let measured = self.bracket.measure(now, self.passed);
            self.bracket.guess(measured.map_or(self.pace / GROWTH, |(upper, _)| upper.min(self.pace)));
            self.bracket.doubt(now, self.passed);
            self.slowed_at = self.started;
            self.keep();
            return false;
        }
        let unexplained = self.bracket.unexplained(now, self.passed);
        if unexplained && self.recent.share() <= NOISE {
            self.strays += 1;
            if self.strays >= STRAYS {
                // They come whatever the pace is.
                self.noisy = true;
                self.mode = Mode::Open { window: 64.0 };
                self.gaps = None;
                self.recent = Recent::default();
            }
            return true;
        }
        self.strays = 0;
        if self.recent.ends_with(4) {
            self.close(now);
            return false;
        }
        if unexplained {
            self.bracket.fallen();
        }
        self.slowed_at = self.started;
        self.bracket.refused(self.pace, now, self.passed);
        self.keep();
        false
    }

    /// At the pace that is known now.
    fn keep(&mut self) {
        self.tests_gap = false;
        match &self.gaps {
            Some(gaps) => {
                self.pace = 1.0 / gaps.safe();
                self.tests_gap = self.tested_by.is_none() && gaps.next() < gaps.safe();
                let gap = if self.tests_gap { gaps.next() } else { gaps.safe() };
                self.next_at = self.last_start + Duration::from_secs_f64(gap.min(1e9));
            }
            None => self.set_pace(self.bracket.pace()),
        }
    }

    /// A failed call is repeated after 1, 2, 4, ... s, as often as a job has calls.
    fn failed(&mut self, ticket: Ticket, now: Moment) -> Next {
        if let Mode::Closed(closed) = &mut self.mode
            && closed.asked == Some(ticket.number)
        {
            closed.asked = None;
            closed.next_at = now + closed.wait;
        }
        if self.ladder.after(ticket.attempt()).is_none() {
            return Next::GiveUp;
        }
        Next::Again {
            at: now + doubled(Duration::from_secs(1), ticket.tries.spent),
            spent: true,
        }
    }
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
}

impl Strategy for Evidence {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        if let Some(counter) = self.counter {
            if counter.resets_at <= now {
                self.counter = None;
            } else if counter.remaining == 0 {
                return Turn::At(counter.resets_at);
            }
        }
        if self.crowd.most.is_some_and(|most| self.in_flight >= most.max(1)) || self.wary && self.in_flight > 0 {
            return Turn::AfterAnswer;
        }
        match self.mode {
            Mode::Open { window } if f64::from(self.in_flight) + 1.0 > window => Turn::AfterAnswer,
            Mode::Open { .. } => Turn::Now,
            Mode::Closed(closed) if closed.asked.is_some() => Turn::AfterAnswer,
            Mode::Closed(closed) if self.passed == 0 && closed.questions >= self.ladder.attempts() => Turn::Defer,
            Mode::Closed(closed) if closed.next_at > now => Turn::At(closed.next_at),
            Mode::Closed(_) => Turn::Now,
            Mode::Second { .. } if self.in_flight > 0 => Turn::AfterAnswer,
            // As many as have passed since: before the first answers, a pace that is no more than a guess sends little.
            Mode::Grow { passed, .. } if u64::from(self.in_flight) > self.passed.saturating_sub(passed) => Turn::AfterAnswer,
            Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold if self.next_at > now => Turn::At(self.next_at),
            Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold => Turn::Now,
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.started += 1;
        self.in_flight += 1;
        self.last_start = now;
        if let Some(counter) = &mut self.counter {
            counter.remaining = counter.remaining.saturating_sub(1);
        }
        match &mut self.mode {
            Mode::Closed(closed) => closed.asked = Some(self.started),
            Mode::Grow { .. } => self.next_at = now + interval(self.pace),
            Mode::Hold => {
                if self.tests_gap {
                    self.tested_by = Some(self.started);
                }
                self.keep();
            }
            Mode::Open { .. } | Mode::Second { .. } => {}
        }
        Ticket {
            sent_at: now,
            number: self.started,
            tries,
        }
    }

    fn unmade(&mut self, ticket: Ticket, now: Moment) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match &mut self.mode {
            Mode::Closed(closed) if closed.asked == Some(ticket.number) => closed.asked = None,
            Mode::Grow { .. } | Mode::Hold if ticket.number == self.started => self.next_at = now,
            Mode::Open { .. } | Mode::Closed(_) | Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold => {}
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        if std::env::var("DBG").is_ok() { eprintln!("{:.3} {:?} sent {:.3} gap {:.4} {:?} pace {:.2} test {:?} {:?} up {:.3}", now.since(Moment::ORIGIN).as_secs_f64(), answer.outcome, ticket.sent_at.since(Moment::ORIGIN).as_secs_f64(), self.gap(ticket), self.gaps, self.pace, self.tested_by, self.mode, self.bracket.upper()); }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.tested_by = self.tested_by.filter(|&number| number != ticket.number);
        self.wary = false;
        if let Some(told) = answer.counter {
            // Calls in flight may not have been counted yet.
            let left = told.remaining.saturating_sub(u64::from(self.in_flight));
            self.counter = Some(Counter {
                remaining: left,
                ..told
            });
        }
        match answer.outcome {
            Outcome::Passed => {
                self.success(ticket, now);
                Next::Settled
            }
            Outcome::Refused if answer.counter.is_some_and(|counter| counter.remaining == 0) => {
                Next::Again { at: now, spent: false }
            }
            Outcome::Refused => {
                let own = self.refusal(ticket, now);
                if !own {
                    return Next::Again { at: now, spent: false };
                }
                if self.ladder.after(ticket.attempt()).is_none() {
                    return Next::GiveUp;
                }
                Next::Again {
                    at: now + doubled(PROBE, ticket.tries.spent),
                    spent: true,
                }
            }
            Outcome::Failed => self.failed(ticket, now),
        }
    }

    fn rate(&self) -> Option<f64> {
        match self.mode {
            Mode::Open { .. } => None,
            Mode::Closed(_) => Some(0.0),
            Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold => Some(self.pace),
        }
    }
}
