//! A budget's pace: which start it has when, by its rate, by the throttle or by a strategy.

use std::{sync::atomic::Ordering, time::Duration};

use adjourn_pace::{Answer, Moment, Outcome, Quota, Ticket, Tries, Turn as Pass};

use super::{
    NoTurn, Rate, WaitReason, queue,
    state::{ASK, Hold, Live, State, Taken, WHOLE},
};

impl State {
    /// The rate that holds now, where there is one.
    pub(super) fn quota(&self) -> Option<Quota> {
        match self.share.load(Ordering::Acquire) {
            WHOLE => self.terms.quota,
            ASK => self.lock().as_deref().and_then(|live| self.asked_quota(live)),
            share => Some(self.terms.quota?.slowed(f64::from_bits(share))),
        }
    }

    /// The same under the lock.
    pub(super) fn quota_with(&self, live: &Live) -> Option<Quota> {
        match self.share.load(Ordering::Acquire) {
            ASK => self.asked_quota(live),
            WHOLE => self.terms.quota,
            share => Some(self.terms.quota?.slowed(f64::from_bits(share))),
        }
    }

    fn asked_quota(&self, live: &Live) -> Option<Quota> {
        if live.found.is_some() {
            return None;
        }
        let rate = live.rate.or(self.terms.rate)?;
        Some(rate.quota().slowed(live.share()))
    }

    /// How many calls may ever start back to back; none where nothing limits that.
    pub(super) fn burst(&self) -> Option<u32> {
        if self.share.load(Ordering::Acquire) == ASK {
            let live = self.lock();
            let live = live.as_deref()?;
            return live
                .found
                .is_none()
                .then(|| live.rate.or(self.terms.rate))?
                .map(Rate::requests);
        }
        self.terms.rate.map(Rate::requests)
    }

    /// The rate as it is kept now.
    pub(super) fn rate(&self) -> Option<Rate> {
        let live = self.lock();
        if let Some(found) = live.as_ref().and_then(|live| live.found.as_ref()) {
            return found.rate().and_then(Rate::of_float);
        }
        let set = live.as_ref().and_then(|live| live.rate);
        let share = live.as_deref().map_or(1.0, Live::share);
        Some(set.or(self.terms.rate)?.slowed(share))
    }

    pub(super) fn set_rate(&self, rate: Rate) {
        let now = self.now();
        let mut guard = self.lock();
        let live = guard.get_or_insert_default();
        let old = self.quota_with(live);
        live.found = None;
        live.rate = Some(rate);
        self.share.store(ASK, Ordering::Release);
        if let (Some(old), Some(new)) = (old, self.quota_with(live)) {
            self.gcra.change(old, new, now);
        }
        live.retime(self, now);
    }

    fn reason(&self, live: Option<&Live>) -> WaitReason {
        let throttled = match self.share.load(Ordering::Acquire) {
            WHOLE => false,
            ASK => live.is_some_and(|live| live.share() < 1.0),
            _ => true,
        };
        if throttled {
            WaitReason::Throttled
        } else {
            WaitReason::Paced
        }
    }

    /// Takes a start, if the pace has one now.
    pub(super) fn take(&self, live: Option<&mut Live>, cost: u32, now: Moment) -> Result<Taken, Hold> {
        if self.share.load(Ordering::Acquire) != ASK {
            return match self.quota() {
                None => Ok(Taken::Nothing),
                Some(quota) => self.take_of(quota, cost, now, None),
            };
        }
        let mut guard;
        let live = match live {
            Some(live) => live,
            None => {
                guard = self.lock();
                guard.get_or_insert_default()
            }
        };
        let Some(found) = live.found.as_mut() else {
            let Some(quota) = self.asked_quota(live) else {
                return Ok(Taken::Nothing);
            };
            return self.take_of(quota, cost, now, Some(live));
        };
        match found.turn(now) {
            Pass::Now => Ok(Taken::Found(found.started(Tries::default(), now))),
            Pass::At(at) => Err(Hold::until(WaitReason::Paced, Some(at))),
            Pass::AfterAnswer => Err(Hold::until(WaitReason::InFlight, None)),
            Pass::Defer => Err(Hold::until(WaitReason::Closed, None)),
        }
    }

    fn take_of(&self, quota: Quota, cost: u32, now: Moment, live: Option<&Live>) -> Result<Taken, Hold> {
        let (burst, late) = beyond(quota, cost);
        match self.gcra.take(burst, cost, now - late) {
            Ok(spent) => Ok(Taken::Rate { spent, late }),
            Err(at) => Err(Hold::until(self.reason(live), Some(at + late))),
        }
    }

    /// The start makes its call.
    pub(super) fn keep(&self, taken: Taken) {
        match taken {
            Taken::Rate { spent, .. } => self.gcra.keep(spent),
            Taken::Nothing | Taken::Found(_) => {}
        }
    }

