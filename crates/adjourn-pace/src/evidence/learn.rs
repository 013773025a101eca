//! What each answer teaches.

use std::time::Duration;

use crate::{Moment, Next, Ticket, fixed::interval};

use super::{Evidence, gaps::Gaps, mode::Mode, stubborn::Stubborn};

/// The first question after everything was refused, and the least wait before a refused call is repeated.
pub(super) const PROBE: Duration = Duration::from_millis(100);
/// A greater share of refused calls is a limit, whatever else is known.
pub(super) const NOISE: f64 = 0.34;
/// The same where refusals are known to come whatever the pace is.
const NOISY: f64 = 0.5;
/// Successes that prove it, and so many in flight as are allowed then.
pub(super) const PROVEN: u64 = 30;
pub(super) const WIDE: f64 = 64.0;
/// Successes between two refusals that make a measurement without closing.
const ENOUGH: f64 = 3.0;
/// No pace is faster, in calls a second: what would be is none.
const FASTEST: f64 = 1e6;
/// Nor slower, and no two questions are further apart than an hour.
pub(super) const SLOWEST: f64 = 1.0 / 3_600.0;
pub(super) const FARTHEST: Duration = Duration::from_secs(3_600);
/// Calls that pass at once after a closure, and it is taken to be over.
const REOPENED: u64 = 5;
/// What each success makes of a pace that nothing bounds, and what a refusal leaves of it where the limit is shared.
const GROWTH: f64 = 2.0;
const HALVED: f64 = 0.5;
/// What a success adds to the calls in flight where no limit is known, and the same where an answer takes longer than this: there round trips are
/// dearer than refusals.
const WIDER: f64 = 0.6;
const WIDER_AFAR: f64 = 1.0;
const AFAR: Duration = Duration::from_millis(300);
/// Over which share of a round trip calls are spread that would go out together.
const SPREAD: f64 = 0.5;

impl Evidence {
    /// Calls that go out together are answered together, and again go out together: they are spread over half of a round trip.
    pub(super) fn spread(&self) -> Moment {
        let share = SPREAD / f64::from(self.widest.max(1));
        self.last_start + self.crowd.passed_in.mul_f64(share)
    }

    pub(super) fn gap(&self, ticket: Ticket) -> f64 {
        ticket.sent_at.since(self.last_passed).as_secs_f64()
    }

    /// From now on at this pace; the next start is as far from the last one as that says.
    pub(super) fn set_pace(&mut self, pace: f64) {
        self.pace = pace.clamp(SLOWEST, FASTEST);
        self.next_at = self.last_start + interval(self.pace);
    }

    /// From this pace on, faster with each success.
    pub(super) fn grow(&mut self, pace: f64) {
        self.mode = Mode::growing(self.passed);
        self.raised_at = self.started;
        self.set_pace(pace);
    }

    /// Tells the gaps something; they are given up when it does not fit.
    pub(super) fn fits(&mut self, tell: impl FnOnce(&mut Gaps) -> bool) {
        if let Some(gaps) = &mut self.gaps
            && !tell(gaps)
        {
            self.gaps = None;
        }
    }

    pub(super) fn success(&mut self, ticket: Ticket, tested: bool, now: Moment) {
        self.passed += 1;
        self.recent.push(false);
        self.crowd.passed_in = self.crowd.passed_in.min(now.since(ticket.sent_at));
        self.crowd.passes();
        let gap = self.gap(ticket);
        self.last_passed = self.last_passed.max(ticket.sent_at);
        if self.passed == 1 {
            self.opened_at = ticket.sent_at;
        }
        match self.mode {
            Mode::Open { window } => {
                if self.passed > 1 {
                    self.fits(|gaps| gaps.pass(gap));
                }
                let wider = if self.crowd.passed_in > AFAR { WIDER_AFAR } else { WIDER };
                self.mode = Mode::Open { window: window + wider };
            }
            Mode::Closed(closed) if closed.asked == Some(ticket.number) => self.reopen(closed, ticket, gap, now),
            Mode::Closed(_) => {}
            Mode::Second { .. } => {
                self.fits(|gaps| gaps.pass(gap));
                self.next_at = now + PROBE;
                if self.bracket.passed_since_first(self.passed) >= REOPENED {
                    self.grow(1.0 / PROBE.as_secs_f64());
                }
            }
            Mode::Grow { passed, raised } => {
                self.fits(|gaps| gaps.pass(gap));
                if ticket.number > self.raised_at.max(self.slowed_at) {
                    self.mode = Mode::Grow {
                        passed,
                        raised: [raised[1], self.passed],
                    };
                    self.raised_at = self.started;
                    self.set_pace(self.pace * GROWTH);
                }
            }
            Mode::Shared { .. } => self.passed_while_shared(),
            Mode::Trial(trial) => self.ended_in_trial(trial, ticket, Some(true), now),
            Mode::Hold => self.passed_while_holding(ticket, gap, tested, now),
        }
    }

