//! What every queue has to do.

use std::{sync::Arc, time::Duration};

use adjourn_worker::{Attribute, AttributeValue, ENVELOPE_ATTRIBUTE, Message, fake::Outgoing};

use super::{Site, copy, do_and_delete, envelope_of, hold, letter, received, step};

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(10);

pub(crate) async fn a_copy_is_accepted_by_its_step_and_arrives_with_it(site: &dyn Site) {
    let original = received(site, "{\"n\":1}").await;
    assert_eq!(
        envelope_of(&original),
        None,
        "a first message carries no envelope of ours"
    );
    let asked = copy(site, &original, Duration::ZERO);
    let accepted = site
        .queue()
        .resend(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    assert_eq!(accepted.identity, asked.envelope.identity);
    assert!(!accepted.name.is_empty());
    let arrived = site.next(SOON).await.remove(0);
    let envelope = envelope_of(&arrived).expect("the copy carries its envelope");
    assert_eq!(envelope.identity, asked.envelope.identity);
    assert_eq!(envelope.counters, asked.envelope.counters);
    assert_eq!((arrived.body.as_str(), arrived.receive_count), ("{\"n\":1}", 1));
}

pub(crate) async fn a_copy_is_the_customers_message(site: &dyn Site) {
    let typed = |data_type: &str, value| Attribute {
        data_type: data_type.to_string(),
        value,
    };
    let mut sent = Outgoing::body("{\"z\":1,\"a\":\t2.50,\r\n \"u\":\"\\u00e9\u{e9}\u{1F600}\"}");
    sent.attributes = [
        ("Text", typed("String", AttributeValue::Text("h\u{e9}llo".to_string()))),
        ("Count", typed("Number", AttributeValue::Text("12.5".to_string()))),
        ("Label.x", typed("Number.int", AttributeValue::Text("-7".to_string()))),
        (
            "Bytes",
            typed("Binary.png", AttributeValue::Bytes(vec![0, 255, 10, 13, 128])),
        ),
    ]
    .map(|(name, attribute)| (name.to_string(), attribute))
    .into();
    sent.group = Some("tenant-7".to_string());
    sent.trace_header = Some("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1".to_string());
    site.send(sent.clone()).await;
    let original = Arc::new(site.next(SOON).await.remove(0));
    let asked = copy(site, &original, Duration::ZERO);
    site.queue().resend(&[asked]).await.remove(0).unwrap();
    let arrived = site.next(SOON).await.remove(0);
    assert!(arrived.attributes.contains_key(ENVELOPE_ATTRIBUTE));
    let mut attributes = arrived.attributes.clone();
    attributes.remove(ENVELOPE_ATTRIBUTE);
    assert_eq!(arrived.body.as_bytes(), sent.body.as_bytes());
    assert_eq!(attributes, sent.attributes);
    assert_eq!(arrived.group, sent.group);
    if site.keeps_trace_headers() {
        assert_eq!(arrived.trace_header, sent.trace_header);
    }
}

pub(crate) async fn a_delayed_copy_comes_after_its_delay(site: &dyn Site) {
    let original = received(site, "{}").await;
    let sent_at = site.clock().now();
    let asked = copy(site, &original, 2 * SECOND);
    site.queue().resend(&[asked]).await.remove(0).unwrap();
    assert!(site.receive().await.is_empty(), "it waits");
    let arrived = site.next(SOON).await;
    assert_eq!(arrived.len(), 1);
    // The emulator's clock and ours are one machine's, but it keeps whole seconds.
    assert!(site.clock().now() + SECOND / 2 >= sent_at + 2 * SECOND, "it came early");
}

pub(crate) async fn a_held_message_is_hidden_and_comes_back_as_itself(site: &dyn Site) {
    let original = received(site, "held").await;
    let asked = hold(site, &original, 2 * SECOND);
    let accepted = site.queue().hold(std::slice::from_ref(&asked)).await.remove(0).unwrap();
    assert_eq!(accepted.identity, asked.envelope.identity);
    assert!(site.receive().await.is_empty(), "it is hidden");
    let again = site.next(SOON).await.remove(0);
    assert_eq!((again.id.as_str(), again.body.as_str()), (original.id.as_str(), "held"));
    assert_eq!(again.receive_count, 2, "a hold spends a receive");
    assert_ne!(again.receipt, original.receipt, "each receive has its own receipt");
}

pub(crate) async fn a_hold_of_nothing_gives_the_message_back_at_once(site: &dyn Site) {
    let original = received(site, "back").await;
    site.queue()
        .hold(&[hold(site, &original, Duration::ZERO)])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(site.next(SECOND).await.remove(0).id, original.id);
}

pub(crate) async fn a_dead_letter_says_why(site: &dyn Site) {
    let original = received(site, "bad").await;
    let asked = letter(site, &original, "the provider answered 422: no such customer");
    let accepted = site
        .queue()
        .dead_letter(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    assert_eq!(accepted.identity, asked.envelope.identity);
    let letters = site.dead_letters().await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].contains("no such customer"), "{letters:?}");
}