    pub(super) fn give_back(&self, live: Option<&mut Live>, taken: Taken, now: Moment) {
        match taken {
            Taken::Nothing => {}
            Taken::Rate { spent, late } => self.gcra.give_back(spent, now - late),
            Taken::Found(ticket) => {
                let mut guard;
                let found = match live {
                    Some(live) => live.found.as_mut(),
                    None => {
                        guard = self.lock();
                        guard.as_mut().and_then(|live| live.found.as_mut())
                    }
                };
                if let Some(found) = found {
                    found.unmade(ticket, now);
                }
            }
        }
    }

    /// When a call of that cost would start behind others that cost so much together with it, were nothing to happen meanwhile; and
    /// what it waits for.
    pub(super) fn outlook(&self, live: &mut Live, whole: &Self, cost: u32, costs: u64, now: Moment) -> Hold {
        let paused = [whole.open(now), self.open(now)]
            .into_iter()
            .filter_map(Result::err)
            .max_by_key(|hold| hold.until);
        let opens_at = paused.and_then(|hold| hold.until).unwrap_or(now);
        let starts_at = if let Some(found) = live.found.as_mut() {
            let first = match found.turn(now) {
                Pass::At(at) => at,
                Pass::Now | Pass::AfterAnswer | Pass::Defer => now,
            };
            let each = found.rate().and_then(Rate::of_float).map(Rate::interval);
            let others = u32::try_from(costs.saturating_sub(1)).unwrap_or(u32::MAX);
            first + each.unwrap_or_default().saturating_mul(others)
        } else {
            self.quota_with(live).map_or(opens_at, |quota| {
                let (_, late) = beyond(quota, cost);
                self.gcra.due(quota, costs, opens_at - late)
            })
        };
        match paused {
            Some(hold) => Hold {
                until: Some(starts_at.max(opens_at)),
                ..hold
            },
            None if starts_at > now => Hold::until(self.reason(Some(live)), Some(starts_at)),
            None => Hold::until(WaitReason::InFlight, None),
        }
    }

    /// Spends a start without a place in flight, in the common case: no lanes, nothing paused, nobody waiting, the configured rate. None
    /// in any other, of which [`State::check`] knows.
    #[inline]
    pub(super) fn check_plainly(&self, now: Moment) -> Option<Result<(), NoTurn>> {
        if let Some(quota) = self.terms.quota
            && self.terms.rules.is_empty()
            && self.share.load(Ordering::Acquire) == WHOLE
            && self.waiting.load(Ordering::Acquire) == 0
            && self.paused.is_over(now)
        {
            return Some(match self.gcra.start_one(quota, now) {
                Ok(()) => Ok(()),
                Err(at) => Err(NoTurn::new(WaitReason::Paced, at.since(now))),
            });
        }
        None
    }

    /// The same in every case.
    #[inline(never)]
    pub(super) fn check(&self, path: &str, now: Moment) -> Result<(), NoTurn> {
        let lane = self.lane(path);
        let spent = lane.as_deref().unwrap_or(self).spend(self, now);
        spent.map_err(|hold| queue::too_late(&hold, now))
    }

    fn spend(&self, whole: &Self, now: Moment) -> Result<(), Hold> {
        whole.open(now)?;
        if !std::ptr::eq(whole, self) {
            self.open(now)?;
        }
        if self.waiting.load(Ordering::Acquire) > 0 {
            let mut guard = self.lock();
            return Err(self.outlook_behind(guard.get_or_insert_default(), whole, now));
        }
        if self.share.load(Ordering::Acquire) == ASK {
            let taken = self.take(None, 1, now)?;
            self.keep(taken);
            if let Taken::Found(ticket) = taken {
                // Nobody will tell how this call was answered.
                self.failed(ticket, now);
            }
            return Ok(());
        }
        let Some(quota) = self.quota() else { return Ok(()) };
        self.gcra
            .start(quota, 1, now)
            .map_err(|at| Hold::until(self.reason(None), Some(at)))
    }

    /// Takes over what the throttle came to.
    pub(super) fn throttled_to(&self, live: &Live) {
        if self.share.load(Ordering::Acquire) != ASK {
            self.share.store(live.share().to_bits(), Ordering::Release);
        }
    }

    /// A call of a strategy's has no answer.
    pub(super) fn failed(&self, ticket: Ticket, now: Moment) {
        let answer = Answer {
            outcome: Outcome::Failed,
            ..Answer::default()
        };
        if let Some(found) = self.lock().as_deref_mut().and_then(|live| live.found.as_mut()) {
            found.answered(ticket, &answer, now);
        }
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.share.load(Ordering::Acquire) != WHOLE
    }
}

/// What a call that costs more than the burst starts by. The configured burst holds it, or it would be [`WaitReason::TooDear`]; a
/// throttled one does not. It waits until the whole burst is saved up and then for the rest of its points, which is to say that it
/// has a burst of its own size and its clock is late by that rest.
fn beyond(quota: Quota, cost: u32) -> (Quota, Duration) {
    if cost <= 1 {
        return (quota, Duration::ZERO);
    }
    match cost.checked_sub(quota.burst()) {
        None | Some(0) => (quota, Duration::ZERO),
        Some(rest) => (quota.with_burst(cost), quota.interval().saturating_mul(rest)),
    }
}

impl Live {
    pub(super) fn share(&self) -> f64 {
        self.throttle.map_or(1.0, |throttle| throttle.share())
    }
}
