//! A rate budget: one client, used by many tasks, that keeps its provider's limits instead of meeting them.
//!
//! The shop allows ten requests a second, its exports one each ten seconds, and three requests at a time. Whoever calls it asks the
//! budget for a turn, says when the call goes out, and tells the budget each answer. The provider here is a function that counts, so
//! that the example runs in virtual time; with a real client the same four lines stand around the request.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_core::Timestamp;
use adjourn_http::{NoTurn, Rate, RateBudget, RateRule};
use adjourn_worker::{Clock, VirtualClock};
use http::{HeaderMap, HeaderValue};

/// The provider: a token bucket for everything but exports, one for exports, and a count of what is in flight.
struct Shop {
    clock: VirtualClock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    orders: Vec<Timestamp>,
    exports: Vec<Timestamp>,
    in_flight: usize,
    most_in_flight: usize,
    refused: usize,
    closed_until: Option<Timestamp>,
}

#[cfg(test)]
impl Shop {
    async fn answer(&self, path: &str) -> (u16, HeaderMap) {
        let now = self.clock.now();
        let mut headers = HeaderMap::new();
        let allowed = {
            let mut state = self.state.lock().unwrap();
            state.in_flight += 1;
            state.most_in_flight = state.most_in_flight.max(state.in_flight);
            let (calls, most, per) = if path.contains("/exports") {
                (&mut state.exports, 1, Duration::from_secs(10))
            } else {
                // Ten that are saved up, and ten that come back in the same second.
                (&mut state.orders, 20, Duration::from_secs(1))
            };
            calls.push(now);
            let recent = calls.iter().filter(|at| now.since(**at) < per).count();
            let closed = state.closed_until.is_some_and(|until| now < until);
            let allowed = recent <= most && !closed;
            state.refused += usize::from(!allowed);
            allowed
        };
        self.clock.sleep(Duration::from_millis(120)).await;
        self.state.lock().unwrap().in_flight -= 1;
        if allowed {
            return (200, headers);
        }
        headers.insert("retry-after", HeaderValue::from_static("5"));
        (429, headers)
    }
}

/// The client: what an application writes around its own requests.
#[derive(Clone)]
struct Client {
    budget: RateBudget,
    shop: Arc<Shop>,
}

impl Client {
    async fn get(&self, path: &str) -> Result<u16, NoTurn> {
        // A call whose turn would take longer than a minute is better deferred: it fails at once and has spent nothing.
        let turn = self.budget.turn(path, Some(Duration::from_secs(60))).await?;
        let in_flight = turn.sent()?;
        let (status, headers) = self.shop.answer(path).await;
        in_flight.answered(status, &headers);
        // With a body: `in_flight.body(body)` holds the place until it is read.
        Ok(status)
    }
}

#[cfg(test)]
fn client() -> Client {
    let clock = VirtualClock::starting_at(Timestamp::EPOCH);
    Client {
        budget: RateBudget::new(Rate::per_second(10))
            .max_in_flight(3)
            .rules([RateRule::new("/exports", Rate::new(1, Duration::from_secs(10)))]),
        shop: Arc::new(Shop {
            clock,
            state: Mutex::default(),
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn many_tasks_keep_the_limits_of_one_provider() {
    let client = client();
    let mut tasks = Vec::new();
    for number in 0..63 {
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            let path = if number % 21 == 20 {
                "/v2/exports/orders.csv"
            } else {
                "/v2/orders"
            };
            client.get(path).await
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), Ok(200));
    }
    let state = client.shop.state.lock().unwrap();
    assert_eq!((state.refused, state.most_in_flight), (0, 3));
    assert_eq!((state.orders.len(), state.exports.len()), (60, 3));
    assert!(state.exports[2].since(state.exports[0]) >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn one_refusal_pauses_all_of_them_and_lowers_the_rate() {
    let client = client();
    client.shop.state.lock().unwrap().closed_until = Some(Timestamp::EPOCH + Duration::from_millis(1));
    assert_eq!(client.get("/v2/orders").await, Ok(429));
    let pause = client.budget.pause_remaining().unwrap();
    assert!(
        pause > Duration::from_millis(4800) && pause < Duration::from_millis(5600),
        "{pause:?}"
    );
    let rate = client.budget.effective_rate().unwrap();
    assert_eq!(rate.interval(), Duration::from_millis(200), "half of ten a second");

    // Whoever has less time than that is told at once, with the status that asked for the pause.
    let hurried = client
        .budget
        .turn("/v2/orders", Some(Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert_eq!(hurried.status, Some(429));
    // The others wait, and start one by one.
    let (one, other) = tokio::join!(client.get("/v2/orders"), client.get("/v2/exports/a.csv"));
    assert_eq!((one, other), (Ok(200), Ok(200)));
    assert_eq!(client.shop.state.lock().unwrap().refused, 1);
}
