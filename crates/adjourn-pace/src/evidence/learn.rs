//! What each answer teaches.

use std::time::Duration;

use crate::{Moment, Next, Ticket, fixed::interval};

use super::{
    Evidence,
    bracket::{Bracket, count},
    gaps::Gaps,
    mode::{Closed, Mode},
    recent::Recent,
};

/// The first question after everything was refused, and the least wait before a refused call is repeated.
pub(super) const PROBE: Duration = Duration::from_millis(100);
/// Questions come later each time by [`LATER`] until they are this far apart, and then by [`SLOWER`].
const FAR: Duration = Duration::from_secs(4);
const SLOWER: f64 = 1.3;
/// A greater share of refused calls is a limit, whatever else is known.
const NOISE: f64 = 0.34;
/// The same where refusals are known to come whatever the pace is.
const NOISY: f64 = 0.5;
/// Successes that prove it, and so many in flight as are allowed then.
const PROVEN: u64 = 30;
const WIDE: f64 = 64.0;
/// Successes between two refusals that make a measurement without closing.
const ENOUGH: f64 = 3.0;
/// No pace is faster, in calls a second: what would be is none.
const FASTEST: f64 = 1e6;
/// Nor slower, and no two questions are further apart than an hour.
const SLOWEST: f64 = 1.0 / 3_600.0;
const FARTHEST: Duration = Duration::from_secs(3_600);
/// Calls that pass at once after a closure, and it is taken to be over.
const REOPENED: u64 = 5;
/// What each success makes of a pace that nothing bounds.
const GROWTH: f64 = 2.0;
/// Refusals that fit no bucket before they are taken for noise.
const STRAYS: u32 = 3;
/// Lengths that windows usually have, in seconds.
const PERIODS: [u64; 6] = [10, 60, 300, 900, 3_600, 86_400];
/// What a success adds to the calls in flight where no limit is known.
const WIDER: f64 = 0.6;
/// Over which share of a round trip calls are spread that would go out together.
const SPREAD: f64 = 0.5;
/// How much later each question comes than the one before, at first.
const LATER: f64 = 3.0;
/// A closure of more seconds is no single token's.
const LONG: f64 = 6.0;
/// What a closure leaves of a pace that was held before it.
const HALVED: f64 = 0.5;
/// What a success and a refusal make of a shared limit's pace: about one call in seven is refused, and the shares of all grow alike.
const FASTER: f64 = 1.1;
const SLOWED: f64 = 0.58;
/// Refusals in a row that one bucket explains, and the limit is no longer shared.
const CALM: u32 = 12;

impl Evidence {
    /// Calls that go out together are answered together, and again go out together: they are spread over half of a round trip.
    pub(super) fn spread(&self) -> Moment {
        let share = SPREAD / f64::from(self.widest.max(1));
        self.last_start + self.crowd.passed_in.mul_f64(share)
    }

    fn gap(&self, ticket: Ticket) -> f64 {
        ticket.sent_at.since(self.last_passed).as_secs_f64()
    }

    /// From now on at this pace; the next start is as far from the last one as that says.
    fn set_pace(&mut self, pace: f64) {
        self.pace = pace.clamp(SLOWEST, FASTEST);
        self.next_at = self.last_start + interval(self.pace);
    }

