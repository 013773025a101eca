//! A limit's state as headers tell it: how much, what remains, when it starts anew.

use std::borrow::Cow;

use adjourn_core::{Kind, Timestamp};

use super::clock::Found;

/// One limit's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket<'a> {
    /// What tells it from others: the part of the header's name that differs, or the policy's name.
    pub(super) name: String,
    /// The contract's window.
    pub(super) window: Option<&'a str>,
    pub(super) limit: Option<i64>,
    pub(super) remaining: Option<i64>,
    pub(super) used: Option<i64>,
    pub(super) kind: Kind,
    pub(super) reset: Option<Reset<'a>>,
    /// Whether it counts something else than requests: what remains of bytes or of concurrent requests says nothing about how many
    /// requests may start.
    pub(super) counts_others: bool,
}

/// The moment at which a limit starts anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reset<'a> {
    pub(super) header: Cow<'a, str>,
    pub(super) raw: Cow<'a, str>,
    pub(super) found: Found,
}

impl Bucket<'_> {
    /// Whether nothing remains; none where nothing says so.
    pub(super) fn is_exhausted(&self) -> Option<bool> {
        let by_use = match (self.used, self.limit) {
            (Some(used), Some(limit)) if limit > 0 => Some(used >= limit),
            _ => None,
        };
        match (self.remaining, by_use) {
            (None, None) => None,
            (remaining, by_use) => Some(remaining.is_some_and(|left| left <= 0) || by_use == Some(true)),
        }
    }

    pub(super) fn resets_at(&self) -> Option<Timestamp> {
        self.reset.as_ref().map(|reset| reset.found.at)
    }
}

/// Whether `RateLimit` fields say how many requests remain. Then nobody asks what headers that are merely named like limits say.
pub(super) fn tell_of_requests(ietf: &[Bucket<'_>]) -> bool {
    ietf.iter()
        .any(|bucket| !bucket.counts_others && bucket.is_exhausted().is_some())
}

/// What a span of that many milliseconds is: from 27 days a month's, from 20 hours a day's.
pub(super) fn kind_of(ms: u64) -> Kind {
    match ms {
        0 => Kind::Unknown,
        1..72_000_000 => Kind::Short,
        72_000_000..2_332_800_000 => Kind::Daily,
        2_332_800_000.. => Kind::Monthly,
    }
}

/// How long a kind lasts, for comparison.
pub(super) fn severity(kind: Kind) -> u8 {
    match kind {
        Kind::AccountDisabled => 3,
        Kind::Monthly => 2,
        Kind::Daily => 1,
        Kind::Short | Kind::Concurrency | Kind::Unknown => 0,
    }
}
