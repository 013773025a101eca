//! What holds for every road, whatever is asked.

use proptest::{option, prelude::*};

use super::*;
use crate::Fallback;

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        4 => (-5_000_000i64..100_000_000).prop_map(|off| Timestamp::from_unix_ms(now().as_unix_ms() + off)),
        1 => any::<i64>().prop_map(Timestamp::from_unix_ms),
        1 => Just(Timestamp::EPOCH),
        1 => Just(Timestamp::MAX),
        1 => Just(now()),
    ]
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => (0u64..1_000_000).prop_map(ms),
        3 => (0u64..50_000).prop_map(s),
        1 => Just(Duration::MAX),
        1 => Just(Duration::ZERO),
        1 => any::<(u64, u32)>().prop_map(|(secs, nanos)| Duration::new(secs / 2, nanos % 1_000_000_000)),
    ]
}

fn reach() -> impl Strategy<Value = Reach> {
    let scheduler = (span(), span()).prop_map(|(step, lead)| ScheduleReach { step, lead });
    let odd = (
        (span(), span(), option::of(scheduler)),
        (span(), span(), span()),
        option::of(prop_oneof![0u32..12, any::<u32>()]),
        any::<bool>(),
    )
        .prop_map(
            |(
                (max_delay, delay_step, schedule),
                (max_visibility, visibility_timeout, retention),
                max_receive_count,
                fifo,
            )| {
                Reach {
                    kind: if fifo { QueueKind::Fifo } else { QueueKind::Standard },
                    max_delay,
                    delay_step,
                    schedule,
                    max_visibility,
                    visibility_timeout,
                    retention,
                    max_receive_count,
                }
            },
        );
    prop_oneof![2 => Just(sqs()), 2 => Just(fifo_queue()), 1 => Just(without_scheduler()), 2 => odd]
}

fn facts() -> impl Strategy<Value = RouteFacts> {
    (
        moment(),
        moment(),
        prop_oneof![0u32..12, any::<u32>()],
        any::<(bool, bool, bool, bool)>(),
    )
        .prop_map(
            |(sent_at, received_at, receive_count, (has_room, schedulable, holds_are_recorded, repeatable))| {
                RouteFacts {
                    sent_at,
                    received_at,
                    receive_count,
                    has_room,
                    schedulable,
                    holds_are_recorded,
                    repeatable,
                }
            },
        )
}

fn policy() -> impl Strategy<Value = Policy> {
    any::<(bool, bool, bool)>().prop_map(|(hops, relaxed, repeat)| {
        let mut policy = Policy::default();
        policy.deferral.fallback = if hops { Fallback::Hops } else { Fallback::Visibility };
        policy.deferral.fifo = if relaxed { Fifo::Relaxed } else { Fifo::Hold };
        policy.deferral.unsafe_redelivery = if repeat {
            UnsafeRedelivery::Repeat
        } else {
            UnsafeRedelivery::Unknown
        };
        policy
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        6 => moment().prop_map(|until| Plan::Wait { until }),
        1 => Just(Plan::GiveBack),
        1 => Just(Plan::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn it_ends_at_leave_and_offers_no_road_twice(
        policy in policy(), reach in reach(), plan in plan(), facts in facts(), now in moment(),
    ) {
        let roads = all_refused(&policy, &reach, plan, &facts, now);
        prop_assert!(roads.len() <= 6 && roads.last() == Some(&Route::Leave), "{roads:?}");
        for (i, road) in roads.iter().enumerate() {
            prop_assert!(!roads[..i].contains(road), "{roads:?}");
        }
    }

    #[test]
    fn law_1_never_early_and_within_what_each_port_takes(
        policy in policy(), reach in reach(), until in moment(), facts in facts(), now in moment(),
    ) {
        for road in all_refused(&policy, &reach, Plan::Wait { until }, &facts, now) {
            match road {
                Route::Resend { delay, rest } => {
                    prop_assert!(reach.kind == QueueKind::Standard && facts.has_room);
                    prop_assert!(delay <= reach.max_delay);
                    let step = u64::try_from(reach.delay_step.as_millis()).unwrap_or(u64::MAX).max(1);
                    prop_assert!(reach.delay_step.subsec_nanos() % 1_000_000 != 0 || delay.as_millis() % u128::from(step) == 0);
                    match rest {
                        Some(rest) => prop_assert_eq!(delay + rest, until.since(now), "the whole wait, to the millisecond"),
                        None => prop_assert!(until.since(now) > reach.max_delay && delay <= reach.max_delay),
                    }
                }
                Route::Schedule { at } => {
                    prop_assert!(facts.has_room && facts.schedulable);
                    let scheduler = reach.schedule.expect("a schedule is made by a scheduler");
                    match reach.kind {
                        QueueKind::Standard => {
                            prop_assert!(until.since(now) > reach.max_delay);
                            prop_assert!(at > now && at <= until - scheduler.lead);
                        }
                        QueueKind::Fifo => {
                            prop_assert!(policy.deferral.fifo == Fifo::Relaxed);
                            prop_assert!(at >= until && (at > now || now == Timestamp::MAX), "nobody waits after it fires");
                        }
                    }
                }
                Route::Hold { visibility } => {
                    let elapsed = now.since(facts.received_at);
                    prop_assert!(visibility >= until.since(now) && visibility.subsec_nanos() == 0);
                    let reserved = elapsed.saturating_add(reach.visibility_timeout).saturating_add(s(300));
                    prop_assert!(visibility <= reach.max_visibility.saturating_sub(reserved));
                    prop_assert!(until < facts.sent_at + reach.retention.saturating_sub(s(3600)));
                    let unknown = reach.kind == QueueKind::Fifo;
                    prop_assert!(reach.max_receive_count.map_or(unknown, |max| facts.receive_count < max));
                }
                Route::DeadLetter { unholdable } => {
                    prop_assert!(unholdable.is_some_and(|why| !why.is_empty()));
                    prop_assert!(reach.kind == QueueKind::Fifo || !facts.has_room);
                }
                Route::Leave => {}
            }
        }
    }

    #[test]
    fn for_any_wait_of_sqs_the_first_road_is_in_range(wait_ms in 0u64..30 * 86_400_000, receive_count in 1u32..6) {
        let facts = RouteFacts { receive_count, ..message() };
        let until = now() + ms(wait_ms);
        match routed(&sqs(), ms(wait_ms), &facts, Refused::NONE) {
            Route::Resend { delay, rest } => {
                prop_assert!(wait_ms <= 900_000 && delay <= s(900) && delay.subsec_nanos() == 0);
                prop_assert!(rest.is_some_and(|rest| rest < s(1)));
            }
            Route::Schedule { at } => {
                prop_assert!(wait_ms > 900_000 && at.floor_to(MINUTE) == at);
                let before = until.since(at);
                prop_assert!(before >= s(60) && before < s(120), "{before:?}");
            }
            other @ (Route::Hold { .. } | Route::DeadLetter { .. } | Route::Leave) => prop_assert!(false, "{other:?}"),
        }
    }
}
