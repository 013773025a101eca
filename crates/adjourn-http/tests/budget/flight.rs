//! Places in flight: taken with the send, free with the end of the body, whatever path ends it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use adjourn_http::{HeldBody, Rate, RateBudget, RateRule, WaitReason};
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Empty, Full};

use crate::calls::{Log, MS, S, Watch, send, settle, try_send};

/// Frames that come one by one, then its end: there is one, or it breaks off, or it never comes.
struct Frames {
    left: u32,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Well,
    Broken,
    Never,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        if self.left > 0 {
            self.left -= 1;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))));
        }
        match self.end {
            End::Well => Poll::Ready(None),
            End::Broken => Poll::Ready(Some(Err("connection reset"))),
            End::Never => Poll::Pending,
        }
    }
}

async fn body(budget: &RateBudget, end: End) -> HeldBody<Frames> {
    send(budget, "/").await.body(Frames { left: 3, end })
}

fn one() -> RateBudget {
    RateBudget::new(Rate::per_second(1000)).max_in_flight(1)
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_body_is_read_to_its_end_or_dropped_whatever_path_drops_it() {
    let budget = one();
    let in_use = || budget.in_flight();

    let mut read = body(&budget, End::Well).await;
    for _ in 0..3 {
        assert!(read.frame().await.unwrap().is_ok());
        assert_eq!(in_use(), 1, "not read to its end yet");
    }
    assert!(read.frame().await.is_none());
    assert_eq!(in_use(), 0, "read to its end, and still there");

    let mut broken = body(&budget, End::Broken).await;
    while let Some(Ok(_)) = broken.frame().await {}
    assert_eq!(in_use(), 0, "broken off");

    let mut dropped = body(&budget, End::Well).await;
    assert!(dropped.frame().await.unwrap().is_ok());
    drop(dropped);
    assert_eq!(in_use(), 0, "dropped half-read");

    let never_read = body(&budget, End::Never).await;
    drop(never_read);
    assert_eq!(in_use(), 0, "dropped unread");

    let hanging = body(&budget, End::Never).await;
    let reading = tokio::spawn(async move { hanging.collect().await.map(|_| ()) });
    settle().await;
    assert_eq!(in_use(), 1);
    reading.abort();
    assert!(reading.await.unwrap_err().is_cancelled());
    assert_eq!(in_use(), 0, "its reader was cancelled");

    let held = body(&budget, End::Well).await;
    let panicking = tokio::spawn(async move {
        let _held = held;
        panic!("a handler's own fault");
    });
    assert!(panicking.await.unwrap_err().is_panic());
    assert_eq!(in_use(), 0, "its reader panicked");

    let hanging = body(&budget, End::Never).await;
    let timed = tokio::time::timeout(S, hanging.collect()).await;
    assert!(timed.is_err());
    assert_eq!(in_use(), 0, "its reader timed out");

    let in_flight = send(&budget, "/").await;
    in_flight.unanswered();
    drop(in_flight);
    assert_eq!(in_use(), 0, "no response came");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_byte_holds_nothing() {
    let budget = one();
    let empty = send(&budget, "/").await.body(Empty::<Bytes>::new());
    assert_eq!(budget.in_flight(), 0, "nobody has to read what is not there");
    drop(empty);
    let mut full = send(&budget, "/").await.body(Full::new(Bytes::from_static(b"all")));
    assert_eq!((budget.in_flight(), full.size_hint().exact()), (1, Some(3)));
    assert!(full.frame().await.unwrap().is_ok());
    assert_eq!(budget.in_flight(), 0, "that was its last frame");
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_are_in_flight_than_may_be_and_none_waits_longer_than_it_must() {
    let budget = RateBudget::new(Rate::per_second(1000)).max_in_flight(3);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let watch = Watch::start();
    let mut tasks = Vec::new();
    for _ in 0..30 {
        let (budget, now, most) = (budget.clone(), now.clone(), most.clone());
        tasks.push(tokio::spawn(async move {
            let in_flight = send(&budget, "/").await;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(100 * MS).await;
            now.fetch_sub(1, Ordering::SeqCst);
            drop(in_flight);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(watch.read(), 10 * 100 * MS);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_place_spends_no_start_until_there_is_one() {
    let (budget, watch) = (RateBudget::new(Rate::new(1, S)).max_in_flight(1), Watch::start());
    let first = send(&budget, "/").await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move {
            let second = send(&budget, "/").await;
            let at = watch.read();
            drop(second);
            drop(send(&budget, "/").await);
            (at, watch.read())
        }
    });
    tokio::time::sleep(30 * S).await;
    drop(first);
    let (second, third) = waiting.await.unwrap();
    assert_eq!(
        (second, third),
        (30 * S, 31 * S),
        "thirty seconds of waiting saved up one start, not thirty"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_place_fails_at_its_deadline() {
    let (budget, watch) = (one(), Watch::start());
    let held = send(&budget, "/").await;
    let error = try_send(&budget, "/", Some(5 * S)).await.unwrap_err();
    assert_eq!(
        (error.reason, error.retry_after),
        (WaitReason::InFlight, Duration::ZERO)
    );
    assert_eq!((watch.read(), budget.waiting()), (5 * S, 0));
    drop(held);
    drop(try_send(&budget, "/", Some(S)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_lane_s_call_gets_the_place_that_becomes_free_in_the_whole() {
    let budget = RateBudget::new(Rate::per_second(100)).max_in_flight(1).rules([
        RateRule::new("/exports", Rate::per_second(100)),
        RateRule::new("/imports", Rate::per_second(100)),
    ]);
    let held = send(&budget, "/orders").await;
    let mut tasks = Vec::new();
    for path in ["/exports", "/imports", "/exports", "/orders", "/imports"] {
        let budget = budget.clone();
        tasks.push(tokio::spawn(async move { drop(send(&budget, path).await) }));
        settle().await;
    }
    drop(held);
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    tokio::time::timeout(S, all)
        .await
        .expect("nobody waits for a place that is free");
    assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_no_place_taken() {
    let budget = one();
    let held = send(&budget, "/").await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { drop(send(&budget, "/").await) }
    });
    settle().await;
    drop(held);
    // Its turn has been given to it, and it is cancelled before it can take it.
    waiting.abort();
    settle().await;
    assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
    drop(try_send(&budget, "/", Some(S)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn places_of_a_shared_lane_are_waited_for_where_the_whole_has_enough() {
    let shared = RateBudget::new(Rate::per_second(100)).max_in_flight(1);
    let budget = RateBudget::new(Rate::per_second(100))
        .max_in_flight(10)
        .rules([RateRule::shared("/exports", shared.clone())]);
    let held = send(&budget, "/exports").await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let budget = budget.clone();
        tasks.push(tokio::spawn(async move { drop(send(&budget, "/exports").await) }));
        settle().await;
    }
    assert_eq!((budget.in_flight(), shared.waiting()), (1, 3));
    drop(send(&budget, "/orders").await);
    drop(held);
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    tokio::time::timeout(S, all)
        .await
        .expect("nobody waits for a place that is free");
    assert_eq!((budget.in_flight(), shared.in_flight(), shared.waiting()), (0, 0, 0));
}

/// Calls that each hold a place for ten milliseconds, as tasks that arrive in this order; which of them went out when.
async fn arrive(budget: &RateBudget, log: &Log, calls: impl IntoIterator<Item = (usize, &'static str)>, watch: Watch) {
    for (number, path) in calls {
        let (budget, log) = (budget.clone(), log.clone());
        tokio::spawn(async move {
            let in_flight = send(&budget, path).await;
            log.note(number, watch.read());
            tokio::time::sleep(10 * MS).await;
            drop(in_flight);
        });
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn places_are_given_in_order_of_arrival_whatever_the_lane() {
    let shared = RateBudget::new(Rate::per_second(1000));
    for most in [1, 3] {
        let budget = RateBudget::new(Rate::per_second(1000)).max_in_flight(most).rules([
            RateRule::new("/exports", Rate::per_second(1000)),
            RateRule::new("/imports", Rate::per_second(1000)),
            RateRule::shared("/dumps", shared.clone()),
        ]);
        let (log, watch) = (Log::default(), Watch::start());
        let mut held = Vec::new();
        for _ in 0..most {
            held.push(send(&budget, "/orders").await);
        }
        let paths = ["/orders", "/exports", "/dumps", "/imports", "/exports"];
        let of = |number: usize| if number < 3 { "/orders" } else { paths[number % 5] };
        arrive(&budget, &log, (0..40).map(|number| (number, of(number))), watch).await;
        assert_eq!(log.count(), 0);
        drop(held);
        tokio::time::sleep(S).await;
        // Tasks that are woken in one moment run in an order of their own.
        let mut sent: Vec<_> = log.moments().into_iter().zip(log.order()).collect();
        sent.sort_unstable();
        let order: Vec<usize> = sent.into_iter().map(|(_, number)| number).collect();
        assert_eq!(order, (0..40).collect::<Vec<_>>(), "{most} at a time");
        assert_eq!((budget.in_flight(), budget.waiting(), shared.waiting()), (0, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_called_all_the_time_keeps_no_place_from_others() {
    for busy in ["/exports", "/orders", "/dumps"] {
        let budget = RateBudget::new(Rate::per_second(1000)).max_in_flight(1).rules([
            RateRule::new("/exports", Rate::per_second(1000)),
            RateRule::shared("/dumps", RateBudget::new(Rate::per_second(1000))),
        ]);
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let budget = budget.clone();
                tokio::spawn(async move {
                    loop {
                        let in_flight = send(&budget, busy).await;
                        tokio::time::sleep(10 * MS).await;
                        drop(in_flight);
                    }
                })
            })
            .collect();
        tokio::time::sleep(55 * MS).await;
        for path in ["/orders", "/exports", "/dumps"] {
            let watch = Watch::start();
            let sent = tokio::time::timeout(S, send(&budget, path)).await;
            assert!(sent.is_ok_and(|_| watch.read() <= 20 * MS), "{path} beside {busy}");
        }
        for caller in callers {
            caller.abort();
        }
        settle().await;
        assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_lane_s_rate_holds_keeps_no_place_from_others_and_has_the_next_one_when_it_may_start() {
    let budget = RateBudget::new(Rate::per_second(1000))
        .max_in_flight(1)
        .rules([RateRule::new("/exports", Rate::new(1, S))]);
    drop(send(&budget, "/exports").await);
    let (log, watch) = (Log::default(), Watch::start());
    let held = send(&budget, "/orders").await;
    arrive(&budget, &log, [(0, "/exports")], watch).await;
    arrive(&budget, &log, (1..200).map(|number| (number, "/orders")), watch).await;
    drop(held);
    tokio::time::sleep(3 * S).await;
    let order = log.order();
    let place = order.iter().position(|number| *number == 0).unwrap();
    assert_eq!(
        log.moments()[0],
        Duration::ZERO,
        "nobody waits for a place that is free"
    );
    assert!(
        (95..=101).contains(&place),
        "after its second, and not after all: {place}"
    );
    let others: Vec<usize> = order.into_iter().filter(|number| *number > 0).collect();
    assert_eq!(others, (1..200).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_it_waits_for_a_place_stands_in_nobody_s_way() {
    let budget = RateBudget::new(Rate::per_second(1000))
        .max_in_flight(1)
        .rules([RateRule::new("/exports", Rate::per_second(1000))]);
    let held = send(&budget, "/orders").await;
    let first = tokio::spawn({
        let budget = budget.clone();
        async move { drop(send(&budget, "/exports").await) }
    });
    settle().await;
    let (log, watch) = (Log::default(), Watch::start());
    arrive(&budget, &log, [(0, "/orders"), (1, "/exports"), (2, "/orders")], watch).await;
    first.abort();
    settle().await;
    assert_eq!(budget.waiting(), 3, "two of its own and a lane whose first call waits");
    drop(held);
    tokio::time::sleep(S).await;
    assert_eq!((log.order(), budget.waiting()), (vec![0, 1, 2], 0));
}

#[test]
fn threads_that_call_lanes_at_once_lose_no_place_and_no_turn() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    let shared = RateBudget::unknown().max_in_flight(2);
    let budget = RateBudget::unknown().max_in_flight(3).rules([
        RateRule::shared("/dumps", shared.clone()),
        RateRule::new("/exports", Rate::per_second(1_000_000)),
    ]);
    let most = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..16)
            .map(|task| {
                let (budget, most) = (budget.clone(), most.clone());
                tokio::spawn(async move {
                    for call in 0..500 {
                        let path = ["/dumps", "/exports", "/orders"][(task + call) % 3];
                        let in_flight = send(&budget, path).await;
                        most.fetch_max(budget.in_flight() as usize, Ordering::Relaxed);
                        if call % 7 == 0 {
                            tokio::task::yield_now().await;
                        }
                        drop(in_flight);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!((1..=3).contains(&most.load(Ordering::Relaxed)));
    assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
    assert_eq!((shared.in_flight(), shared.waiting()), (0, 0));
}
