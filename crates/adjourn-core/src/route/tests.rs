//! Given this wait, this queue and this message: expect this road.

use std::{format, vec::Vec};

use super::*;
use crate::Policy;

mod fifo;
mod holds;
mod properties;
mod standard;

fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-07-10T20:13:47Z")
}

/// SQS with EventBridge Scheduler, as a template would set them up.
fn sqs() -> Reach {
    Reach {
        kind: QueueKind::Standard,
        max_delay: s(900),
        delay_step: s(1),
        schedule: Some(ScheduleReach {
            step: s(60),
            lead: s(60),
        }),
        max_visibility: s(43_200),
        visibility_timeout: s(90),
        retention: s(14 * 86_400),
        max_receive_count: Some(5),
    }
}

fn without_scheduler() -> Reach {
    Reach {
        schedule: None,
        ..sqs()
    }
}

fn fifo_queue() -> Reach {
    Reach {
        kind: QueueKind::Fifo,
        ..sqs()
    }
}

/// A message that was sent and received a moment ago, for the first time.
fn message() -> RouteFacts {
    RouteFacts {
        sent_at: now() - s(2),
        received_at: now(),
        receive_count: 1,
        has_room: true,
        schedulable: true,
        holds_are_recorded: false,
        repeatable: true,
    }
}

fn routed(reach: &Reach, wait: Duration, facts: &RouteFacts, refused: Refused) -> Route {
    route(
        &Policy::default(),
        reach,
        Plan::Wait { until: now() + wait },
        facts,
        refused,
        now(),
    )
}

fn refusing(routes: &[Route]) -> Refused {
    routes.iter().fold(Refused::NONE, |refused, route| refused.with(route))
}

fn resend(delay: u64, rest: u64) -> Route {
    Route::Resend {
        delay: s(delay),
        rest: Some(ms(rest)),
    }
}

/// One link of a chain: more of the wait is left than the queue can delay.
const HOP: Route = Route::Resend {
    delay: Duration::from_secs(900),
    rest: None,
};

fn hold(secs: u64) -> Route {
    Route::Hold { visibility: s(secs) }
}

fn schedule(time: &str) -> Route {
    Route::Schedule { at: at(time) }
}

fn is_unholdable(route: &Route) -> bool {
    matches!(route, Route::DeadLetter { unholdable: Some(_) })
}

/// Every road that is offered when each is refused in turn, up to the first that cannot be.
fn all_refused(policy: &Policy, reach: &Reach, plan: Plan, facts: &RouteFacts, now: Timestamp) -> Vec<Route> {
    let mut refused = Refused::NONE;
    let mut roads = Vec::new();
    for _ in 0..10 {
        let road = route(policy, reach, plan, facts, refused, now);
        refused = refused.with(&road);
        roads.push(road);
        if roads.last() == Some(&Route::Leave) {
            break;
        }
    }
    roads
}
