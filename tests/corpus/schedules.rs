//! One-time schedules: names, moments, conflicts, quotas and what is left behind.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use adjourn_core::{DeferralId, Fallback, Identity, Mechanism, Route, ScheduleReach, Timestamp};
use adjourn_sim::{Hint, Limit, Provider, Setup, SimJob, World, simulate};
use adjourn_worker::{
    Clock, VirtualClock,
    fake::{FakeQueue, FakeScheduler, Faults, PortFault, ScheduleSettings},
    port::Scheduler,
};
use proptest::prelude::*;

use super::{
    service,
    waits::{on_sqs, road},
};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

fn refused_for_hours() -> Setup {
    Setup::new(1)
        .provider(Provider::new(
            "acme",
            Limit::RefuseFirst {
                calls: 1,
                wait: 3 * HOUR,
            },
            Hint::Seconds,
        ))
        .jobs((0..3).map(|n| SimJob::new(&format!("job-{n}"), "acme")))
}

fn a_scheduler(settings: ScheduleSettings) -> (Arc<VirtualClock>, FakeQueue, FakeScheduler) {
    let clock = Arc::new(VirtualClock::starting_at(now()));
    let queue = FakeQueue::standard("jobs", clock.clone());
    let scheduler = FakeScheduler::new(&queue, settings);
    (clock, queue, scheduler)
}