pub(crate) async fn what_is_deleted_is_gone_and_deleting_again_harms_nothing(site: &dyn Site) {
    let original = received(site, "done").await;
    let answers = do_and_delete(site, vec![(*original).clone()]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert!(site.next(SECOND).await.is_empty());
    // Accepted, or refused because there is nothing of ours any more; never something to try again.
    for answer in do_and_delete(site, vec![(*original).clone()]).await {
        let again = answer.err().is_some_and(|error| error.is_transient());
        assert!(!again, "there is nothing to be tried again");
    }
    assert!(site.next(SECOND).await.is_empty());
    assert!(site.dead_letters().await.is_empty());
}

pub(crate) async fn a_hand_off_is_a_copy_and_then_a_deletion(site: &dyn Site) {
    let original = received(site, "once").await;
    let asked = copy(site, &original, Duration::ZERO);
    site.queue().resend(&[asked]).await.remove(0).unwrap();
    if !site.is_transactional() {
        // The original is still hidden, not gone: only its deletion ends it.
        let answers = do_and_delete(site, vec![(*original).clone()]).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    let arrived = site.next(SOON).await;
    assert_eq!(arrived.len(), 1);
    let answers = do_and_delete(site, arrived).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert!(site.next(SECOND).await.is_empty(), "nothing is left");
}

pub(crate) async fn more_than_a_batch_is_answered_in_its_order(site: &dyn Site) {
    let mut originals: Vec<Arc<Message>> = Vec::new();
    for n in 0..23 {
        originals.push(received(site, &format!("job {n}")).await);
    }
    let copies: Vec<_> = originals
        .iter()
        .map(|original| copy(site, original, Duration::ZERO))
        .collect();
    let answers = site.queue().resend(&copies).await;
    assert_eq!(answers.len(), 23);
    for (copy, answer) in copies.iter().zip(answers) {
        assert_eq!(answer.unwrap().identity, copy.envelope.identity);
    }
    let mut bodies = Vec::new();
    while bodies.len() < 23 {
        let arrived = site.next(SOON).await;
        assert!(!arrived.is_empty(), "only {} of 23 copies arrived", bodies.len());
        bodies.extend(arrived.into_iter().map(|message| message.body));
    }
    bodies.sort_unstable();
    let mut expected: Vec<_> = (0..23).map(|n| format!("job {n}")).collect();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
}

pub(crate) async fn nothing_is_asked_and_nothing_is_answered(site: &dyn Site) {
    assert!(site.queue().resend(&[]).await.is_empty());
    assert!(site.queue().hold(&[]).await.is_empty());
    assert!(site.queue().dead_letter(&[]).await.is_empty());
    assert!(site.queue().delete(&[]).await.is_empty());
}

pub(crate) async fn one_entry_that_is_refused_hurts_no_other(site: &dyn Site) {
    let (first, second) = (received(site, "first").await, received(site, "second").await);
    let mut odd = copy(site, &first, Duration::ZERO);
    let mut large = (*first).clone();
    large.body = "x".repeat(site.queue().max_message_bytes() + 1);
    odd.original = Arc::new(large);
    let fine = copy(site, &second, Duration::ZERO);
    let answers = site.queue().resend(&[odd, fine.clone()]).await;
    if site.has_the_limits_of_sqs() {
        let error = answers[0].as_ref().unwrap_err();
        assert!(!error.is_transient(), "what is too large stays too large: {error}");
    }
    assert_eq!(answers[1].as_ref().unwrap().identity, fine.envelope.identity);
}

/// What AWS refuses and an emulator accepts, refused by the port before any call.
pub(crate) async fn what_sqs_refuses_is_refused_here(site: &dyn Site) {
    let original = received(site, "{}").await;
    let too_long = [Duration::from_secs(901), Duration::from_millis(1500)];
    for delay in too_long {
        let error = site
            .queue()
            .resend(&[copy(site, &original, delay)])
            .await
            .remove(0)
            .unwrap_err();
        assert!(!error.is_transient(), "{delay:?}: {error}");
    }
    for visibility in [Duration::from_secs(43_201), Duration::from_millis(2500)] {
        let error = site
            .queue()
            .hold(&[hold(site, &original, visibility)])
            .await
            .remove(0)
            .unwrap_err();
        assert!(!error.is_transient(), "{visibility:?}: {error}");
    }
    let mut crowded = (*original).clone();
    for n in 0..10 {
        crowded.attributes.insert(format!("a{n}"), Attribute::text("v"));
    }
    let crowded = Arc::new(crowded);
    let error = site
        .queue()
        .resend(&[copy(site, &crowded, Duration::ZERO)])
        .await
        .remove(0)
        .unwrap_err();
    assert!(!error.is_transient(), "eleven attributes: {error}");
    let mut hidden = (*original).clone();
    hidden.body = "a\u{0}b".to_string();
    let hidden = Arc::new(hidden);
    let error = site
        .queue()
        .resend(&[copy(site, &hidden, Duration::ZERO)])
        .await
        .remove(0)
        .unwrap_err();
    assert!(!error.is_transient(), "a control character: {error}");
    let accepted = site
        .queue()
        .resend(&[copy(site, &original, Duration::ZERO)])
        .await
        .remove(0);
    assert!(accepted.is_ok(), "the message itself is fine");
}

/// An empty attribute cannot be sent back, so a copy leaves it out.
pub(crate) async fn an_empty_attribute_keeps_no_copy_from_being_sent(site: &dyn Site) {
    let mut original = (*received(site, "{}").await).clone();
    original.attributes.insert("empty".to_string(), Attribute::text(""));
    original.attributes.insert("full".to_string(), Attribute::text("v"));
    let original = Arc::new(original);
    assert_eq!(step(&original, site.clock().now()).identity.sequence, 1);
    site.queue()
        .resend(&[copy(site, &original, Duration::ZERO)])
        .await
        .remove(0)
        .unwrap();
    let arrived = site.next(SOON).await.remove(0);
    let names: Vec<_> = arrived.attributes.keys().map(String::as_str).collect();
    assert_eq!(names, [ENVELOPE_ATTRIBUTE, "full"]);
}
