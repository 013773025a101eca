//! A pace that is kept, alone or beside others who draw from the same limit, and what refusals say of it.

use std::time::Duration;

use crate::{Moment, Ticket};

use super::{
    Evidence,
    learn::{NOISE, SLOWEST, WIDE},
    mode::Mode,
    recent::Recent,
    trial::Trial,
};

/// Refusals that fit no bucket before they are taken for chance.
const STRAYS: u32 = 3;
/// What a refusal leaves of a shared limit's pace.
const SLOWED: f64 = 0.55;
/// What a success adds to it at a call a second, and by which power of the pace that is less at a faster one: slow ones come up sooner, so that
/// shares grow alike. At least and at most so much.
const FASTER: f64 = 0.15;
const ALIKE: f64 = 0.8;
const LEAST: f64 = 0.02;
const MOST: f64 = 1.0;
/// Refusals in a row that one bucket explains, and the limit is no longer shared.
const CALM: u32 = 12;
/// Refusals in a row that close a pace that is kept, and a shared one.
const SHUT: u32 = 4;
const SHARED_SHUT: u32 = 8;
/// Answers, and the share of refusals among them, that say that others draw from the limit; the first says it for certain.
const HALF: (u32, f64) = (10, 0.5);
const MANY: (u32, f64) = (30, 0.3);
const LIKELY: (u32, f64) = (20, 0.3);
/// What that counts beside closures.
const LIKELY_COUNTS: u32 = 2;
/// So many signs that others draw from the limit, and so many successes without a refusal, and it is looked for how fast it is now.
const SIGNS: u32 = 3;
const QUIET: u32 = 10;

impl Evidence {
    pub(super) fn hold(&mut self) {
        self.mode = Mode::Hold;
        self.recent = Recent::default();
        self.slowed_at = self.started;
        self.strays = 0;
    }

    /// At the pace that is known now.
    pub(super) fn keep(&mut self, now: Moment) {
        self.tests_gap = false;
        match &self.gaps {
            Some(gaps) => {
                let (safe, shorter) = (gaps.safe(), gaps.next(self.dear));
                self.set_pace(1.0 / safe);
                let after = |gap| self.last_start + kept(gap);
                // A test that would come too late tests nothing.
                self.tests_gap = self.tested_by.is_none() && shorter < safe && after(shorter) >= now;
                self.next_at = after(if self.tests_gap { shorter } else { safe });
            }
            None => self.set_pace(self.bracket.pace()),
        }
    }

    /// A success at the pace that is kept.
    pub(super) fn passed_while_holding(&mut self, ticket: Ticket, gap: f64, tested: bool, now: Moment) {
        let far_behind = self.gaps.is_some_and(|gaps| gaps.leaves_far_behind(gap));
        self.fits(|gaps| gaps.pass(gap));
        if self.gaps.is_some() {
            self.keep(now);
        } else if tested && far_behind {
            self.grow(1.0 / gap);
        } else if self.troubles >= SIGNS && self.bracket.quiet() >= QUIET {
            self.grow(self.pace);
        } else if ticket.number > self.slowed_at {
            let news = ticket.number > self.raised_at;
            if self.bracket.pass(news, now, self.passed) {
                self.raised_at = self.started;
                self.set_pace(self.bracket.pace());
            }
        }
    }

    /// A refusal at the pace that is kept. Says whether it was the job's own.
    pub(super) fn refused_while_holding(&mut self, ticket: Ticket, now: Moment) -> bool {
        let own = self.explain(ticket, now);
        if self.mode == Mode::Hold && self.gaps.is_none() {
            if self.suspicion.refused_while_held(self.passed) {
                self.try_it(ticket, false, now);
            }
        } else if matches!(self.mode, Mode::Shared { .. }) {
            self.try_it(ticket, true, now);
        }
        own
    }

