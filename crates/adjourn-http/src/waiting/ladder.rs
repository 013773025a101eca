//! What is waited for in process, and how often: a provider's own moment ten times, the ladder once up.

use std::time::Duration;

use adjourn_core::{Kind, Signal, Timestamp};
use adjourn_pace::PLAIN_LADDER;

use super::Pause;

/// How often a moment that the provider named is waited for in one call.
const MAX_HINTED: u32 = 10;
/// By how much a moment may be later than what it was made from.
const ROUNDED: Duration = Duration::from_millis(1);
/// The least wait for a moment that the provider named: many say "0", and mean soon.
const LEAST_HINT: Duration = Duration::from_secs(1);

/// What a call waits for in process, as far as its budget goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// The waits before further attempts where the provider names no time, one after another: of a 429, and of a failure
    /// that may be tried again. Empty: nothing at all is waited for in process, neither a named moment nor the end of a pause nor a turn
    /// that comes in more than a second.
    pub backoff: Vec<Duration>,
    /// The least wait after a refusal; one that names a time has a least of one second besides.
    pub min_retry_after: Duration,
}

impl Default for WaitPolicy {
    /// 1, 3, 10, 30, 60 and 180 s.
    fn default() -> Self {
        Self {
            backoff: PLAIN_LADDER.to_vec(),
            min_retry_after: Duration::ZERO,
        }
    }
}

impl WaitPolicy {
    /// The least wait after a refusal that names a time, of the call and of everybody that its pause holds. `floor_ms` is the
    /// provider's, by its contract.
    pub(crate) fn least(&self, floor_ms: Option<u64>) -> Duration {
        let floor = Duration::from_millis(floor_ms.unwrap_or_default());
        LEAST_HINT.max(self.min_retry_after).max(floor)
    }

    /// Nothing is waited for in process.
    #[must_use]
    pub fn none() -> Self {
        Self {
            backoff: Vec::new(),
            min_retry_after: Duration::ZERO,
        }
    }
}

/// What stands in the way of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setback<'a> {
    /// The provider said "not now"; where a budget pauses for it, the moment at which that ends. The call waits for the same
    /// one: jitter of its own would let others pass first, or meet the budget's pause again.
    Refused(&'a Signal, Option<Timestamp>),
    /// It failed and may be tried again, not before a moment that the server named; and the end of the budget's pause, as above.
    Failed(Option<Timestamp>, Option<Timestamp>),
}

/// The waits of one call so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits<'p> {
    policy: &'p WaitPolicy,
    hinted: u32,
    rungs: usize,
}

impl<'p> Waits<'p> {
    pub(crate) fn under(policy: &'p WaitPolicy) -> Self {
        Self {
            policy,
            hinted: 0,
            rungs: 0,
        }
    }

    /// The wait before a further attempt; none where the setback is to be handed to the caller at once.
    pub(crate) fn next(
        &mut self,
        setback: Setback<'_>,
        budget: Duration,
        now: Timestamp,
        entropy: u64,
    ) -> Option<Pause> {
        if self.policy.backoff.is_empty() || budget.is_zero() {
            return None;
        }
        match setback {
            Setback::Refused(signal, resumes_at) => match signal.earliest_retry_at() {
                Some(at) => self.hinted(signal, at, resumes_at, budget, now, entropy),
                None if is_bare(signal) => {
                    let floor = signal.observation().observed_at + self.policy.min_retry_after;
                    self.rung(Some(floor), resumes_at, budget, now, entropy)
                }
                None => None,
            },
            Setback::Failed(not_before, resumes_at) => self.rung(not_before, resumes_at, budget, now, entropy),
        }
    }

    fn hinted(
        &mut self,
        signal: &Signal,
        at: Timestamp,
        resumes_at: Option<Timestamp>,
        budget: Duration,
        now: Timestamp,
        entropy: u64,
    ) -> Option<Pause> {
        let hopeless = signal.limit_kind() == Kind::AccountDisabled;
        if hopeless || self.hinted >= MAX_HINTED {
            return None;
        }
        let floor = at.max(signal.observation().observed_at + self.policy.least(None));
        let length = floor.since(signal.observation().observed_at);
        let pause = at_one_moment(floor, length, resumes_at, budget, now, entropy)?;
        self.hinted = self.hinted.saturating_add(1);
        Some(pause)
    }

    fn rung(
        &mut self,
        not_before: Option<Timestamp>,
        resumes_at: Option<Timestamp>,
        budget: Duration,
        now: Timestamp,
        entropy: u64,
    ) -> Option<Pause> {
        let rung = *self.policy.backoff.get(self.rungs)?;
        let floor = not_before.map_or(now + rung, |at| at.max(now + rung));
        let pause = at_one_moment(floor, floor.since(now), resumes_at, budget, now, entropy)?;
        self.rungs = self.rungs.saturating_add(1);
        Some(pause)
    }
}

