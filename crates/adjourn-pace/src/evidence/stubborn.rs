//! A job that is refused again and again while others pass: it may be the job that is refused, and not the pace.

use crate::Ticket;

/// Refusals in a row of one and the same job, after which it is the job.
const LONGEST: u32 = 5;
/// Calls of a job that the limit is said to have refused, while others pass.
const OFTEN: u32 = 4;

/// The refusals since another job was refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stubborn {
    in_a_row: u32,
    tries: u32,
}

impl Stubborn {
    /// A refusal. Says whether nothing but this one job was refused for a while.
    pub(super) fn refused(&mut self, ticket: Ticket) -> bool {
        let tries = ticket.tries.free.saturating_add(ticket.tries.spent);
        let same = tries > 0 && tries == self.tries.saturating_add(1);
        self.in_a_row = if same { self.in_a_row + 1 } else { 1 };
        self.tries = tries;
        self.in_a_row >= LONGEST
    }

    /// Whether a job was refused more often than a limit explains that lets others through.
    pub(super) fn too_often(ticket: Ticket) -> bool {
        ticket.tries.free >= OFTEN
    }
}
