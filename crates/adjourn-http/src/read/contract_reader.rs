//! The reader: a provider's contract where there is one, and what providers have in common.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjourn_core::{Interpretation, Kind, ScopeHint, Signal, Source};

use super::{
    Classify, Ignored, LimitState, ReadResponse, Reading, Response,
    body::Body,
    bucket::{Bucket, severity, tell_of_requests},
    classify::{self, Ruled, RuledTime},
    clock::{Found, ProviderClock},
    ietf, plain, reading,
    recognise::{Looks, Seen},
    reset_headers,
    time::{self, Places, Told},
    words::Said,
};
use crate::{Contract, LimitScope, Settings, Time, Window};

/// Reads each provider's responses by its contract, and those of a provider without one by what providers have in common.
///
/// ```
/// use adjourn_http::{CatalogueEntry, ContractReader, ReadResponse, Response};
/// use http::{HeaderMap, StatusCode};
///
/// let hubspot = CatalogueEntry::find("HubSpot").unwrap().contract()?;
/// let reader = ContractReader::default().with_contract("crm", hubspot);
/// let received_at = adjourn_core::Timestamp::parse("2026-07-10T20:13:47Z").unwrap();
/// let body = br#"{"errorType":"RATE_LIMIT","policyName":"DAILY"}"#;
/// let response = Response { status: StatusCode::TOO_MANY_REQUESTS, headers: &HeaderMap::new(), body, received_at };
/// assert_eq!(reader.read("crm", &response).signal().limit_kind(), adjourn_core::Kind::Daily);
/// assert_eq!(reader.read("else", &response).signal().limit_kind(), adjourn_core::Kind::Daily);
/// # Ok::<(), adjourn_http::ContractError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ContractReader {
    contracts: BTreeMap<String, Arc<Contract>>,
    hooks: BTreeMap<String, Arc<dyn Classify>>,
}

impl ContractReader {
    /// A reader with the contracts of the settings' providers.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let named = settings
            .providers()
            .filter_map(|provider| Some((provider.name().to_string(), Arc::clone(provider.contract()?))));
        Self {
            contracts: named.collect(),
            hooks: BTreeMap::new(),
        }
    }

    /// The same with a contract for a provider.
    #[must_use]
    pub fn with_contract(mut self, provider: &str, contract: Contract) -> Self {
        self.contracts.insert(provider.to_string(), Arc::new(contract));
        self
    }

    /// The same with a hook for a provider.
    #[must_use]
    pub fn with_classifier(mut self, provider: &str, hook: Arc<dyn Classify>) -> Self {
        self.hooks.insert(provider.to_string(), hook);
        self
    }
}

impl ReadResponse for ContractReader {
    fn read(&self, provider: &str, response: &Response<'_>) -> Reading {
        let contract = self.contracts.get(provider).map(AsRef::as_ref);
        let hook = self.hooks.get(provider).map(AsRef::as_ref);
        read(provider, contract, hook, response)
    }
}

/// Reads one response.
pub(crate) fn read(
    provider: &str,
    contract: Option<&Contract>,
    hook: Option<&dyn Classify>,
    response: &Response<'_>,
) -> Reading {
    if hook.is_none() && plain::says_nothing(contract, response) {
        let signal = Signal::new(provider, response.received_at).status(response.status.as_u16());
        return Reading::new(false, signal.reason(&reading::title(response.status)));
    }
    read_whole(provider, contract, hook, response)
}

/// The same, whatever the response is.
pub(super) fn read_whole(
    provider: &str,
    contract: Option<&Contract>,
    hook: Option<&dyn Classify>,
    response: &Response<'_>,
) -> Reading {
    let body = Body::new(response.body);
    let clock = ProviderClock::of(response.headers, response.received_at);
    let mut ignored = Vec::new();
    let ietf = ietf::buckets(response.headers, &clock, &mut ignored);
    let resets = reset_headers::buckets(contract, response.headers, &clock, &mut ignored);
    let reader = Reader {
        provider,
        contract,
        response,
        places: Places::new(response.headers, &body, clock, &ietf, &resets),
    };
    let reading = reader.read(hook, ignored);
    let by_ietf = reading.signal().parser() == Some(time::IETF);
    let of_others = by_ietf && time::refused_by(&ietf).is_some_and(|bucket| bucket.counts_others);
    reading.with_limits(limits(&ietf, &resets)).of_others(of_others)
}

/// The limits of requests: those of the `RateLimit` fields, and where they tell of requests, besides them only windows that the
/// contract knows.
fn limits(ietf: &[Bucket<'_>], resets: &[Bucket<'_>]) -> Vec<LimitState> {
    let told = tell_of_requests(ietf);
    let of_requests = ietf.iter().filter(|bucket| !bucket.counts_others);
    let others = resets.iter().filter(|bucket| !told || bucket.window.is_some());
    of_requests.chain(others).map(state).collect()
}

