//! Bodies that are as bad as they can be for their size, by everybody who may have to read them.

use adjourn_core::Timestamp;
use adjourn_http::{CatalogueEntry, ContractReader, ReadResponse as _, Reading, Response};
use http::{HeaderMap, StatusCode};

/// 2026-07-10T20:13:47Z.
const NOW: Timestamp = Timestamp::from_unix_ms(1_783_714_427_000);

/// What the bodies are full of.
pub const SHAPES: [&str; 12] = [
    "beginnings of every phrase",
    "letters",
    "words of limits",
    "digits",
    "waits",
    "spans",
    "brackets",
    "a list",
    "members",
    "elements",
    "pairs of elements",
    "entities",
];

/// Two contracts whose rules look into bodies, and nobody's.
const READERS: [Option<&str>; 3] = [None, Some("monday.com"), Some("NetSuite")];

/// A body with its readers.
#[derive(Debug)]
pub struct Hostile {
    readers: Vec<ContractReader>,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Hostile {
    /// A body of that shape and of nearly so many kilobytes. None where the shape or a contract is not known.
    #[must_use]
    pub fn of(shape: &str, kilobytes: usize) -> Option<Self> {
        let reader = |name: Option<&str>| {
            let Some(name) = name else {
                return Some(ContractReader::default());
            };
            let contract = CatalogueEntry::find(name)?.contract().ok()?;
            Some(ContractReader::default().with_contract("acme", contract))
        };
        Some(Self {
            readers: READERS.into_iter().map(reader).collect::<Option<_>>()?,
            headers: HeaderMap::new(),
            body: body(shape, kilobytes * 1024)?.into_bytes(),
        })
    }

    /// What each of its readers makes of it.
    #[must_use]
    pub fn read(&self) -> Vec<Reading> {
        let response = Response {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: &self.headers,
            body: &self.body,
            received_at: NOW,
        };
        let readings = self.readers.iter().map(|reader| reader.read("acme", &response));
        readings.collect()
    }
}

fn body(shape: &str, bytes: usize) -> Option<String> {
    let full_of = |part: &str| part.repeat(bytes / part.len());
    Some(match shape {
        "beginnings of every phrase" => {
            full_of("try again in please retry in rate limit per day quota retry after 1 2m3 {\"a\":[<x> ")
        }
        "letters" => full_of("a"),
        "words of limits" => full_of("rate limit per day "),
        "digits" => full_of("9"),
        "waits" => full_of("try again in 5 "),
        "spans" => full_of("wait 1m"),
        "brackets" => full_of("["),
        "a list" => format!("[{}1]", "1,".repeat(bytes / 2 - 2)),
        "members" => format!("{{{}\"z\":1}}", "\"retry_after\":\"x\",".repeat(bytes / 18 - 1)),
        "elements" => full_of("<a>"),
        "pairs of elements" => full_of("<a></a>"),
        "entities" => full_of("<a>&amp;"),
        _ => return None,
    })
}
