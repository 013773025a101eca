//! A closure: nothing passes, and single questions ask whether that has changed.

use std::time::Duration;

use crate::{Moment, Ticket};

use super::{
    Evidence,
    bracket::{Bracket, count},
    gaps::Gaps,
    learn::{FARTHEST, PROBE, PROVEN, WIDE},
    mode::{Closed, Mode},
    recent::Recent,
};

/// Questions come later each time by [`LATER`] until they are this far apart, and then by [`SLOWER`].
const FAR: Duration = Duration::from_secs(4);
const LATER: f64 = 3.0;
const SLOWER: f64 = 1.3;
/// Lengths that windows usually have, in seconds.
const PERIODS: [u64; 6] = [10, 60, 300, 900, 3_600, 86_400];
/// A closure of more seconds is no single token's.
const LONG: f64 = 6.0;
/// A closure of more seconds, of a bucket that had saved tokens up, is measured twice before it is believed.
const TWICE: f64 = 1.5;
/// A token that comes so much earlier than one was refused is no bucket's.
const EARLIER: f64 = 0.95;
/// What a closure leaves of a pace that was held before it.
const HALVED: f64 = 0.5;
/// Closures after which what is seen may be others' doing.
const UNSURE: u32 = 2;
/// Questions of a closure after which chance, known to refuse, still explains it.
const BY_CHANCE: u32 = 2;

/// A closure that is measured a second time: the seconds that it took, and the longest gap that was refused meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Twice {
    span: f64,
    refused_after: f64,
}

impl Evidence {
    pub(super) fn close(&mut self, now: Moment) {
        let wait = if self.passed == 0 { self.ladder.rung(1) } else { PROBE };
        self.mode = Mode::Closed(Closed {
            since: now,
            refused_after: 0.0,
            wait,
            next_at: self.ask_at(wait, now),
            asked: None,
            questions: 1,
        });
        self.slowed_at = self.started;
        self.recent = Recent::default();
        self.strays = 0;
    }

    /// When to ask next: after a wait, or a usual period after calls began to pass, where that is earlier.
    fn ask_at(&self, wait: Duration, now: Moment) -> Moment {
        let after = now + wait;
        let periods = PERIODS
            .iter()
            .map(|&seconds| self.opened_at + Duration::from_secs(seconds) + PROBE / 4);
        periods
            .filter(|&at| at > now && self.passed > 0)
            .fold(after, Moment::min)
    }

    /// The answer to a question was no.
    pub(super) fn ask_later(&mut self, closed: Closed, ticket: Ticket, now: Moment) {
        let questions = closed.questions.saturating_add(1);
        let gap = self.gap(ticket);
        if self.passed > 0 {
            self.fits(|gaps| gaps.refuse(gap));
        }
        let wait = if self.passed == 0 {
            self.ladder.rung(questions)
        } else {
            let later = if closed.wait < FAR { LATER } else { SLOWER };
            closed.wait.mul_f64(later).min(FARTHEST)
        };
        self.mode = Mode::Closed(Closed {
            refused_after: gap,
            wait,
            next_at: self.ask_at(wait, now),
            asked: None,
            questions,
            ..closed
        });
    }

    /// A question passed.
    pub(super) fn reopen(&mut self, closed: Closed, ticket: Ticket, gap: f64, now: Moment) {
        self.recent = Recent::default();
        self.slowed_at = self.started;
        self.raised_at = self.started;
        let span = ticket.sent_at.since(closed.since).as_secs_f64().max(1e-3);
        let at_once = closed.questions <= 1;
        if at_once {
            self.twice = None;
        } else {
            self.opened_at = ticket.sent_at;
            self.troubles = self.troubles.saturating_add(1);
        }
        self.bracket = Bracket::unknown();
        self.bracket.set_dear(self.dear);
        self.bracket.set_unsure(self.troubles >= UNSURE);
        self.fits(|gaps| gaps.pass(gap));
        let noisy = self.noisy.is_some_and(|since| self.passed - since >= PROVEN);
        if closed.questions <= BY_CHANCE && noisy {
            self.noisy = Some(self.passed);
            self.mode = Mode::Open { window: WIDE };
            return;
        }
        self.noisy = None;
        if at_once {
            self.bracket.empty(closed.since, self.passed - 1);
            self.grow(2.0 / span);
            self.slowed_at = ticket.number;
        } else {
            self.bracket.begin(now, self.passed);
            // Whatever was saved up was used up when it closed: gaps tell again.
            self.gaps = self.gaps.or_else(|| Some(Gaps::renewed(closed.refused_after, gap)));
            self.mode = Mode::Second {
                span,
                gap,
                refused_after: closed.refused_after,
            };
            self.next_at = now + PROBE;
        }
    }

    /// After a closure of `span` seconds, in which a question after `refused_after` was refused and one after `gap` passed, some more calls
    /// passed and then one was refused, `now_gap` after the last: so many tokens had come.
    pub(super) fn only_tokens(&mut self, [span, gap, refused_after]: [f64; 3], now_gap: f64, now: Moment) {
        let tokens = count(self.bracket.passed_since_first(self.passed)) + 1.0;
        let measured = tokens / span;
        self.hold();
        if self.shared {
            let pace = measured.max(self.pace * HALVED);
            self.share();
            self.set_pace(pace);
            return;
        }
        // A bucket of the rate that was proven before is never closed so long: it has fallen, or others draw from it.
        if self.pace.is_finite() && self.held {
            self.bracket.guess(measured.max(self.pace * HALVED));
            self.gaps = None;
        } else {
            self.bracket.guess(measured);
        }
        let one_token = tokens < 1.5;
        if !one_token {
            self.gaps = None;
        }
        self.held = true;
        let was_full = self.gaps.is_none_or(|gaps| gaps.is_renewed());
        if let Some(first) = self.twice.take() {
            if gap < first.refused_after * EARLIER {
                self.share();
                self.set_pace(measured.max(1.0 / first.span));
                return;
            }
        } else if span > LONG || one_token && was_full && span > TWICE {
            // The token of an empty bucket takes its time again; what others leave comes at any time.
            self.twice = Some(Twice { span, refused_after });
            self.troubles = self.troubles.saturating_add(1);
            self.close(now);
            return;
        }
        if span > LONG {
            // So long a closure may be a window's, or others' doing: from here on faster with each success.
            self.gaps = None;
            self.grow(self.bracket.pace());
            return;
        }
        self.fits(|gaps| gaps.refuse(now_gap));
        self.keep(now);
    }
}
