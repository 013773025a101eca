//! What holds for every decision, whatever is asked.

use proptest::{option, prelude::*};

use super::*;

/// Ordinary spans, the edges, and what nobody would configure.
fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0u64..120_000).prop_map(ms),
        4 => (0u64..200_000_000).prop_map(ms),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
        1 => any::<u64>().prop_map(ms),
        1 => any::<(u64, u32)>().prop_map(|(secs, nanos)| Duration::new(secs / 2, nanos % 1_000_000_000)),
    ]
}

/// Around the present, and anywhere.
fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        4 => (-200_000_000i64..200_000_000).prop_map(|off| Timestamp::from_unix_ms(now().as_unix_ms() + off)),
        1 => any::<i64>().prop_map(Timestamp::from_unix_ms),
        1 => Just(Timestamp::EPOCH),
        1 => Just(Timestamp::MAX),
        1 => Just(now()),
    ]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..40, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn policy() -> impl Strategy<Value = Policy> {
    let caps = (count(), span(), count(), span(), span(), span(), span());
    let ladders = (
        proptest::collection::vec(span(), 0..8),
        proptest::collection::vec(span(), 0..8),
        count(),
    );
    prop_oneof![
        1 => Just(Policy::default()),
        2 => (caps, ladders, any::<bool>()).prop_map(|(caps, (ladder, backoff, max_attempts), probes)| {
            let (max_deferrals, max_deferred, max_hops, unknown_max, probe_interval, min_retry_after, clock_skew) = caps;
            let mut policy = Policy::default();
            policy.deferral.max_deferrals = max_deferrals;
            policy.deferral.max_deferred = max_deferred;
            policy.deferral.max_hops = max_hops;
            policy.deferral.unknown_max = unknown_max;
            policy.deferral.probe_interval = probe_interval;
            policy.deferral.min_retry_after = min_retry_after;
            policy.deferral.clock_skew = clock_skew;
            policy.deferral.ladder = ladder;
            policy.deferral.monthly = if probes { Monthly::Probe } else { Monthly::Exhaust };
            policy.retry.backoff = backoff;
            policy.retry.max_attempts = max_attempts;
            policy
        }),
    ]
}

fn facts() -> impl Strategy<Value = Facts> {
    let counters = (count(), count(), count(), count()).prop_map(|(deferrals, hops, failures, unnamed)| Counters {
        deferrals,
        hops,
        failures,
        unnamed,
    });
    (
        counters,
        prop_oneof![3 => Just(0u32), 1 => count()],
        option::of(moment()),
        option::of(moment()),
        option::of(moment()),
        option::of(moment()),
    )
        .prop_map(
            |(counters, unexplained_receives, first_deferred_at, unnamed_since, deadline, found_turn)| Facts {
                counters,
                unexplained_receives,
                first_deferred_at,
                unnamed_since,
                deadline,
                found_turn,
            },
        )
}

