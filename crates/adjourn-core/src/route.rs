//! Which road a wait or an end takes through the queues.
//!
//! The order and its price are in docs/adr/0002-tiers.md. `route` is asked again each time a port refuses, with that route
//! in the refused set, and it ends at [`Route::Leave`]: the original stays where it is.

use alloc::{format, string::String};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Fallback, Fifo, Policy, Timestamp, UnsafeRedelivery, time::millis_up};

const MINUTE: Duration = Duration::from_secs(60);
/// Left of the longest hold for what happens between the receive and our call.
const HOLD_MARGIN: Duration = Duration::from_secs(300);
/// Left before a held message would reach the end of its queue's retention.
const RETENTION_MARGIN: Duration = Duration::from_secs(3600);

/// Standard or FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum QueueKind {
    /// No order, delays for each message.
    #[default]
    Standard,
    /// Order within each group, no delays for a message.
    Fifo,
}

/// What a queue and its scheduler can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Standard or FIFO.
    pub kind: QueueKind,
    /// The longest delay of a sent message (SQS: 900 s).
    pub max_delay: Duration,
    /// The unit of a delay (SQS: 1 s). What is finer is waited just before the call.
    pub delay_step: Duration,
    /// What its scheduler can do; none where there is none.
    pub schedule: Option<ScheduleReach>,
    /// How long a message may stay invisible from its receive on (SQS: 43,200 s).
    pub max_visibility: Duration,
    /// The queue's own visibility timeout.
    pub visibility_timeout: Duration,
    /// How long the queue keeps a message from its sending on.
    pub retention: Duration,
    /// After how many receives the queue gives a message up; none where it is not known.
    pub max_receive_count: Option<u32>,
}

/// What a scheduler can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleReach {
    /// The unit of its times (EventBridge Scheduler: a minute, since it is precise to one).
    pub step: Duration,
    /// How long before the due time it fires, so that a queue delay can do the rest.
    pub lead: Duration,
}

/// What is to be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The job comes back then.
    Wait {
        /// Not before this moment.
        until: Timestamp,
    },
    /// The job has no time left here: given back at once, without a wait.
    GiveBack,
    /// The job has ended without success.
    End,
}

/// What is known of the message that is to be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteFacts {
    /// When this message was sent.
    pub sent_at: Timestamp,
    /// When it was received.
    pub received_at: Timestamp,
    /// How often it was received, this time included.
    pub receive_count: u32,
    /// Whether a copy of it can carry the envelope: a place and room for one more attribute.
    pub has_room: bool,
    /// Whether a scheduler can carry it: no keyword of the scheduler's, no binary attribute, within its size.
    pub schedulable: bool,
    /// Whether a hold is told apart from a crash when the message is received again: a store of jobs remembers it.
    pub holds_are_recorded: bool,
    /// Whether its call may be made a second time without harm.
    pub repeatable: bool,
}

/// A road.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A copy, delayed by the queue.
    Resend {
        /// The queue's delay, in its own unit.
        delay: Duration,
        /// What is waited just before the call; none where more of the wait is left than the queue can delay.
        rest: Option<Duration>,
    },
    /// A copy, sent by a one-time schedule.
    Schedule {
        /// When the schedule fires.
        at: Timestamp,
    },
    /// The original, invisible for so long.
    Hold {
        /// Seconds of visibility timeout.
        visibility: Duration,
    },
    /// A copy in the dead-letter queue. For a wait: nothing can hold it (`unholdable`), for this reason.
    DeadLetter {
        /// Why a wait cannot be held; none for an end.
        unholdable: Option<String>,
    },
    /// The original stays, and comes back when its visibility timeout ends.
    Leave,
}

/// How a wait is held, in the words that a person sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// By a queue's delay.
    Delay,
    /// By a one-time schedule.
    Schedule,
    /// By the queue's visibility timeout.
    Visibility,
    /// By nothing.
    #[default]
    None,
}

impl Mechanism {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Schedule => "schedule",
            Self::Visibility => "visibility",
            Self::None => "none",
        }
    }
}

impl Route {
    /// How this route holds a wait.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match self {
            Self::Resend { .. } => Mechanism::Delay,
            Self::Schedule { .. } => Mechanism::Schedule,
            Self::Hold { .. } => Mechanism::Visibility,
            Self::DeadLetter { .. } | Self::Leave => Mechanism::None,
        }
    }
}

/// The routes that a port has already refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Refused(u8);

impl Refused {
    /// None refused yet.
    pub const NONE: Self = Self(0);

    /// The set with `route` in it.
    #[must_use]
    pub fn with(self, route: &Route) -> Self {
        Self(self.0 | Self::bit(route))
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    const RESEND: u8 = 1;
    const SCHEDULE: u8 = 2;
    const HOLD: u8 = 4;
    const DEAD_LETTER: u8 = 8;

    fn bit(route: &Route) -> u8 {
        match route {
            Route::Resend { .. } => Self::RESEND,
            Route::Schedule { .. } => Self::SCHEDULE,
            Route::Hold { .. } => Self::HOLD,
            Route::DeadLetter { .. } => Self::DEAD_LETTER,
            Route::Leave => 0,
        }
    }
}

/// Chooses the road. Total; with every route refused it is [`Route::Leave`].
#[must_use]
pub fn route(
    policy: &Policy,
    reach: &Reach,
    plan: Plan,
    facts: &RouteFacts,
    refused: Refused,
    now: Timestamp,
) -> Route {
    let road = Road {
        policy,
        reach,
        facts,
        refused,
        now,
    };
    match (plan, reach.kind) {
        (Plan::End, _) => road.dead_letter(None),
        (Plan::GiveBack, QueueKind::Fifo) => Route::Leave,
        (Plan::GiveBack, QueueKind::Standard) => {
            if facts.has_room && !refused.has(Refused::RESEND) {
                Route::Resend {
                    delay: Duration::ZERO,
                    rest: Some(Duration::ZERO),
                }
            } else {
                Route::Leave
            }
        }
        (Plan::Wait { until }, QueueKind::Standard) => road.standard(until),
        (Plan::Wait { until }, QueueKind::Fifo) => road.fifo(until),
    }
}

struct Road<'a> {
    policy: &'a Policy,
    reach: &'a Reach,
    facts: &'a RouteFacts,
    refused: Refused,
    now: Timestamp,
}

