//! Given this attribute on this message: expect this reading.

use super::*;
use proptest::prelude::*;

fn content() -> Content {
    Content::of("q", None, b"{}")
}

fn now() -> Timestamp {
    Timestamp::parse("2026-07-10T20:13:47Z").unwrap()
}

fn sample() -> Envelope {
    let mut envelope = Envelope::first(DeferralId::new("m-1"), now() - Duration::from_secs(60), content());
    envelope.identity.sequence = 3;
    envelope.due = now() + Duration::from_millis(30_250);
    envelope.rest = Some(Duration::from_millis(250));
    envelope.first_deferred_at = Some(now());
    envelope.counters = Counters {
        deferrals: 2,
        hops: 1,
        failures: 1,
        unnamed: 2,
    };
    envelope.reason = "burst".to_string();
    envelope
}

fn read(text: &str) -> Reading {
    Envelope::read(Some(text), content(), now())
}

#[test]
fn what_is_written_is_read() {
    assert_eq!(
        read(&sample().write()),
        Reading::Read {
            envelope: sample(),
            clamped: false
        }
    );
    assert_eq!(Envelope::read(None, content(), now()), Reading::Absent);
}

#[test]
fn an_envelope_copied_onto_another_message_is_no_envelope() {
    let text = sample().write();
    for other in [
        Content::of("q2", None, b"{}"),
        Content::of("q", Some(""), b"{}"),
        Content::of("q", None, b"[]"),
    ] {
        let Reading::Rejected(problem) = Envelope::read(Some(&text), other, now()) else {
            panic!("accepted")
        };
        assert!(problem.to_string().contains("another message"));
    }
}

#[test]
fn what_cannot_be_is_clamped_and_said() {
    let text = sample().write();
    let hostile = text
        .replace("\"deferrals\":2", "\"deferrals\":99999999999")
        .replace("\"due\":\"2026", "\"due\":\"9926")
        .replace("\"restMs\":250", "\"restMs\":86400000")
        .replace("\"firstDeferredAt\":\"2026", "\"firstDeferredAt\":\"2926");
    let Reading::Read { envelope, clamped } = read(&hostile) else {
        panic!("not read")
    };
    assert!(clamped);
    assert_eq!(envelope.counters.deferrals, u32::MAX);
    assert_eq!(envelope.due, now() + FURTHEST_DUE);
    assert_eq!((envelope.rest, envelope.first_deferred_at), (None, Some(now())));
}

#[test]
fn rubbish_is_absent_with_a_reason() {
    let long = "x".repeat(2000);
    for text in [
        "",
        "{}",
        "null",
        "[1]",
        "{\"v\":1",
        "\u{0}",
        &long,
        &sample().write().replace("m-1", "m 1"),
    ] {
        assert!(matches!(read(text), Reading::Rejected(_)), "{text}");
    }
}

#[test]
fn a_newer_writers_extra_fields_are_passed_over() {
    let newer = sample().write().replace("{\"v\":1", "{\"v\":7,\"colour\":\"green\"");
    assert_eq!(
        read(&newer),
        Reading::Read {
            envelope: sample(),
            clamped: false
        }
    );
}

#[test]
fn words_are_cut_before_anything_else() {
    let mut envelope = sample();
    envelope.identity.id = DeferralId::new(&"i".repeat(128));
    envelope.reason = "\u{1}".repeat(5000);
    envelope.end = Some("é".repeat(5000));
    let text = envelope.write();
    assert!(text.len() <= MAX_ENVELOPE_BYTES, "{}", text.len());
    let Reading::Read { envelope: back, .. } = read(&text) else {
        panic!("not read")
    };
    assert_eq!(back.counters, envelope.counters);
    assert!(!back.reason.is_empty());
}

#[test]
fn a_name_for_a_step_fits_every_scheduler() {
    let identity = Identity::first(DeferralId::new("m-1"));
    assert_eq!(identity.name().len(), 36);
    assert_ne!(identity.name(), identity.next().name());
    assert_eq!(identity.entropy(), identity.clone().entropy());
}

#[test]
fn a_name_that_is_no_id_is_hashed() {
    assert_eq!(DeferralId::new("a b").as_str().len(), 34);
    assert_ne!(DeferralId::new("a b"), DeferralId::new("a  b"));
    assert_eq!(DeferralId::new("order-7").as_str(), "order-7");
}

