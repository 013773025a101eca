//! A handler of your own, and what becomes of a batch of which one job is fine, one is refused and one is rubbish.
//!
//! On the ports in memory; with `adjourn-aws` the same worker answers a Lambda invocation.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Kind, Signal, Timestamp};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, Settlement, VirtualClock, Worker,
    fake::{FakeQueue, FakeScheduler, ScheduleSettings},
};

#[derive(serde::Deserialize)]
struct Invoice {
    customer: String,
}

struct Invoices(Arc<VirtualClock>);

impl Handler for Invoices {
    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let invoice: Invoice = job.json()?;
        if invoice.customer == "busy" {
            let now = self.0.now();
            let refusal = Signal::new("bookkeeping", now).kind(Kind::Short).reason("ten a minute");
            return Err(Interrupt::throttled(refusal.retry_at(now + Duration::from_secs(30))));
        }
        Ok(Done::new())
    }
}

#[tokio::test(start_paused = true)]
async fn each_message_of_a_batch_has_its_own_end() {
    let noon = Timestamp::parse("2026-07-10T12:00:00Z").unwrap();
    let clock = Arc::new(VirtualClock::starting_at(noon));
    let queue = FakeQueue::standard("jobs", clock.clone());
    let scheduler = FakeScheduler::new(&queue, ScheduleSettings::default());
    let worker = Worker::builder(Invoices(clock.clone()), Arc::new(queue.clone()))
        .scheduler(Arc::new(scheduler))
        .clock(clock.clone())
        .build();
    for body in [r#"{"customer":"ada"}"#, r#"{"customer":"busy"}"#, "rubbish"] {
        queue.send_body(body).unwrap();
    }

    // What a Lambda invocation does: receive, run, and answer which messages are to stay.
    let batch = queue.receive(10).await.unwrap();
    let settled = worker.run_batch(batch.clone(), None).await;
    let stay: Vec<String> = settled
        .iter()
        .filter(|settled| settled.settlement == Settlement::Keep)
        .map(|settled| settled.message.id.clone())
        .collect();
    queue.respond(&batch, &stay).await.unwrap();

    // All three originals are gone: one is done, one waits as a copy, one is a dead letter.
    assert!(stay.is_empty());
    let waiting = queue.stored();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].message.body, r#"{"customer":"busy"}"#);
    assert_eq!(queue.dead_letters().len(), 1);
    assert_eq!(queue.dead_letters()[0].body, "rubbish");

    // Never early: just before the moment that the provider named, there is nothing to receive.
    tokio::time::advance(Duration::from_secs(29)).await;
    assert!(queue.receive(10).await.unwrap().is_empty());
    let again = queue.next_receivable_at().unwrap();
    assert!(
        again >= noon + Duration::from_secs(30) - Duration::from_secs(1),
        "a rest under a second is waited before the call"
    );
}

#[tokio::test(start_paused = true)]
async fn on_a_fifo_queue_the_refused_message_stays_and_keeps_its_order() {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::EPOCH));
    let queue = FakeQueue::fifo("jobs.fifo", clock.clone());
    let worker = Worker::builder(Invoices(clock.clone()), Arc::new(queue.clone()))
        .clock(clock)
        .build();
    let busy = queue.send_body(r#"{"customer":"busy"}"#).unwrap();

    let batch = queue.receive(10).await.unwrap();
    let settled = worker.run_batch(batch, None).await;

    // This is the one entry of the answer's batchItemFailures; its visibility was changed to the whole wait.
    let [kept] = settled.as_slice() else {
        panic!("one message, one settlement")
    };
    assert_eq!((&kept.settlement, &kept.message.id), (&Settlement::Keep, &busy));
}
