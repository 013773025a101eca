//! A fault at step k for every k, until a run ends without reaching it; then the laws are looked at.

use std::{collections::BTreeMap, time::Duration};

use adjourn_core::QueueKind;
use adjourn_sim::{Fate, Hint, Limit, Provider, Report, Settle, Setup, SimJob, simulate};
use adjourn_worker::fake::{Faults, PortFault};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Every tier and every counter in one system of two workers.
fn mix(seed: u64) -> Setup {
    let soon = Duration::from_secs(30);
    let mut setup = Setup::new(seed)
        .provider(Provider::new(
            "soon",
            Limit::RefuseFirst { calls: 1, wait: soon },
            Hint::Seconds,
        ))
        .provider(Provider::new(
            "later",
            Limit::RefuseFirst {
                calls: 1,
                wait: 3 * HOUR,
            },
            Hint::Seconds,
        ))
        .provider(Provider::new(
            "roomless",
            Limit::RefuseFirst { calls: 1, wait: soon },
            Hint::Milliseconds,
        ))
        .provider(Provider::new(
            "ill",
            Limit::FailFirst { calls: 2, wait: None },
            Hint::Absent,
        ))
        .provider(Provider::new("never", Limit::Always { wait: MINUTE }, Hint::Seconds))
        .provider(Provider::new(
            "silent",
            Limit::RefuseFirst { calls: 1, wait: soon },
            Hint::Absent,
        ))
        .provider(Provider::new(
            "once",
            Limit::RefuseFirst { calls: 1, wait: soon },
            Hint::Seconds,
        ))
        .jobs([
            SimJob::new("delay-1", "soon"),
            SimJob::new("delay-2", "soon"),
            SimJob::new("schedule", "later"),
            SimJob::new("hold", "roomless").attributes(10),
            SimJob::new("failure", "ill"),
            SimJob::new("cap", "never"),
            SimJob::new("unnamed", "silent"),
            SimJob::new("unrepeatable", "once").unrepeatable(),
        ]);
    setup.workers = 2;
    setup.policy.deferral.max_deferrals = 2;
    setup.queue.max_receive_count = Some(8);
    setup.invocation = Some(MINUTE);
    setup.time_limit = 12 * HOUR;
    setup
}

/// What a system promises of duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// At least once: what loses a reply or a deletion doubles a wake-up.
    AtLeastOnce,
    /// One wake-up of a wait is acted on, and one end is told.
    OneWakeUp,
    /// And what is done is known to be done, since deletions are tried again.
    Once,
}

impl Promise {
    /// Whether this fault at this call may repeat a call of a job, with the same idempotency key.
    fn allows_a_repeated_call(self, fault: PortFault, call: &str) -> bool {
        match fault {
            PortFault::StopBefore | PortFault::StopAfter => true,
            PortFault::Fail | PortFault::FailEntry => {
                self != Self::Once && matches!(call, "source.respond" | "sqs.delete")
            }
            PortFault::LoseReply => match self {
                Self::AtLeastOnce => {
                    call == "provider.call" || call.starts_with("sqs") || call.starts_with("scheduler")
                }
                Self::OneWakeUp | Self::Once => call == "provider.call",
            },
        }
    }
}

/// The sums over all runs of one system.
#[derive(Debug, Default)]
struct Sums {
    runs: usize,
    duplicates: u32,
    excused: usize,
    early_by_a_twin: usize,
    told_twice: usize,
    unknown: usize,
}

/// Runs `setup` with every fault at every step and checks each run.
fn at_every_step(name: &str, setup: &Setup, promise: Promise) {
    let smooth = Faults::none();
    let report = simulate(setup, &smooth);
    check(name, &report, None, promise);
    assert_eq!(
        (report.duplicates, report.excused, report.told_twice),
        (0, 0, 0),
        "{name}: {report}"
    );
    let mut sums = Sums::default();
    let mut by_call: BTreeMap<&'static str, u32> = BTreeMap::new();
    for fault in PortFault::ALL {
        for step in 0.. {
            let faults = Faults::at(step, fault);
            let report = simulate(setup, &faults);
            let Some(call) = faults.happened_at() else {
                break;
            };
            let place = format!("{name}, {fault:?} at step {step} ({call})");
            check(&place, &report, Some((fault, call)), promise);
            sums.runs += 1;
            sums.duplicates += report.duplicates;
            sums.excused += report.excused;
            sums.early_by_a_twin += report.early_by_a_twin;
            sums.told_twice += report.told_twice;
            sums.unknown += usize::from(report.fates.get("unrepeatable").is_some_and(|fate| *fate != Fate::Done));
            *by_call.entry(call).or_default() += report.duplicates;
        }
    }
    by_call.retain(|_, count| *count > 0);
    println!(
        "{name}: seed {}, {} runs, {} duplicates {by_call:?}, early calls: {} excused, {} by a twin; {} ends told twice, {} unknown",
        setup.seed, sums.runs, sums.duplicates, sums.excused, sums.early_by_a_twin, sums.told_twice, sums.unknown
    );
    if setup.gate_store {
        assert_eq!(
            sums.early_by_a_twin, 0,
            "{name}: a shared gate holds a second delivery back too"
        );
    }
    assert!(sums.runs > 100, "{name}: the faults were not reached");
}

