//! Responses, made of what a test names, and read.

use adjourn_core::Timestamp;
use adjourn_http::{CatalogueEntry, Contract, ContractReader, ReadResponse, Reading, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// When a response is received that says nothing else.
pub(crate) const NOW: &str = "2026-07-10T20:13:47Z";

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|| panic!("{text} is a time"))
}

pub(crate) fn headers<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// Reads a response by a contract, or by what providers have in common.
pub(crate) fn read(
    contract: Option<Contract>,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    received_at: Timestamp,
) -> Reading {
    let reader = ContractReader::default();
    let reader = match contract {
        Some(contract) => reader.with_contract("p", contract),
        None => reader,
    };
    let status = StatusCode::from_u16(status).unwrap();
    reader.read(
        "p",
        &Response {
            status,
            headers,
            body,
            received_at,
        },
    )
}

/// As [`read`], with an entry of the catalogue, now.
pub(crate) fn by(entry: &str, status: u16, lines: &[(&str, &str)], body: &str) -> Reading {
    read(
        Some(contract(entry)),
        status,
        &headers(lines.iter().copied()),
        body.as_bytes(),
        at(NOW),
    )
}

/// As [`read`], without a contract, now.
pub(crate) fn plainly(status: u16, lines: &[(&str, &str)], body: &str) -> Reading {
    read(None, status, &headers(lines.iter().copied()), body.as_bytes(), at(NOW))
}

pub(crate) fn contract(entry: &str) -> Contract {
    let found = CatalogueEntry::find(entry).unwrap_or_else(|| panic!("{entry} is in the catalogue"));
    found.contract().unwrap_or_else(|error| panic!("{entry}: {error}"))
}

pub(crate) fn wait_ms(reading: &Reading) -> Option<u128> {
    reading.signal().wait().map(|wait| wait.as_millis())
}