proptest! {
    #[test]
    fn bug_100_every_name_of_ours_is_one_that_the_service_takes(id in ".{0,300}", epoch: u32, sequence: u32) {
        let identity = Identity { id: DeferralId::new(&id), epoch, sequence };
        let name = identity.name();
        prop_assert!((1..=64).contains(&name.len()));
        prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')), "{}", name);
    }

    #[test]
    fn bug_101_no_schedule_is_made_for_a_moment_that_may_be_past_when_it_is_made(wait in 0..200_000_u64, into in 0..60_000_i64) {
        let now = Timestamp::from_unix_ms(now().as_unix_ms() + into);
        let (mut reach, facts) = on_sqs(now, Duration::ZERO);
        reach.schedule = Some(ScheduleReach { step: MINUTE, lead: MINUTE });
        match road(&reach, &facts, Duration::from_secs(wait), now) {
            Route::Schedule { at } => {
                prop_assert!(at >= now + MINUTE, "at({at}) at {now}");
                prop_assert!(at + MINUTE <= now + Duration::from_secs(wait), "and it fires before the job is due");
            }
            Route::Resend { .. } => prop_assert!(wait <= 900),
            Route::Hold { .. } | Route::DeadLetter { .. } | Route::Leave => prop_assert!(false, "a wait of {} s", wait),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bug_106_a_schedule_is_judged_by_what_it_sends_and_not_by_having_been_made() {
    let world = World::new(&refused_for_hours(), &Faults::none());
    let report = world.run().await;
    assert!(world.scheduler().unwrap().fired() >= 1);
    assert_eq!((report.done, report.early), (3, 0), "{report}");
}

#[tokio::test(start_paused = true)]
async fn bug_107_nothing_is_left_of_a_thousand_schedules() {
    let (clock, queue, scheduler) = a_scheduler(ScheduleSettings::default());
    let at = (now() + HOUR).floor_to(MINUTE);
    let copies: Vec<_> = service::scheduled_copies(1000, at);
    assert!(scheduler.schedule(&copies).await.iter().all(Result::is_ok));
    assert_eq!(scheduler.waiting().len(), 1000);
    clock.sleep(2 * HOUR).await;
    scheduler.fire_due();
    assert_eq!((scheduler.waiting().len(), queue.messages().len()), (0, 1000));
    // What the real port asks of the real service: see the test of its zone, and this.
    tokio::time::resume();
    let request = service::created_schedule().await;
    assert_eq!(request["ActionAfterCompletion"], "DELETE");
}

#[tokio::test(start_paused = true)]
async fn bug_108_a_full_quota_of_schedules_becomes_hops() {
    let mut setup = refused_for_hours();
    setup.policy.deferral.fallback = Fallback::Hops;
    setup.scheduler = Some(ScheduleSettings {
        quota: 0,
        ..ScheduleSettings::default()
    });
    let world = World::new(&setup, &Faults::none());
    let report = world.run().await;
    assert_eq!((report.done, report.early, report.lost()), (3, 0, 0), "{report}");
    let roads: BTreeSet<&str> = world
        .queue()
        .steps()
        .iter()
        .map(|step| step.mechanism.as_str())
        .collect();
    assert_eq!(roads, BTreeSet::from([Mechanism::Delay.as_str()]));
}

#[test]
fn bug_109_a_schedule_whose_reply_was_lost_wakes_its_job_once() {
    let mut setup = refused_for_hours();
    setup.ledger = true;
    let smooth = Faults::none();
    let _ = simulate(&setup, &smooth);
    let step = smooth
        .trail()
        .iter()
        .position(|name| *name == "scheduler.create")
        .unwrap();
    for fault in [PortFault::LoseReply, PortFault::StopAfter] {
        let report = simulate(&setup, &Faults::at(step, fault));
        assert_eq!(
            (report.done, report.lost(), report.early, report.duplicates),
            (3, 0, 0, 0),
            "{fault:?}: {report}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bug_110_a_name_that_is_taken_is_looked_at() {
    let (_, _, scheduler) = a_scheduler(ScheduleSettings::default());
    let at = (now() + HOUR).floor_to(MINUTE);
    let copies = service::scheduled_copies(2, at);
    let first = scheduler.schedule(&copies[..1]).await.remove(0).unwrap();
    let again = scheduler.schedule(&copies[..1]).await.remove(0).unwrap();
    assert_eq!(first, again, "ours, and due then: done");
    scheduler.occupy(&copies[1].envelope.identity.name(), at);
    let error = scheduler.schedule(&copies[1..]).await.remove(0).unwrap_err();
    assert!(error.to_string().contains("not ours"), "{error}");
}

#[tokio::test]
async fn bug_111_retries_of_a_firing_are_written_out() {
    let request = service::created_schedule().await;
    let retries = &request["Target"]["RetryPolicy"];
    assert_eq!(
        (&retries["MaximumRetryAttempts"], &retries["MaximumEventAgeInSeconds"]),
        (&185.into(), &86_400.into())
    );
    assert!(
        request["Target"]["DeadLetterConfig"]["Arn"].is_string(),
        "and what is given up is kept"
    );
}

#[test]
fn bug_112_the_template_writes_the_schedulers_role() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let template = std::fs::read_to_string(tests.parent().unwrap().join("template.yaml")).unwrap();
    let role = template.split("ScheduleRole:\n").nth(1).unwrap();
    let role: String = role
        .lines()
        .take_while(|line| line.starts_with("    "))
        .collect::<Vec<_>>()
        .join("\n");
    for needed in [
        "Service: scheduler.amazonaws.com",
        "aws:SourceAccount",
        "!GetAtt ScheduleGroup.Arn",
        "sqs:SendMessage",
    ] {
        assert!(role.contains(needed), "{needed} is not in\n{role}");
    }
    assert!(template.contains("iam:PassedToService: scheduler.amazonaws.com"));
}

#[tokio::test]
async fn bug_113_the_zone_of_a_schedule_is_utc_and_is_said() {
    let request = service::created_schedule().await;
    assert_eq!(request["ScheduleExpressionTimezone"], "UTC");
    let expression = request["ScheduleExpression"].as_str().unwrap();
    assert!(
        expression.starts_with("at(20") && expression.ends_with(":00)"),
        "{expression}"
    );
    assert_eq!(request["FlexibleTimeWindow"]["Mode"], "OFF");
}
