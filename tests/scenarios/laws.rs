//! The laws of the house, each as a test of its name.

use std::{collections::BTreeMap, time::Duration};

use adjourn_core::{Cap, EndingKind, Mechanism, Timestamp};
use adjourn_sim::{Act, CallRecord, Fate, Hint, Limit, Provider, Reply, Setup, SimJob, World, simulate};
use adjourn_worker::fake::Faults;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn jobs(count: usize, provider: &str) -> Vec<SimJob> {
    (0..count)
        .map(|n| SimJob::new(&format!("{provider}-{n}"), provider))
        .collect()
}

/// The calls of each job in their order.
fn by_job(calls: &[CallRecord]) -> BTreeMap<&str, Vec<&CallRecord>> {
    let mut jobs: BTreeMap<&str, Vec<&CallRecord>> = BTreeMap::new();
    for call in calls {
        jobs.entry(&call.key).or_default().push(call);
    }
    jobs
}

#[tokio::test(start_paused = true)]
async fn law_1_never_early() {
    let waits = [
        Duration::from_millis(500),
        SECOND,
        Duration::from_millis(29_300),
        Duration::from_secs(899),
        Duration::from_secs(900),
        Duration::from_millis(900_001),
        Duration::from_secs(960),
        Duration::from_secs(1021),
        3 * HOUR,
        12 * HOUR + MINUTE,
        25 * HOUR,
    ];
    for (round, hint) in [Hint::Seconds, Hint::Milliseconds].into_iter().enumerate() {
        for scheduler in [true, false] {
            let mut setup = Setup::new(u64::try_from(round).unwrap());
            setup.workers = 2;
            if !scheduler {
                setup.scheduler = None;
            }
            for (n, wait) in waits.iter().enumerate() {
                let name = format!("p{n}");
                let limit = Limit::RefuseFirst { calls: 2, wait: *wait };
                setup = setup.provider(Provider::new(&name, limit, hint)).jobs(jobs(1, &name));
            }
            // Twice 25 h is more than the cap on waits allows by default.
            setup.policy.deferral.max_deferred = 60 * HOUR;
            let world = World::new(&setup, &Faults::none());
            let report = world.run().await;
            println!("{hint:?}, scheduler {scheduler}: {report}");
            assert_eq!(
                (report.done, report.early, report.excused, report.early_by_a_twin),
                (11, 0, 0, 0),
                "{:?}",
                report.fates
            );
            for (n, wait) in waits.iter().enumerate() {
                let books = world.provider(&format!("p{n}")).unwrap().books();
                for (job, calls) in by_job(&books.calls) {
                    for pair in calls.windows(2) {
                        let [before, after] = pair else {
                            unreachable!("windows of two")
                        };
                        assert!(Some(after.at) >= before.told, "{job}: called before {wait:?} were over");
                        // Not early is easy for who is late: jitter is a tenth and at most 30 s, turns and holds add seconds.
                        let late = after.at.since(before.told.unwrap());
                        assert!(
                            late <= *wait / 10 + 2 * MINUTE,
                            "{job}: {late:?} late after a wait of {wait:?}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_2_never_lost() {
    for seed in 0..3 {
        let window = Limit::FixedWindow {
            requests: 6,
            window: 20 * SECOND,
        };
        let mut setup = Setup::new(seed)
            .provider(Provider::new("acme", window, Hint::Seconds).latency(Duration::from_millis(700)))
            .provider(Provider::new(
                "slow",
                Limit::RefuseFirst {
                    calls: 1,
                    wait: 2 * HOUR,
                },
                Hint::Seconds,
            ))
            .jobs(jobs(30, "acme"))
            .jobs(jobs(10, "slow"));
        setup.workers = 3;
        setup.queue.visibility_timeout = 30 * SECOND;
        setup.queue.max_receive_count = Some(100);
        let world = World::new(&setup, &Faults::none());
        let killer = {
            let world = world.clone();
            tokio::spawn(async move {
                for n in 0..40 {
                    let pause = 900 + (seed * 7919 + n * 104_729) % 4000;
                    world.clock().sleep(Duration::from_millis(pause)).await;
                    world.kill_all();
                }
            })
        };
        let report = world.run().await;
        killer.await.unwrap();
        println!("killed all over: {report}");
        assert!(
            report.stops >= 40,
            "the processes were killed while they worked: {report}"
        );
        assert_eq!(
            (report.lost(), report.unseen, report.timed_out),
            (0, 0, false),
            "{report}"
        );
        assert_eq!(report.done, 40, "{:?}", report.fates);
    }
}

#[tokio::test(start_paused = true)]
async fn law_2_never_lost_while_every_port_is_away() {
    for port in ["sqs", "scheduler", "gates", "ledger", "sink", "source"] {
        let mut setup = Setup::new(1)
            .provider(Provider::new(
                "soon",
                Limit::RefuseFirst {
                    calls: 2,
                    wait: 20 * SECOND,
                },
                Hint::Seconds,
            ))
            .provider(Provider::new(
                "later",
                Limit::RefuseFirst { calls: 1, wait: HOUR },
                Hint::Seconds,
            ))
            .jobs(jobs(10, "soon"))
            .jobs(jobs(5, "later"));
        setup.workers = 2;
        setup.gate_store = true;
        setup.ledger = true;
        setup.queue.max_receive_count = Some(20);
        let world = World::new(&setup, &Faults::none());
        world.faults().outage(port);
        let mender = {
            let world = world.clone();
            tokio::spawn(async move {
                world.clock().sleep(10 * MINUTE).await;
                world.faults().mend(port);
            })
        };
        let report = world.run().await;
        mender.await.unwrap();
        println!("{port} away for ten minutes: {report}");
        assert_eq!(
            (report.lost(), report.timed_out, report.early),
            (0, false, 0),
            "{port}: {report}"
        );
        assert_eq!(report.done, 15, "{port}: {:?}", report.fates);
    }
}

#[test]
fn law_3_once() {
    let setup = |ledger| {
        let mut setup = Setup::new(3)
            .provider(Provider::new(
                "later",
                Limit::RefuseFirst { calls: 1, wait: HOUR },
                Hint::Seconds,
            ))
            .jobs(jobs(20, "later"));
        setup.ledger = ledger;
        setup.workers = 2;
        setup
    };
    let run = |ledger| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let world = World::new(&setup(ledger), &Faults::none());
            world.scheduler().unwrap().fire_twice(true);
            let report = world.run().await;
            assert_eq!(world.scheduler().unwrap().fired(), 40, "every schedule fired twice");
            report
        })
    };
    let with = run(true);
    assert_eq!(
        (with.done, with.duplicates, with.lost()),
        (20, 0, 0),
        "with the ledger: {with}"
    );
    let without = run(false);
    println!("every schedule fires twice, no ledger: {without}");
    assert_eq!((without.done, without.lost()), (20, 0));
    assert_eq!(
        without.duplicates, 20,
        "without the ledger it is at least once, and this is what that means"
    );
}

#[tokio::test(start_paused = true)]
async fn law_4_a_wait_spends_no_attempt() {
    let mut replies = vec![Reply::Refuse(20 * SECOND); 8];
    replies.extend([
        Reply::Fail,
        Reply::Fail,
        Reply::Refuse(30 * MINUTE),
        Reply::Fail,
        Reply::Fail,
    ]);
    let mut setup = Setup::new(4)
        .provider(Provider::new("acme", Limit::Script(replies), Hint::Seconds))
        .jobs(jobs(1, "acme"));
    setup.queue.max_receive_count = Some(3);
    assert_eq!(setup.policy.retry.max_attempts, 5);
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    assert_eq!(
        report.done, 1,
        "nine waits and four failures leave the fifth attempt: {:?}",
        report.fates
    );
    let books = world.provider("acme").unwrap().books();
    assert_eq!(books.calls.len(), 14);
    assert!(world.queue().dead_letters().is_empty(), "no receive was spent");
}

#[tokio::test(start_paused = true)]
async fn law_5_capped() {
    let cap = |replies: Vec<Reply>, adjust: fn(&mut Setup)| async move {
        let mut setup = Setup::new(5)
            .provider(Provider::new("acme", Limit::Script(replies), Hint::Milliseconds).latency(Duration::ZERO))
            .jobs(jobs(1, "acme"));
        adjust(&mut setup);
        let world = World::new(&setup, &Faults::none());
        let report = world.run().await;
        let ends = world.queue().steps().iter().filter(|step| step.end.is_some()).count();
        let reason = world.queue().dead_letters().first().map(|letter| {
            let envelope: serde_json::Value = serde_json::from_str(letter.envelope_text().unwrap()).unwrap();
            envelope["reason"].as_str().unwrap().to_string()
        });
        (report, ends, reason)
    };
    let exhausted = Fate::Ended(Some("exhausted".to_string()));

    // 26 h exactly are allowed, a millisecond more is not, and that is said at once and not after the wait.
    let (report, ends, _) = cap(vec![Reply::Refuse(26 * HOUR)], |_| ()).await;
    assert_eq!((report.done, ends), (1, 0), "{report}");
    assert!(report.makespan >= 26 * HOUR);
    let over = Reply::Refuse(26 * HOUR + Duration::from_millis(1));
    let (report, ends, reason) = cap(vec![over], |_| ()).await;
    assert_eq!((&report.fates["acme-0"], ends), (&exhausted, 1));
    assert!(report.makespan < MINUTE, "{report}");
    assert!(reason.unwrap().contains("max_deferred_ms"));

    // The thirtieth deferral is made, the thirty-first is not.
    let (report, ends, _) = cap(vec![Reply::Refuse(SECOND); 30], |_| ()).await;
    assert_eq!((report.done, ends), (1, 0), "{report}");
    let (report, ends, reason) = cap(vec![Reply::Refuse(SECOND); 31], |_| ()).await;
    assert_eq!((&report.fates["acme-0"], ends, report.told_twice), (&exhausted, 1, 0));
    assert!(reason.unwrap().contains("max_deferrals"));

    // The fifth failure is the last, and a job out of attempts has failed: only a cap on waits is exhausted.
    let failed = Fate::Ended(Some("failed".to_string()));
    let (report, ends, reason) = cap(vec![Reply::Fail; 5], |_| ()).await;
    assert_eq!((&report.fates["acme-0"], ends), (&failed, 1));
    assert!(reason.unwrap().contains("max_attempts"));
    assert!(!adjourn_core::Ending::new(EndingKind::Exhausted(Cap::Attempts), "").is_exhausted());

    // A loop of our own: a job that is handed on without a call ends by the cap on hops.
    let (report, ends, reason) = cap(vec![Reply::Refuse(3 * HOUR)], |setup| {
        setup.scheduler = None;
        setup.policy.deferral.fallback = adjourn_core::Fallback::Hops;
        setup.policy.deferral.max_hops = 3;
    })
    .await;
    assert_eq!((&report.fates["acme-0"], ends), (&exhausted, 1), "{report}");
    assert!(reason.unwrap().contains("max_hops"));
}

#[tokio::test(start_paused = true)]
async fn law_6_one_refusal_teaches_all() {
    const WORKERS: usize = 4;
    const CONCURRENCY: usize = 10;
    let latency = Duration::from_millis(40);
    let run = async |shared: bool| {
        let window = Limit::FixedWindow {
            requests: 15,
            window: MINUTE,
        };
        let mut setup = Setup::new(6)
            .provider(Provider::new("acme", window, Hint::Seconds).latency(latency))
            .jobs(jobs(200, "acme"));
        setup.workers = WORKERS;
        setup.concurrency = CONCURRENCY;
        setup.gate_store = shared;
        let world = World::new(&setup, &Faults::none());
        let report = world.run().await;
        assert_eq!(report.done, 200, "{report}");
        let calls = world.provider("acme").unwrap().books().calls;
        let first = calls.iter().find(|call| call.status == 429).unwrap();
        let (read_at, reopens) = (first.at + latency, first.told.unwrap());
        let begun = calls.iter().filter(|call| call.at < read_at).count();
        let after = calls
            .iter()
            .filter(|call| call.at >= read_at && call.at < reopens)
            .count();
        println!("shared gates {shared}: {begun} calls had begun, {after} came later; {report}");
        (begun, after)
    };
    // The lag is the calls that had begun; a cached gate is as old as its batch, and every batch had begun whole.
    let (begun, after) = run(true).await;
    assert!(
        begun <= WORKERS * CONCURRENCY,
        "{begun} calls before the refusal was read"
    );
    assert_eq!(after, 0, "calls by workers that could have known");
    // Where nothing is shared each worker learns for itself, from at most one batch.
    let (_, after) = run(false).await;
    assert!(after <= WORKERS * CONCURRENCY, "{after} calls after the first refusal");
}

#[tokio::test(start_paused = true)]
async fn law_6_a_slow_worker_learns_before_its_next_batch() {
    // One job at a time: what a batch has not started yet is not called, though its worker has not been refused itself.
    let mut setup = Setup::new(6)
        .provider(Provider::new(
            "acme",
            Limit::FixedWindow {
                requests: 3,
                window: MINUTE,
            },
            Hint::Seconds,
        ))
        .jobs(jobs(60, "acme"));
    setup.workers = 3;
    setup.concurrency = 1;
    setup.gate_store = true;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    let calls = world.provider("acme").unwrap().books().calls;
    let first = calls.iter().find(|call| call.status == 429).unwrap();
    let after = calls
        .iter()
        .filter(|call| call.at > first.at && Some(call.at) < first.told)
        .count();
    println!("{after} calls by workers whose batch had begun; {report}");
    assert!(
        after <= 2,
        "each other worker at most one: the gate that a batch read is as old as the batch"
    );
    assert_eq!(report.done, 60);
}

#[tokio::test(start_paused = true)]
async fn law_7_reopening_is_a_slope() {
    // All are refused for ten minutes by one limit. When it reopens, what was parked comes back as one in the first second,
    // two in the next, then four; and one whose own refusal names that moment may come beside them.
    let mut setup = Setup::new(7)
        .provider(Provider::new(
            "acme",
            Limit::FixedWindow {
                requests: 4,
                window: 10 * MINUTE,
            },
            Hint::Seconds,
        ))
        .jobs(jobs(100, "acme"));
    setup.workers = 1;
    setup.gate_store = true;
    setup.time_limit = 26 * HOUR;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    let calls = world.provider("acme").unwrap().books().calls;
    println!("{report}");
    assert_eq!(report.done, 100, "{:?}", report.fates);
    let reopenings: std::collections::BTreeSet<Timestamp> = calls.iter().filter_map(|call| call.told).collect();
    assert!(reopenings.len() >= 20, "{} windows", reopenings.len());
    for reopens in reopenings {
        for seconds in 1..=4_u32 {
            let came = calls
                .iter()
                .filter(|call| call.at >= reopens && call.at < reopens + seconds * SECOND)
                .count();
            assert!(
                came <= 1 << seconds,
                "{came} calls in the first {seconds} s after {reopens}"
            );
        }
    }
    assert!(
        report.refusals < 2 * report.done,
        "{} refusals for {} jobs",
        report.refusals,
        report.done
    );
}

#[tokio::test(start_paused = true)]
async fn law_9_our_own_trouble_is_not_the_jobs() {
    let run = async |outage: Option<&'static str>| {
        let refusing = Limit::RefuseFirst {
            calls: 2,
            wait: 20 * SECOND,
        };
        let mut setup = Setup::new(9)
            .provider(Provider::new("soon", refusing, Hint::Seconds))
            .jobs(jobs(10, "soon"));
        setup.gate_store = true;
        setup.ledger = true;
        let world = World::new(&setup, &Faults::none());
        if let Some(port) = outage {
            world.faults().outage(port);
        }
        world.run().await
    };
    let well = run(None).await;
    for port in ["gates", "ledger.standing", "sink"] {
        let ill = run(Some(port)).await;
        println!("{port} away for good: {ill}");
        assert_eq!((ill.done, ill.duplicates, ill.early), (10, 0, 0), "{port}: {ill}");
        assert!(
            ill.makespan <= well.makespan + MINUTE,
            "{port}: the jobs waited for it: {ill}, else {well}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_kills_its_process_takes_nobody_along() {
    let mut setup = Setup::new(10)
        .provider(Provider::new("fine", Limit::None, Hint::Absent))
        .jobs(jobs(9, "fine"))
        .jobs([SimJob::new("poison", "fine").act(Act::Kill)]);
    setup.queue.visibility_timeout = MINUTE;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    println!("{report}");
    assert_eq!(report.fates["poison"], Fate::Ended(Some("crashed".to_string())));
    assert_eq!((report.done, report.lost(), report.unseen), (9, 0, 0));
    let crashes = 5 - 2;
    assert_eq!(
        report.stops, crashes,
        "at the last receive but one it is not called again"
    );
    let ends: Vec<_> = world
        .queue()
        .steps()
        .into_iter()
        .filter(|step| step.end.is_some())
        .collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].mechanism, Mechanism::None);
}

#[test]
fn the_same_setup_runs_the_same_way() {
    let setup = || {
        let mut setup = Setup::new(11)
            .provider(Provider::new(
                "acme",
                Limit::TokenBucket {
                    interval: SECOND,
                    burst: 5,
                },
                Hint::Seconds,
            ))
            .jobs(jobs(50, "acme"));
        setup.workers = 3;
        setup
    };
    let (one, two) = (simulate(&setup(), &Faults::none()), simulate(&setup(), &Faults::none()));
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
    assert_eq!(one.done, 50);
}
