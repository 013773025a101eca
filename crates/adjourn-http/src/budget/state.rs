//! One budget's state: what is spent, what is paused, what is in flight.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use adjourn_pace::{Gcra, Moment, Quota, Strategy, Taken as Spent, Throttle, Ticket, Tries, Turn as Pass};

use super::{NoTurn, Rate, RateBudget, RateRule, WaitReason, pause::Pause, queue::Queue, rule::Lane, terms::Terms};

/// The whole of the configured rate, as [`State::share`] has it.
const WHOLE: u64 = 1.0_f64.to_bits();
/// The pace is known under the lock alone. No share has these bits: they are no number.
const ASK: u64 = u64::MAX;

/// One budget's state. A start that need not wait takes one compare-exchange and no lock; a scope of which there are many is small.
#[derive(Debug)]
pub(super) struct State {
    /// The scope, where there is one; only events tell it.
    pub(super) key: Box<str>,
    pub(super) terms: Arc<Terms>,
    gcra: Gcra,
    /// The share of the configured rate that is kept, as the bits of a number from 0 to 1, or [`ASK`].
    share: AtomicU64,
    paused: Pause,
    in_flight: AtomicU32,
    /// Calls that wait here, and lanes whose first call waits for a place in flight here.
    pub(super) waiting: AtomicU32,
    live: Mutex<Option<Box<Live>>>,
}

/// What a budget has only once something happened to it.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) queue: Queue,
    /// Lanes whose first call waits for a place in flight here.
    pub(super) waiting_lanes: std::collections::VecDeque<Weak<State>>,
    /// Whether this is one of them elsewhere.
    pub(super) waits_for_place: bool,
    pub(super) throttle: Option<Throttle>,
    /// The rate that was set instead of the configured one.
    rate: Option<Rate>,
    found: Option<Box<dyn Strategy>>,
    /// Of a tenth of a pause: what it is longer than it was asked to be. Drawn once for each.
    pub(super) jitter: u32,
    /// Lanes with a rate of their own: the rule's place and its budget.
    lanes: Vec<(usize, RateBudget)>,
}

/// A start that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    /// Nothing paces it.
    Nothing,
    /// Of a rate.
    Rate(Spent),
    /// Of the pace that a strategy finds.
    Found(Ticket),
}

/// What holds a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) reason: WaitReason,
    /// Until when, where that is known.
    pub(super) until: Option<Moment>,
    pub(super) status: Option<u16>,
    /// Whether a place was taken for a moment, so that somebody may have missed it.
    pub(super) missed: bool,
}

impl Hold {
    pub(super) fn until(reason: WaitReason, until: Option<Moment>) -> Self {
        Self {
            reason,
            until,
            status: None,
            missed: false,
        }
    }
}

impl State {
    pub(super) fn new(key: Box<str>, terms: Arc<Terms>, found: Option<Box<dyn Strategy>>) -> Self {
        let share = if found.is_some() { ASK } else { WHOLE };
        let live = found.map(|found| {
            Box::new(Live {
                found: Some(found),
                ..Live::default()
            })
        });
        Self {
            key,
            terms,
            gcra: Gcra::new(),
            share: AtomicU64::new(share),
            paused: Pause::default(),
            in_flight: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            live: Mutex::new(live),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.terms.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Box<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The strategy, for the budget that is built from this one.
    pub(super) fn found(&self) -> Option<Box<dyn Strategy>> {
        self.lock().as_mut()?.found.take()
    }

    /// The lane that a call of this path takes; none: this budget's own pace.
    pub(super) fn lane(&self, path: &str) -> Option<Arc<Self>> {
        let rules = &self.terms.rules;
        let (place, rule) = rules.iter().enumerate().find(|(_, rule)| rule.matches(path))?;
        match &rule.lane {
            Lane::Own(rate) if self.terms.of_scopes => {
                let mut live = self.lock();
                let lanes = &mut live.get_or_insert_default().lanes;
                if let Some((_, lane)) = lanes.iter().find(|(at, _)| *at == place) {
                    return Some(Arc::clone(&lane.state));
                }
                let lane = RateBudget::of(self.terms.of_lane(*rate));
                let state = Arc::clone(&lane.state);
                lanes.push((place, lane));
                Some(state)
            }
            Lane::Own(_) | Lane::Shared(_) => Some(Arc::clone(&rule.budget(&self.terms).state)),
        }
    }

    /// The lanes with rates of their own, as far as they were used.
    pub(super) fn own_lanes(&self) -> Vec<Arc<Self>> {
        let alone = self.terms.rules.iter().filter_map(RateRule::made);
        let live = self.lock();
        let of_scope = live.iter().flat_map(|live| &live.lanes).map(|(_, lane)| lane);
        alone.chain(of_scope).map(|lane| Arc::clone(&lane.state)).collect()
    }

    // Pauses.

    /// Whether no pause holds at `now`.
    pub(super) fn open(&self, now: Moment) -> Result<(), Hold> {
        let (until, status) = self.paused.read();
        if until <= now {
            return Ok(());
        }
        Err(Hold {
            status,
            ..Hold::until(WaitReason::Paused, Some(until))
        })
    }

    /// No call before that moment. Answers with the end of the pause, which may have been later already.
    pub(super) fn pause(&self, until: Moment, status: Option<u16>) -> Moment {
        let until = self.paused.prolong(until, status);
        self.reopen_slowly(until);
        until
    }

    /// From that moment on calls start one by one: what is saved up until then is not spent at once.
    pub(super) fn reopen_slowly(&self, at: Moment) {
        if let Some(quota) = self.quota() {
            self.gcra.keep_at_most(quota, 1, at);
        }
    }

    // Places in flight.

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Acquire)
    }