/// The wait until the budget's pause ends, which has its jitter already; or until `floor` and up to a tenth of `length` more, where
/// that pause ends before it.
fn at_one_moment(
    floor: Timestamp,
    length: Duration,
    resumes_at: Option<Timestamp>,
    budget: Duration,
    now: Timestamp,
    entropy: u64,
) -> Option<Pause> {
    match resumes_at {
        Some(resumes_at) if resumes_at >= floor => {
            // A moment is rounded up to a millisecond, and that is no reason to miss what fits.
            let rounded = resumes_at.since(now) > budget;
            let at = if rounded {
                (resumes_at - ROUNDED).max(floor)
            } else {
                resumes_at
            };
            Pause::within(budget, now, at, Duration::ZERO, entropy)
        }
        Some(_) | None => Pause::within(budget, now, floor, length, entropy),
    }
}

/// Whether a refusal without a time may free itself soon: a 429 that names no day's or month's limit. A contract that
/// calls another status a limit knows of no time either, and a quota's end is hours away: no ladder reaches it.
fn is_bare(signal: &Signal) -> bool {
    let soon = match signal.limit_kind() {
        Kind::Short | Kind::Concurrency | Kind::Unknown => true,
        Kind::Daily | Kind::Monthly | Kind::AccountDisabled => false,
    };
    soon && signal.observation().status == Some(429)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AMPLE: Duration = Duration::from_secs(300);

    fn now() -> Timestamp {
        Timestamp::from_unix_ms(1_783_714_427_000)
    }

    fn refusal(after_ms: Option<u64>) -> Signal {
        let signal = Signal::new("acme", now()).status(429);
        match after_ms {
            Some(ms) => signal.retry_at(now() + Duration::from_millis(ms)),
            None => signal,
        }
    }

    /// The spans waited for the same setback again and again, each within the same budget.
    fn spans(policy: &WaitPolicy, setback: Setback<'_>, budget: Duration) -> Vec<Duration> {
        let mut waits = Waits::under(policy);
        std::iter::from_fn(|| waits.next(setback, budget, now(), 0))
            .map(|pause| pause.span)
            .take(50)
            .collect()
    }

    fn seconds(list: &[u64]) -> Vec<Duration> {
        list.iter().copied().map(Duration::from_secs).collect()
    }

    #[test]
    fn ten_named_moments_are_waited_for_and_an_eleventh_is_not() {
        let policy = WaitPolicy::default();
        let signal = refusal(Some(2000));
        assert_eq!(
            spans(&policy, Setback::Refused(&signal, None), AMPLE),
            seconds(&[2; 10])
        );
    }

    #[test]
    fn a_bare_429_goes_up_the_ladder_once_and_only_by_rungs_that_fit() {
        let policy = WaitPolicy::default();
        let signal = refusal(None);
        let all = seconds(&[1, 3, 10, 30, 60, 180]);
        assert_eq!(spans(&policy, Setback::Refused(&signal, None), AMPLE), all);
        let short = spans(&policy, Setback::Refused(&signal, None), Duration::from_secs(10));
        assert_eq!(short, seconds(&[1, 3, 10]), "equal fits");
        assert_eq!(spans(&policy, Setback::Failed(None, None), AMPLE), all);
    }

    #[test]
    fn named_moments_are_not_counted_on_the_ladder() {
        let policy = WaitPolicy::default();
        let (hint, bare) = (refusal(Some(5000)), refusal(None));
        let mut waits = Waits::under(&policy);
        let mut next = |signal| {
            let pause = waits.next(Setback::Refused(signal, None), AMPLE, now(), 0);
            pause.map(|pause| pause.span.as_secs())
        };
        let taken: Vec<_> = [&bare, &hint, &bare, &hint, &bare].map(&mut next).to_vec();
        assert_eq!(taken, [Some(1), Some(5), Some(3), Some(5), Some(10)]);
    }

    #[test]
    fn a_moment_that_is_too_soon_is_put_off_to_the_floors() {
        let signal = refusal(Some(0));
        let floor = WaitPolicy {
            min_retry_after: Duration::from_secs(7),
            ..WaitPolicy::default()
        };
        for (policy, expected) in [(WaitPolicy::default(), 1), (floor, 7)] {
            let pause = Waits::under(&policy).next(Setback::Refused(&signal, None), AMPLE, now(), 0);
            assert_eq!(pause.map(|pause| pause.span.as_secs()), Some(expected));
        }
    }

    #[test]
    fn a_budget_that_pauses_and_the_call_that_was_refused_wait_for_one_moment() {
        let policy = WaitPolicy::default();
        let signal = refusal(Some(5000));
        let resumes_at = now() + Duration::from_millis(5432);
        let wait = |budget| {
            let setback = Setback::Refused(&signal, Some(resumes_at));
            Waits::under(&policy).next(setback, budget, now(), u64::MAX)
        };
        assert_eq!(wait(AMPLE).map(|pause| pause.until), Some(resumes_at));
        assert_eq!(
            wait(Duration::from_millis(5430)),
            None,
            "before that moment there is no turn"
        );
    }

    #[test]
    fn a_failure_waits_for_the_end_of_the_budget_s_pause_and_for_no_other_moment() {
        let policy = WaitPolicy::default();
        let told = now() + Duration::from_secs(100);
        let resumes_at = now() + Duration::from_millis(100_700);
        let wait = |budget| {
            let failed = Setback::Failed(Some(told), Some(resumes_at));
            Waits::under(&policy).next(failed, Duration::from_millis(budget), now(), u64::MAX)
        };
        assert_eq!(wait(101_000).map(|pause| pause.until), Some(resumes_at));
        assert_eq!(wait(100_698), None, "before that moment there is no turn");
        let soon = Setback::Failed(None, Some(now() + Duration::from_millis(10)));
        let pause = Waits::under(&policy).next(soon, AMPLE, now(), 0);
        assert_eq!(pause.map(|pause| pause.span.as_secs()), Some(1), "the ladder is longer");
    }

    #[test]
    fn a_least_wait_that_is_longer_than_the_budget_s_pause_has_jitter_of_its_own() {
        let signal = refusal(Some(800));
        let resumes_at = now() + Duration::from_millis(830);
        let slow = WaitPolicy {
            min_retry_after: Duration::from_secs(20),
            ..WaitPolicy::default()
        };
        for (policy, least) in [(WaitPolicy::default(), 1000), (slow, 20_000)] {
            let wait = |entropy| {
                let setback = Setback::Refused(&signal, Some(resumes_at));
                let pause = Waits::under(&policy).next(setback, AMPLE, now(), entropy);
                pause.map(|pause| pause.span.as_millis())
            };
            assert_eq!(
                [0, 5_000, 10_000].map(wait),
                [0, 5, 10].map(|parts| Some(least + least * parts / 100))
            );
        }
    }

    #[test]
    fn an_empty_list_or_an_empty_budget_waits_for_nothing_not_even_for_a_named_moment() {
        let hint = refusal(Some(1000));
        for setback in [Setback::Refused(&hint, None), Setback::Failed(None, None)] {
            assert_eq!(spans(&WaitPolicy::none(), setback, AMPLE), []);
            assert_eq!(spans(&WaitPolicy::default(), setback, Duration::ZERO), []);
        }
    }

    #[test]
    fn no_ladder_for_a_quota_for_another_status_and_for_a_closed_account() {
        let policy = WaitPolicy::default();
        for signal in [
            refusal(None).status(403),
            refusal(None).kind(Kind::Daily),
            refusal(None).kind(Kind::Monthly),
            refusal(None).kind(Kind::AccountDisabled),
            refusal(Some(2000)).kind(Kind::AccountDisabled),
        ] {
            assert_eq!(spans(&policy, Setback::Refused(&signal, None), AMPLE), [], "{signal:?}");
        }
        let hinted = refusal(Some(2000)).status(403);
        assert_eq!(spans(&policy, Setback::Refused(&hinted, None), AMPLE).len(), 10);
    }

    #[test]
    fn a_server_error_waits_at_least_as_long_as_it_asks() {
        let at = now() + Duration::from_secs(20);
        let failed = Setback::Failed(Some(at), None);
        assert_eq!(
            spans(&WaitPolicy::default(), failed, Duration::from_secs(25)),
            seconds(&[20, 20, 20])
        );
        assert_eq!(spans(&WaitPolicy::default(), failed, Duration::from_secs(19)), []);
    }

    proptest! {
        #[test]
        fn never_early_never_over_the_budget_and_never_without_end(
            setbacks in prop::collection::vec((prop::option::of(0u64..400_000), 0u64..2_000, any::<bool>()), 0..60),
            budget_ms in 0u64..400_000, min_ms in 0u64..5_000, entropy: u64,
        ) {
            let policy = WaitPolicy { min_retry_after: Duration::from_millis(min_ms), ..WaitPolicy::default() };
            let mut waits = Waits::under(&policy);
            let budget = Duration::from_millis(budget_ms);
            let mut taken = 0;
            for (after_ms, took_ms, fails) in setbacks {
                let signal = refusal(after_ms);
                let read_at = now() + Duration::from_millis(took_ms);
                let setback = if fails { Setback::Failed(signal.earliest_retry_at(), None) } else { Setback::Refused(&signal, None) };
                let Some(pause) = waits.next(setback, budget, read_at, entropy) else { continue };
                taken += 1;
                prop_assert!(pause.span <= budget);
                prop_assert!(pause.until >= signal.earliest_retry_at().unwrap_or(now()));
                if !fails && after_ms.is_some() {
                    prop_assert!(pause.until >= now() + Duration::from_secs(1).max(policy.min_retry_after));
                }
            }
            prop_assert!(taken <= 10 + policy.backoff.len());
        }
    }
}
