//! A budget whose pace a strategy finds.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_http::{Rate, RateBudget, WaitReason};
use adjourn_pace::{Answer, Moment, Next, Outcome, Strategy, Ticket, Tries, Turn};
use http::HeaderMap;

use crate::calls::{MS, S, Watch, headers, send, settle, try_send};

/// What a strategy was asked and told.
#[derive(Debug, Default)]
struct Told {
    started: u32,
    unmade: u32,
    answers: Vec<Outcome>,
    named: Option<Duration>,
}

/// A strategy that follows a script: at most so many in flight, so long after the last start.
#[derive(Debug)]
struct Scripted {
    told: Arc<Mutex<Told>>,
    at_once: u32,
    every: Duration,
    in_flight: u32,
    next_at: Moment,
    closed: bool,
}

impl Strategy for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn turn(&mut self, now: Moment) -> Turn {
        if self.closed {
            Turn::Defer
        } else if self.in_flight >= self.at_once {
            Turn::AfterAnswer
        } else if self.next_at > now {
            Turn::At(self.next_at)
        } else {
            Turn::Now
        }
    }

    fn started(&mut self, tries: Tries, now: Moment) -> Ticket {
        self.told.lock().unwrap().started += 1;
        self.in_flight += 1;
        self.next_at = now + self.every;
        Ticket {
            sent_at: now,
            number: 1,
            tries,
        }
    }

    fn unmade(&mut self, _ticket: Ticket, now: Moment) {
        self.told.lock().unwrap().unmade += 1;
        self.in_flight -= 1;
        self.next_at = now;
    }

    fn answered(&mut self, _ticket: Ticket, answer: &Answer, now: Moment) -> Next {
        self.in_flight -= 1;
        let mut told = self.told.lock().unwrap();
        told.answers.push(answer.outcome);
        told.named = answer.retry_at.map(|at| at.since(now));
        if answer.outcome == Outcome::Refused {
            self.closed = true;
            return Next::Again {
                at: now + 90 * S,
                spent: true,
            };
        }
        Next::Settled
    }

    fn rate(&self) -> Option<f64> {
        Some(self.every.as_secs_f64().recip())
    }
}

fn scripted(at_once: u32, every: Duration) -> (RateBudget, Arc<Mutex<Told>>) {
    let told = Arc::new(Mutex::new(Told::default()));
    let strategy = Scripted {
        told: told.clone(),
        at_once,
        every,
        in_flight: 0,
        next_at: Moment::ORIGIN,
        closed: false,
    };
    (RateBudget::unknown().finding(Box::new(strategy)), told)
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_the_strategy_s() {
    let ((budget, told), watch) = (scripted(100, 250 * MS), Watch::start());
    assert_eq!(budget.effective_rate().map(Rate::interval), Some(250 * MS));
    for _ in 0..9 {
        send(&budget, "/").await.answered(200, &HeaderMap::new());
    }
    assert_eq!(watch.read(), 8 * 250 * MS);
    assert_eq!(told.lock().unwrap().started, 9);
    assert_eq!(told.lock().unwrap().answers, vec![Outcome::Passed; 9]);
}

#[tokio::test(start_paused = true)]
async fn every_start_is_answered_once_whatever_becomes_of_the_call() {
    let (budget, told) = scripted(100, Duration::ZERO);
    drop(budget.turn("/", None).await.unwrap());
    drop(send(&budget, "/").await);
    send(&budget, "/").await.unanswered();
    let twice = send(&budget, "/").await;
    twice.answered(200, &HeaderMap::new());
    twice.answered(500, &HeaderMap::new());
    drop(twice);
    let told = told.lock().unwrap();
    assert_eq!((told.started, told.unmade), (4, 1));
    assert_eq!(told.answers, [Outcome::Failed, Outcome::Failed, Outcome::Passed]);
}

#[tokio::test(start_paused = true)]
async fn a_check_is_a_start_without_an_answer() {
    let (budget, told) = scripted(1, Duration::ZERO);
    for _ in 0..3 {
        assert!(budget.check("/").is_ok(), "it waits for nobody's answer");
    }
    assert_eq!(told.lock().unwrap().answers, vec![Outcome::Failed; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_another_one_s_answer_where_the_strategy_wants_that() {
    let ((budget, _), watch) = (scripted(1, Duration::ZERO), Watch::start());
    let first = send(&budget, "/").await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move {
            drop(send(&budget, "/").await);
            watch.read()
        }
    });
    settle().await;
    tokio::time::advance(3 * S).await;
    first.answered(200, &HeaderMap::new());
    assert_eq!(
        waiting.await.unwrap(),
        3 * S,
        "the answer is enough, the body may take its time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_closes_defers_who_waits_and_says_when_the_call_comes_again() {
    let (budget, told) = scripted(1, Duration::ZERO);
    let first = send(&budget, "/").await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { try_send(&budget, "/", None).await.map(drop) }
    });
    settle().await;
    let feedback = first.answered(429, &headers(&[("Retry-After", "7")]));
    assert_eq!(feedback.retry_after, Some(90 * S));
    assert_eq!(told.lock().unwrap().named.map(|named| named.as_secs()), Some(7));
    tokio::time::advance(8 * S).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.reason, WaitReason::Closed);
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_an_unknown_rate_holds_nothing_but_pauses_and_places() {
    let (budget, watch) = (RateBudget::unknown(), Watch::start());
    assert_eq!(budget.effective_rate(), None);
    for _ in 0..10_000 {
        assert!(budget.check("/").is_ok());
    }
    send(&budget, "/")
        .await
        .answered(429, &headers(&[("Retry-After", "5")]));
    drop(send(&budget, "/").await);
    assert!(watch.read() >= 5 * S);
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_is_told_after_all_replaces_the_strategy() {
    let (budget, told) = scripted(1, S);
    let first = send(&budget, "/").await;
    budget.set_rate(Rate::per_second(10));
    assert_eq!(budget.effective_rate(), Some(Rate::per_second(10)));
    for _ in 0..10 {
        assert!(budget.check("/").is_ok());
    }
    assert!(budget.check("/").is_err());
    first.answered(200, &HeaderMap::new());
    assert!(told.lock().unwrap().answers.is_empty());
}
