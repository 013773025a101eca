//! What a refusal keeps, says and carries.

use super::*;

#[test]
fn a_scope_key_names_provider_scope_and_id() {
    assert_eq!(ScopeKey::provider("acme").as_str(), "acme");
    assert_eq!(ScopeKey::scoped("acme", "entity", "7").as_str(), "acme:entity:7");
}

#[test]
fn a_long_scope_key_is_bounded_and_stays_its_own() {
    let long = "é".repeat(400);
    let (a, b) = (
        ScopeKey::scoped("acme", "custom", &long),
        ScopeKey::scoped("acme", "custom", &format!("{long}x")),
    );
    assert!(a.as_str().len() <= ScopeKey::MAX_BYTES && b.as_str().len() <= ScopeKey::MAX_BYTES);
    assert_ne!(a, b);
}

#[test]
fn a_key_that_is_read_is_the_one_that_was_written_and_no_longer_than_any() {
    let key = ScopeKey::scoped("acme", "entity", "7");
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(json, r#""acme:entity:7""#);
    assert_eq!(serde_json::from_str::<ScopeKey>(&json).unwrap(), key);
    let long = serde_json::to_string(&"k".repeat(100_000)).unwrap();
    let read: ScopeKey = serde_json::from_str(&long).unwrap();
    assert_eq!(read.as_str().len(), ScopeKey::MAX_BYTES);
    assert_eq!(ScopeKey::from(read.to_string()), read, "bounded once is bounded");
}

#[test]
fn everything_that_a_provider_writes_is_bounded() {
    let long = "é".repeat(10_000);
    let signal = Signal::new("acme", Timestamp::EPOCH)
        .reason(&long)
        .code(&long)
        .read_by(Source::Parser, "retry-after", &long, Interpretation::Invalid)
        .clock_uncertainty(Duration::MAX);
    assert_eq!(signal.why().len(), Signal::MAX_REASON_BYTES);
    let seen = signal.observation();
    assert_eq!(seen.raw.as_deref().map(str::len), Some(Observation::MAX_RAW_BYTES));
    assert_eq!(seen.code.as_deref().map(str::len), Some(Observation::MAX_RAW_BYTES));
}

#[test]
fn a_named_moment_without_a_parser_counts_as_stated() {
    let now = Timestamp::from_unix_ms(1_000);
    let signal = Signal::new("acme", now).retry_at(now + Duration::from_secs(3));
    assert_eq!(
        (signal.source(), signal.observation().interpretation),
        (Source::Classify, Interpretation::Stated)
    );
    assert_eq!(signal.wait(), Some(Duration::from_secs(3)));
    assert!(!signal.is_past() && Signal::new("acme", now).retry_at(now).is_past());
}

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(truncated("aéb", 2), "a");
    assert_eq!(truncated("aéb", 3), "aé");
    assert_eq!(truncated("", 0), "");
}
