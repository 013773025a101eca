//! Calls that wait for their turn, in order of arrival.
//!
//! A start is taken when it happens and not before, so that a rate that falls or rises holds for everybody who waits. Each waiting call
//! has a moment at which it looks again by itself: no call depends on another one's being polled.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use adjourn_pace::Moment;
use tokio::sync::Notify;

use super::{
    NoTurn, WaitReason,
    places::{place_is_free, want, want_none},
    state::{Full, Hold, Live, State, Taken, begin},
};

/// How many calls have had to wait so far: their order of arrival, across lanes.
static ARRIVALS: AtomicU64 = AtomicU64::new(0);

/// How long after its moment a call looks whether those before it have been forgotten.
const LOOKS_AGAIN: Duration = Duration::from_secs(1);

/// Calls that wait for their turn of one pace.
#[derive(Debug, Default)]
pub(super) struct Queue {
    calls: VecDeque<Arc<Waiting>>,
    /// What they cost together.
    costs: u64,
    /// When the first of them looks again; none while it waits for a call in flight to end.
    next: Option<Moment>,
}

/// A call that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    whole: Arc<State>,
    arrival: u64,
    cost: u32,
    deadline: Option<Moment>,
    /// When it looks again by itself.
    due: AtomicU64,
    answer: Mutex<Option<Result<Taken, NoTurn>>>,
    woken: Notify,
}

impl Waiting {
    fn tell(&self, answer: Result<Taken, NoTurn>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.woken.notify_one();
    }

    fn answer(&self) -> Option<Result<Taken, NoTurn>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A new moment to look again at; none: when it is woken.
    fn look_at(&self, at: Option<Moment>) {
        let at = at.unwrap_or(Moment::MAX).as_nanos();
        if self.due.swap(at, Ordering::AcqRel) != at {
            self.woken.notify_one();
        }
    }

    fn is_late(&self, turn: Moment) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= turn)
    }
}

/// What a held call is told that cannot wait for it.
pub(super) fn too_late(hold: &Hold, now: Moment) -> NoTurn {
    NoTurn {
        status: hold.status,
        ..NoTurn::new(hold.reason, hold.until.map_or(Duration::ZERO, |until| until.since(now)))
    }
}