fn state(bucket: &Bucket<'_>) -> LimitState {
    LimitState {
        name: bucket.window.unwrap_or(&bucket.name).to_string(),
        limit: bucket.limit,
        remaining: bucket
            .remaining
            .or_else(|| Some(bucket.limit?.saturating_sub(bucket.used?))),
        resets_at: bucket.resets_at(),
    }
}

struct Reader<'a> {
    provider: &'a str,
    contract: Option<&'a Contract>,
    response: &'a Response<'a>,
    places: Places<'a>,
}

impl<'a> Reader<'a> {
    fn read(&self, hook: Option<&dyn Classify>, mut ignored: Vec<Ignored>) -> Reading {
        let status = self.response.status.as_u16();
        let hooked = hook
            .and_then(|hook| classify::ask(hook, self.response))
            .map(Ruled::from);
        if let Some(ruled) = hooked
            && let Some(reading) = self.by_rule(ruled, &mut ignored)
        {
            return reading.ignoring(ignored);
        }
        if let Some(contract) = self.contract {
            let rules = classify::rules(contract, status, self.response.headers, self.places.body);
            for ruled in rules {
                if let Some(reading) = self.by_rule(ruled, &mut ignored) {
                    return reading.ignoring(ignored);
                }
            }
        }
        self.by_looks(&mut ignored).ignoring(ignored)
    }

    /// What a rule makes of the response; none where it yields neither a kind nor a time for what is no 429.
    fn by_rule(&self, ruled: Ruled<'_>, ignored: &mut Vec<Ignored>) -> Option<Reading> {
        let window = ruled.reason.as_deref().and_then(|reason| self.contract?.window(reason));
        if !ruled.limited {
            let scopes = ruled.scopes;
            let hint = scopes.first().copied().unwrap_or_default();
            let why = ruled
                .reason
                .unwrap_or_else(|| "the provider's contract says that this is no limit".to_string());
            let signal = self.signal().kind(ruled.kind.unwrap_or_default()).scope_hint(hint);
            let told = if self.response.status.is_success() {
                None
            } else {
                self.advice(ignored)
            };
            let field = told.as_ref().map(|told| told.place.clone());
            let signal = told.map_or(signal.clone(), |told| told.named_in(signal));
            return Some(
                Reading::new(false, signal.reason(&why))
                    .told_by(field.as_deref())
                    .closing(scopes)
                    .having_executed(ruled.executed),
            );
        }
        let before = ignored.len();
        let said = self.said();
        let bucket = self.refused();
        let told = self.time_by_rule(&ruled.time, window, bucket, ignored);
        let kind = self.kind(ruled.kind, window, bucket, said);
        if kind == Kind::Unknown && told.is_none() && self.response.status.as_u16() != 429 {
            ignored.truncate(before);
            return None;
        }
        let scopes = if ruled.scopes.is_empty() {
            vec![self.scope(window, said)]
        } else {
            ruled.scopes
        };
        let hint = scopes.first().copied().unwrap_or_default();
        let mut signal = self.signal().kind(kind).scope_hint(hint);
        if let Some(code) = &ruled.code {
            signal = signal.code(&reading::shown(code));
        }
        let signal = self.tell(signal, told.as_ref(), ruled.reason.as_deref(), bucket, ignored);
        Some(
            Reading::new(true, signal)
                .told_by(told.as_ref().map(|told| &*told.place))
                .closing(scopes)
                .having_executed(ruled.executed),
        )
    }

    /// What the response looks like where no rule knows it.
    fn by_looks(&self, ignored: &mut Vec<Ignored>) -> Reading {
        let status = self.response.status.as_u16();
        if !matches!(status, 402 | 403 | 409 | 420 | 423 | 429 | 503) {
            return self.unlimited(Kind::Unknown, ScopeHint::Unknown, ignored);
        }
        let said = self.said();
        let mut unused = Vec::new();
        let own = self.places.by(&time::ORDER[..2], &mut unused);
        let own = own.or_else(|| self.places.by(&time::ORDER[2..3], &mut unused));
        let seen = Seen {
            headers: self.response.headers,
            body: self.places.body,
            said,
            spent: self.refused().is_some(),
            names_moment: own.is_some(),
            by_contract: self.contract.is_some(),
        };
        match seen.looks(status) {
            Looks::Otherwise(kind, scope) => self.unlimited(kind, scope, ignored),
            Looks::EdgeLimited => {
                let told = self.places.by(&time::ORDER[..2], ignored);
                let told = told.or_else(|| self.places.by(&time::ORDER[2..3], ignored));
                let signal = self.signal().kind(Kind::Unknown).scope_hint(ScopeHint::Global);
                let why = Some("a limit of the proxy before the provider");
                Reading::new(true, self.tell(signal, told.as_ref(), why, None, ignored))
                    .told_by(told.as_ref().map(|told| &*told.place))
            }
            Looks::Limited => {
                let bucket = self.refused();
                let told = self.time_by_parsers(None, bucket, ignored);
                let kind = self.kind(None, None, bucket, said);
                let window = bucket.and_then(|bucket| self.contract?.window(bucket.window?));
                let signal = self.signal().kind(kind).scope_hint(self.scope(window, said));
                Reading::new(true, self.tell(signal, told.as_ref(), None, bucket, ignored))
                    .told_by(told.as_ref().map(|told| &*told.place))
            }
        }
    }

