//! One budget's state: what is spent, what is paused, what is in flight.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjourn_pace::{Gcra, Moment, Strategy, Taken as Spent, Throttle, Ticket};

use super::{
    Rate, RateBudget, RateRule, WaitReason, pause::Pause, places::Places, queue::Queue, rule::Lane, terms::Terms,
};

/// The whole of the configured rate, as [`State::share`] has it.
pub(super) const WHOLE: u64 = 1.0_f64.to_bits();
/// The pace is known under the lock alone. No share has these bits: they are no number.
pub(super) const ASK: u64 = u64::MAX;

/// One budget's state. A start that need not wait takes one compare-exchange and no lock; a scope of which there are many is small.
#[derive(Debug)]
pub(super) struct State {
    /// The scope, where there is one; only events tell it.
    pub(super) key: Box<str>,
    pub(super) terms: Arc<Terms>,
    pub(super) gcra: Gcra,
    /// The share of the configured rate that is kept, as the bits of a number from 0 to 1, or [`ASK`].
    pub(super) share: AtomicU64,
    pub(super) paused: Pause,
    in_flight: AtomicU32,
    /// Calls that wait here, and lanes whose first call waits for a place in flight here.
    pub(super) waiting: AtomicU32,
    live: Mutex<Option<Box<Live>>>,
}

/// What a budget has only once something happened to it.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) queue: Queue,
    pub(super) places: Places,
    pub(super) throttle: Option<Throttle>,
    /// The rate that was set instead of the configured one.
    pub(super) rate: Option<Rate>,
    pub(super) found: Option<Box<dyn Strategy>>,
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
    Rate {
        spent: Spent,
        /// How late the call's clock was, for points beyond the burst.
        late: Duration,
    },
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
    /// Whose places are all taken, where that is what holds it.
    pub(super) full: Option<Full>,
    /// Whether a place was taken for a moment, so that somebody may have missed it.
    pub(super) missed: bool,
}

/// A budget of which a call lacks a place in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The one with the lanes.
    Whole,
    /// The lane, which may be the whole.
    Lane,
}

impl Hold {
    pub(super) fn until(reason: WaitReason, until: Option<Moment>) -> Self {
        Self {
            reason,
            until,
            status: None,
            full: None,
            missed: false,
        }
    }

    /// All places there are taken, or for calls that have waited longer.
    pub(super) fn full(full: Full) -> Self {
        Self {
            full: Some(full),
            ..Self::until(WaitReason::InFlight, None)
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

    #[inline]
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
        let base = &self.terms.base;
        let (place, rule) = rules
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.matches_below(base, path))?;
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

    /// Those, and the lanes out of budgets that others have, too.
    pub(super) fn lanes(&self) -> Vec<Arc<Self>> {
        let mut lanes = self.own_lanes();
        let shared = self.terms.rules.iter().filter_map(RateRule::shared_budget);
        lanes.extend(shared.map(|lane| Arc::clone(&lane.state)));
        lanes
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
        self.in_flight.load(Ordering::SeqCst)
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
        // Before it is asked who waits, as seen by whoever says first that he waits and looks then whether there is a place.
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
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
    if whole.is_full() {
        return Err(Hold::full(Full::Whole));
    }
    if apart && lane.is_full() {
        return Err(Hold::full(Full::Lane));
    }
    // The place is taken last and seldom in vain: whoever just missed a start of the pace has its moment, whoever misses a place
    // would wait for nothing.
    let taken = lane.take(live.as_deref_mut(), cost, now)?;
    if !whole.enter() {
        lane.give_back(live, taken, now);
        return Err(Hold::full(Full::Whole));
    }
    if apart && !lane.enter() {
        lane.give_back(live, taken, now);
        whole.leave();
        return Err(Hold {
            missed: true,
            ..Hold::full(Full::Lane)
        });
    }
    Ok(taken)
}
