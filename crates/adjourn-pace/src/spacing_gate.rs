//! A spacing gate with a circuit: what a careful client of our own making would do without measuring.
//!
//! Starts are spaced: nothing until the first refusal, then 100 ms, doubled by each further one up to 2 s, and shortened by a tenth by each
//! success. A named moment pauses the gate. So many new refusals without a success between them open a circuit (as in M. Nygard: Release
//! It!, 2007): then nothing is retried and nothing delayed until a call succeeds.

use std::time::Duration;

use crate::{Answer, Ladder, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn};

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// A gap shorter than this is none.
const NONE_BELOW: Duration = Duration::from_millis(1);

/// Starts spaced by what was refused, with a circuit.
#[derive(Clone, Debug)]
pub struct SpacingGate {
    gap: Duration,
    next_at: Moment,
    paused_until: Moment,
    started: u64,
    /// Refusals of calls up to this one are no news.
    changed_at: u64,
    refusals: u32,
    open: bool,
    /// The last success, by the number of starts at that time.
    progress: u64,
    ladder: Ladder,
}

impl SpacingGate {
    /// Retries by the waits and the count of `ladder`.
    #[must_use]
    pub fn new(ladder: Ladder) -> Self {
        Self {
            gap: Duration::ZERO,
            next_at: Moment::ORIGIN,
            paused_until: Moment::ORIGIN,
            started: 0,
            changed_at: 0,
            refusals: 0,
            open: false,
            progress: 0,
            ladder,
        }
    }

    fn most_refusals(&self, hinted: bool) -> u32 {
        let retries = self.ladder.attempts().saturating_sub(1);
        retries.saturating_add(if hinted { 1 } else { 4 })
    }

    fn refused(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        if self.open {
            return Next::GiveUp;
        }
        let news = ticket.number > self.changed_at;
        if news {
            self.changed_at = self.started;
            self.refusals += 1;
            self.gap = (self.gap * 2).clamp(FIRST, LONGEST);
            self.next_at = self.next_at.max(now + self.gap);
        }
        if self.refusals >= self.most_refusals(answer.retry_at.is_some()) {
            // The pause that this refusal asks for is not kept: when the circuit closes, it is long over.
            self.open = true;
            self.paused_until = now;
            self.next_at = now;
            return Next::GiveUp;
        }
        if let Some(at) = answer.retry_at {
            self.paused_until = self.paused_until.max(at);
        }
        // While others pass, a refusal is not this job's fault, up to as many times as it may be called at all.
        let progressed = self.progress >= ticket.number;
        let at = answer.retry_at.unwrap_or(now).max(now);
        if progressed && ticket.tries.free < self.ladder.attempts() {
            return Next::Again { at, spent: false };
        }
        match self.ladder.after(ticket.attempt()) {
            Some(_) => Next::Again { at, spent: true },
            None => Next::GiveUp,
        }
    }
}

impl Strategy for SpacingGate {
    fn name(&self) -> &'static str {
        "spacing-gate"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        let at = self.next_at.max(self.paused_until);
        if at > now && !self.open {
            Turn::At(at)
        } else {
            Turn::Now
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.started += 1;
        self.next_at = self.next_at.max(now) + self.gap;
        Ticket {
            sent_at: now,
            number: self.started,
            tries,
        }
    }

    fn unmade(&mut self, ticket: Ticket, _now: Moment) {
        if ticket.number == self.started {
            self.next_at = self.next_at - self.gap;
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        match answer.outcome {
            Outcome::Passed => {
                self.open = false;
                self.refusals = 0;
                self.progress = self.started;
                self.gap = self.gap.mul_f64(0.9);
                if self.gap < NONE_BELOW {
                    self.gap = Duration::ZERO;
                }
                Next::Settled
            }
            Outcome::Refused => self.refused(ticket, answer, now),
            // A 503 says nothing of the pace.
            Outcome::Failed => crate::fixed::on_its_own(&self.ladder, ticket, answer, now),
        }
    }

    fn rate(&self) -> Option<f64> {
        (!self.gap.is_zero()).then(|| 1.0 / self.gap.as_secs_f64())
    }
}
