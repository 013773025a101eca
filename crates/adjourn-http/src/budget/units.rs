//! Limits that count something else than requests.

use http::HeaderMap;
use sfv::{List, ListEntry, Parser};

/// The names of the policies in `RateLimit-Policy` whose quota unit (`qu`) is not requests (draft-ietf-httpapi-ratelimit-headers):
/// what remains of bytes or of concurrent requests says nothing about how many requests may start.
pub(super) fn other_than_requests(headers: &HeaderMap) -> Vec<String> {
    let mut names = Vec::new();
    for value in headers.get_all("ratelimit-policy") {
        let Ok(list) = Parser::new(value.as_bytes()).parse::<List>() else {
            continue;
        };
        for entry in &list {
            let ListEntry::Item(item) = entry else { continue };
            let unit = item.params.iter().find(|(key, _)| key.as_str() == "qu");
            let other = unit.and_then(|(_, unit)| unit.as_string());
            if other.is_some_and(|unit| unit.as_str() != "requests") {
                let name = item.bare_item.as_string().map(|name| name.as_str());
                let name = name.or_else(|| item.bare_item.as_token().map(|name| name.as_str()));
                names.extend(name.map(str::to_string));
            }
        }
    }
    names
}
