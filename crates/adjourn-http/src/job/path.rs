//! The rules of a job's path: it is appended to the provider's base URL and may not leave it.

use std::{borrow::Cow, fmt};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};
use url::Url;

/// What a path segment may not hold as it is (RFC 3986, section 3.3, and the path percent-encode set of the URL standard).
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// How often a path may be percent-encoded before it is refused unread.
const MAX_ENCODINGS: usize = 8;

/// A path that begins with "/" and stays below whatever it is appended to.
///
/// Refused are `..` and `.` as segments, a backslash, a control character, an empty first segment (`//host`) and `://`: as
/// they stand and at every depth of percent-encoding, since a proxy or a server on the way may decode once more than we
/// do. `?` and `#` are refused as they stand: a query has its own field, and a fragment would never be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobPath(String);

impl JobPath {
    /// Checks a path.
    ///
    /// # Errors
    /// Says in words what was found and what is allowed.
    pub fn new(path: &str) -> Result<Self, String> {
        if !path.starts_with('/') {
            return Err(
                "it has to begin with \"/\"; scheme, host and userinfo come from the provider's base_url".to_string(),
            );
        }
        if let Some(found) = path.chars().find(|found| matches!(found, '?' | '#')) {
            let instead = if found == '?' {
                "put what follows into \"query\", or write %3F"
            } else {
                "write %23"
            };
            return Err(format!("found {found:?}; {instead}"));
        }
        let mut depth = path.as_bytes().to_vec();
        for encodings in 0..=MAX_ENCODINGS {
            let text = std::str::from_utf8(&depth).map_err(|_| "its percent-encoding is not UTF-8".to_string())?;
            if let Some(found) = escape(text) {
                return Err(match encodings {
                    0 => format!("found {found}; a path may not leave the provider's base_url"),
                    n => format!(
                        "found {found} under {n} percent-encoding(s); a path may not leave the provider's base_url"
                    ),
                });
            }
            if encodings == 0 && !well_encoded(text) {
                return Err(
                    "a percent sign has to be followed by two hexadecimal digits; write %25 for the sign".to_string(),
                );
            }
            let decoded: Vec<u8> = percent_decode(&depth).collect();
            if decoded == depth {
                return Ok(Self(path.to_string()));
            }
            depth = decoded;
        }
        Err(format!("it is percent-encoded more than {MAX_ENCODINGS} times"))
    }

    /// The path as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of this path under `base`; none if it would leave it, which [`JobPath::new`] has ruled out.
    #[must_use]
    pub fn under(&self, base: &Url) -> Option<Url> {
        let prefix = base.path().trim_end_matches('/');
        let encoded = Cow::from(utf8_percent_encode(&self.0, ENCODED));
        let path = if prefix.is_empty() {
            encoded
        } else {
            Cow::Owned([prefix, &encoded].concat())
        };
        let mut url = base.clone();
        url.set_path(&path);
        // A parser that normalised anything understood the path in another way than the checks did.
        (url.path() == path).then_some(url)
    }
}

impl fmt::Display for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What in a path could lead elsewhere, in words.
fn escape(path: &str) -> Option<&'static str> {
    if path.chars().any(char::is_control) {
        return Some("a control character");
    }
    if path.contains('\\') {
        return Some("a backslash");
    }
    if path.starts_with("//") {
        return Some("\"//\", which names a host");
    }
    if path.contains("://") {
        return Some("\"://\", which names a scheme");
    }
    path.split('/').find_map(|segment| {
        // Some servers cut a segment's parameters and blanks off before they look at it.
        match segment.split(';').next().unwrap_or_default().trim() {
            ".." => Some("\"..\""),
            "." => Some("\".\""),
            _ => None,
        }
    })
}

