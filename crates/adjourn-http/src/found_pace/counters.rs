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
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(1_000_000 + ms))
    }

    /// The counters of one scope, and its calls in flight.
    struct Scope {
        counters: Counters,
        in_flight: HashMap<u64, Ticket>,
        started: u64,
    }

    impl Scope {
        fn new() -> Self {
            Self {
                counters: Counters::new(),
                in_flight: HashMap::new(),
                started: 0,
            }
        }

        fn start(&mut self, ms: u64) -> Ticket {
            assert_eq!(self.turn(ms), Turn::Now);
            self.started += 1;
            let ticket = Ticket {
                sent_at: at(ms),
                number: self.started,
                tries: adjourn_pace::Tries::default(),
            };
            self.counters.started(ticket);
            self.in_flight.insert(ticket.number, ticket);
            ticket
        }

        fn turn(&mut self, ms: u64) -> Turn {
            let turn = self.counters.turn(at(ms));
            let startable = self.counters.startable(at(ms));
            assert_eq!(turn == Turn::Now, startable.is_none_or(|most| most > 0), "{turn:?}");
            turn
        }

        fn end(&mut self, ticket: Ticket) {
            self.in_flight.remove(&ticket.number);
            self.counters.ended(ticket);
        }

        fn told(&mut self, ticket: Ticket, remaining: u64, resets_ms: u64, now_ms: u64) {
            self.told_of(Some(10), ticket, remaining, resets_ms, now_ms);
        }

        fn told_of(&mut self, limit: Option<u64>, ticket: Ticket, remaining: u64, resets_ms: u64, now_ms: u64) {
            let resets_at = at(resets_ms);
            let counter = Counter {
                limit,
                remaining,
                resets_at,
            };
            self.told_all(&[counter], ticket, now_ms);
        }

        fn told_all(&mut self, counters: &[Counter], ticket: Ticket, now_ms: u64) {
            self.end(ticket);
            self.counters.told(counters, ticket, &self.in_flight, at(now_ms));
        }
    }

    #[test]
    fn what_is_left_is_started_and_no_more_before_the_reset() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told(first, 2, 1000, 10);
        let (second, third) = (scope.start(20), scope.start(20));
        assert_eq!(scope.turn(20), Turn::AfterAnswer, "two are left and two are in flight");
        scope.told(second, 1, 1000, 30);
        assert_eq!(scope.turn(30), Turn::AfterAnswer);
        scope.told(third, 0, 1000, 40);
        assert_eq!(scope.turn(40), Turn::At(at(1000)));
        assert_eq!(scope.turn(999), Turn::At(at(1000)));
        assert_eq!(scope.counters.startable(at(1000)), Some(10), "the whole limit");
        for _ in 0..10 {
            scope.start(1000);
        }
        assert_eq!(scope.turn(1000), Turn::AfterAnswer);
    }

    #[test]
    fn answers_that_overtake_each_other_are_taken_by_the_least() {
        let mut scope = Scope::new();
        let calls: Vec<Ticket> = (0..3).map(|_| scope.start(0)).collect();
        scope.told(calls[2], 0, 1000, 10);
        assert_eq!(scope.turn(10), Turn::At(at(1000)));
        // Told in whole seconds, the same reset is a part of a second later.
        scope.told(calls[0], 2, 1700, 20);
        scope.told(calls[1], 1, 1000, 30);
        assert_eq!(scope.turn(30), Turn::At(at(1000)));
        // A later window's answer is news, whichever call it was.
        let mut scope = Scope::new();
        let calls: Vec<Ticket> = (0..2).map(|_| scope.start(0)).collect();
        scope.told(calls[1], 0, 1000, 900);
        scope.told(calls[0], 9, 2500, 950);
        assert_eq!(scope.turn(950), Turn::Now);
    }

    #[test]
    fn a_counter_that_rises_is_believed_where_it_is_newer() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told(first, 1, 5000, 10);
        let second = scope.start(100);
        scope.told(second, 4, 5000, 110);
        assert_eq!(scope.counters.startable(at(110)), Some(4));
    }

    #[test]
    fn a_reset_is_the_later_of_two_that_differ_by_rounding() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told(first, 1, 5900, 10);
        let second = scope.start(20);
        scope.told(second, 0, 5100, 30);
        assert_eq!(scope.turn(30), Turn::At(at(5900)));
    }

    #[test]
    fn each_of_several_windows_holds_for_itself() {
        let (second, day) = (
            |remaining, resets_ms| Counter {
                limit: Some(10),
                remaining,
                resets_at: at(resets_ms),
            },
            |remaining| Counter {
                limit: Some(5000),
                remaining,
                resets_at: at(60_000),
            },
        );
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told_all(&[second(0, 1000), day(3)], first, 10);
        assert_eq!(scope.turn(10), Turn::At(at(1000)), "the day is not spent");
        assert_eq!(
            scope.counters.startable(at(1000)),
            Some(3),
            "and no more of it is left than that"
        );
        let next = scope.start(1000);
        scope.told_all(&[second(0, 2000), day(0)], next, 1010);
        assert_eq!(
            scope.turn(1010),
            Turn::At(at(60_000)),
            "of spent ones the last to start anew"
        );
        assert_eq!(scope.counters.binding(0, at(1010)).unwrap().resets_at, at(60_000));
        assert_eq!(scope.counters.startable(at(60_000)), Some(10));
    }

    #[test]
    fn of_two_windows_of_one_size_the_one_with_less_left_counts() {
        let counter = |remaining, resets_ms| Counter {
            limit: None,
            remaining,
            resets_at: at(resets_ms),
        };
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told_all(&[counter(7, 60_000), counter(2, 1000)], first, 10);
        assert_eq!(scope.counters.startable(at(10)), Some(2));
    }

    #[test]
    fn calls_that_take_longer_than_a_window_are_not_subtracted_for_ever() {
        let mut scope = Scope::new();
        for started in 0..5 {
            scope.start(started * 100);
        }
        let quick = scope.start(1000);
        scope.told(quick, 4, 2000, 1010);
        assert_eq!(
            scope.counters.startable(at(1010)),
            Some(4),
            "those five are in that count"
        );
        for _ in 0..4 {
            scope.start(1010);
        }
        assert_eq!(scope.turn(1010), Turn::AfterAnswer);
        assert_eq!(
            scope.counters.startable(at(2000)),
            Some(10),
            "and none of the nine in the next window's"
        );
        for _ in 0..10 {
            scope.start(2000);
        }
        assert_eq!(scope.turn(2990), Turn::AfterAnswer);
        assert_eq!(scope.turn(3000), Turn::Now, "nor in the one after it");
    }

    #[test]
    fn what_started_together_with_an_answered_call_may_not_be_in_its_count() {
        let mut scope = Scope::new();
        let calls: Vec<Ticket> = (0..5).map(|_| scope.start(0)).collect();
        // The last of five that started together came first.
        scope.told(calls[4], 9, 1000, 10);
        assert_eq!(scope.counters.startable(at(10)), Some(5));
    }

    #[test]
    fn what_is_not_counted_is_given_back() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told(first, 1, 60_000, 10);
        // An endpoint of another limit, or a call that reached nobody: by a guess alone nothing waits for a minute.
        for ms in [20, 30, 40] {
            let other = scope.start(ms);
            assert_eq!(scope.turn(ms), Turn::AfterAnswer);
            scope.told_all(&[], other, ms);
        }
        assert_eq!(scope.turn(50), Turn::Now);
    }

    #[test]
    fn without_a_limit_one_call_asks_what_the_next_window_has() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told_of(None, first, 0, 1000, 10);
        assert_eq!(scope.turn(10), Turn::At(at(1000)));
        let asks = scope.start(1000);
        assert_eq!(scope.turn(1000), Turn::AfterAnswer);
        scope.told_of(None, asks, 4, 2000, 1010);
        assert_eq!(scope.counters.startable(at(1010)), Some(4));
        // It was far from spent: nothing is held back after it.
        assert_eq!(scope.counters.startable(at(2000)), None);
        // And a provider that tells no more holds nothing back.
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told_of(None, first, 0, 1000, 10);
        let asks = scope.start(1000);
        scope.told_all(&[], asks, 1010);
        assert_eq!(scope.counters.startable(at(1010)), None);
    }

    #[test]
    fn a_window_that_is_over_when_it_is_told_says_nothing() {
        let mut scope = Scope::new();
        let first = scope.start(0);
        scope.told(first, 0, 1000, 1000);
        assert_eq!(scope.counters.startable(at(1000)), None);
        assert_eq!(scope.turn(1000), Turn::Now);
    }

    #[test]
    fn a_strategy_hears_what_is_left_beside_the_calls_in_flight() {
        let mut scope = Scope::new();
        let calls: Vec<Ticket> = (0..3).map(|_| scope.start(0)).collect();
        assert_eq!(scope.counters.binding(3, at(0)), None);
        scope.told(calls[0], 5, 1000, 10);
        let heard = scope.counters.binding(2, at(10)).unwrap();
        assert_eq!((heard.remaining, heard.resets_at), (3 + 2, at(1000)));
        scope.told(calls[1], 0, 1000, 20);
        assert_eq!(scope.counters.binding(1, at(20)).unwrap().remaining, 0);
        assert!(scope.counters.is_spent(at(20)) && !scope.counters.is_spent(at(1000)));
        assert_eq!(
            scope.counters.binding(1, at(1000)),
            None,
            "nobody told of the next window"
        );
        assert_eq!(scope.counters.startable(at(1000) + SECOND), Some(10));
    }
}
