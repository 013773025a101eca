//! Waits: how long, by which road, and never in the worker.

use std::{collections::BTreeSet, time::Duration};

use adjourn_core::{Fallback, Plan, Policy, QueueKind, Reach, Refused, Route, RouteFacts, Timestamp, route};
use adjourn_sim::{Hint, Limit, Provider, Setup, SimJob, World};
use adjourn_worker::fake::{Faults, QueueSettings};

use super::{Bench, wire};

const HOUR: Duration = Duration::from_secs(3600);

fn one_job(wait: Duration) -> Setup {
    Setup::new(1)
        .provider(Provider::new(
            "acme",
            Limit::RefuseFirst { calls: 1, wait },
            Hint::Seconds,
        ))
        .jobs([SimJob::new("job", "acme")])
}

fn template() -> String {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(tests.parent().unwrap().join("template.yaml")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn bug_040_a_refusal_does_not_make_the_worker_sleep() {
    let bench = Bench::new(QueueSettings::default(), &[Duration::from_secs(300)]);
    bench.queue.send_body("job").unwrap();
    let (began, _) = (adjourn_worker::Clock::now(&*bench.clock), bench.round().await);
    let ended = adjourn_worker::Clock::now(&*bench.clock);
    assert!(
        ended.since(began) < Duration::from_secs(1),
        "the batch took {:?}",
        ended.since(began)
    );
    let stored = bench.queue.stored().remove(0);
    assert!(stored.visible_at >= began + Duration::from_secs(300) - Duration::from_secs(1));
    assert_eq!(
        stored.in_flight_since, None,
        "it waits in the queue, by no visibility timeout"
    );
    assert_eq!(wire(&stored.message)["deferrals"], 1);
}

#[tokio::test(start_paused = true)]
async fn bug_041_a_wait_of_fifteen_hours_is_never_one_delay() {
    for scheduler in [true, false] {
        let mut setup = one_job(Duration::from_secs(54_524));
        if !scheduler {
            setup.scheduler = None;
        }
        let world = World::new(&setup, &Faults::none());
        let report = world.run().await;
        assert_eq!((report.done, report.early), (1, 0), "{report}");
        assert_eq!(
            world.queue().refused(),
            [""; 0],
            "no DelaySeconds over 900 was ever sent"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_042_a_hop_is_900_seconds_whatever_the_retention() {
    let mut setup = one_job(3 * HOUR);
    setup.scheduler = None;
    setup.queue.retention = Duration::from_secs(1_209_600);
    setup.policy.deferral.fallback = Fallback::Hops;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    assert_eq!((report.done, report.early), (1, 0), "{report}");
    assert!(world.queue().refused().is_empty());
    let moments: Vec<Timestamp> = world.queue().steps().iter().map(|step| step.at).collect();
    for pair in moments.windows(2) {
        assert!(
            pair[1].since(pair[0]) <= Duration::from_secs(905),
            "a hop of {:?}",
            pair[1].since(pair[0])
        );
    }
    assert!(moments.len() >= 12, "three hours are at least twelve hops");
}

#[tokio::test(start_paused = true)]
async fn bug_044_a_copy_that_arrives_ten_seconds_early_is_parked_for_the_rest() {
    // The last hop of a chain arrives 10 s before the due time, which stands in its envelope.
    let mut setup = one_job(Duration::from_secs(910));
    setup.scheduler = None;
    setup.policy.deferral.fallback = Fallback::Hops;
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    let calls = world.provider("acme").unwrap().books().calls;
    assert_eq!((report.done, report.early, calls.len()), (1, 0, 2), "{report}");
    assert!(Some(calls[1].at) >= calls[0].told);
    assert!(
        world.queue().steps().len() >= 2,
        "it was handed on once more, without a call"
    );
}

#[test]
fn bug_072_the_template_bounds_the_pollers_and_reserves_nothing() {
    let template = template();
    let mappings = template.matches("Type: SQS\n").count();
    assert!(mappings >= 1);
    assert_eq!(
        template.matches("MaximumConcurrency: ").count(),
        mappings,
        "each mapping has its bound"
    );
    assert!(template.contains("MinValue: 2") && template.contains("MaxValue: 1000"));
    assert!(!template.contains("ReservedConcurrentExecutions"));
}

#[tokio::test(start_paused = true)]
async fn bug_073_what_no_slot_was_free_for_spends_no_receive() {
    // One at a time, 15 s each, 60 s an invocation: of ten messages most are not started in theirs.
    let mut setup = Setup::new(73)
        .provider(Provider::new("slow", Limit::None, Hint::Absent).latency(Duration::from_secs(15)))
        .jobs((0..10).map(|n| SimJob::new(&format!("job-{n}"), "slow")));
    setup.concurrency = 1;
    setup.invocation = Some(Duration::from_secs(60));
    setup.queue.max_receive_count = Some(3);
    setup.queue.visibility_timeout = Duration::from_secs(360);
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    assert_eq!((report.done, report.duplicates), (10, 0), "{report}");
    assert!(world.queue().dead_letters().is_empty());
    assert!(
        !world.queue().steps().is_empty(),
        "what was not started was handed on at once"
    );
}

#[test]
fn bug_074_the_visibility_timeout_is_six_times_the_functions() {
    let template = template();
    let mapping = template.split("Visibility:\n").nth(1).unwrap();
    let mut checked = BTreeSet::new();
    for line in mapping.lines().take_while(|line| line.starts_with("    ")) {
        let numbers: Vec<u64> = line
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        if let [timeout, visibility] = numbers[..] {
            assert!(visibility >= 6 * timeout, "{line}");
            checked.insert(timeout);
        }
    }
    assert_eq!(checked, BTreeSet::from([30, 60, 120, 300, 600, 900]));
    assert!(template.contains("VisibilityTimeout: !FindInMap [Visibility, !Ref FunctionTimeout, Seconds]"));
}

/// The reach of a standard queue on SQS, and what is known of a message that was received `held` ago.
pub(super) fn on_sqs(now: Timestamp, held: Duration) -> (Reach, RouteFacts) {
    let reach = Reach {
        kind: QueueKind::Standard,
        max_delay: Duration::from_secs(900),
        delay_step: Duration::from_secs(1),
        schedule: None,
        max_visibility: Duration::from_secs(43_200),
        visibility_timeout: Duration::from_secs(180),
        retention: Duration::from_secs(14 * 86_400),
        max_receive_count: Some(10),
    };
    let facts = RouteFacts {
        sent_at: now - held,
        received_at: now - held,
        receive_count: 1,
        has_room: true,
        schedulable: true,
        holds_are_recorded: false,
        repeatable: true,
    };
    (reach, facts)
}

pub(super) fn road(reach: &Reach, facts: &RouteFacts, wait: Duration, now: Timestamp) -> Route {
    route(
        &Policy::default(),
        reach,
        Plan::Wait { until: now + wait },
        facts,
        Refused::NONE,
        now,
    )
}