    /// Says whether the refusal was the job's own: whether something else than the limit explains it.
    pub(super) fn refusal(&mut self, ticket: Ticket, now: Moment) -> bool {
        if let Mode::Trial(trial) = self.mode {
            self.ended_in_trial(trial, ticket, Some(false), now);
            return false;
        }
        if self.is_the_job(ticket, now) {
            return true;
        }
        self.wary = true;
        self.crowd.refused_in = self.crowd.refused_in.min(now.since(ticket.sent_at));
        if self.passed == 0 {
            self.refused_while_nothing_passes(ticket, now);
            return false;
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
            Mode::Closed(closed) => {
                if closed.asked == Some(ticket.number) {
                    self.ask_later(closed, ticket, now);
                }
                false
            }
            _ if stale => false,
            Mode::Second {
                span,
                gap,
                refused_after,
            } => {
                self.only_tokens([span, gap, refused_after], self.gap(ticket), now);
                false
            }
            Mode::Grow { raised, .. } => {
                self.refused_while_growing(ticket, raised, now);
                false
            }
            Mode::Hold => self.refused_while_holding(ticket, now),
            Mode::Shared { calm } => self.refused_while_shared(calm, ticket, now),
            Mode::Trial(_) => false,
        }
    }

    /// Whether it is the job that is refused, and says nothing of the pace.
    fn is_the_job(&mut self, ticket: Ticket, now: Moment) -> bool {
        let nobody_else = self.stubborn.refused(ticket);
        if self.passed == 0 {
            return false;
        }
        if let Mode::Closed(closed) = self.mode {
            if nobody_else && closed.asked == Some(ticket.number) {
                self.ask_later(closed, ticket, now);
            }
            return nobody_else;
        }
        let reopened = matches!(self.mode, Mode::Second { .. }) && self.in_flight == 0;
        if reopened && self.passed == 1 && ticket.tries.free >= 2 {
            // The first that passed was another, asked because this one had been refused before.
            self.next_at = now + PROBE;
            return true;
        }
        nobody_else || Stubborn::too_often(ticket)
    }

    fn refused_while_nothing_passes(&mut self, ticket: Ticket, now: Moment) {
        if let Mode::Closed(closed) = self.mode {
            if closed.asked == Some(ticket.number) {
                self.ask_later(closed, ticket, now);
            }
        } else {
            self.close(now);
        }
    }

    fn refused_while_open(&mut self, stale: bool, now: Moment) -> bool {
        self.recent.push(true);
        if !stale {
            let measured = self.bracket.measure(now, self.passed);
            if measured.is_some_and(|(_, between)| between >= ENOUGH) && self.noisy.is_none() {
                // Two refusals with successes between them are a measurement.
                self.hold();
                self.bracket.refused(f64::INFINITY, now, self.passed);
                self.keep(now);
                return false;
            }
            self.bracket.forget();
            self.bracket.empty(now, self.passed);
            self.slowed_at = self.started;
        }
        let share = self.recent.share();
        let shut = if self.noisy.is_some() {
            self.recent.known() >= 12 && share > NOISY || self.recent.ends_with(6)
        } else {
            self.recent.refusals() >= 2 && share > NOISE || self.recent.ends_with(3) && share > 0.3
        };
        if shut {
            self.close(now);
            return false;
        }
        true
    }

    fn refused_while_growing(&mut self, ticket: Ticket, raised: [u64; 2], now: Moment) {
        if self.shared {
            self.share();
            self.set_pace(self.pace * HALVED);
            return;
        }
        self.hold();
        self.bracket.refused(self.pace, now, self.passed);
        if self.passed - raised[0] >= REOPENED {
            // So many passed at little less: what was saved up is used up.
            self.bracket
                .guess(self.bracket.upper().max(self.pace / (GROWTH * GROWTH)));
        }
        // Tokens that were saved up in the meantime have bent that measurement.
        self.bracket.doubt(now, self.passed);
        let gap = self.gap(ticket);
        self.fits(|gaps| gaps.refuse(gap));
        self.keep(now);
    }

    /// A failed call is repeated after 1, 2, 4, ... s, as often as a job has calls.
    pub(super) fn failed(&mut self, ticket: Ticket, now: Moment) -> Next {
        if let Mode::Trial(trial) = self.mode {
            self.ended_in_trial(trial, ticket, None, now);
        } else if let Mode::Closed(closed) = &mut self.mode
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

pub(super) fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
}
