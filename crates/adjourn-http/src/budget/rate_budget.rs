//! The budget itself: what a client asks before each call.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use adjourn_pace::{Strategy, Throttle};

use super::{
    InFlight, NoTurn, Rate, RateRule, Turn, WaitReason,
    clock::{self, Clock},
    disabled::is_disabled,
    event, queue,
    state::{State, begin},
    terms::Terms,
};
use crate::{Contract, Now};

/// How fast, and how many at a time, a provider may be called. Cheap to clone: clones share one budget, between clients, tasks and
/// threads.
///
/// The settings (`max_in_flight`, `rules`, and so on) are made before it is shared: each of them makes a budget of its own, with nothing
/// spent.
#[derive(Clone, Debug)]
pub struct RateBudget {
    pub(super) state: Arc<State>,
}

impl RateBudget {
    /// A budget of that rate, all of it saved up.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self::of(Terms::new(Some(rate)))
    }

    /// A budget whose rate nobody tells: [`RateBudget::finding`] finds its pace. Without that, only pauses and
    /// [`RateBudget::max_in_flight`] hold its calls.
    #[must_use]
    pub fn unknown() -> Self {
        Self::of(Terms::new(None))
    }

    pub(super) fn of(terms: Terms) -> Self {
        Self::keyed(Box::from(""), Arc::new(terms))
    }

    pub(super) fn keyed(key: Box<str>, terms: Arc<Terms>) -> Self {
        Self {
            state: Arc::new(State::new(key, terms, None)),
        }
    }

    fn with(self, change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms::clone(&self.state.terms);
        change(&mut terms);
        let found = self.state.found();
        Self {
            state: Arc::new(State::new(self.state.key.clone(), Arc::new(terms), found)),
        }
    }

    /// At most so many calls in flight, from the send until the response's body is read to its end or dropped. A limit of its own: a
    /// rate cannot say that something is held and released. None is taken for one.
    #[must_use]
    pub fn max_in_flight(self, most: u32) -> Self {
        self.with(|terms| terms.max_in_flight = Some(most.max(1)))
    }

    /// Calls with rates of their own, by their path; the first rule that matches.
    #[must_use]
    pub fn rules(self, rules: impl IntoIterator<Item = RateRule>) -> Self {
        self.with(|terms| terms.rules = rules.into_iter().collect())
    }

    /// Whether refusals lower the rate. On unless switched off: each refusal, and each answer that says that nothing is left, halves
    /// it, down to a tenth of the configured one; each second with answers below 500 gives a tenth of the configured one back. A
    /// refusal of a call that was sent before the last decrease is no news.
    #[must_use]
    pub fn throttle(self, throttle: Option<Throttle>) -> Self {
        self.with(|terms| terms.throttle = throttle)
    }

    /// The pace is found by a strategy instead of told, from what each call is answered.
    #[must_use]
    pub fn finding(self, strategy: Box<dyn Strategy>) -> Self {
        let mut terms = Terms::clone(&self.state.terms);
        terms.rate = None;
        terms.quota = None;
        Self {
            state: Arc::new(State::new(self.state.key.clone(), Arc::new(terms), Some(strategy))),
        }
    }

    /// The provider's name and what it says about its limits: by these [`InFlight::answered`](super::InFlight::answered) reads
    /// responses. Without them, what providers have in common is read.
    #[must_use]
    pub fn contract(self, provider: &str, contract: Option<Arc<Contract>>) -> Self {
        self.with(|terms| {
            terms.provider = Box::from(provider);
            terms.contract = contract;
        })
    }

    /// What tells the wall clock's time, by which dates in responses are read. The machine's clock unless said.
    #[must_use]
    pub fn wall_clock(self, now: Now) -> Self {
        self.with(|terms| terms.clock = Clock::with_wall(now))
    }

    /// Waits for the call's turn, in order of arrival. `path` is the request's path, for the lanes; `within` is how much time is left
    /// for the turn to come: one that would come at the end of it or later is not waited for.
    ///
    /// Dropped before it answers, it gives up its place, and nothing is spent.
    ///
    /// # Errors
    /// At once, with the time until the turn, where that is too long; nothing is spent. A pause is told with the status that asked
    /// for it.
    pub async fn turn(&self, path: &str, within: Option<Duration>) -> Result<Turn, NoTurn> {
        self.turn_costing(path, 1, within).await
    }

    /// As [`RateBudget::turn`], for a call that costs so many points of the rate.
    ///
    /// # Errors
    /// As [`RateBudget::turn`]; and for good where the call costs more than the whole budget holds.
    pub async fn turn_costing(&self, path: &str, points: u32, within: Option<Duration>) -> Result<Turn, NoTurn> {
        if is_disabled() {
            return Ok(Turn::free());
        }
        let whole = &self.state;
        let apart = whole.lane(path).filter(|lane| !Arc::ptr_eq(lane, whole));
        let lane = apart.as_ref().unwrap_or(whole);
        affordable(lane, points)?;
        let now = lane.now();
        let deadline = within.map(|within| now + within);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(NoTurn::new(WaitReason::Paced, Duration::ZERO));
        }
        if !is_behind(whole, lane)
            && let Ok(taken) = begin(whole, lane, None, points, now)
        {
            return Ok(Turn::of(whole, apart, taken, points));
        }
        let taken = queue::wait(whole, lane, points, deadline).await?;
        Ok(Turn::of(whole, apart, taken, points))
    }

    /// A call whose turn is now, sent in that same moment. None where something holds it: nothing is spent, and
    /// [`RateBudget::turn`] knows what and for how long.
    pub(crate) fn sent_now(&self, path: &str) -> Option<InFlight> {
        if is_disabled() {
            return Some(InFlight::free());
        }
        let whole = &self.state;
        let apart = whole.lane(path).filter(|lane| !Arc::ptr_eq(lane, whole));
        let lane = apart.as_ref().unwrap_or(whole);
        let now = lane.now();
        if is_behind(whole, lane) {
            return None;
        }
        let taken = begin(whole, lane, None, 1, now).ok()?;
        Some(Turn::of(whole, apart, taken, 1).sent_at(now))
    }

    /// Spends a start now, or says how long until there is one; it never waits, and takes no place in flight. For who only wants to
    /// know whether a call may go out, and hears nothing of its answer.
    ///
    /// # Errors
    /// There is none now, or others wait for it already. Nothing is spent.
    #[inline]
    pub fn check(&self, path: &str) -> Result<(), NoTurn> {
        if is_disabled() {
            return Ok(());
        }
        // Before anything of the budget is looked at: another thread that starts meanwhile would take it out of the processor's
        // cache again.
        let now = clock::now();
        match self.state.check_plainly(now) {
            Some(checked) => checked,
            None => self.state.check(path, now),
        }
    }

    /// Waits out the moment that the provider named for this very call, before it is repeated: what
    /// [`Feedback`](super::Feedback) says. The turn is asked for afterwards.
    ///
    /// # Errors
    /// At once, where the wait is as long as what is `within`, or longer.
    pub async fn pushback(&self, wait: Duration, within: Option<Duration>) -> Result<(), NoTurn> {
        if is_disabled() {
            return Ok(());
        }
        let state = &self.state;
        if within.is_some_and(|within| within <= wait) {
            let status = state.open(state.now()).err().and_then(|hold| hold.status);
            return Err(NoTurn {
                status,
                ..NoTurn::new(WaitReason::Pushback, wait)
            });
        }
        event::waits(state, WaitReason::Pushback, Some(wait));
        state.terms.clock.sleep_until(state.now() + wait).await;
        Ok(())
    }

    /// The rate as it is kept now: the configured one, the throttled one, or what the strategy found. None while nothing limits it.
    #[must_use]
    pub fn effective_rate(&self) -> Option<Rate> {
        self.state.rate()
    }

    /// Whether a call of that path spends points, and not a request.
    pub(crate) fn counts_points(&self, path: &str) -> bool {
        let lane = self.state.lane(path);
        let rate = lane.as_deref().unwrap_or(&self.state).rate();
        rate.is_some_and(Rate::counts_points)
    }

    /// How many calls are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.state.in_flight()
    }

    /// How long the pause still lasts; none without one.
    #[must_use]
    pub fn pause_remaining(&self) -> Option<Duration> {
        let now = self.state.now();
        let hold = self.state.open(now).err()?;
        Some(hold.until?.since(now))
    }

    /// How many calls wait for their turn.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.state.waiting.load(Ordering::Acquire)
    }

    /// Another rate, from the next start on, those who wait already included. What is spent of the old one is spent of the new one.
    pub fn set_rate(&self, rate: Rate) {
        self.state.set_rate(rate);
        queue::settle(&self.state);
    }
}

/// Whether others wait already for what a call needs: a turn of its pace, or a place in flight.
fn is_behind(whole: &Arc<State>, lane: &Arc<State>) -> bool {
    lane.waiting.load(Ordering::Acquire) > 0 || !Arc::ptr_eq(whole, lane) && whole.is_wanted_before(u64::MAX)
}

/// What costs more than the whole budget holds would wait forever.
fn affordable(lane: &State, points: u32) -> Result<(), NoTurn> {
    if points > 1 && lane.burst().is_some_and(|burst| points > burst) {
        return Err(NoTurn::new(WaitReason::TooDear, Duration::ZERO));
    }
    Ok(())
}