fn well_encoded(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes();
        let mut digit = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        digit() && digit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = "https://api.acme.example/v2";

    #[test]
    fn paths_that_stay() {
        for (path, url) in [
            ("/", "https://api.acme.example/v2/"),
            ("/orders/7", "https://api.acme.example/v2/orders/7"),
            ("/orders/", "https://api.acme.example/v2/orders/"),
            ("/users/@me", "https://api.acme.example/v2/users/@me"),
            ("/a b/é", "https://api.acme.example/v2/a%20b/%C3%A9"),
            ("/.well-known/x", "https://api.acme.example/v2/.well-known/x"),
            ("/a..b/...", "https://api.acme.example/v2/a..b/..."),
            ("/v1:batch;x=1,2", "https://api.acme.example/v2/v1:batch;x=1,2"),
            (
                "/key%2Fwith%2Fslashes",
                "https://api.acme.example/v2/key%2Fwith%2Fslashes",
            ),
            ("/100%25", "https://api.acme.example/v2/100%25"),
            ("/%3Fnot-a-query", "https://api.acme.example/v2/%3Fnot-a-query"),
        ] {
            let found = JobPath::new(path).unwrap().under(&Url::parse(BASE).unwrap()).unwrap();
            assert_eq!(found.as_str(), url);
            let slashed = JobPath::new(path)
                .unwrap()
                .under(&Url::parse(&format!("{BASE}/")).unwrap())
                .unwrap();
            assert_eq!(slashed.as_str(), url, "a slash at the end of base_url is none");
        }
    }

    #[test]
    fn paths_that_would_leave_are_refused() {
        for path in [
            "",
            "orders",
            "https://evil.example/",
            "//evil.example/",
            "user:pw@evil.example/",
            "@evil.example/",
            "/..",
            "/../x",
            "/a/../b",
            "/a/..",
            "/.",
            "/a/./b",
            "/..;/x",
            "/..;v=1/x",
            "/ .. /x",
            "/%2e%2e/x",
            "/%2E./x",
            "/.%2e/x",
            "/a%2F..%2Fb",
            "/%2f%2fevil.example",
            "/%252e%252e/x",
            "/%25252e%25252e/x",
            "/a%252F..%252Fb",
            "/%252e%2e/",
            "/a\\..\\b",
            "/%5c..%5c",
            "/%255c",
            "/a\nb",
            "/a\tb",
            "/.\t./x",
            "/a%0d%0aHost:x",
            "/a%00",
            "/a%2500",
            "/\u{7f}",
            "/\u{85}",
            "/http://evil.example/",
            "/http:%2F%2Fevil.example",
            "/x?y=1",
            "/x#y",
            "/%",
            "/%2",
            "/%zz",
            "/%c0%ae%c0%ae/",
            "/%ff",
        ] {
            assert!(JobPath::new(path).is_err(), "{path:?} was accepted");
        }
        let deep = (0..20).fold("%2e".to_string(), |path, _| path.replace('%', "%25"));
        assert!(JobPath::new(&format!("/{deep}{deep}")).is_err());
    }

    #[test]
    fn the_words_say_what_was_found() {
        assert_eq!(
            JobPath::new("/%252e%252e/x").unwrap_err(),
            "found \"..\" under 2 percent-encoding(s); a path may not leave the provider's base_url"
        );
        assert_eq!(
            JobPath::new("/x?y").unwrap_err(),
            "found '?'; put what follows into \"query\", or write %3F"
        );
    }

    proptest! {
        #[test]
        fn an_accepted_path_never_leaves_the_base(path in "(/|\\.|%2e|%2F|%25|%5c|\\\\|;|:|@|[a-z]|\\PC|\\s){0,12}", slash: bool) {
            let base = Url::parse(&if slash { format!("{BASE}/") } else { BASE.to_string() }).unwrap();
            for path in [path.clone(), format!("/{path}")] {
                let Ok(checked) = JobPath::new(&path) else { continue };
                let url = checked.under(&base).expect("an accepted path can be appended");
                prop_assert_eq!((url.scheme(), url.host_str(), url.port()), (base.scheme(), base.host_str(), base.port()));
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert!(url.query().is_none() && url.fragment().is_none());
                prop_assert!(url.path().starts_with("/v2/"));
                let mut decoded = url.path().to_string();
                for _ in 0..10 {
                    prop_assert!(decoded.split('/').all(|segment| segment != ".." && segment != "."));
                    let again = Url::parse(&format!("https://x{decoded}")).unwrap();
                    prop_assert!(again.path().starts_with("/v2/"), "{} leads to {}", decoded, again.path());
                    decoded = percent_decode(decoded.as_bytes()).decode_utf8_lossy().replace(['?', '#'], "_");
                }
            }
        }
    }
}
