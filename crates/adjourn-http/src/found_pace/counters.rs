//! What the provider's own counters leave to be started, until they start anew.
//!
//! A provider may count in several windows at once, which are told apart by how much they allow. A counter is as old as its answer. Of the calls in flight only those are not in it that started after the one that was answered, or
//! so shortly before that they may have been overtaken: subtracting all of them would hold back a scope whose calls take longer
//! than a window.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use adjourn_pace::{Counter, Moment, Ticket, Turn};

/// A call that started so much before another may reach the provider after it.
const OVERTAKEN: Duration = Duration::from_millis(50);
/// The reset of one window, told twice: so far apart by rounding to seconds.
const ROUNDED: Duration = Duration::from_secs(1);
/// No window is taken to be shorter.
const SHORTEST: Duration = Duration::from_secs(1);
/// More limits of one provider are not kept.
const MOST_LIMITS: usize = 16;

/// The counters of one scope.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    limits: Vec<Limit>,
    /// The number of the next start.
    next: u64,
}

/// One limit that is counted.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Calls of a whole window, where it is known.
    whole: Option<u64>,
    /// How long its windows are at least: they are seen from within.
    length: Duration,
    window: Window,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    /// Calls that are left by the provider's count.
    remaining: u64,
    resets_at: Moment,
    /// Whether an answer told of it. One that follows by the clock alone is believed only until an answer says otherwise.
    told: bool,
    /// Answers of earlier calls than this one are as old as what is known.
    news_from: u64,
    /// The first call that is not in `remaining`, and how many of those are in flight.
    uncounted_from: u64,
    uncounted: u64,
}

impl Window {
    fn left(&self) -> u64 {
        self.remaining.saturating_sub(self.uncounted)
    }
}

impl Limit {
    /// The window that is open at `now`, of which the first start is number `next`. After one that was told follows a whole one. Where
    /// nobody said how much that is, one call asks first if nothing was left, and otherwise nothing is held back.
    fn window_at(&self, next: u64, now: Moment) -> Option<Window> {
        if self.window.resets_at > now {
            return Some(self.window);
        }
        let whole = self.whole.or_else(|| (self.window.remaining == 0).then_some(1));
        Some(Window {
            remaining: whole?.max(1),
            resets_at: now + self.length,
            told: false,
            news_from: next,
            uncounted_from: next,
            uncounted: 0,
        })
    }
}

impl Counters {
    /// Nothing was told yet, and no call was made.
    pub(super) fn new() -> Self {
        Self {
            limits: Vec::new(),
            next: 1,
        }
    }

    fn windows(&self, now: Moment) -> impl Iterator<Item = (Option<u64>, Window)> {
        let open = move |limit: &Limit| Some((limit.whole, limit.window_at(self.next, now)?));
        self.limits.iter().filter_map(open)
    }

    /// Windows that are over give way to those that follow.
    fn renew(&mut self, now: Moment) {
        let next = self.next;
        self.limits.retain_mut(|limit| match limit.window_at(next, now) {
            Some(window) => {
                limit.window = window;
                true
            }
            None => false,
        });
    }

    /// Whether a call may start now.
    pub(super) fn turn(&mut self, now: Moment) -> Turn {
        self.renew(now);
        let windows = || self.limits.iter().map(|limit| limit.window);
        let spent = windows().filter(|window| window.remaining == 0);
        match spent.map(|window| window.resets_at).max() {
            Some(reset) => Turn::At(reset),
            // What is in flight tells how it really stands: no wait for a reset on a guess.
            None if windows().any(|window| window.left() == 0) => Turn::AfterAnswer,
            None => Turn::Now,
        }
    }

    /// How many calls may start now; none where nothing is known.
    pub(super) fn startable(&self, now: Moment) -> Option<u64> {
        self.windows(now).map(|(_, window)| window.left()).min()
    }

    /// Whether the provider said that no call is left.
    pub(super) fn is_spent(&self, now: Moment) -> bool {
        self.windows(now).any(|(_, window)| window.remaining == 0)
    }

    pub(super) fn started(&mut self, ticket: Ticket) {
        self.next = ticket.number.saturating_add(1);
        for limit in &mut self.limits {
            limit.window.uncounted = limit.window.uncounted.saturating_add(1);
        }
    }

    /// A call is in flight no longer.
    pub(super) fn ended(&mut self, ticket: Ticket) {
        for Limit { window, .. } in &mut self.limits {
            if ticket.number >= window.uncounted_from {
                window.uncounted = window.uncounted.saturating_sub(1);
            }
        }
    }

    /// The answer of a call that has ended told these, in which it is counted.
    pub(super) fn told(&mut self, counters: &[Counter], ticket: Ticket, in_flight: &HashMap<u64, Ticket>, now: Moment) {
        self.renew(now);
        // What was believed by the clock alone, and this answer does not confirm.
        self.limits
            .retain(|limit| limit.window.told || counters.iter().any(|counter| counter.limit == limit.whole));
        let to_come = counters.iter().filter(|counter| counter.resets_at > now);
        for counter in to_come {
            let twin = |other: &&Counter| other.limit == counter.limit && least(other) < least(counter);
            if !counters.iter().any(|other| twin(&other)) {
                self.hear(*counter, ticket, in_flight);
            }
        }
        self.limits.truncate(MOST_LIMITS);
    }

    fn hear(&mut self, counter: Counter, ticket: Ticket, in_flight: &HashMap<u64, Ticket>) {
        let known = self.limits.iter_mut().find(|limit| limit.whole == counter.limit);
        let length = SHORTEST.max(counter.resets_at.since(ticket.sent_at));
        let mut resets_at = counter.resets_at;
        if let Some(Limit { window, .. }) = known.as_deref().filter(|limit| limit.window.told) {
            let not_later = counter.resets_at <= window.resets_at + ROUNDED;
            if not_later && ticket.number < window.news_from && window.remaining <= counter.remaining {
                return;
            }
            if not_later && window.resets_at <= counter.resets_at + ROUNDED {
                resets_at = resets_at.max(window.resets_at);
            }
        }
        let uncounted = in_flight
            .values()
            .filter(|other| other.sent_at + OVERTAKEN >= ticket.sent_at);
        let window = Window {
            remaining: counter.remaining,
            resets_at,
            told: true,
            news_from: self.next,
            uncounted_from: uncounted.clone().map(|other| other.number).min().unwrap_or(self.next),
            uncounted: u64::try_from(uncounted.count()).unwrap_or(u64::MAX),
        };
        match known {
            Some(limit) => {
                limit.length = limit.length.max(length);
                limit.window = window;
            }
            None => self.limits.push(Limit {
                whole: counter.limit,
                length,
                window,
            }),
        }
    }

    /// The counter that binds first, as a strategy is told it, which subtracts all of the `in_flight`.
    pub(super) fn binding(&self, in_flight: usize, now: Moment) -> Option<Counter> {
        let told = self.windows(now).filter(|(_, window)| window.told);
        let counters = told.map(|(limit, window)| Counter {
            limit,
            remaining: match window.remaining {
                0 => 0,
                // Where calls in flight may have used it up, the strategy is not asked.
                _ => u64::try_from(in_flight)
                    .unwrap_or(u64::MAX)
                    .saturating_add(window.left().max(1)),
            },
            resets_at: window.resets_at,
        });
        counters.min_by_key(least)
    }
}

/// By this the counter that binds first is the least: of spent ones the last to start anew.
fn least(counter: &Counter) -> (u64, Reverse<Moment>) {
    (counter.remaining, Reverse(counter.resets_at))
}

#[cfg(test)]
mod tests;
