//! Before the handler: due, open, wanted, in time.

use std::{sync::Arc, time::Duration};

use adjourn_core::DeferralId;
use adjourn_worker::fake::{FakeLedger, Outgoing, QueueSettings};
use adjourn_worker::{Attribute, Settlement};
use serde_json::json;

use crate::stage::{Stage, job, kept};

#[tokio::test(start_paused = true)]
async fn a_message_that_is_no_job_ends_alone_with_its_body_untouched() {
    let stage = Stage::standard();
    stage.queue.send_body("not json {").unwrap();
    stage.send(&job("good", &["done"]));
    let settled = stage.turn(&stage.worker()).await;
    assert_eq!(kept(&settled), Vec::<String>::new());
    assert_eq!(stage.called(), ["good"]);
    let letters = stage.queue.dead_letters();
    assert_eq!(letters[0].body, "not json {");
    assert_eq!(stage.dead_letter().end.as_deref(), Some("undecodable"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_over_a_message_hurts_that_message_only() {
    let stage = Stage::standard();
    stage.send(&job("panics when read", &["done"]));
    stage.send(&job("good", &["done"]));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.called(), ["good"]);
    assert_eq!(stage.dead_letter().end.as_deref(), Some("undecodable"));
}

#[tokio::test(start_paused = true)]
async fn a_hostile_attribute_is_no_envelope_and_loses_nothing() {
    let stage = Stage::standard();
    let mut outgoing = Outgoing::body(&job("a", &["done"]).to_string());
    outgoing
        .attributes
        .insert("adjourn".to_string(), Attribute::text("{\"v\":1,\"due\":\"9999"));
    stage.queue.send(outgoing).unwrap();
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.called(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_comes_early_waits_for_exactly_the_rest() {
    let stage = Stage::standard();
    stage.send(&job("a", &["refuse 3600000", "done"]));
    let worker = stage.worker();
    stage.turn(&worker).await;
    let due = stage.scheduler.scheduled().len();
    assert_eq!(due, 1, "an hour is a schedule's");
    // The schedule fires at least a minute early; its copy is parked by a delay for the rest, to the second.
    stage.next_turn(&worker).await;
    assert_eq!(stage.called(), ["a"], "not called early");
    let parked = stage.envelope();
    assert_eq!((parked.counters.deferrals, parked.counters.hops), (1, 1));
    stage.next_turn(&worker).await;
    let calls = stage.calls.lock().unwrap();
    assert_eq!(calls.len(), 2);
    assert!(calls[1].at >= parked.due, "never early");
    assert!(
        calls[1].at.since(parked.due) < Duration::from_secs(2),
        "within two seconds after its moment"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_of_a_closed_scope_is_parked_without_a_call() {
    let stage = Stage::standard();
    let worker = stage.builder().concurrency(1).build();
    stage.send(&job("first", &["refuse 60000"]));
    stage.send(&job("sibling", &["done"]));
    stage.send(&json!({"name": "other scope", "scope": "2", "answers": ["done"]}));
    stage.turn(&worker).await;
    assert_eq!(stage.called(), ["first", "other scope"]);
    let parked = stage.queue.messages();
    assert_eq!(parked.len(), 2);
    assert!(
        stage
            .queue
            .stored()
            .iter()
            .all(|one| one.visible_at >= stage.now() + Duration::from_secs(59))
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_whole_provider_holds_every_scope_of_it() {
    let stage = Stage::standard();
    let worker = stage.builder().concurrency(1).build();
    stage.send(&job("first", &["refuse-all 60000"]));
    stage.send(&json!({"name": "other scope", "scope": "2", "answers": ["done"]}));
    stage.turn(&worker).await;
    assert_eq!(stage.called(), ["first"]);
    let closed = worker.gates().closed(stage.now());
    let mut keys: Vec<&str> = closed.iter().map(|(scope, ..)| scope.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["acme", "acme:entity:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_s_error_closes_the_scope_that_it_names_and_one_of_an_unknown_provider_the_job_s_own_as_well() {
    for (names, expected) in [
        ("acme:entity:7", &["acme:entity:7"][..]),
        ("shop:entity:7", &["acme:entity:1", "shop:entity:7"]),
    ] {
        let stage = Stage::standard();
        let worker = stage.builder().concurrency(1).build();
        stage.send(&job("first", &[&format!("refuse-in {names}")]));
        stage.send(&job("second", &["done"]));
        stage.turn(&worker).await;
        let closed = worker.gates().closed(stage.now());
        let mut keys: Vec<&str> = closed.iter().map(|(scope, ..)| scope.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected);
        let held = expected.contains(&"acme:entity:1");
        assert_eq!(stage.called().len(), if held { 1 } else { 2 }, "{names}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_discarded_without_a_call() {
    let stage = Stage::standard();
    let ledger = FakeLedger::default();
    let id = stage.send(&job("a", &["done"]));
    ledger.cancel(&DeferralId::new(&id));
    let worker = stage.builder().ledger(Arc::new(ledger)).build();
    let settled = stage.turn(&worker).await;
    assert!(matches!(&settled[0].settlement, Settlement::Delete(proof) if proof.discard_reason().is_some()));
    assert_eq!(stage.called(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_job_past_its_deadline_is_not_sent_and_says_so() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "late", "deadline": "2026-07-10T11:59:59Z"}));
    stage.turn(&stage.worker()).await;
    assert_eq!(stage.called(), Vec::<String>::new());
    assert_eq!(stage.dead_letter().end.as_deref(), Some("deadline"));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_says_not_before_waits_without_spending_anything_but_a_hop() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "later", "notBefore": "2026-07-10T12:10:00Z", "answers": ["done"]}));
    let worker = stage.worker();
    stage.turn(&worker).await;
    let parked = stage.envelope();
    assert_eq!(
        (
            parked.counters.hops,
            parked.counters.deferrals,
            parked.counters.failures
        ),
        (1, 0, 0)
    );
    stage.next_turn(&worker).await;
    assert_eq!(
        stage.calls.lock().unwrap()[0].at.to_string(),
        "2026-07-10T12:10:00.000Z"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_repeated_is_not_made_again_after_a_crash() {
    let stage = Stage::standard();
    stage.send(&json!({"name": "charge", "repeatable": false, "answers": ["done"]}));
    // The first receive is lost with its process.
    stage.queue.receive(10).await.unwrap();
    stage.next_turn(&stage.worker()).await;
    assert_eq!(stage.called(), Vec::<String>::new());
    assert_eq!(stage.dead_letter().end.as_deref(), Some("unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_poison_job_ends_as_crashed_before_the_queue_gives_it_up() {
    let stage = Stage::with(QueueSettings {
        max_receive_count: Some(5),
        ..QueueSettings::default()
    });
    stage.send(&job("poison", &["done"]));
    for _ in 0..3 {
        let at = stage.queue.next_receivable_at().unwrap();
        tokio::time::advance(at.since(stage.now())).await;
        assert_eq!(stage.queue.receive(10).await.unwrap().len(), 1);
    }
    stage.next_turn(&stage.worker()).await;
    assert_eq!(stage.called(), Vec::<String>::new(), "not called a fourth time");
    let letter = stage.dead_letter();
    assert_eq!(letter.end.as_deref(), Some("crashed"));
    assert!(letter.reason.contains("received 4 times"), "{}", letter.reason);
}
