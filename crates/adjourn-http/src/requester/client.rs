//! The connections: one client for a process as far as the providers' timeouts allow.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Once,
    time::Duration,
};

use url::{Host, Url};

use crate::Provider;

/// A connection that takes longer is not made: the call is known not to have reached the provider.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Well under the idle timeouts that servers have, so that a call seldom meets a connection that is just being closed.
const IDLE: Duration = Duration::from_secs(15);

/// The HTTP client could not be built.
#[derive(Debug)]
pub struct ClientError(reqwest::Error);

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the HTTP client cannot be built; are the machine's root certificates installed?")
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A client for each way to connect; nearly always that is one.
pub(super) struct Clients {
    by_way: BTreeMap<Way, reqwest::Client>,
    /// For a provider that was not known when the clients were built, of which there is none.
    any: reqwest::Client,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    connect_within: Duration,
    loopback: bool,
}

impl Way {
    fn to(provider: &Provider) -> Self {
        Self::at(provider.base_url(), provider.timeout())
    }

    fn at(url: &Url, timeout: Duration) -> Self {
        let loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        // Shorter than the call, so that a connection that was never made is told from an answer that never came.
        Self {
            connect_within: CONNECT_WITHIN.min(timeout / 2),
            loopback,
        }
    }
}

impl Clients {
    pub(super) fn for_providers<'a>(providers: impl Iterator<Item = &'a Provider>) -> Result<Self, ClientError> {
        install_tls();
        let mut by_way = BTreeMap::new();
        for way in providers.map(Way::to) {
            if let Entry::Vacant(free) = by_way.entry(way) {
                free.insert(build(way)?);
            }
        }
        let any = match by_way.values().next() {
            Some(client) => client.clone(),
            None => build(Way {
                connect_within: CONNECT_WITHIN,
                loopback: false,
            })?,
        };
        Ok(Self { by_way, any })
    }

    pub(super) fn of(&self, provider: &Provider) -> &reqwest::Client {
        self.by_way.get(&Way::to(provider)).unwrap_or(&self.any)
    }
}

/// A client of its own for one URL.
pub(super) fn to(url: &Url, timeout: Duration) -> Result<reqwest::Client, ClientError> {
    install_tls();
    build(Way::at(url, timeout))
}

fn build(way: Way) -> Result<reqwest::Client, ClientError> {
    let client = reqwest::Client::builder()
        .user_agent(concat!("adjourn/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(way.connect_within)
        .pool_idle_timeout(IDLE)
        // Redirects are followed by hand, under the base URL alone; retries are the policy's, and no client's.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .gzip(true);
    // A proxy of the environment does not stand between a machine and itself.
    let client = if way.loopback { client.no_proxy() } else { client };
    client.build().map_err(ClientError)
}

/// Names ring as the process's TLS provider, once; whoever was earlier is left in place.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("another TLS provider was installed before");
        }
    });
}
