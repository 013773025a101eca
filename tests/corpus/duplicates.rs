//! Second deliveries: where they come from, and what they may do.

use std::time::Duration;

use adjourn_core::QueueKind;
use adjourn_sim::{Fate, Hint, Limit, Provider, Report, Setup, SimJob, World, simulate};
use adjourn_worker::{
    Clock,
    fake::{FakeLedger, FakeQueue, Faults, PortFault, QueueSettings},
    port::Queue,
};

use super::Bench;

fn one_job(wait: Duration) -> Setup {
    Setup::new(1)
        .provider(Provider::new(
            "acme",
            Limit::RefuseFirst { calls: 1, wait },
            Hint::Seconds,
        ))
        .jobs([SimJob::new("job", "acme")])
}

/// The number of the first call of this name.
fn first(setup: &Setup, call: &str) -> usize {
    let faults = Faults::none();
    let _ = simulate(setup, &faults);
    faults
        .trail()
        .iter()
        .position(|name| *name == call)
        .expect("such a call")
}

fn with_fault(setup: &Setup, call: &str, fault: PortFault) -> Report {
    let faults = Faults::at(first(setup, call), fault);
    let report = simulate(setup, &faults);
    assert_eq!(faults.happened_at(), Some(call));
    report
}

#[test]
fn bug_075_a_stop_between_send_and_delete_leaves_one_more_copy_of_the_same_name() {
    let setup = one_job(Duration::from_secs(300));
    let faults = Faults::at(first(&setup, "sqs.send"), PortFault::StopAfter);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let (messages, report) = runtime.block_on(async {
        let world = World::new(&setup, &faults);
        let watched = world.clone();
        let watcher = tokio::spawn(async move {
            watched.clock().sleep(Duration::from_secs(10)).await;
            watched.queue().messages()
        });
        let report = world.run().await;
        (watcher.await.unwrap(), report)
    });
    assert_eq!(messages.len(), 2, "the original and its copy, and no more");
    let copy = messages
        .iter()
        .find(|message| message.envelope_text().is_some())
        .unwrap();
    let original = messages
        .iter()
        .find(|message| message.envelope_text().is_none())
        .unwrap();
    assert_eq!(
        super::wire(copy)["id"],
        original.id.as_str(),
        "told by the name for life"
    );
    assert_eq!((report.lost(), report.done), (0, 1), "{report}");
    let mut recorded = setup;
    recorded.ledger = true;
    let report = with_fault(&recorded, "sqs.send", PortFault::StopAfter);
    assert_eq!(
        (report.done, report.duplicates),
        (1, 0),
        "with a ledger the copy alone is acted on: {report}"
    );
}

#[test]
fn bug_077_a_wait_longer_than_the_visibility_timeout_runs_once() {
    let setup = one_job(Duration::from_secs(600));
    assert!(setup.queue.visibility_timeout < Duration::from_secs(600));
    let report = simulate(&setup, &Faults::none());
    assert_eq!(
        (report.done, report.refusals, report.duplicates, report.early),
        (1, 1, 0, 0),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn bug_078_a_job_for_later_is_not_restored_while_it_waits() {
    let mut setup = Setup::new(1).provider(Provider::new("acme", Limit::None, Hint::Absent));
    let mut job = SimJob::new("job", "acme");
    let begins = World::new(&setup, &Faults::none()).clock().now();
    job.not_before = Some(begins + 5 * setup.queue.visibility_timeout);
    setup.jobs.push(job.clone());
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    let calls = world.provider("acme").unwrap().books().calls;
    assert_eq!((report.done, calls.len()), (1, 1), "{report}");
    assert!(Some(calls[0].at) >= job.not_before);
}

#[test]
fn bug_080_a_stop_before_the_send_loses_nothing_and_after_it_only_doubles() {
    let setup = one_job(Duration::from_secs(60));
    let before = with_fault(&setup, "sqs.send", PortFault::StopBefore);
    assert_eq!((before.done, before.lost(), before.duplicates), (1, 0, 0), "{before}");
    let after = with_fault(&setup, "sqs.send", PortFault::StopAfter);
    assert_eq!((after.done, after.lost()), (1, 0), "{after}");
    assert!(after.duplicates <= 1, "{after}");
    // And what never succeeds has an end.
    let mut never = Setup::new(1)
        .provider(Provider::new(
            "acme",
            Limit::Always {
                wait: Duration::from_secs(30),
            },
            Hint::Seconds,
        ))
        .jobs([SimJob::new("job", "acme")]);
    never.policy.deferral.max_deferrals = 5;
    let report = simulate(&never, &Faults::none());
    assert_eq!(report.fates["job"], Fate::Ended(Some("exhausted".to_string())));
    assert_eq!(report.refusals, 6);
}

#[tokio::test(start_paused = true)]
async fn bug_081_a_fifo_delete_that_comes_too_late_is_seen_and_done_is_remembered() {
    let settings = QueueSettings {
        kind: QueueKind::Fifo,
        visibility_timeout: Duration::from_secs(5),
        ..QueueSettings::default()
    };
    let ledger = FakeLedger::default();
    let bench = Bench::with(settings, &[], Duration::from_secs(8), |builder, _| builder);
    bench.queue.send_body("job").unwrap();
    let batch = bench.queue.receive(10).await.unwrap();
    let settled = bench.worker.run_batch(batch, None).await;
    let deletions: Vec<_> = settled.into_iter().filter_map(|one| one.deletion).collect();
    let error = bench.queue.delete(&deletions).await.remove(0).unwrap_err();
    assert!(error.to_string().contains("ReceiptHandleIsInvalid"), "{error}");
    assert_eq!(bench.queue.receive(10).await.unwrap().len(), 1, "it comes back");
    // A queue that records deletions with its ledger knows it for done when it comes back.
    let recorded = FakeQueue::with_ledger("jobs", bench.clock.clone(), QueueSettings::default(), ledger.clone());
    recorded.send_body("job").unwrap();
    let worker = adjourn_worker::Worker::builder(
        super::Refusing {
            clock: bench.clock.clone(),
            waits: vec![],
            takes: Duration::ZERO,
            repeatable: true,
            calls: bench.calls.clone(),
        },
        std::sync::Arc::new(recorded.clone()),
    )
    .clock(bench.clock.clone())
    .ledger(std::sync::Arc::new(ledger))
    .build();
    let batch = recorded.receive(10).await.unwrap();
    assert!(
        recorded.repeat(&batch[0].id),
        "the queue delivers it once more, as it may"
    );
    let deletions =
        |settled: Vec<adjourn_worker::Settled>| settled.into_iter().filter_map(|one| one.deletion).collect::<Vec<_>>();
    let done = deletions(worker.run_batch(batch, None).await);
    assert!(recorded.delete(&done).await[0].is_ok());
    let before = bench.calls_of("job");
    bench.clock.sleep(Duration::from_secs(200)).await;
    let again = recorded.receive(10).await.unwrap();
    assert_eq!(again.len(), 1, "here it is");
    let discarded = deletions(worker.run_batch(again, None).await);
    assert!(discarded.is_empty() || discarded[0].proof.discard_reason().is_some());
    assert_eq!(bench.calls_of("job"), before, "and it is not done twice");
}
