//! Whether a response that no rule knows is a limit, by its status and by words that many providers share.

use adjourn_core::{Kind, ScopeHint};
use http::{HeaderMap, header};

use super::{body::Body, phrases, words::Said};

/// What a response is that no rule knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// A limit.
    Limited,
    /// The limit of a proxy at the edge, not the provider's.
    EdgeLimited,
    /// No limit; these are its kind and whom it concerns.
    Otherwise(Kind, ScopeHint),
}

const NOTHING: Looks = Looks::Otherwise(Kind::Unknown, ScopeHint::Unknown);

/// What is known of a response besides its status.
pub(super) struct Seen<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Body<'a>,
    pub(super) said: Said,
    /// Whether headers say that nothing remains of a limit.
    pub(super) spent: bool,
    /// Whether the response itself names a moment, by header or body.
    pub(super) names_moment: bool,
    /// Whether a contract speaks for the provider: then only words make a limit of what its rules do not know.
    pub(super) by_contract: bool,
}

impl Seen<'_> {
    pub(super) fn looks(&self, status: u16) -> Looks {
        let limited = match status {
            429 => !self.is_disabled(),
            420 => self.said.is_limit() || self.names_moment,
            403 => {
                self.said.is_limit() || !self.by_contract && (self.names_moment || self.spent && !self.said.forbidden)
            }
            503 => self.said.is_limit() || !self.by_contract && self.spent,
            _ => false,
        };
        if limited {
            return if self.is_edge() {
                Looks::EdgeLimited
            } else {
                Looks::Limited
            };
        }
        match status {
            402 if !self.by_contract || self.said.disabled => {
                Looks::Otherwise(Kind::AccountDisabled, ScopeHint::Account)
            }
            403 | 429 if self.is_disabled() => Looks::Otherwise(Kind::AccountDisabled, ScopeHint::Account),
            // A conflict on one record: no limit, but the same call may do soon, unless what it would make is there already.
            409 if self.is_there_already() => NOTHING,
            409 | 423 => Looks::Otherwise(Kind::Concurrency, ScopeHint::Endpoint),
            _ => NOTHING,
        }
    }

    /// Closed, unpaid or out of its spend limit; a refusal that names a moment is a wait all the same.
    fn is_disabled(&self) -> bool {
        self.said.disabled && !self.names_moment
    }

    fn is_there_already(&self) -> bool {
        let text = phrases::head(self.body.text()).to_ascii_lowercase();
        ["already exist", "already_exist", "alreadyexist", "duplicate"]
            .iter()
            .any(|words| text.contains(words))
    }

    /// A page for people where a program was answered, or the edge's own error, from a server that is known to stand there.
    fn is_edge(&self) -> bool {
        if self.is_page() {
            return self.is_by_edge();
        }
        // Most answers name no server: what is cheap to know is asked first.
        self.server().eq_ignore_ascii_case("cloudflare") && self.body.text().contains("\"cloudflare_error\"")
    }

    fn server(&self) -> &str {
        self.headers
            .get(header::SERVER)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    fn is_page(&self) -> bool {
        let content = self
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        self.body.is_html()
            || content.is_some_and(|content| content.starts_with("text/html"))
            || self.body.text().starts_with("error code: 1")
    }

    fn is_by_edge(&self) -> bool {
        const EDGES: [&str; 9] = [
            "cloudflare",
            "cloudfront",
            "akamai",
            "fastly",
            "varnish",
            "incapsula",
            "imperva",
            "awselb",
            "sucuri",
        ];
        let server = self.server().to_ascii_lowercase();
        EDGES.iter().any(|edge| server.contains(edge))
            || ["cf-ray", "x-amz-cf-id", "x-iinfo", "x-sucuri-id", "x-akamai-request-id"]
                .iter()
                .any(|name| self.headers.contains_key(*name))
    }
}
