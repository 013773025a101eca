//! Loops without an end, and what ends them.

use std::time::Duration;

use adjourn_sim::{Hint, Limit, Provider, Setup, SimJob, World};
use adjourn_worker::{
    Attribute, Settlement,
    fake::{Faults, Outgoing, QueueSettings},
};

use super::{Bench, wire};

fn refused_for_ever(max_deferrals: u32) -> World {
    let mut setup = Setup::new(83)
        .provider(Provider::new(
            "acme",
            Limit::Always {
                wait: Duration::from_secs(30),
            },
            Hint::Seconds,
        ))
        .jobs([SimJob::new("job", "acme")]);
    setup.policy.deferral.max_deferrals = max_deferrals;
    World::new(&setup, &Faults::none())
}

#[tokio::test(start_paused = true)]
async fn bug_083_the_budget_of_deferrals_is_on_the_wire_and_runs_out() {
    let world = refused_for_ever(5);
    let report = world.run().await;
    let calls = world.provider("acme").unwrap().books().calls.len();
    assert_eq!(calls, 6, "five deferrals, and the sixth refusal ends it: {report}");
    let letter = world.queue().dead_letters().remove(0);
    assert_eq!(
        (&wire(&letter)["deferrals"], &wire(&letter)["end"]),
        (&5.into(), &"exhausted".into())
    );
    // Each copy on its way carried its count.
    let bench = Bench::new(QueueSettings::default(), &[Duration::from_secs(30); 3]);
    bench.queue.send_body("job").unwrap();
    for made in 1..=3 {
        bench.round().await;
        let copy = bench.queue.stored().remove(0);
        assert_eq!(wire(&copy.message)["deferrals"], made);
        adjourn_worker::Clock::sleep(&*bench.clock, Duration::from_secs(40)).await;
    }
}

#[test]
fn bug_084_receives_are_the_mappings_and_carry_every_attribute() {
    // Nobody here calls ReceiveMessage: the event source mapping does, and its records have all attributes. A record that
    // lacks what only SQS can have put there fails the invocation by name (adjourn-aws has that test), and a message
    // without a receive count cannot be built.
    let sources = super::service::sources_of("crates/adjourn-aws/src");
    assert!(!sources.is_empty());
    for (path, text) in sources {
        assert!(
            !text.contains(".receive_message("),
            "{path} receives: ask for all attributes there"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_086_counts_survive_a_redrive_by_hand() {
    let bench = Bench::with(
        QueueSettings::default(),
        &[Duration::from_secs(30); 20],
        Duration::ZERO,
        |builder, _| {
            let mut policy = adjourn_core::Policy::default();
            policy.deferral.max_deferrals = 2;
            builder.policy(policy)
        },
    );
    bench.queue.send_body("poison").unwrap();
    bench.run().await;
    assert_eq!(bench.calls_of("poison"), 3);
    for redrives in 1..=3 {
        let letter = bench.queue.dead_letters().pop().unwrap();
        let again = Outgoing {
            body: letter.body.clone(),
            attributes: letter.attributes.clone(),
            ..Outgoing::default()
        };
        bench.queue.send(again).unwrap();
        bench.run().await;
        assert_eq!(bench.calls_of("poison"), 3 + redrives, "one call, and its end again");
        let letter = bench.queue.dead_letters().pop().unwrap();
        assert_eq!(
            (&wire(&letter)["deferrals"], &wire(&letter)["end"]),
            (&2.into(), &"exhausted".into())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_087_an_empty_attribute_keeps_no_job_in_a_loop() {
    let bench = Bench::new(QueueSettings::default(), &[Duration::from_secs(30)]);
    bench.queue.send_body("job").unwrap();
    let mut batch = bench.queue.receive(10).await.unwrap();
    batch[0].attributes.insert("empty".to_string(), Attribute::text(""));
    let settled = bench.worker.run_batch(batch, None).await;
    assert!(
        matches!(settled[0].settlement, Settlement::Delete(_)),
        "it was deferred"
    );
    assert!(bench.queue.refused().is_empty());
    let copy = bench.queue.messages().pop().unwrap();
    assert!(!copy.attributes.contains_key("empty"));
    assert!(
        !copy.envelope_text().unwrap().is_empty(),
        "nor is our own attribute ever empty"
    );
}

#[tokio::test(start_paused = true)]
async fn bug_088_a_receive_count_that_survived_a_redrive_is_no_loop_and_no_loss() {
    // Whether the count of receives restarts at a redrive is not relied on. Restarted: the job runs. Kept: a message that
    // has used up its receives without a recorded cause ends by its name, in the dead-letter queue, without a call.
    for (receives, calls, letters) in [(1, 2, 0), (6, 0, 1)] {
        let bench = Bench::new(QueueSettings::default(), &[Duration::from_secs(30)]);
        bench.queue.send_body("job").unwrap();
        let mut batch = bench.queue.receive(10).await.unwrap();
        batch[0].receive_count = receives;
        let settled = bench.worker.run_batch(batch.clone(), None).await;
        assert!(
            matches!(settled[0].settlement, Settlement::Delete(_)),
            "{receives} receives: it was settled"
        );
        bench.queue.respond(&batch, &[]).await.unwrap();
        bench.run().await;
        assert_eq!(
            (bench.calls_of("job"), bench.queue.dead_letters().len()),
            (calls, letters),
            "{receives} receives"
        );
        if letters == 1 {
            assert_eq!(wire(&bench.queue.dead_letters()[0])["end"], "crashed");
        }
    }
}