fn signal() -> impl Strategy<Value = Signal> {
    (
        moment(),
        option::of(moment()),
        proptest::sample::select(&KINDS[..]),
        option::of(any::<u16>()),
    )
        .prop_map(|(seen, retry_at, kind, status)| {
            let signal = Signal::new("acme", seen).kind(kind);
            let signal = status.map_or(signal.clone(), |status| signal.status(status));
            retry_at.map_or(signal.clone(), |at| signal.retry_at(at))
        })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        3 => Just(Verdict::Default),
        3 => moment().prop_map(|until| Verdict::Defer { until }),
        2 => Just(Verdict::Retry),
        1 => "[a-zé]{0,900}".prop_map(|reason| Verdict::Drop { reason }),
        1 => "[a-zé]{0,900}".prop_map(|reason| Verdict::DeadLetter { reason }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let fault = |made: fn(Fault) -> Outcome| {
        (option::of(moment()), option::of(any::<u16>())).prop_map(move |(retry_at, status)| {
            let fault = Fault::new("broke");
            let fault = status.map_or(fault.clone(), |status| fault.status(status));
            made(retry_at.map_or(fault.clone(), |at| fault.retry_at(at)))
        })
    };
    prop_oneof![
        6 => signal().prop_map(Outcome::Throttled),
        2 => fault(Outcome::Failed),
        1 => fault(Outcome::Unknown),
        1 => fault(Outcome::Rejected),
        1 => Just(Outcome::Done),
    ]
}

/// The moment that the provider named in this outcome.
fn named(outcome: &Outcome) -> Option<Timestamp> {
    match outcome {
        Outcome::Throttled(signal) => signal.earliest_retry_at(),
        Outcome::Failed(fault) => fault.not_before(),
        Outcome::Done | Outcome::Unknown(_) | Outcome::Rejected(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn law_1_never_early(
        policy in policy(), facts in facts(), outcome in outcome(), verdict in verdict(), now in moment(), entropy: u64,
    ) {
        if let Decision::Wait(wait) = decide(&policy, &facts, &outcome, &verdict, now, entropy) {
            prop_assert!(wait.until >= now);
            prop_assert!(named(&outcome).is_none_or(|at| wait.until >= at), "{wait:?}");
            prop_assert!(wait.until - wait.jitter >= named(&outcome).unwrap_or(now), "jitter only adds");
            if let Outcome::Throttled(_) = outcome {
                prop_assert!(wait.until >= now + policy.deferral.min_retry_after);
            }
        }
    }

    #[test]
    fn law_4_a_wait_spends_no_attempt(
        policy in policy(), facts in facts(), signal in signal(), now in moment(), entropy: u64,
        until in moment(),
    ) {
        let other = |failures| Facts { counters: Counters { failures, ..facts.counters }, ..facts.clone() };
        for verdict in [Verdict::Default, Verdict::Defer { until }] {
            let outcome = Outcome::Throttled(signal.clone());
            let fresh = decide(&policy, &other(0), &outcome, &verdict, now, entropy);
            prop_assert_eq!(&fresh, &decide(&policy, &other(u32::MAX), &outcome, &verdict, now, entropy));
            if let Decision::Wait(wait) = fresh {
                prop_assert_eq!(wait.counter, Counter::Deferral);
            }
        }
    }

    #[test]
    fn a_failure_is_decided_without_regard_to_deferrals_and_hops(
        policy in policy(), facts in facts(), now in moment(), entropy: u64, deferrals: u32, hops: u32, unnamed: u32,
    ) {
        let outcome = Outcome::Failed(Fault::new("broke"));
        let counters = Counters { deferrals, hops, unnamed, failures: facts.counters.failures };
        let other = Facts { counters, ..facts.clone() };
        prop_assert_eq!(
            decide(&policy, &facts, &outcome, &Verdict::Default, now, entropy),
            decide(&policy, &other, &outcome, &Verdict::Default, now, entropy)
        );
    }

    #[test]
    fn law_5_capped(
        policy in policy(), facts in facts(), outcome in outcome(), verdict in verdict(), now in moment(), entropy: u64,
    ) {
        if let Decision::Wait(wait) = decide(&policy, &facts, &outcome, &verdict, now, entropy) {
            let first = facts.first_deferred_at.unwrap_or(now);
            prop_assert!(wait.until.since(first) <= policy.deferral.max_deferred, "{wait:?}");
            prop_assert!(facts.deadline.is_none_or(|deadline| wait.until <= deadline), "{wait:?}");
            match wait.counter {
                Counter::Deferral => prop_assert!(facts.deferrals() < policy.deferral.max_deferrals),
                Counter::Failure => prop_assert!(facts.counters.failures < policy.retry.max_attempts),
                Counter::Hop => prop_assert!(false, "a call is no hop"),
            }
        }
    }

    #[test]
    fn law_5_capped_hops(
        policy in policy(), facts in facts(), until in moment(), now in moment(),
        cause in proptest::sample::select(&[Cause::NotDue, Cause::NotBefore, Cause::GateClosed, Cause::ScopeFull, Cause::OutOfTime][..]),
    ) {
        if let Decision::Wait(wait) = hop(&policy, &facts, until, cause, "why", now) {
            prop_assert_eq!((wait.until, wait.counter), (until.max(now), Counter::Hop));
            prop_assert!(facts.counters.hops < policy.deferral.max_hops);
            prop_assert!(facts.deadline.is_none_or(|deadline| wait.until <= deadline));
            let skew = if matches!(cause, Cause::NotDue | Cause::GateClosed) { policy.deferral.clock_skew } else { Duration::ZERO };
            let put_off = (wait.until - skew).since(facts.first_deferred_at.unwrap_or(now));
            prop_assert!(cause == Cause::NotBefore || wait.until == now || put_off <= policy.deferral.max_deferred);
        }
    }

    #[test]
    fn jitter_is_bounded_and_repeats(
        policy in policy(), facts in facts(), outcome in outcome(), verdict in verdict(), now in moment(), entropy: u64,
    ) {
        let decision = decide(&policy, &facts, &outcome, &verdict, now, entropy);
        prop_assert_eq!(&decision, &decide(&policy, &facts, &outcome, &verdict, now, entropy));
        if let Decision::Wait(wait) = decision {
            let without = (wait.until - wait.jitter).since(now);
            prop_assert!(wait.counter != Counter::Deferral || wait.jitter <= s(30));
            let parts = if wait.counter == Counter::Deferral { 10 } else { 4 };
            prop_assert!(wait.jitter <= without / parts, "{wait:?} {without:?}");
        }
    }
}