    fn explain(&mut self, ticket: Ticket, now: Moment) -> bool {
        self.recent.push(true);
        if self.gaps.is_some() {
            let gap = self.gap(ticket);
            self.fits(|gaps| gaps.refuse(gap));
            if let Some(gaps) = self.gaps {
                self.slowed_at = self.started;
                self.bracket.empty(now, self.passed);
                self.keep(now);
                if self.in_flight == 0 {
                    self.tests_gap = false;
                    self.next_at = self.last_passed + kept(gaps.safe());
                }
                return false;
            }
            self.measure(now);
            return false;
        }
        let unexplained = self.bracket.unexplained(now, self.passed);
        if unexplained && self.recent.share() <= NOISE {
            self.strays += 1;
            if self.strays >= STRAYS {
                self.refused_by_chance();
            }
            return true;
        }
        self.strays = 0;
        if self.recent.says(LIKELY) {
            self.troubles = self.troubles.saturating_add(LIKELY_COUNTS);
        }
        if self.recent.says(HALF) || self.recent.says(MANY) {
            self.share();
            return false;
        }
        if self.recent.ends_with(SHUT) {
            self.close(now);
            return false;
        }
        if unexplained {
            self.bracket.fallen();
        }
        self.measure(now);
        false
    }

    /// The refusal bounds the rate anew, and its pace is kept from now on.
    fn measure(&mut self, now: Moment) {
        self.slowed_at = self.started;
        self.bracket.refused(self.pace, now, self.passed);
        self.keep(now);
    }

    /// Refusals come whatever the pace is.
    fn refused_by_chance(&mut self) {
        self.noisy = Some(self.passed);
        self.mode = Mode::Open { window: WIDE };
        self.gaps = None;
        self.recent = Recent::default();
    }

    pub(super) fn share(&mut self) {
        self.mode = Mode::Shared { calm: 0 };
        self.recent = Recent::default();
        self.gaps = None;
        self.shared = true;
    }

    /// A success beside others who draw from the same limit.
    pub(super) fn passed_while_shared(&mut self) {
        let more = FASTER * self.pace.powf(-ALIKE);
        self.set_pace(self.pace * (1.0 + more.clamp(LEAST, MOST)));
    }

    /// A refusal beside others. Says whether it was the job's own.
    pub(super) fn refused_while_shared(&mut self, calm: u32, ticket: Ticket, now: Moment) -> bool {
        self.recent.push(true);
        let unexplained = self.bracket.unexplained(now, self.passed);
        self.bracket.refused(f64::INFINITY, now, self.passed);
        if unexplained {
            self.bracket.fallen();
        }
        let calm = if unexplained { 0 } else { calm + 1 };
        if self.recent.ends_with(SHARED_SHUT) {
            self.close(now);
            return false;
        }
        if calm >= CALM {
            self.shared = false;
            self.hold();
            self.keep(now);
            return false;
        }
        self.mode = Mode::Shared { calm };
        self.set_pace(self.pace * SLOWED);
        if self.suspicion.refused_while_shared(self.pace) {
            self.try_it(ticket, true, now);
        }
        unexplained
    }

    /// A trial after this refusal, where it takes few calls.
    fn try_it(&mut self, ticket: Ticket, shared: bool, now: Moment) {
        if let Some(trial) = Trial::after(ticket, self.pace, shared, self.started, now) {
            self.suspicion.tries(self.pace);
            self.mode = Mode::Trial(trial);
        }
    }

    /// A call of a trial, or one that was in flight before it, ended.
    pub(super) fn ended_in_trial(&mut self, mut trial: Trial, ticket: Ticket, passed: Option<bool>, now: Moment) {
        trial.ended(ticket, passed);
        if !trial.is_over() {
            self.mode = Mode::Trial(trial);
            return;
        }
        let refuted = trial.refutes(self.pace);
        self.suspicion.judged(refuted);
        if refuted {
            self.shared = false;
            self.refused_by_chance();
            return;
        }
        self.slowed_at = self.started;
        if trial.shared {
            self.mode = Mode::Shared { calm: 0 };
            self.set_pace(self.pace);
        } else {
            self.mode = Mode::Hold;
            self.keep(now);
        }
    }
}

/// A gap of so many seconds, and no longer than the slowest pace has.
fn kept(gap: f64) -> Duration {
    Duration::from_secs_f64(gap.min(1.0 / SLOWEST))
}
