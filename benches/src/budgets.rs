//! A budget's check beside governor's: the same limit, the same clock, direct and by key, from one thread and from two.

use std::{hint::black_box, num::NonZeroU32, thread, time::Duration};

use adjourn_core::ScopeKey;
use adjourn_http::{Budgets, Rate, RateBudget};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock, MonotonicClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed, keyed::DefaultKeyedStateStore},
};

use crate::{
    Failure,
    pairs::{Compared, Stopwatch, alternate},
    table::{Bound, Table},
};

type Direct<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;
type Keyed<C> = RateLimiter<String, DefaultKeyedStateStore<String>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// Checks of one measurement, all threads together: a few milliseconds, so that both sides of a pair meet the same machine.
const CHECKS: u32 = 200_000;
const PAIRS: u32 = 125;
/// Scopes in turn.
const KEYS: usize = 1000;
/// A limit that never refuses, and one that always does after its first call: in an hour, so none comes back meanwhile.
const FAST: u32 = 1_000_000_000;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    for threads in [1, 2] {
        direct(table, threads).await?;
    }
    refused(table).await?;
    for threads in [1, 2] {
        keyed(table, threads).await?;
    }
    Ok(())
}

fn per_second() -> Result<Quota, Failure> {
    Ok(Quota::per_second(NonZeroU32::new(FAST).ok_or("no rate")?))
}

fn words(threads: u32) -> &'static str {
    if threads == 1 { "one thread" } else { "two threads" }
}

/// So many checks from so many threads, each of which says whether it may start; how long they took, and how many might.
fn run(threads: u32, check: impl Fn(usize) -> bool + Sync) -> Result<(Duration, u32), Failure> {
    let each = CHECKS / threads;
    let watch = Stopwatch::start();
    let started = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let check = &check;
                scope.spawn(move || {
                    let mut place = usize::try_from(thread).unwrap_or_default() * KEYS / 2;
                    let mut started = 0;
                    for _ in 0..each {
                        place += 1;
                        started += u32::from(check(place % KEYS));
                    }
                    started
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default())
            .sum()
    });
    Ok((watch.read(), started))
}

/// All of them had to start, or only so many.
fn checked(ran: (Duration, u32), expected: u32) -> Result<Duration, Failure> {
    if ran.1 != expected {
        return Err(format!("{} of {CHECKS} checks might start instead of {expected}", ran.1).into());
    }
    Ok(ran.0)
}

fn add(table: &mut Table, what: &str, compared: &Compared, bound: Bound) {
    let each = |seconds: f64| format!("{:.1} ns", seconds / f64::from(CHECKS) * 1e9);
    table.add(what, each(compared.ours), each(compared.other), compared.ratio, bound);
}

async fn direct(table: &mut Table, threads: u32) -> Result<(), Failure> {
    let budget = RateBudget::new(Rate::per_second(FAST));
    let same_clock: Direct<MonotonicClock> = RateLimiter::direct_with_clock(per_second()?, MonotonicClock);
    let compared = alternate(PAIRS, async |ours| {
        let ran = if ours {
            run(threads, |_| black_box(budget.check("/")).is_ok())?
        } else {
            run(threads, |_| black_box(same_clock.check()).is_ok())?
        };
        checked(ran, CHECKS)
    })
    .await?;
    let what = format!("budget check beside governor, {}", words(threads));
    add(table, &what, &compared, Bound::AtMost(1.0));

    let own_clock: Direct<DefaultClock> = RateLimiter::direct(per_second()?);
    let compared = alternate(PAIRS, async |ours| {
        let ran = if ours {
            run(threads, |_| black_box(budget.check("/")).is_ok())?
        } else {
            run(threads, |_| black_box(own_clock.check()).is_ok())?
        };
        checked(ran, CHECKS)
    })
    .await?;
    let what = format!("the same, governor by the processor's counter, {}", words(threads));
    add(table, &what, &compared, Bound::Reported);
    Ok(())
}

async fn refused(table: &mut Table) -> Result<(), Failure> {
    let hourly = Quota::per_hour(NonZeroU32::MIN);
    let budget = RateBudget::new(Rate::per_hour(1));
    let governor: Direct<MonotonicClock> = RateLimiter::direct_with_clock(hourly, MonotonicClock);
    if budget.check("/").is_err() || governor.check().is_err() {
        return Err("the first call of an hour was refused".into());
    }
    let compared = alternate(PAIRS, async |ours| {
        let ran = if ours {
            run(1, |_| black_box(budget.check("/")).is_ok())?
        } else {
            run(1, |_| black_box(governor.check()).is_ok())?
        };
        checked(ran, 0)
    })
    .await?;
    add(
        table,
        "budget check that is refused, beside governor",
        &compared,
        Bound::Reported,
    );
    Ok(())
}

async fn keyed(table: &mut Table, threads: u32) -> Result<(), Failure> {
    let budgets = Budgets::like(&RateBudget::new(Rate::per_second(FAST)));
    let scopes: Vec<ScopeKey> = (0..KEYS)
        .map(|number| ScopeKey::scoped("acme", "entity", &number.to_string()))
        .collect();
    let keys: Vec<String> = scopes.iter().map(|scope| scope.as_str().to_string()).collect();
    let ours_started = |place: usize| {
        let scope = scopes.get(place);
        scope.is_some_and(|scope| black_box(budgets.check(scope, "/")).is_ok())
    };
    let same_clock: Keyed<MonotonicClock> =
        RateLimiter::new(per_second()?, DefaultKeyedStateStore::default(), MonotonicClock);
    let compared = alternate(PAIRS, async |ours| {
        let ran = if ours {
            run(threads, ours_started)?
        } else {
            run(threads, |place| {
                let key = keys.get(place);
                key.is_some_and(|key| black_box(same_clock.check_key(key)).is_ok())
            })?
        };
        checked(ran, CHECKS)
    })
    .await?;
    let what = format!("budget check by scope beside governor, {}", words(threads));
    add(table, &what, &compared, Bound::AtMost(1.0));

    let own_clock: Keyed<DefaultClock> = RateLimiter::keyed(per_second()?);
    let compared = alternate(PAIRS, async |ours| {
        let ran = if ours {
            run(threads, ours_started)?
        } else {
            run(threads, |place| {
                let key = keys.get(place);
                key.is_some_and(|key| black_box(own_clock.check_key(key)).is_ok())
            })?
        };
        checked(ran, CHECKS)
    })
    .await?;
    let what = format!("the same, governor by the processor's counter, {}", words(threads));
    add(table, &what, &compared, Bound::Reported);
    Ok(())
}
