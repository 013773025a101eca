//! Fair turns between tenants and scopes, and no work for what cannot start.

use std::collections::HashMap;

use adjourn_core::{Observation, ScopeKey, Timestamp};
use adjourn_local::{NewJob, State, Store};
use adjourn_worker::port::{Closing, GateStore};

use crate::fixture::*;

async fn tenants(store: &Store, limit: usize) -> Vec<String> {
    let taken = store.take(limit).await.unwrap();
    taken
        .leases
        .iter()
        .map(|lease| lease.message.group.clone().unwrap_or_default())
        .collect()
}

async fn close(store: &Store, scope: &str, until: Timestamp) {
    let closing = Closing {
        scope: ScopeKey::provider(scope),
        until,
        reason: "burst".to_string(),
        observation: Observation::at(until),
    };
    GateStore::close(store, &[closing]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_a_thousand_jobs_does_not_keep_two_with_ten_waiting() {
    let place = Place::new();
    let store = place.open();
    let many = (0..1000).map(|n| of_tenant(&format!("many-{n}"), "many"));
    let few = (0..20).map(|n| of_tenant(&format!("few-{n}"), ["few-1", "few-2"][n % 2]));
    store.send(many.chain(few).collect(), false).await.unwrap();
    let mut order = Vec::new();
    while order.len() < 60 {
        // Takes of every size, as a poller makes them.
        order.extend(tenants(&store, 1 + order.len() % 4).await);
    }
    let of_first_thirty = |name: &str| order.iter().take(30).filter(|tenant| *tenant == name).count();
    assert_eq!(
        ["many", "few-1", "few-2"].map(of_first_thirty),
        [10, 10, 10],
        "{order:?}"
    );
    assert!(order.iter().skip(30).all(|tenant| tenant == "many"));
}

#[tokio::test(start_paused = true)]
async fn a_large_take_is_fair_in_its_own_order() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..40).map(|n| of_tenant(&format!("{n}"), ["a", "b", "c", "c"][n % 4]));
    store.send(jobs.collect(), false).await.unwrap();
    let order = tenants(&store, 100).await;
    assert_eq!(order.len(), 40);
    let mut first: Vec<&str> = order.iter().take(3).map(String::as_str).collect();
    first.sort_unstable();
    assert_eq!(first, ["a", "b", "c"]);
    let thirty: HashMap<&str, usize> = order.iter().take(30).fold(HashMap::new(), |mut counts, tenant| {
        *counts.entry(tenant.as_str()).or_default() += 1;
        counts
    });
    assert_eq!(thirty["a"], 10);
    assert_eq!(thirty["b"], 10);
}

#[tokio::test(start_paused = true)]
async fn within_a_tenant_the_oldest_comes_first() {
    let place = Place::new();
    let store = place.open();
    for id in ["x", "b", "a"] {
        store.send(vec![of_tenant(id, "t")], false).await.unwrap();
        advance(SECOND).await;
    }
    assert_eq!(ids(&store, 10).await, ["x", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_scope_is_passed_over_until_it_opens_and_its_jobs_wait() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    let of = |id: &str, provider: &str| NewJob::new(id, provider, "done");
    ours.send(vec![of("a", "shut"), of("b", "open"), of("c", "shut")], false)
        .await
        .unwrap();
    let until = place.now() + 30 * SECOND;
    close(&theirs, "shut", until).await;

    let taken = ours.take(10).await.unwrap();
    assert_eq!(taken.leases.len(), 1);
    assert_eq!(taken.leases[0].message.id, "b");
    assert_eq!(taken.closed, [(ScopeKey::provider("shut"), until, "burst".to_string())]);
    let status = status(&ours).await;
    assert_eq!((status.ready, status.waiting, status.running), (0, 2, 1));
    assert_eq!(status.next_due_at, Some(until));
    assert_eq!(status.gates[0].scope_key, ScopeKey::provider("shut"));
    let held = detail(&ours, "a").await.job;
    assert_eq!((held.state, held.retry_at), (State::Waiting, Some(until)));
    assert_eq!(
        held.reason.as_deref(),
        Some("shut is closed until 2026-07-10T20:00:30.000Z: burst")
    );

    advance(30 * SECOND).await;
    let mut open = ids(&ours, 10).await;
    open.retain(|id| id != "b");
    assert_eq!(open, ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_closes_until_the_later_of_two_moments() {
    let place = Place::new();
    let store = place.open();
    let (early, late) = (place.now() + SECOND, place.now() + 10 * SECOND);
    close(&store, "acme", late).await;
    close(&store, "acme", early).await;
    let closed = store
        .closed(&[ScopeKey::provider("acme"), ScopeKey::provider("other")])
        .await
        .unwrap();
    assert_eq!(closed, [Some((late, "burst".to_string())), None]);
    assert_eq!(store.gates().await.unwrap()[0].closed_until, Some(late));
}

#[tokio::test(start_paused = true)]
async fn a_scope_gives_no_more_than_may_start_and_the_others_fill_up() {
    let place = Place::new();
    let store = place.open();
    let jobs = (0..40).map(|n| NewJob::new(&format!("{n}"), ["slow", "fast"][n % 2], "done"));
    store.send(jobs.collect(), false).await.unwrap();
    let slow = ScopeKey::provider("slow");
    let limited = slow.clone();
    let taken = store
        .take_within(
            10,
            move |scope, most| if *scope == limited { most.min(2) } else { most },
        )
        .await
        .unwrap();
    let of_slow = taken.leases.iter().filter(|lease| lease.scope == slow).count();
    assert_eq!((taken.leases.len(), of_slow), (10, 2));
    assert_eq!(taken.held_back, [slow]);
}
