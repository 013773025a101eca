//! Evidence: a refusal is a measurement of the limit. adjourn's own strategy.
//!
//! Its rules:
//!
//! 1. Nothing known: one call, then a little more in flight with each success, spread over the round trip. Refused before anything has
//!    passed: the plain ladder, one question at a time; when its calls are used up, whatever waits is deferred.
//! 2. Two refusals with `n` successes in the `span` between them bound a bucket's rate: (n - 1) / span < rate < (n + 1) / span. The pace is
//!    the upper bound and a hair more, so that one call in fifty or a hundred is refused and keeps the bound fresh.
//! 3. Where no gap that passed is shorter than one that was refused, nothing is saved up: then the gap itself is found by bisection, one
//!    test at a time.
//! 4. Everything refused: one question at a time, each three times as late as the one before, later 1.3 times; and at the usual lengths of
//!    windows after calls began to pass. The first that passes is followed by another at once: one token, or all open again?
//! 5. A refusal that is overdue says that the bound is too low: faster step by step, and what was measured before bounds nothing any more.
//! 6. A refusal that no bucket of the proven rate can explain is not about the pace. Three of them, or a few calls at once just after a
//!    refusal that pass all the same: they come by chance, and are ignored until most calls are refused. One and the same job refused again
//!    and again while others pass: it is the job.
//! 7. Half of the calls refused at whatever pace, or a token sooner than one was refused: others draw from the same limit. Each success
//!    faster, the more the slower the pace is, each refusal 0.55 times, so that about one call in five is refused and shares grow alike;
//!    until refusals fit one bucket again. No refusal for ten successes: it is looked for how fast it is now.
//! 8. Refusals that come at once while successes take long: calls at a time are limited, and as many are kept in flight as passed.
//! 9. A counter that comes with the answers is better than all of this: what it leaves is spent, and then its reset is waited for. A moment that
//!    a refusal names binds its job; where it is long, the pace stays below the bound.
//! 10. A refusal of a call that was sent before the last change says nothing of the present pace.
//!
//! Sources: the bound is our own. Slow start and its spreading: M. Allman, V. Paxson, E. Blanton, RFC 5681, 2009; A. Aggarwal, S. Savage,
//! T. Anderson: Understanding the performance of TCP pacing, INFOCOM 2000. Shares that converge: D.-M. Chiu, R. Jain, see [`crate::Aimd`].

mod bracket;
mod closure;
mod gaps;
mod hold;
mod learn;
mod mode;
mod recent;
mod stubborn;
mod trial;

use std::time::Duration;

use crate::{Answer, Counter, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn, fixed::interval};

use bracket::Bracket;
use closure::Twice;
use gaps::Gaps;
use learn::{PROBE, doubled};
use mode::{Crowd, Mode};
use recent::Recent;
use stubborn::Stubborn;
use trial::Suspicion;

/// Calls in the time that a refused job has to wait, beyond which a refusal is dear.
const DEAR: f64 = 20.0;

