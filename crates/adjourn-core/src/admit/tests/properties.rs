//! What holds for every admission, whatever a message and a clock say.

use proptest::{option, prelude::*};

use super::*;

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        4 => (-100_000i64..100_000).prop_map(|off| Timestamp::from_unix_ms(now().as_unix_ms() + off)),
        1 => any::<i64>().prop_map(Timestamp::from_unix_ms),
        1 => Just(Timestamp::EPOCH),
        1 => Just(Timestamp::MAX),
    ]
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![3 => Just(Duration::ZERO), 3 => (0u64..10_000).prop_map(ms), 1 => Just(Duration::MAX)]
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        4 => Just(Standing::Unrecorded),
        2 => Just(Standing::Current),
        1 => Just(Standing::Started),
        1 => Just(Standing::Over(Discarded::Cancelled)),
    ]
}

fn gate() -> impl Strategy<Value = Passage> {
    prop_oneof![
        2 => Just(Passage::Open),
        1 => Just(Passage::Full),
        2 => moment().prop_map(|until| Passage::Closed { until, reason: "burst".to_string() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn law_1_never_early(
        (now, due, not_before, deadline) in (moment(), option::of(moment()), option::of(moment()), option::of(moment())),
        rest in option::of(0u64..1000), (skew, in_process) in (span(), span()), gate in gate(), standing in standing(),
        (fifo, repeatable, time_left) in any::<(bool, bool, bool)>(),
        (receive_count, max_receive_count) in (prop_oneof![0u32..6, any::<u32>()], option::of(any::<u32>())),
    ) {
        let scope = scope();
        let mut policy = Policy::default();
        policy.deferral.clock_skew = skew;
        policy.deferral.max_in_process_wait = in_process;
        let envelope = due.map(|due| copy(due, rest.map(ms)));
        let facts = AdmissionFacts {
            now, envelope: envelope.as_ref(), standing, receive_count, max_receive_count, repeatable, not_before, deadline,
            queue: if fifo { QueueKind::Fifo } else { QueueKind::Standard },
            scope: &scope, gate: &gate, time_left,
        };
        let served = envelope.as_ref().and_then(|envelope| envelope.rest.map(|_| envelope.due));
        let closed_until = match &gate {
            Passage::Closed { until, .. } => Some(*until),
            Passage::Open | Passage::Full => None,
        };
        match admit(&policy, &facts) {
            Admission::Admit { after } => {
                prop_assert!(after < s(1) || after <= in_process);
                prop_assert!(deadline.is_none_or(|deadline| now <= deadline));
                if after.is_zero() {
                    // It starts now: everything that was told has passed.
                    prop_assert!(gate == Passage::Open || closed_until.is_some_and(|until| until + skew <= now));
                    prop_assert!(time_left);
                    prop_assert!(served.is_some() || due.is_none_or(|due| due + skew <= now));
                    prop_assert!(served.is_none_or(|due| due <= now || rest == Some(0)));
                    prop_assert!(not_before.is_none_or(|at| at <= now || served.is_some_and(|due| due >= at)));
                }
            }
            Admission::Park { until, cause, .. } => {
                prop_assert!(until > now);
                match cause {
                    Cause::NotDue => prop_assert!(due.is_some_and(|due| until >= due)),
                    Cause::NotBefore => prop_assert!(not_before.is_some_and(|at| until >= at)),
                    Cause::GateClosed => prop_assert!(closed_until.is_some_and(|at| until >= at)),
                    Cause::RefusedUntil
                    | Cause::Refused
                    | Cause::Verdict
                    | Cause::Failed
                    | Cause::ScopeFull
                    | Cause::OutOfTime => prop_assert!(false, "admission parks for no such cause"),
                }
            }
            Admission::Discard(why) => prop_assert_eq!(standing, Standing::Over(why)),
            Admission::Full => prop_assert_eq!(&gate, &Passage::Full),
            Admission::Yield => prop_assert!(!time_left),
            Admission::End(ending) => prop_assert!(!ending.why().is_empty()),
        }
    }
}
