//! Where a redirect leads: below the base URL it is followed, elsewhere it never is.

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

pub(super) enum Target {
    /// The answer is no redirect.
    None,
    /// The same request goes there.
    Follow(Box<Url>),
    /// It is a redirect that is not followed, for this reason.
    Refused(String),
}

/// What a response with this status and these headers asks for, to a request of that method for that URL.
pub(super) fn target(base: &Url, method: &Method, url: &Url, status: StatusCode, headers: &HeaderMap) -> Target {
    let safe = method == Method::GET || method == Method::HEAD;
    match status.as_u16() {
        301..=303 if !safe => Target::Refused(format!("following it would turn {method} into GET")),
        301 | 302 | 303 | 307 | 308 => match location(url, headers) {
            None => Target::Refused("it names no location that can be read".to_string()),
            Some(url) if is_under(base, &url) => Target::Follow(Box::new(url)),
            Some(url) => Target::Refused(format!(
                "it leads off base_url, to {}",
                url.origin().ascii_serialization()
            )),
        },
        _ => Target::None,
    }
}

fn location(from: &Url, headers: &HeaderMap) -> Option<Url> {
    from.join(headers.get(header::LOCATION)?.to_str().ok()?).ok()
}

/// The path of a followed redirect as a job would have it: below the base's.
pub(super) fn path_below<'u>(base: &Url, url: &'u Url) -> &'u str {
    let prefix = base.path().trim_end_matches('/');
    url.path().strip_prefix(prefix).unwrap_or(url.path())
}

/// Whether a URL has the same origin as the base, no user of its own, and a path in or below the base's.
fn is_under(base: &Url, url: &Url) -> bool {
    let prefix = base.path().trim_end_matches('/');
    let below = url
        .path()
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || crate::JobPath::new(rest).is_ok());
    url.origin() == base.origin() && url.username().is_empty() && url.password().is_none() && below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_under_the_base_is_followed() {
        let base = Url::parse("https://api.acme.example/v2").unwrap();
        for (url, expected) in [
            ("https://api.acme.example/v2/orders", true),
            ("https://api.acme.example:443/v2/orders?page=2", true),
            ("https://api.acme.example/v2", true),
            ("https://api.acme.example/v22/orders", false),
            ("https://api.acme.example/v1/orders", false),
            ("https://api.acme.example/v2/../v1", false),
            ("https://api.acme.example/v2/%252e%252e/v1", false),
            ("http://api.acme.example/v2/orders", false),
            ("https://api.acme.example:8443/v2/orders", false),
            ("https://user@api.acme.example/v2/orders", false),
            ("https://evil.example/v2/orders", false),
        ] {
            assert_eq!(is_under(&base, &Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