/// The longest of everything that is no words.
fn longest() -> Envelope {
    let mut envelope = sample();
    envelope.identity = Identity {
        id: DeferralId::new(&"i".repeat(128)),
        epoch: u32::MAX,
        sequence: u32::MAX,
    };
    envelope.due = Timestamp::MAX;
    envelope.rest = Some(Duration::MAX);
    envelope.first_deferred_at = Some(Timestamp::MAX);
    envelope.unnamed_since = Some(Timestamp::MAX);
    envelope.counters = Counters {
        deferrals: u32::MAX,
        hops: u32::MAX,
        failures: u32::MAX,
        unnamed: u32::MAX,
    };
    envelope.sent_at = Timestamp::MAX;
    envelope
}

#[test]
fn the_longest_envelope_is_read_again_whatever_its_words_are() {
    for words in [
        "\u{1}",
        "\"",
        "é",
        "\u{10ffff}",
        "\u{ffff}",
        "<aws.scheduler.execution-id>",
        "x",
    ] {
        let envelope = Envelope {
            reason: words.repeat(400),
            end: Some(words.repeat(400)),
            ..longest()
        };
        let text = envelope.write();
        assert!(text.len() <= MAX_ENVELOPE_BYTES, "{} bytes for {words:?}", text.len());
        let Reading::Read { envelope: back, .. } = read(&text) else {
            panic!("not read: {text}")
        };
        assert_eq!((back.identity, back.counters), (envelope.identity, envelope.counters));
    }
}

#[test]
fn words_hold_nothing_that_a_queue_refuses_or_a_scheduler_replaces() {
    let reason = "odd \u{fffe}\u{ffff} \u{0}\u{8}\u{1b} <aws.scheduler.execution-id> <AWS.scheduler.x>".to_string();
    let envelope = Envelope {
        reason,
        end: Some("<aws.scheduler.scheduled-time>\u{ffff}".to_string()),
        ..sample()
    };
    let text = envelope.write();
    let allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(allowed), "{text:?}");
    assert!(!text.contains("<aws.scheduler."), "{text}");
    assert!(matches!(read(&text), Reading::Read { clamped: false, .. }), "{text}");
}

#[test]
fn an_older_reader_honours_what_it_knows_and_doubled_or_nested_rubbish_is_none() {
    let text = sample().write();
    let doubled = text.replace("\"sequence\":3", "\"sequence\":3,\"sequence\":9");
    assert!(matches!(read(&doubled), Reading::Rejected(_)));
    for deep in [
        "[".repeat(400),
        "{\"a\":".repeat(150),
        format!("{{\"v\":1,\"x\":{}", "[".repeat(900)),
    ] {
        assert!(matches!(read(&deep), Reading::Rejected(_)));
    }
    for number in ["-1", "1.5", "1e999", "\"3\"", "null", "18446744073709551616"] {
        let odd = text.replace("\"sequence\":3", &format!("\"sequence\":{number}"));
        assert!(matches!(read(&odd), Reading::Rejected(_)), "{number}");
    }
}

#[test]
fn a_step_is_named_alike_only_by_itself() {
    let step = |id: &str, epoch, sequence| Identity {
        id: DeferralId::new(id),
        epoch,
        sequence,
    };
    let steps = [
        step("a", 1, 11),
        step("a", 11, 1),
        step("a", 1, 1),
        step("a:1", 1, 1),
        step("a-1", 1, 1),
        step("b", 1, 1),
    ];
    for (i, one) in steps.iter().enumerate() {
        for other in &steps[..i] {
            assert_ne!(one.name(), other.name());
            assert_ne!(one.entropy(), other.entropy());
        }
    }
    assert_eq!(step("a", u32::MAX, u32::MAX).next().sequence, u32::MAX);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,1200}") {
        let _ = read(&text);
    }

    #[test]
    fn every_envelope_round_trips_within_its_bytes(
        id in "[A-Za-z0-9_.:-]{1,128}", sequence in 0u32.., due in 0u64..30_000_000_000, rest in proptest::option::of(0u64..1000),
        deferrals in 0u32.., hops in 0u32.., failures in 0u32.., unnamed in 0u32.., reason in ".{0,60}",
    ) {
        let mut envelope = sample();
        envelope.identity = Identity { id: DeferralId::new(&id), epoch: 2, sequence };
        envelope.due = now() + Duration::from_millis(due);
        envelope.rest = rest.map(Duration::from_millis);
        envelope.counters = Counters { deferrals, hops, failures, unnamed };
        envelope.reason = reason;
        let text = envelope.write();
        prop_assert!(text.len() <= MAX_ENVELOPE_BYTES);
        let Reading::Read { envelope: back, clamped } = read(&text) else { panic!("not read: {text}") };
        prop_assert!(!clamped);
        prop_assert_eq!(back.identity, envelope.identity);
        prop_assert_eq!((back.due, back.rest, back.counters), (envelope.due, envelope.rest, envelope.counters));
    }
}