    pub(super) fn is_full(&self) -> bool {
        self.terms.max_in_flight.is_some_and(|most| self.in_flight() >= most)
    }

    fn enter(&self) -> bool {
        let Some(most) = self.terms.max_in_flight else {
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            return true;
        };
        let entered = self
            .in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |there| {
                (there < most).then(|| there.saturating_add(1))
            });
        entered.is_ok()
    }

    pub(super) fn leave(&self) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }

    // The pace.

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
    fn take(&self, live: Option<&mut Live>, cost: u32, now: Moment) -> Result<Taken, Hold> {
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
        // What the configured burst holds waits for a lowered one; it is no mistake.
        let quota = if cost > quota.burst() {
            quota.with_burst(cost)
        } else {
            quota
        };
        match self.gcra.take(quota, cost, now) {
            Ok(spent) => Ok(Taken::Rate(spent)),
            Err(at) => Err(Hold::until(self.reason(live), Some(at))),
        }
    }

    /// The start makes its call.
    pub(super) fn keep(&self, taken: Taken) {
        match taken {
            Taken::Rate(spent) => self.gcra.keep(spent),
            Taken::Nothing | Taken::Found(_) => {}
        }
    }

    pub(super) fn give_back(&self, live: Option<&mut Live>, taken: Taken, now: Moment) {
        match taken {
            Taken::Nothing => {}
            Taken::Rate(spent) => self.gcra.give_back(spent, now),
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

    /// When a call would start behind others that cost so much together with it, were nothing to happen meanwhile; and what it waits for.
    pub(super) fn outlook(&self, live: &mut Live, whole: &Self, costs: u64, now: Moment) -> Hold {
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
            self.quota_with(live)
                .map_or(opens_at, |quota| self.gcra.due(quota, costs, opens_at))
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

    /// Spends a start without a place in flight.
    pub(super) fn check(&self, whole: &Self) -> Result<(), NoTurn> {
        let now = self.now();
        self.spend(whole, now)
            .map_err(|hold| super::queue::too_late(&hold, now))
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
            return self.take(None, 1, now).map(|taken| self.keep(taken));
        }
        let Some(quota) = self.quota() else { return Ok(()) };
        self.gcra
            .start(quota, 1, now)
            .map_err(|at| Hold::until(self.reason(None), Some(at)))
    }

    // What answers teach.

    /// Takes over what the throttle came to. Says whether the rate fell.
    pub(super) fn throttled_to(&self, live: &Live) {
        if self.share.load(Ordering::Acquire) != ASK {
            self.share.store(live.share().to_bits(), Ordering::Release);
        }
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.share.load(Ordering::Acquire) != WHOLE
    }

    pub(super) fn found_in<'l>(&self, live: &'l mut Live) -> Option<&'l mut Box<dyn Strategy>> {
        live.found.as_mut()
    }

    pub(super) fn gcra(&self) -> &Gcra {
        &self.gcra
    }

    /// Whether a new budget would know as much.
    pub(super) fn is_idle(&self, now: Moment) -> bool {
        self.gcra.is_idle(now)
            && self.share.load(Ordering::Acquire) == WHOLE
            && self.open(now).is_ok()
            && self.in_flight() == 0
            && self.waiting.load(Ordering::Acquire) == 0
            && self.lock().as_ref().is_none_or(|live| {
                live.lanes
                    .iter()
                    .all(|(_, lane)| Arc::strong_count(&lane.state) == 1 && lane.state.is_idle(now))
            })
    }
}

impl Live {
    pub(super) fn share(&self) -> f64 {
        self.throttle.map_or(1.0, |throttle| throttle.share())
    }
}

/// Starts a call of `whole` that is paced by `lane` (which may be the same), if nothing holds it. `live` is the lane's, where the
/// caller has its lock.
pub(super) fn begin(
    whole: &State,
    lane: &State,
    mut live: Option<&mut Live>,
    cost: u32,
    now: Moment,
) -> Result<Taken, Hold> {
    let apart = !std::ptr::eq(whole, lane);
    whole.open(now)?;
    if apart {
        lane.open(now)?;
    }
    if whole.is_full() || apart && lane.is_full() {
        return Err(Hold::until(WaitReason::InFlight, None));
    }
    // The place is taken last and seldom in vain: whoever just missed a start of the pace has its moment, whoever misses a place
    // would wait for nothing.
    let taken = lane.take(live.as_deref_mut(), cost, now)?;
    if !whole.enter() {
        lane.give_back(live, taken, now);
        return Err(Hold::until(WaitReason::InFlight, None));
    }
    if apart && !lane.enter() {
        lane.give_back(live, taken, now);
        whole.leave();
        return Err(Hold {
            missed: true,
            ..Hold::until(WaitReason::InFlight, None)
        });
    }
    Ok(taken)
}
