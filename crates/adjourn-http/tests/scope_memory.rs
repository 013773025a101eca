//! What a scope's budget costs in memory. A program of its own, since it counts every allocation of the process.

use std::{alloc::System, time::Duration};

use adjourn_core::ScopeKey;
use adjourn_http::{Budgets, Rate, RateBudget};
use cap::Cap;

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

#[test]
fn a_hundred_thousand_scopes_cost_at_most_a_hundred_bytes_each_besides_their_keys() {
    const SCOPES: usize = 100_000;
    // Each of them has something to remember for a day, so that none is forgotten.
    let one = RateBudget::new(Rate::new(5, Duration::from_secs(86_400))).max_in_flight(8);
    let budgets = Budgets::like(&one);
    let before = ALLOCATED.allocated();
    let mut keys = 0;
    for number in 0..SCOPES {
        let scope = ScopeKey::scoped("acme", "entity", &number.to_string());
        keys += std::mem::size_of::<Box<str>>() + scope.as_str().len();
        assert!(budgets.check(&scope, "/").is_ok());
    }
    let used = ALLOCATED.allocated() - before;
    assert_eq!(budgets.scopes(), SCOPES);
    let each = (used - keys) / SCOPES;
    assert!(each <= 100, "{each} bytes each: {used} in all, {keys} of them keys");
    budgets.forget_idle();
    assert_eq!(budgets.scopes(), SCOPES, "one that has spent something is not idle");
}
