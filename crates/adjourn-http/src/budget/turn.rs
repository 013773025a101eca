//! A call's turn, and the call in flight that it becomes.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use adjourn_core::Timestamp;
use adjourn_pace::{Moment, Ticket};
use http::{HeaderMap, StatusCode};

use super::{
    Feedback, HeldBody, NoTurn,
    disabled::is_disabled,
    feedback::{self, Heard, PauseBounds},
    places::place_is_free,
    queue,
    state::{State, Taken},
};
use crate::{Reading, Response, read};

/// What a call took: of which budget, of which lane, and what of its pace.
struct Hands {
    whole: Arc<State>,
    /// Where it is another budget than the whole.
    lane: Option<Arc<State>>,
    taken: Taken,
    cost: u32,
}

impl Hands {
    fn lane(&self) -> &Arc<State> {
        self.lane.as_ref().unwrap_or(&self.whole)
    }

    fn leave(&self) {
        leave(&self.whole, self.lane());
    }
}

fn leave(whole: &Arc<State>, lane: &Arc<State>) {
    let apart = !Arc::ptr_eq(whole, lane);
    whole.leave();
    if apart {
        lane.leave();
    }
    place_is_free(whole);
    if apart {
        place_is_free(lane);
    }
}

/// A start that made no call: it gives back what it took.
pub(super) fn undo(whole: &Arc<State>, lane: &Arc<State>, taken: Taken) {
    lane.give_back(None, taken, lane.now());
    leave(whole, lane);
}

/// A call's turn: it may be sent now, and is meant to be, since its start counts from the moment of the turn. Dropped before
/// that, it gives its turn back.
#[must_use = "a turn that is dropped is given back; `sent` says that the call goes out"]
pub struct Turn {
    /// None where no budget holds.
    hands: Option<Hands>,
}

impl Turn {
    pub(super) fn free() -> Self {
        Self { hands: None }
    }

    pub(super) fn of(whole: &Arc<State>, lane: Option<Arc<State>>, taken: Taken, cost: u32) -> Self {
        let whole = Arc::clone(whole);
        Self {
            hands: Some(Hands {
                whole,
                lane,
                taken,
                cost,
            }),
        }
    }

    /// The call is being sent: call it right before that. From here on the turn is spent, whatever becomes of the call.
    ///
    /// # Errors
    /// A pause began since the turn came. The call must not be made; the turn has been given back. Ask for another one, or give up.
    pub fn sent(mut self) -> Result<InFlight, NoTurn> {
        let Some(hands) = self.hands.take() else {
            return Ok(InFlight::free());
        };
        let now = hands.whole.now();
        if let Err(hold) = hands.whole.open(now).and_then(|()| hands.lane().open(now))
            && !is_disabled()
        {
            undo(&hands.whole, hands.lane(), hands.taken);
            return Err(queue::too_late(&hold, now));
        }
        Ok(InFlight::of(hands, now))
    }

