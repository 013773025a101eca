//! Your own answer to the RATE_LIMITED event, in the place of the default handler.
//!
//! It is asked once for each refusal and may wait longer, give the job up, or leave the decision to the default. It cannot
//! call the provider earlier than the provider said: such an answer is corrected.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Kind, Signal, Timestamp, Verdict};
use adjourn_worker::{
    Clock, Done, Handler, Interrupt, Job, RateLimited, RateLimitedHandler, Settlement, VirtualClock, Worker,
    fake::FakeQueue,
};

/// Newsletters may wait for the night; what is about the day that is over is not worth sending.
struct AfterHours;

impl RateLimitedHandler for AfterHours {
    async fn rate_limited(&self, event: &RateLimited) -> Verdict {
        if event
            .message
            .attributes
            .get("topic")
            .is_some_and(|topic| topic == "today")
        {
            return Verdict::Drop {
                reason: "nobody reads it tomorrow".to_string(),
            };
        }
        match (event.kind, event.retry_at) {
            (Kind::AccountDisabled, _) => Verdict::DeadLetter {
                reason: "the account is closed".to_string(),
            },
            (Kind::Daily, Some(at)) => Verdict::Defer {
                until: at + Duration::from_secs(300),
            },
            _ => Verdict::Default,
        }
    }
}

/// A provider whose quota of the day is spent, until five minutes from now.
struct Newsletter(Arc<VirtualClock>);

impl Handler for Newsletter {
    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        let now = self.0.now();
        let refusal = Signal::new("mail", now)
            .kind(Kind::Daily)
            .reason("the day's quota is spent");
        Err(Interrupt::throttled(refusal.retry_at(now + Duration::from_secs(300))))
    }
}

#[tokio::test(start_paused = true)]
async fn the_integration_decides_what_becomes_of_a_refused_job() {
    let noon = Timestamp::parse("2026-07-10T12:00:00Z").unwrap();
    let clock = Arc::new(VirtualClock::starting_at(noon));
    let queue = FakeQueue::standard("newsletters", clock.clone());
    let worker = Worker::builder(Newsletter(clock.clone()), Arc::new(queue.clone()))
        .rate_limited(AfterHours, Duration::from_secs(2))
        .clock(clock.clone())
        .build();
    queue.send_body("weekly").unwrap();
    let mut today = adjourn_worker::fake::Outgoing::body("daily");
    today
        .attributes
        .insert("topic".to_string(), adjourn_worker::Attribute::text("today"));
    queue.send(today).unwrap();

    let batch = queue.receive(10).await.unwrap();
    let settled = worker.run_batch(batch.clone(), None).await;
    let stay: Vec<String> = settled
        .iter()
        .filter(|settled| settled.settlement == Settlement::Keep)
        .map(|settled| settled.message.id.clone())
        .collect();
    queue.respond(&batch, &stay).await.unwrap();

    // The daily one is dropped, the weekly one waits for the moment that the handler chose: ten minutes, not five.
    let bodies: Vec<String> = queue.messages().into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["weekly"]);
    assert!(queue.dead_letters().is_empty());
    let steps = queue.steps();
    let [step] = steps.as_slice() else {
        panic!("one wait was accepted: {steps:?}")
    };
    assert!(step.due >= noon + Duration::from_secs(600), "{}", step.due);
}