/// Finds a limit's pace from what passes and what is refused.
#[derive(Clone, Debug)]
pub struct Evidence {
    ladder: Ladder,
    mode: Mode,
    started: u64,
    passed: u64,
    in_flight: u32,
    widest: u32,
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
    /// Calls that had passed when refusals were found to come whatever the pace is.
    noisy: Option<u64>,
    /// Whether a refusal costs its job the time of many calls.
    dear: bool,
    /// When the first call passed since the last closure.
    opened_at: Moment,
    /// Whether a pace has been held before, so that a closure says less of the rate than that pace does.
    held: bool,
    /// Whether others were found to draw from the limit, closures in between included.
    shared: bool,
    strays: u32,
    suspicion: Suspicion,
    stubborn: Stubborn,
    /// A closure that is measured once more.
    twice: Option<Twice>,
    /// Signs that others draw from the limit: closures, and refusals of many calls.
    troubles: u32,
    counter: Option<Counter>,
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
            widest: 0,
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
            crowd: Crowd::default(),
            wary: false,
            noisy: None,
            dear: false,
            opened_at: Moment::ORIGIN,
            held: false,
            shared: false,
            strays: 0,
            suspicion: Suspicion::none(),
            stubborn: Stubborn::default(),
            twice: None,
            troubles: 0,
            counter: None,
        }
    }
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
        if self.crowd.is_full(self.in_flight) {
            return Turn::AfterAnswer;
        }
        match self.mode {
            Mode::Trial(trial) if trial.may_start() => Turn::Now,
            Mode::Trial(_) => Turn::AfterAnswer,
            _ if self.wary && self.in_flight > 0 => Turn::AfterAnswer,
            Mode::Open { window } if f64::from(self.in_flight) + 1.0 > window => Turn::AfterAnswer,
            Mode::Open { .. } if self.passed > 0 && self.spread() > now => Turn::At(self.spread()),
            Mode::Open { .. } => Turn::Now,
            Mode::Closed(closed) if closed.asked.is_some() => Turn::AfterAnswer,
            Mode::Closed(closed) if self.passed == 0 && closed.questions >= self.ladder.attempts() => Turn::Defer,
            Mode::Closed(closed) if closed.next_at > now => Turn::At(closed.next_at),
            Mode::Closed(_) => Turn::Now,
            Mode::Second { .. } if self.in_flight > 0 => Turn::AfterAnswer,
            // As many as have passed since: before the first answers, a pace that is no more than a guess sends little.
            Mode::Grow { passed, .. } if u64::from(self.in_flight) > self.passed.saturating_sub(passed) => {
                Turn::AfterAnswer
            }
            Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold | Mode::Shared { .. } if self.next_at > now => {
                Turn::At(self.next_at)
            }
            Mode::Second { .. } | Mode::Grow { .. } | Mode::Hold | Mode::Shared { .. } => Turn::Now,
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.started += 1;
        self.in_flight += 1;
        self.widest = self.widest.max(self.in_flight);
        self.last_start = now;
        if let Some(counter) = &mut self.counter {
            counter.remaining = counter.remaining.saturating_sub(1);
        }
        match &mut self.mode {
            Mode::Closed(closed) => closed.asked = Some(self.started),
            Mode::Trial(trial) => trial.started(now),
            Mode::Grow { .. } | Mode::Shared { .. } => self.next_at = now + interval(self.pace),
            Mode::Hold => {
                if self.tests_gap {
                    self.tested_by = Some(self.started);
                }
                self.keep(now);
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
            Mode::Grow { .. } | Mode::Hold | Mode::Shared { .. } if ticket.number == self.started => self.next_at = now,
            &mut Mode::Trial(trial) => self.ended_in_trial(trial, ticket, None, now),
            Mode::Open { .. }
            | Mode::Closed(_)
            | Mode::Second { .. }
            | Mode::Grow { .. }
            | Mode::Hold
            | Mode::Shared { .. } => {}
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        self.in_flight = self.in_flight.saturating_sub(1);
        let tested = self.tested_by == Some(ticket.number);
        if tested {
            self.tested_by = None;
        }
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
                self.success(ticket, tested, now);
                Next::Settled
            }
            Outcome::Refused if answer.counter.is_some_and(|counter| counter.remaining == 0) => {
                Next::Again { at: now, spent: false }
            }
            Outcome::Refused => {
                let wait = answer.retry_at.map_or(0.0, |at| at.since(now).as_secs_f64());
                self.dear = self.pace.is_finite() && wait * self.pace > DEAR;
                self.bracket.set_dear(self.dear);
                let own = self.refusal(ticket, now);
                if !own {
                    // Asked with another job, where there is one: it may be this one that is refused.
                    let at = match self.mode {
                        Mode::Closed(closed) if ticket.tries.free > 0 && closed.asked.is_none() => Some(closed.next_at),
                        Mode::Closed(_)
                        | Mode::Open { .. }
                        | Mode::Second { .. }
                        | Mode::Grow { .. }
                        | Mode::Hold
                        | Mode::Trial(_)
                        | Mode::Shared { .. } => None,
                    };
                    let at = at.map_or(now, |next_at| next_at + Duration::from_nanos(1));
                    return Next::Again { at, spent: false };
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
            // What asks is not sent at a pace: whoever keeps calls to one would hold back the very answer that is waited for.
            Mode::Open { .. } | Mode::Second { .. } | Mode::Trial(_) => None,
            Mode::Closed(_) => Some(0.0),
            Mode::Hold if self.tests_gap => Some(1.0 / self.next_at.since(self.last_start).as_secs_f64()),
            Mode::Grow { .. } | Mode::Hold | Mode::Shared { .. } => Some(self.pace),
        }
        .filter(|rate| rate.is_finite())
    }
}

#[cfg(test)]
mod tests;