    /// The same in the moment of the turn itself, in which no pause can have begun.
    pub(super) fn sent_at(mut self, now: Moment) -> InFlight {
        match self.hands.take() {
            Some(hands) => InFlight::of(hands, now),
            None => InFlight::free(),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(hands) = self.hands.take() {
            undo(&hands.whole, hands.lane(), hands.taken);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// A call in flight. It holds its place until it is dropped; [`InFlight::body`] hands the place on to the response's body.
#[must_use = "a call that is dropped is no longer counted as in flight"]
pub struct InFlight {
    hands: Option<Hands>,
    sent_at: Moment,
    /// Whether a strategy still waits for its answer.
    ticket_is_open: AtomicBool,
    /// What the call is counted at, in points.
    cost: AtomicU32,
}

impl InFlight {
    /// A call that no budget holds.
    pub(super) fn free() -> Self {
        Self {
            hands: None,
            sent_at: Moment::ORIGIN,
            ticket_is_open: AtomicBool::new(false),
            cost: AtomicU32::new(0),
        }
    }

    fn of(hands: Hands, sent_at: Moment) -> Self {
        hands.lane().keep(hands.taken);
        Self {
            ticket_is_open: AtomicBool::new(matches!(hands.taken, Taken::Found(_))),
            cost: AtomicU32::new(hands.cost),
            hands: Some(hands),
            sent_at,
        }
    }

    /// What the call was answered, read by the provider's contract where the budget knows it: call it with each response, of any
    /// status. It answers with the moment at which the call may be repeated, where the response names one; the budget's pause ends at
    /// that same moment.
    ///
    /// In this order: `retry-after-ms` and `Retry-After` on a refusal and on a 503; `RateLimit` with `RateLimit-Policy`, as far as they
    /// tell of requests; and where they do not, `X-RateLimit-Remaining` and `-Reset`. What is malformed is passed over.
    pub fn answered(&self, status: u16, headers: &HeaderMap) -> Feedback {
        let (Some(hands), Ok(code)) = (&self.hands, StatusCode::from_u16(status)) else {
            return Feedback::default();
        };
        let terms = &hands.whole.terms;
        let response = Response {
            status: code,
            headers,
            body: b"",
            received_at: terms.clock.wall(),
        };
        let reading = read::read(&terms.provider, terms.contract.as_deref(), None, &response);
        self.heard(status, &reading, response.received_at)
    }

    /// As [`InFlight::answered`], for who has read the response already, body and all: one reading serves the call and the budget.
    /// `received_at` is the moment that the reading was made for.
    pub fn heard(&self, status: u16, reading: &Reading, received_at: Timestamp) -> Feedback {
        let unbounded = || PauseBounds {
            least: Duration::ZERO,
            room: Duration::MAX,
        };
        self.heard_within(status, reading, received_at, unbounded)
    }

    /// As [`InFlight::heard`], where whoever calls knows more of a pause than the response says.
    pub(crate) fn heard_within(
        &self,
        status: u16,
        reading: &Reading,
        received_at: Timestamp,
        bounds: impl FnOnce() -> PauseBounds,
    ) -> Feedback {
        let Some(hands) = &self.hands else {
            return Feedback::default();
        };
        let heard = Heard::of(status, reading, received_at).within(bounds);
        feedback::apply(&hands.whole, hands.lane(), self.sent_at, self.ticket(), &heard)
    }

    /// No response came: the connection failed or timed out. It says nothing about the limit.
    pub fn unanswered(&self) {
        if let (Some(hands), Some(ticket)) = (&self.hands, self.ticket()) {
            let lane = hands.lane();
            lane.failed(ticket, lane.now());
            queue::drive(lane);
        }
    }

    /// What the call cost in truth, in points, where a response says so: the difference to what it is counted at is taken from the
    /// budget or given back. Told again, the last word counts, and nothing of it twice.
    pub fn cost_was(&self, points: u32) {
        let Some(hands) = &self.hands else { return };
        let lane = hands.lane();
        let (Taken::Rate { .. }, Some(quota)) = (hands.taken, lane.quota()) else {
            return;
        };
        let counted = self.cost.swap(points, Ordering::AcqRel);
        if points >= counted {
            lane.gcra.charge(quota, points - counted, lane.now());
        } else {
            lane.gcra.refund(quota, counted - points);
            queue::drive(lane);
        }
    }

    /// How long ago the call was sent; none where no budget holds.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        let hands = self.hands.as_ref()?;
        Some(hands.whole.now().since(self.sent_at))
    }

    /// A body that holds the call's place in flight until it is read to its end, breaks off or is dropped.
    pub fn body<B: http_body::Body>(self, body: B) -> HeldBody<B> {
        HeldBody::new(self, body)
    }

    /// The ticket of the strategy, once.
    fn ticket(&self) -> Option<Ticket> {
        match self.hands.as_ref()?.taken {
            Taken::Found(ticket) if self.ticket_is_open.swap(false, Ordering::AcqRel) => Some(ticket),
            Taken::Found(_) | Taken::Rate { .. } | Taken::Nothing => None,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.unanswered();
        if let Some(hands) = self.hands.take() {
            hands.leave();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("sent_at", &self.sent_at)
            .finish_non_exhaustive()
    }
}
