//! One scope's counters, told step by step.

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
fn a_window_that_follows_is_as_long_as_one_was_once_seen() {
    let mut scope = Scope::new();
    let first = scope.start(0);
    scope.told(first, 9, 60_000, 10);
    // Seen from near its end, the same window is short.
    let last = scope.start(59_000);
    scope.told(last, 0, 60_000, 59_010);
    for _ in 0..10 {
        scope.start(60_000);
    }
    assert_eq!(scope.turn(119_999), Turn::AfterAnswer);
    assert_eq!(scope.turn(120_000), Turn::Now);
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