    fn close(&mut self, now: Moment) {
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

    fn hold(&mut self) {
        self.mode = Mode::Hold;
        self.recent = Recent::default();
        self.slowed_at = self.started;
        self.strays = 0;
    }

    pub(super) fn success(&mut self, ticket: Ticket, now: Moment) {
        self.passed += 1;
        self.recent.push(false);
        self.crowd.passed_in = self.crowd.passed_in.min(now.since(ticket.sent_at));
        self.crowd.passes();
        let gap = self.gap(ticket);
        self.last_passed = self.last_passed.max(ticket.sent_at);
        if self.passed == 1 {
            self.opened_at = ticket.sent_at;
        }
        let news = ticket.number > self.raised_at.max(self.slowed_at);
        match self.mode {
            Mode::Open { window } => {
                if self.passed > 1 {
                    self.fits(|gaps| gaps.pass(gap));
                }
                self.mode = Mode::Open { window: window + WIDER };
            }
            Mode::Closed(closed) if closed.asked == Some(ticket.number) => self.reopen(closed, ticket, gap, now),
            Mode::Closed(_) => {}
            Mode::Second { .. } => {
                self.fits(|gaps| gaps.pass(gap));
                self.next_at = now + PROBE;
                if self.bracket.passed_since_first(self.passed) >= REOPENED {
                    self.mode = Mode::growing(self.passed);
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
            Mode::Shared { .. } => self.set_pace(self.pace * FASTER),
            Mode::Hold => {
                self.fits(|gaps| gaps.pass(gap));
                if self.gaps.is_some() {
                    self.keep(now);
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
        if closed.questions > 1 {
            self.opened_at = ticket.sent_at;
        }
        self.bracket = Bracket::unknown();
        self.bracket.set_dear(self.dear);
        self.fits(|gaps| gaps.pass(gap));
        if closed.questions <= 1 && self.noisy.is_some_and(|since| self.passed - since >= PROVEN) {
            self.noisy = Some(self.passed);
            self.mode = Mode::Open { window: WIDE };
        } else if closed.questions <= 1 {
            self.noisy = None;
            self.bracket.empty(closed.since, self.passed - 1);
            self.mode = Mode::growing(self.passed);
            self.slowed_at = ticket.number;
            self.set_pace(2.0 / span);
        } else {
            self.noisy = None;
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
    pub(super) fn refusal(&mut self, ticket: Ticket, now: Moment) -> bool {
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
            Mode::Closed(_) => false,
            _ if stale => false,
            Mode::Second { span } => {
                let gap = self.gap(ticket);
                self.only_tokens(span, gap, now);
                false
            }
            Mode::Grow { raised, .. } => {
                let gap = self.gap(ticket);
                self.hold();
                self.bracket.refused(self.pace, now, self.passed);
                if self.passed - raised[0] >= REOPENED {
                    // So many passed at little less: what was saved up is used up.
                    self.bracket
                        .guess(self.bracket.upper().max(self.pace / (GROWTH * GROWTH)));
                }
                // Tokens that were saved up in the meantime have bent that measurement.
                self.bracket.doubt(now, self.passed);
                self.fits(|gaps| gaps.refuse(gap));
                self.keep(now);
                false
            }
            Mode::Hold => self.refused_while_holding(ticket, now),
            Mode::Shared { calm } => self.refused_while_shared(calm, now),
        }
    }

    fn refused_while_nothing_passes(&mut self, ticket: Ticket, now: Moment) -> bool {
        if let Mode::Closed(closed) = self.mode {
            if closed.asked == Some(ticket.number) {
                self.ask_later(closed, ticket, now);
            }
        } else {
            self.close(now);
        }
        false
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

    fn ask_later(&mut self, closed: Closed, ticket: Ticket, now: Moment) {
        let questions = closed.questions + 1;
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

    /// After a closure some calls passed and then no more: so many tokens had come in that time.
    fn only_tokens(&mut self, span: f64, gap: f64, now: Moment) {
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
        if tokens > 1.0 {
            self.gaps = None;
        }
        self.held = true;
        if span > LONG {
            // So long a closure may be a window's, or others' doing: from here on faster with each success.
            self.gaps = None;
            self.mode = Mode::growing(self.passed);
            self.raised_at = self.started;
            self.set_pace(self.bracket.pace());
            return;
        }
        self.fits(|gaps| gaps.refuse(gap));
        self.keep(now);
    }

    fn refused_while_holding(&mut self, ticket: Ticket, now: Moment) -> bool {
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
                // They come whatever the pace is.
                self.noisy = Some(self.passed);
                self.mode = Mode::Open { window: WIDE };
                self.gaps = None;
                self.recent = Recent::default();
            }
            return true;
        }
        self.strays = 0;
        let (known, share) = (self.recent.known(), self.recent.share());
        if known >= 10 && share >= 0.5 || known >= 30 && share >= 0.3 {
            self.share();
            return false;
        }
        if self.recent.ends_with(4) {
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

    fn share(&mut self) {
        self.mode = Mode::Shared { calm: 0 };
        self.recent = Recent::default();
        self.gaps = None;
        self.shared = true;
    }

    fn refused_while_shared(&mut self, calm: u32, now: Moment) -> bool {
        self.recent.push(true);
        let unexplained = self.bracket.unexplained(now, self.passed);
        self.bracket.refused(f64::INFINITY, now, self.passed);
        if unexplained {
            self.bracket.fallen();
        }
        let calm = if unexplained { 0 } else { calm + 1 };
        if self.recent.ends_with(8) {
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
        unexplained
    }

    /// At the pace that is known now.
    pub(super) fn keep(&mut self, now: Moment) {
        self.tests_gap = false;
        match &self.gaps {
            Some(gaps) => {
                let (safe, shorter) = (gaps.safe(), gaps.next(self.dear));
                self.pace = (1.0 / safe).clamp(SLOWEST, FASTEST);
                let after = |gap| self.last_start + kept(gap);
                // A test that would come too late tests nothing.
                self.tests_gap = self.tested_by.is_none() && shorter < safe && after(shorter) >= now;
                self.next_at = after(if self.tests_gap { shorter } else { safe });
            }
            None => self.set_pace(self.bracket.pace()),
        }
    }

    /// A failed call is repeated after 1, 2, 4, ... s, as often as a job has calls.
    pub(super) fn failed(&mut self, ticket: Ticket, now: Moment) -> Next {
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

/// A gap of so many seconds, and no longer than the slowest pace has.
fn kept(gap: f64) -> Duration {
    Duration::from_secs_f64(gap.min(1.0 / SLOWEST))
}

pub(super) fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
}