fn check(place: &str, report: &Report, fault: Option<(PortFault, &'static str)>, promise: Promise) {
    assert!(
        !report.timed_out,
        "{place}: it never came to its end: {report}\n{:#?}",
        report.fates
    );
    assert_eq!(report.lost(), 0, "{place}: law 2, a job is lost: {:#?}", report.fates);
    assert_eq!(
        report.unseen, 0,
        "{place}: law 2, a job could be found nowhere when the process had stopped"
    );
    assert_eq!(report.early, 0, "{place}: law 1, a call came early: {report}");
    let stopped = fault.is_some_and(|(fault, _)| matches!(fault, PortFault::StopBefore | PortFault::StopAfter));
    assert!(
        stopped || report.excused == 0,
        "{place}: law 1, an early call that no stop explains: {report}"
    );
    for (job, fate) in &report.fates {
        let right = match (job.as_str(), fate) {
            ("cap", fate) => *fate == Fate::Ended(Some("exhausted".to_string())),
            ("unrepeatable", Fate::Ended(Some(end))) => end == "unknown" && fault.is_some(),
            (_, fate) => *fate == Fate::Done,
        };
        assert!(right, "{place}: {job} came to {fate:?}");
    }
    let allowed = fault.is_some_and(|(fault, call)| promise.allows_a_repeated_call(fault, call));
    assert!(
        allowed || report.duplicates == 0,
        "{place}: law 3, a call was repeated: {report}"
    );
    let twice = promise == Promise::AtLeastOnce && allowed;
    assert!(
        twice || report.told_twice == 0,
        "{place}: law 5, an end was told twice: {report}"
    );
}

#[test]
fn standard_queue_without_stores() {
    at_every_step("standard queue, no stores", &mix(1), Promise::AtLeastOnce);
}

#[test]
fn standard_queue_with_gates_and_a_ledger() {
    let mut setup = mix(2);
    setup.gate_store = true;
    setup.ledger = true;
    at_every_step("standard queue, gates and ledger", &setup, Promise::OneWakeUp);
}

#[test]
fn standard_queue_with_shared_gates() {
    let mut setup = mix(6);
    setup.gate_store = true;
    at_every_step("standard queue, shared gates", &setup, Promise::AtLeastOnce);
}

#[test]
fn without_a_scheduler_holds_and_hops_serve() {
    let mut setup = mix(3);
    setup.scheduler = None;
    at_every_step("standard queue, no scheduler", &setup, Promise::AtLeastOnce);
}

#[test]
fn one_transaction_queue() {
    let mut setup = mix(4);
    setup.queue.transactional = true;
    setup.queue.visibility_timeout = Duration::from_secs(120);
    setup.scheduler = None;
    setup.gate_store = true;
    setup.ledger = true;
    setup.settle = Settle::ByPoller;
    at_every_step("one-transaction queue", &setup, Promise::Once);
}

#[test]
fn fifo_queue_holds_in_order() {
    let mut setup = mix(5);
    setup.queue.kind = QueueKind::Fifo;
    setup.queue.max_receive_count = Some(20);
    setup.scheduler = None;
    // A hold cannot write: without a ledger every receive counts as a deferral, failures too.
    setup.policy.deferral.max_deferrals = 6;
    // A hold is told apart from a crash by nothing, so an unrepeatable job has no way back there without a ledger.
    setup.jobs.retain(|job| job.id != "unrepeatable");
    at_every_step("FIFO queue", &setup, Promise::AtLeastOnce);
}

#[test]
fn the_mix_takes_every_road() {
    let setup = mix(1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let roads: std::collections::BTreeSet<&str> = runtime.block_on(async {
        let world = adjourn_sim::World::new(&setup, &Faults::none());
        world.run().await;
        world
            .queue()
            .steps()
            .iter()
            .map(|step| step.mechanism.as_str())
            .collect()
    });
    assert_eq!(
        roads.into_iter().collect::<Vec<_>>(),
        ["delay", "none", "schedule", "visibility"]
    );
}
