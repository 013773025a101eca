//! The cases that stand in the catalogue's own files.

use adjourn_core::Timestamp;
use adjourn_http::CatalogueEntry;

use crate::answers::{self, NOW, at};

#[test]
fn every_case_of_the_catalogue_is_read_as_it_says() {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for entry in CatalogueEntry::all() {
        let contract = answers::contract(entry.name());
        for case in &contract.cases {
            cases += 1;
            let received_at = at(case.received_at.as_deref().unwrap_or(NOW));
            let lines = case
                .headers
                .iter()
                .flat_map(|(name, values)| values.iter().map(move |value| (name.as_str(), value.as_str())));
            let body = case.body.as_deref().unwrap_or_default().as_bytes();
            let reading = answers::read(
                Some(contract.clone()),
                case.status,
                &answers::headers(lines),
                body,
                received_at,
            );
            let signal = reading.signal();
            let told = case.expect.retry_at.as_deref().and_then(Timestamp::parse);
            let expected_wait = case
                .expect
                .wait_ms
                .map(u128::from)
                .or(told.map(|at| at.since(received_at).as_millis()));
            let read = (
                reading.is_limited(),
                signal.limit_kind(),
                signal.concerns(),
                answers::wait_ms(&reading),
            );
            let expected = (case.expect.limited, case.expect.kind, case.expect.scope, expected_wait);
            if read != expected {
                wrong.push(format!("{}: {}: {read:?} for {expected:?}", entry.name(), case.name));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {cases} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
