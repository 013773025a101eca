//! What a deferral costs in calls that an account is billed for.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Policy, Signal, Timestamp};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, VirtualClock, Worker,
    fake::{Calls, FakeQueue},
    port::Queue,
};

/// Refuses every call for this long.
struct Refusing {
    clock: Arc<VirtualClock>,
    wait: Duration,
}

impl Handler for Refusing {
    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        let now = self.clock.now();
        Err(Interrupt::throttled(Signal::new("acme", now).retry_at(now + self.wait)))
    }
}

/// Defers a hundred jobs in ten full batches and deletes what is settled, as a poller does.
async fn defer_a_hundred(wait: Duration) -> Calls {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::EPOCH + Duration::from_secs(1)));
    let queue = FakeQueue::standard("jobs", clock.clone());
    for n in 0..100 {
        queue.send_body(&format!("job {n}")).unwrap();
    }
    let handler = Refusing {
        clock: clock.clone(),
        wait,
    };
    let worker = Worker::builder(handler, Arc::new(queue.clone()))
        .clock(clock)
        .policy(Policy::default())
        .build();
    for _ in 0..10 {
        let batch = queue.receive(10).await.unwrap();
        assert_eq!(batch.len(), 10);
        let settled = worker.run_batch(batch, None).await;
        let deletions: Vec<_> = settled.into_iter().filter_map(|one| one.deletion).collect();
        assert!(queue.delete(&deletions).await.into_iter().all(|answer| answer.is_ok()));
    }
    assert!(queue.receive(10).await.unwrap().is_empty(), "every job waits");
    queue.calls()
}

#[tokio::test(start_paused = true)]
async fn a_deferral_in_the_delay_tier_costs_a_fifth_of_a_call_in_full_batches() {
    let calls = defer_a_hundred(Duration::from_secs(60)).await;
    println!("100 deferrals in the delay tier: {calls:?}");
    assert_eq!((calls.send, calls.delete, calls.visibility), (10, 10, 0));
    assert!(calls.total() * 5 <= 100, "{} calls for 100 deferrals", calls.total());
}

#[tokio::test(start_paused = true)]
async fn a_deferral_by_visibility_costs_a_tenth_of_a_call_in_full_batches() {
    let calls = defer_a_hundred(Duration::from_secs(2 * 3600)).await;
    println!("100 deferrals by visibility: {calls:?}");
    assert_eq!((calls.send, calls.delete, calls.visibility), (0, 0, 10));
}