impl Queue {
    fn pop(&mut self, lane: &State) {
        if let Some(first) = self.calls.pop_front() {
            self.costs = self.costs.saturating_sub(u64::from(first.cost));
            lane.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl State {
    /// When one more call would start behind those that wait.
    pub(super) fn outlook_behind(&self, live: &mut Live, whole: &Self, now: Moment) -> Hold {
        let costs = live.queue.costs.saturating_add(1);
        self.outlook(live, whole, 1, costs, now)
    }
}

impl Live {
    /// The pace or a pause changed: each call has another moment, and those whose deadline comes first fail at once.
    pub(super) fn retime(&mut self, lane: &State, now: Moment) {
        let calls = std::mem::take(&mut self.queue.calls);
        self.queue.costs = 0;
        for call in calls {
            let costs = self.queue.costs.saturating_add(u64::from(call.cost));
            let hold = lane.outlook(self, &call.whole, call.cost, costs, now);
            if call.is_late(hold.until.unwrap_or(now)) {
                lane.waiting.fetch_sub(1, Ordering::AcqRel);
                call.tell(Err(too_late(&hold, now)));
                continue;
            }
            // One that waits for a place is looked after when a call ends.
            call.look_at(Some(hold.until.unwrap_or(now)));
            self.queue.costs = costs;
            self.queue.calls.push_back(call);
        }
    }
}

/// Starts the calls that wait for a turn of `lane`, in their order, as far as nothing holds them.
pub(super) fn drive(lane: &Arc<State>) {
    if lane.waiting.load(Ordering::SeqCst) > 0 {
        settle(lane);
    }
}

/// The same where the last one may just have gone.
pub(super) fn settle(lane: &Arc<State>) {
    for budget in look_after(lane).into_iter().flatten() {
        place_is_free(&budget);
    }
}

/// The same for `lane` alone. Answers with the budgets where a place may have become free before it was known who waits for it.
pub(super) fn look_after(lane: &Arc<State>) -> [Option<Arc<State>>; 2] {
    loop {
        let now = lane.now();
        let mut guard = lane.lock();
        let Some(live) = guard.as_deref_mut() else {
            return [None, None];
        };
        let Some(first) = live.queue.calls.front().cloned() else {
            want_none(lane, live);
            return [None, None];
        };
        match start(&first, lane, live, now) {
            Ok(taken) => {
                live.queue.pop(lane);
                want_none(lane, live);
                first.tell(Ok(taken));
            }
            Err(hold) if hold.reason == WaitReason::Closed => {
                live.queue.pop(lane);
                want_none(lane, live);
                first.tell(Err(too_late(&hold, now)));
            }
            Err(hold) => {
                live.queue.next = hold.until;
                first.look_at(hold.until);
                let full_at = hold.full.map(|full| match full {
                    Full::Whole => &first.whole,
                    Full::Lane => lane,
                });
                let news = match full_at {
                    Some(at) => want(at, lane, live, first.arrival),
                    None => {
                        want_none(lane, live);
                        false
                    }
                };
                drop(guard);
                let has_room = |budget: &&Arc<State>| !budget.is_full();
                return [
                    full_at.filter(|_| news).filter(has_room).cloned(),
                    Some(&first.whole).filter(|_| hold.missed).filter(has_room).cloned(),
                ];
            }
        }
    }
}

/// Starts the first call that waits for a turn of `lane`, unless a place in flight is for somebody who has waited longer.
fn start(first: &Waiting, lane: &Arc<State>, live: &mut Live, now: Moment) -> Result<Taken, Hold> {
    let apart = !Arc::ptr_eq(&first.whole, lane);
    if apart && first.whole.is_wanted_before(first.arrival) {
        return Err(Hold::full(Full::Whole));
    }
    if live.places.are_wanted_before(first.arrival) {
        return Err(Hold::full(Full::Lane));
    }
    begin(&first.whole, lane, Some(live), first.cost, now)
}

/// Waits for a turn of `lane`.
///
/// Dropped before it answers, it leaves the queue; a turn that it was given and did not take is given back.
pub(super) async fn wait(
    whole: &Arc<State>,
    lane: &Arc<State>,
    cost: u32,
    deadline: Option<Moment>,
) -> Result<Taken, NoTurn> {
    let place = Place::enqueue(whole, lane, cost, deadline)?;
    let mut told = None;
    loop {
        drive(lane);
        if let Some(answer) = place.call.answer() {
            return answer;
        }
        let now = lane.now();
        let hold = place.hold(now);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(too_late(&hold, now));
        }
        if told != Some(hold.reason) {
            told = Some(hold.reason);
            super::event::waits(whole, hold.reason, hold.until.map(|until| until.since(now)));
        }
        let Some(due) = place.looks_at(now) else { continue };
        let until = deadline.map_or(due, |deadline| deadline.min(due));
        tokio::select! {
            () = place.call.woken.notified() => {}
            () = lane.terms.clock.sleep_until(until) => {}
        }
    }
}

/// A call's place in the queue.
struct Place<'l> {
    lane: &'l Arc<State>,
    call: Arc<Waiting>,
}

impl<'l> Place<'l> {
    fn enqueue(whole: &Arc<State>, lane: &'l Arc<State>, cost: u32, deadline: Option<Moment>) -> Result<Self, NoTurn> {
        let now = lane.now();
        let mut guard = lane.lock();
        let live = guard.get_or_insert_default();
        let costs = live.queue.costs.saturating_add(u64::from(cost));
        let hold = lane.outlook(live, whole, cost, costs, now);
        let call = Arc::new(Waiting {
            whole: Arc::clone(whole),
            arrival: ARRIVALS.fetch_add(1, Ordering::Relaxed),
            cost,
            deadline,
            due: AtomicU64::new(hold.until.unwrap_or(now).as_nanos()),
            answer: Mutex::new(None),
            woken: Notify::new(),
        });
        if call.is_late(hold.until.unwrap_or(now)) {
            return Err(too_late(&hold, now));
        }
        live.queue.costs = costs;
        live.queue.calls.push_back(Arc::clone(&call));
        lane.waiting.fetch_add(1, Ordering::AcqRel);
        Ok(Self { lane, call })
    }

    /// When it looks again; none: at once.
    fn looks_at(&self, now: Moment) -> Option<Moment> {
        let due = Moment::from_nanos(self.call.due.load(Ordering::Acquire));
        if due > now {
            return Some(due);
        }
        let guard = self.lane.lock();
        let queue = &guard.as_deref()?.queue;
        if queue.calls.front().is_some_and(|first| Arc::ptr_eq(first, &self.call)) {
            return None;
        }
        // Later than was thought. Those before it bring it on; should nobody poll them, it looks itself.
        Some(queue.next.map_or(Moment::MAX, |next| next.max(now) + LOOKS_AGAIN))
    }

    /// What it waits for.
    fn hold(&self, now: Moment) -> Hold {
        let mut guard = self.lane.lock();
        let live = guard.get_or_insert_default();
        // By itself it would start at once, or else at this moment; the calls before it come on top of that, and `due` knows them.
        let hold = self
            .lane
            .outlook(live, &self.call.whole, self.call.cost, u64::from(self.call.cost), now);
        let due = Moment::from_nanos(self.call.due.load(Ordering::Acquire));
        match hold.until {
            Some(until) if due < Moment::MAX => Hold {
                until: Some(until.max(due)),
                ..hold
            },
            Some(_) | None => hold,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut guard = self.lane.lock();
        let place = guard
            .as_deref_mut()
            .and_then(|live| live.queue.calls.iter().position(|call| Arc::ptr_eq(call, &self.call)));
        if let (Some(place), Some(live)) = (place, guard.as_deref_mut()) {
            live.queue.calls.remove(place);
            live.queue.costs = live.queue.costs.saturating_sub(u64::from(self.call.cost));
            self.lane.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        drop(guard);
        match self.call.answer() {
            Some(Ok(taken)) => super::turn::undo(&self.call.whole, self.lane, taken),
            // The one behind it is the first now.
            Some(Err(_)) | None => settle(self.lane),
        }
    }
}
