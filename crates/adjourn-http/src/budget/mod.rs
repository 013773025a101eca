//! Rate budgets: how fast, and how many at a time, a provider may be called from this process.
//!
//! A provider that allows 600 requests a minute refuses the 601st. A budget spaces the calls before they are made, so that the limit is
//! kept rather than met, and learns from every answer what the provider says of its limits.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), adjourn_http::NoTurn> {
//! use std::time::Duration;
//! use adjourn_http::{Rate, RateBudget, RateRule};
//!
//! let budget = RateBudget::new(Rate::per_minute(600))
//!     .max_in_flight(8)
//!     .rules([RateRule::new("/exports", Rate::per_minute(6))]);
//!
//! let turn = budget.turn("/v2/orders", Some(Duration::from_secs(30))).await?;
//! let in_flight = turn.sent()?;
//! // The request is made here, and each response tells the budget what it says.
//! in_flight.answered(200, &http::HeaderMap::new());
//! assert_eq!(budget.in_flight(), 1);
//! drop(in_flight);
//! assert_eq!(budget.in_flight(), 0);
//! # Ok(()) }
//! ```
//!
//! The map: `rate` a limit as people state it · `rate_budget` the budget · `rule` lanes · `state` what a budget knows, `pace` when it has a
//! start, `pause` until when it has none ·
//! `queue` who waits, `places` who of them for a place in flight · `turn` a call's turn and the call in flight · `held` its body · `feedback` what a response teaches · `no_turn` why a call waits or fails · `event` the events · `disabled` the way round it all · `clock`
//! the time · `terms` the settings · `cost` points · `budgets` one for each scope.
mod budgets;
mod clock;
mod cost;
mod disabled;
mod event;
mod feedback;
mod held;
mod no_turn;
mod pace;
mod pause;
mod places;
mod queue;
mod rate;
mod rate_budget;
mod rule;
mod state;
mod terms;
mod turn;

pub use adjourn_pace::Throttle;
pub use budgets::Budgets;
pub(crate) use clock::wall;
pub use cost::Costs;
pub(crate) use disabled::is_disabled;
pub use disabled::policy_disabled;
pub use feedback::Feedback;
pub(crate) use feedback::PauseBounds;
pub use held::HeldBody;
pub use no_turn::{NoTurn, WaitReason};
pub use rate::Rate;
pub use rate_budget::RateBudget;
pub use rule::RateRule;
pub use turn::{InFlight, Turn};
