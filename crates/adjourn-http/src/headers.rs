//! Headers that nobody but the connection may set.

use http::HeaderName;

/// Those of the message's framing and the hop-by-hop ones (RFC 9110, sections 7.2, 7.6.1 and 8.6).
const OWNED: [&str; 12] = [
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// Whether a header is the connection's and not the caller's.
pub(crate) fn belongs_to_the_connection(name: &HeaderName) -> bool {
    OWNED.contains(&name.as_str())
}