    fn unlimited(&self, kind: Kind, scope: ScopeHint, ignored: &mut Vec<Ignored>) -> Reading {
        let signal = self.signal().kind(kind).scope_hint(scope);
        let told = self.advice(ignored);
        let title = reading::title(self.response.status);
        let field = told.as_ref().map(|told| told.place.clone());
        let signal = match told {
            Some(told) => told.onto(signal, &title),
            None => signal.reason(&title),
        };
        Reading::new(false, signal).told_by(field.as_deref())
    }

    /// What a response that is no refusal asks for the calls that follow: a pause by `Retry-After`, and on a success the reset
    /// of a limit that this call has used up.
    fn advice(&self, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        let asked = self.places.by_retry_after(true, true, ignored);
        if asked.is_some() || !self.response.status.is_success() {
            return asked;
        }
        let of_requests = |bucket: &&Bucket<'_>| !bucket.counts_others;
        let spent = |buckets: &[Bucket<'_>]| {
            let refused = time::refused_by(buckets).filter(of_requests);
            refused.is_some_and(|bucket| bucket.is_exhausted() == Some(true))
        };
        if spent(self.places.ietf) {
            return self.places.by(&time::ORDER[3..], ignored);
        }
        if !tell_of_requests(self.places.ietf) && spent(self.places.resets) {
            let of_bytes = self.places.ietf.iter().any(|bucket| bucket.counts_others);
            let parsers = if of_bytes { &time::ORDER[4..] } else { &time::ORDER[3..] };
            return self.places.by(parsers, ignored);
        }
        None
    }

    fn signal(&self) -> Signal {
        Signal::new(self.provider, self.response.received_at).status(self.response.status.as_u16())
    }

    fn said(&self) -> Said {
        self.places.body.said()
    }