impl Road<'_> {
    fn standard(&self, until: Timestamp) -> Route {
        let wait = until.since(self.now);
        let can_resend = self.facts.has_room && !self.refused.has(Refused::RESEND);
        if can_resend && wait <= self.reach.max_delay {
            let (delay, rest) = self.split(wait);
            return Route::Resend {
                delay,
                rest: Some(rest),
            };
        }
        if wait > self.reach.max_delay
            && let Some(at) = self.schedule(until)
        {
            return Route::Schedule { at };
        }
        let hold = self.hold(until, self.survives_a_crash());
        let hops = can_resend.then(|| Route::Resend {
            delay: self.split(self.reach.max_delay).0,
            rest: None,
        });
        let (first, second) = match self.policy.deferral.fallback {
            Fallback::Visibility => (hold, hops),
            Fallback::Hops => (hops, hold),
        };
        if let Some(route) = first.or(second) {
            return route;
        }
        if self.facts.has_room || self.refused != Refused::NONE {
            // A port failed us; the original is whole and comes back.
            return Route::Leave;
        }
        self.dead_letter(Some(String::from(
            "it has to wait, but the message has no room for the envelope (ten attributes, or its size), and one hold cannot cover the wait",
        )))
    }

    fn fifo(&self, until: Timestamp) -> Route {
        let max = self.reach.max_receive_count;
        let last = max.is_some_and(|max| self.facts.receive_count >= max);
        if !last && let Some(hold) = self.hold(until, self.told_apart()) {
            return hold;
        }
        if self.policy.deferral.fifo == Fifo::Relaxed
            && self.can_schedule()
            && let Some(schedule) = self.reach.schedule
        {
            // A minute that has passed by the time that the schedule is made would be refused.
            let soonest = self.now + Self::notice(schedule);
            return Route::Schedule {
                at: until.max(soonest).ceil_to(schedule.step),
            };
        }
        if self.refused.has(Refused::HOLD) || self.refused.has(Refused::SCHEDULE) {
            return Route::Leave;
        }
        let why = if last {
            "this is the last receive that the queue permits, and a hold would lose it"
        } else if !self.told_apart() {
            "its call cannot be repeated, and nothing records whether a message that was held had started it"
        } else {
            "on a FIFO queue one hold has to cover the whole wait, and it cannot"
        };
        self.dead_letter(Some(format!("it has to wait until {until}, but {why}")))
    }

    /// The delay in the queue's unit, rounded down, and what is left of it.
    fn split(&self, wait: Duration) -> (Duration, Duration) {
        let step = u64::try_from(millis_up(self.reach.delay_step)).unwrap_or(1).max(1);
        let ms = u64::try_from(millis_up(wait)).unwrap_or_default();
        let rest = ms.checked_rem(step).unwrap_or(0);
        (
            Duration::from_millis(ms.saturating_sub(rest)),
            Duration::from_millis(rest),
        )
    }

    fn can_schedule(&self) -> bool {
        self.facts.has_room && self.facts.schedulable && !self.refused.has(Refused::SCHEDULE)
    }

    /// The last full step that is at least the lead before the due time.
    fn schedule(&self, until: Timestamp) -> Option<Timestamp> {
        let schedule = self.reach.schedule.filter(|_| self.can_schedule())?;
        let at = (until - schedule.lead).floor_to(schedule.step);
        (at >= self.now + Self::notice(schedule)).then_some(at)
    }

    /// How long before it fires a schedule has to be asked for.
    fn notice(schedule: ScheduleReach) -> Duration {
        schedule.lead.min(MINUTE).max(Duration::from_millis(1))
    }

    fn hold(&self, until: Timestamp, receives_remain: bool) -> Option<Route> {
        let taken = self
            .now
            .since(self.facts.received_at)
            .saturating_add(self.reach.visibility_timeout)
            .saturating_add(HOLD_MARGIN);
        let most = self.reach.max_visibility.saturating_sub(taken);
        let wait = until.since(self.now);
        let visibility = Duration::from_secs(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)));
        let retained = self.facts.sent_at + self.reach.retention.saturating_sub(RETENTION_MARGIN);
        (receives_remain && visibility <= most && until < retained && !self.refused.has(Refused::HOLD))
            .then_some(Route::Hold { visibility })
    }

    /// Whether after a hold's wake-up a receive is left for a real failure, below the count at which a message that nothing
    /// explains is taken for one that kills its process.
    fn survives_a_crash(&self) -> bool {
        let headroom = self
            .reach
            .max_receive_count
            .is_some_and(|max| self.facts.receive_count.saturating_add(2) < max);
        headroom && self.told_apart()
    }

    /// Whether a held message, received again, would not be taken for an unrepeatable job that was started before.
    fn told_apart(&self) -> bool {
        self.facts.repeatable
            || self.facts.holds_are_recorded
            || self.policy.deferral.unsafe_redelivery == UnsafeRedelivery::Repeat
    }

    fn dead_letter(&self, unholdable: Option<String>) -> Route {
        if self.refused.has(Refused::DEAD_LETTER) {
            Route::Leave
        } else {
            Route::DeadLetter { unholdable }
        }
    }
}

#[cfg(test)]
mod tests;
