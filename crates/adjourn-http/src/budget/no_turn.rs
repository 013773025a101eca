//! Why a call waits or does not start.

use std::{error, fmt, time::Duration};

/// Why a call waits, as the event of its wait and [`NoTurn`] tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// The rate's next start is not there yet.
    Paced,
    /// As before, and the rate is below the configured one, since the provider refused.
    Throttled,
    /// The provider named a moment before which it wants no call.
    Paused,
    /// It named that moment for this very call, which repeats an earlier one.
    Pushback,
    /// As many calls are in flight as may be.
    InFlight,
    /// The strategy that finds the pace says that nothing passes at present.
    Closed,
    /// It costs more than the whole budget holds, so that it would wait forever.
    TooDear,
}

impl WaitReason {
    /// As events and messages write it: `paced`, `throttled`, `paused`, `pushback`, `in_flight`, `closed`, `too_dear`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paced => "paced",
            Self::Throttled => "throttled",
            Self::Paused => "paused",
            Self::Pushback => "pushback",
            Self::InFlight => "in_flight",
            Self::Closed => "closed",
            Self::TooDear => "too_dear",
        }
    }
}

/// The call was not made and spent nothing: its turn would come too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoTurn {
    /// How long until its turn would have come. Zero where nobody knows, since it waited for a call in flight to end.
    pub retry_after: Duration,
    /// The status of the response that asked for the pause: 429, 503, or a 200 that spent the quota; none where there is no pause.
    pub status: Option<u16>,
    /// What it would have waited for.
    pub reason: WaitReason,
}

impl NoTurn {
    pub(super) const fn new(reason: WaitReason, retry_after: Duration) -> Self {
        Self {
            retry_after,
            status: None,
            reason,
        }
    }

    /// Whether the same call may do later. False only for what costs more than the whole budget holds.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.reason != WaitReason::TooDear
    }
}

impl fmt::Display for NoTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.retry_after;
        match self.reason {
            WaitReason::Paced => write!(
                f,
                "the rate is spent: the call's turn comes in {left:?}, after its deadline"
            ),
            WaitReason::Throttled => {
                write!(
                    f,
                    "the provider refused calls and the rate was lowered: the call's turn comes in {left:?}, after its deadline"
                )
            }
            WaitReason::Paused | WaitReason::Pushback => {
                write!(f, "the provider asked for a pause")?;
                if let Some(status) = self.status {
                    write!(f, " with {status}")?;
                }
                write!(f, ": {left:?} are left of it, more than the call has")
            }
            WaitReason::InFlight => write!(
                f,
                "as many calls are in flight as may be, and none ended before the call's deadline"
            ),
            WaitReason::Closed => write!(f, "the provider lets nothing pass at present; ask again in {left:?}"),
            WaitReason::TooDear => write!(
                f,
                "the call costs more than the whole budget holds; it would wait forever"
            ),
        }
    }
}

impl error::Error for NoTurn {}