    /// The limit of which nothing remains, by all headers.
    fn refused(&self) -> Option<&Bucket<'_>> {
        let exhausted = |buckets| time::refused_by(buckets).filter(|bucket| bucket.is_exhausted() == Some(true));
        let (ietf, other) = (exhausted(self.places.ietf), exhausted(self.places.resets));
        match (ietf, other) {
            (Some(ietf), Some(other)) if severity(other.kind) > severity(ietf.kind) || ietf.kind == Kind::Unknown => {
                Some(other)
            }
            (Some(ietf), _) => Some(ietf),
            (None, other) => other,
        }
    }

    fn time_by_rule(
        &self,
        time: &RuledTime<'_>,
        window: Option<&Window>,
        bucket: Option<&Bucket<'_>>,
        ignored: &mut Vec<Ignored>,
    ) -> Option<Told<'a>> {
        match time {
            RuledTime::Said(at) => Some(Told {
                found: Found {
                    at: (*at).max(self.response.received_at),
                    interpretation: Interpretation::Stated,
                    uncertainty: Duration::ZERO,
                    saturated: false,
                },
                source: Source::Classify,
                parser: "hook",
                place: "a classifier".into(),
                raw: at.to_string().into(),
            }),
            RuledTime::By(Time::None) => None,
            RuledTime::By(Time::Window) => {
                self.not_before_retry_after(window.and_then(|window| self.by_window(window)), ignored)
            }
            RuledTime::By(Time::Delay(ms)) => self.not_before_retry_after(Some(self.pause(*ms)), ignored),
            RuledTime::By(Time::At(places)) => {
                let found = places
                    .iter()
                    .filter_map(|place| self.places.at(place, ignored))
                    .max_by_key(|told| told.found.at);
                found.or_else(|| self.time_by_parsers(window, bucket, ignored))
            }
            RuledTime::By(Time::Parsers) | RuledTime::Parsers => self.time_by_parsers(window, bucket, ignored),
        }
    }

    /// The parsers in their order, then what the contract computes.
    fn time_by_parsers(
        &self,
        window: Option<&Window>,
        bucket: Option<&Bucket<'_>>,
        ignored: &mut Vec<Ignored>,
    ) -> Option<Told<'a>> {
        let parsers = self
            .contract
            .and_then(|contract| contract.parsers.as_deref())
            .unwrap_or(&time::ORDER);
        if let Some(told) = self.places.by(parsers, ignored) {
            return Some(told);
        }
        let window = window.or_else(|| bucket.and_then(|bucket| self.contract?.window(bucket.window?)));
        let computed = window.and_then(|window| self.by_window(window));
        // A long window whose end nobody knows is not cut short by the pause that a burst asks for.
        let long = window.is_some_and(|window| severity(window.limit_kind()) > 0)
            || bucket.is_some_and(|bucket| severity(bucket.kind) > 0)
            || severity(self.said().kind()) > 0;
        let pause = self
            .contract
            .and_then(|contract| contract.min_retry_after_ms)
            .filter(|_| !long || computed.is_some());
        [computed, pause.map(|ms| self.pause(ms))]
            .into_iter()
            .flatten()
            .max_by_key(|told| told.found.at)
    }

    fn not_before_retry_after(&self, computed: Option<Told<'a>>, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        let told = self.places.by_retry_after(true, true, ignored);
        match (computed, told) {
            (Some(computed), Some(told)) if told.found.at <= computed.found.at => {
                ignored.push(Ignored::new(
                    &told.place,
                    &told.raw,
                    "is earlier than the limit's own end",
                ));
                Some(computed)
            }
            (computed, None) => computed,
            (_, told) => told,
        }
    }

    fn by_window(&self, window: &Window) -> Option<Told<'a>> {
        let length = window.per_ms.map(Duration::from_millis);
        // A calendar is read by the provider's clock, like its dates.
        let told = window.resets?.next(length, self.places.clock.now())?;
        let mut found = self.places.clock.moment(told, Interpretation::Computed);
        if window.resets == Some(crate::Resets::Rolling) {
            found = self.places.clock.span(window.per_ms?, Interpretation::Computed);
        }
        Some(Told {
            found,
            source: Source::Contract,
            parser: "window",
            place: "the contract's window".into(),
            raw: window.name.clone().into(),
        })
    }

    fn pause(&self, ms: u64) -> Told<'a> {
        Told {
            found: self.places.clock.span(ms, Interpretation::Computed),
            source: Source::Contract,
            parser: "documented-pause",
            place: "the pause that the provider's documentation asks for".into(),
            raw: format!("{ms} ms").into(),
        }
    }

    fn kind(&self, ruled: Option<Kind>, window: Option<&Window>, bucket: Option<&Bucket<'_>>, said: Said) -> Kind {
        let known = |kind: Kind| Some(kind).filter(|kind| *kind != Kind::Unknown);
        ruled
            .or_else(|| known(window?.limit_kind()))
            .or_else(|| known(bucket?.kind))
            .or_else(|| known(said.kind()))
            .or_else(|| self.contract?.kind)
            .unwrap_or_default()
    }

    fn scope(&self, window: Option<&Window>, said: Said) -> ScopeHint {
        let stated = window.and_then(|window| window.scope);
        let by_contract = || self.contract.and_then(|contract| contract.scope).map(LimitScope::hint);
        stated.or_else(by_contract).unwrap_or_else(|| said.scope())
    }

    /// The moment and the words.
    fn tell(
        &self,
        signal: Signal,
        told: Option<&Told<'_>>,
        reason: Option<&str>,
        bucket: Option<&Bucket<'_>>,
        ignored: &[Ignored],
    ) -> Signal {
        let title = reading::title(self.response.status);
        let window = bucket.and_then(|bucket| bucket.window);
        match (told, reason.or(window)) {
            (Some(told), Some(reason)) => told.named_in(signal).reason(reason),
            (Some(told), None) => told.onto(signal, &title),
            (None, Some(reason)) => invalid(signal, ignored).reason(reason),
            (None, None) => match ignored.iter().find(|ignored| ignored.field().contains("retry")) {
                Some(first) => first.onto(signal, &title),
                None => signal.reason(&[&*title, ", without a time"].concat()),
            },
        }
    }
}

/// A signal that has seen what could not be believed.
fn invalid(signal: Signal, ignored: &[Ignored]) -> Signal {
    match ignored.iter().find(|ignored| ignored.field().contains("retry")) {
        Some(first) => signal.read_by(Source::None, first.field(), first.raw(), Interpretation::Invalid),
        None => signal,
    }
}

impl LimitScope {
    /// Whom a limit of this scope concerns.
    #[must_use]
    pub fn hint(self) -> ScopeHint {
        match self {
            Self::Credential => ScopeHint::User,
            Self::Entity => ScopeHint::Account,
            Self::App => ScopeHint::App,
            Self::Function => ScopeHint::Endpoint,
            Self::Custom => ScopeHint::Unknown,
        }
    }
}
