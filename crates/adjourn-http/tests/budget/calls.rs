//! What the tests share: virtual time, headers, and calls that note when they went out.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::Timestamp;
use adjourn_http::{InFlight, NoTurn, Now, RateBudget};
use adjourn_worker::{Clock, VirtualClock};
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const S: Duration = Duration::from_secs(1);

/// Virtual time since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch(VirtualClock);

impl Watch {
    pub(crate) fn start() -> Self {
        Self(VirtualClock::starting_at(Timestamp::EPOCH))
    }

    pub(crate) fn read(self) -> Duration {
        self.0.now().since(Timestamp::EPOCH)
    }
}

/// A wall clock that goes with virtual time and shows this moment now.
pub(crate) fn wall(text: &str) -> Now {
    let clock = VirtualClock::starting_at(Timestamp::parse(text).unwrap());
    Arc::new(move || clock.now())
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

/// Waits for a turn and sends.
pub(crate) async fn send(budget: &RateBudget, path: &str) -> InFlight {
    try_send(budget, path, None).await.unwrap()
}

pub(crate) async fn try_send(budget: &RateBudget, path: &str, within: Option<Duration>) -> Result<InFlight, NoTurn> {
    budget.turn(path, within).await?.sent()
}

/// A call that is answered at once with 200.
pub(crate) async fn call(budget: &RateBudget) {
    let in_flight = send(budget, "/").await;
    in_flight.answered(200, &HeaderMap::new());
}

/// A call that is refused, with these headers.
pub(crate) async fn refused(budget: &RateBudget, lines: &[(&str, &str)]) -> adjourn_http::Feedback {
    send(budget, "/").await.answered(429, &headers(lines))
}

/// Moments of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(usize, Duration)>>>);

impl Log {
    pub(crate) fn note(&self, call: usize, at: Duration) {
        self.0.lock().unwrap().push((call, at));
    }

    pub(crate) fn order(&self) -> Vec<usize> {
        self.0.lock().unwrap().iter().map(|(call, _)| *call).collect()
    }

    pub(crate) fn moments(&self) -> Vec<Duration> {
        self.0.lock().unwrap().iter().map(|(_, at)| *at).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// So many calls at a time, each a task that notes when it went out; in the order of their numbers.
pub(crate) async fn crowd(budget: &RateBudget, calls: usize, watch: Watch) -> Log {
    let log = Log::default();
    let mut tasks = Vec::new();
    for number in 0..calls {
        let (budget, log) = (budget.clone(), log.clone());
        tasks.push(tokio::spawn(async move {
            let in_flight = send(&budget, "/").await;
            log.note(number, watch.read());
            in_flight.answered(200, &HeaderMap::new());
        }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    log
}

/// Lets every task run that can run now.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
