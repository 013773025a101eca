//! One budget for each scope.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, PoisonError, RwLock},
};

use adjourn_core::ScopeKey;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{NoTurn, RateBudget, disabled::is_disabled, terms::Terms};
use crate::{Credential, OAuth2, Provider, Settings, token};

/// Enough that two threads seldom meet in one.
const SHARDS: usize = 64;
/// A shard looks for idle scopes when it has grown to this many, and then each time that it has doubled.
const FIRST_SWEEP: usize = 64;

/// One budget for each scope of each provider, made at its first use and forgotten once it is idle: when nothing of it is spent, paused,
/// throttled, waiting or in flight, so that a new one would know as much. Cheap to clone; clones share their budgets.
///
/// A scope costs less than 100 bytes besides its key.
#[derive(Clone, Debug)]
pub struct Budgets {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// By the providers' names, and by the scopes of their token endpoints.
    providers: BTreeMap<Box<str>, Arc<Terms>>,
    others: Arc<Terms>,
    seed: Seed,
    shards: [RwLock<Shard>; SHARDS],
}

#[derive(Debug)]
struct Shard {
    /// By the hashes of their keys.
    scopes: HashTable<RateBudget>,
    next_sweep: usize,
}

/// Keys come out of jobs: whoever chooses them must not know where they fall.
#[derive(Clone, Copy, Debug)]
struct Seed(u64);

impl Seed {
    fn hash(self, key: &str) -> u64 {
        xxh3_64_with_seed(key.as_bytes(), self.0)
    }

    fn of(self, budget: &RateBudget) -> u64 {
        self.hash(&budget.state.key)
    }
}

impl Budgets {
    /// The budgets of the settings' providers: `rate`, `lanes` and `max_in_flight`, of which the last may come out of the provider's
    /// contract. A scope of a provider that the settings do not know is not limited; what its answers say holds all the same. Nor is a
    /// provider's token endpoint, `NAME:token`, by what limits its API: it has the `rate` of `credential.oauth2`, if any.
    ///
    /// For the lanes, a call's path is the request's or the one below `base_url`, as jobs have it.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let terms = |provider: &Provider| {
            let api = (Box::from(provider.name()), Arc::new(terms_of(provider)));
            let token = token::scope(provider.name());
            [api, (Box::from(token.as_str()), Arc::new(terms_of_tokens(provider)))]
        };
        Self::with(settings.providers().flat_map(terms).collect(), Terms::new(None))
    }

    /// A budget like `one` for each scope, whoever the provider is; nothing is shared with `one` itself.
    #[must_use]
    pub fn like(one: &RateBudget) -> Self {
        Self::with(BTreeMap::new(), Terms::clone(&one.state.terms))
    }

    fn with(providers: BTreeMap<Box<str>, Arc<Terms>>, others: Terms) -> Self {
        let shard = || {
            RwLock::new(Shard {
                scopes: HashTable::new(),
                next_sweep: FIRST_SWEEP,
            })
        };
        Self {
            inner: Arc::new(Inner {
                providers,
                others: Arc::new(Terms {
                    of_scopes: true,
                    ..others
                }),
                seed: Seed(RandomState::new().hash_one(0_u8)),
                shards: std::array::from_fn(|_| shard()),
            }),
        }
    }

    /// The budget of a scope.
    #[must_use]
    pub fn budget(&self, scope: &ScopeKey) -> RateBudget {
        self.at(scope.as_str(), RateBudget::clone)
    }

    /// [`RateBudget::check`] of a scope's budget.
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, scope: &ScopeKey, path: &str) -> Result<(), NoTurn> {
        if is_disabled() {
            return Ok(());
        }
        self.at(scope.as_str(), |budget| budget.check(path))
    }

    /// How many scopes are remembered.
    #[must_use]
    pub fn scopes(&self) -> usize {
        let shards = self.inner.shards.iter();
        shards
            .map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).scopes.len())
            .sum()
    }

    /// Forgets idle scopes now. It happens by itself as scopes come.
    pub fn forget_idle(&self) {
        for shard in &self.inner.shards {
            shard
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .sweep(self.inner.seed);
        }
    }

    /// Does something with a scope's budget.
    fn at<T>(&self, key: &str, with: impl Fn(&RateBudget) -> T) -> T {
        let inner = &*self.inner;
        let hash = inner.seed.hash(key);
        let is_it = |budget: &RateBudget| *budget.state.key == *key;
        let Some(shard) = inner.shard(hash) else {
            return with(&inner.new_budget(key));
        };
        if let Some(budget) = shard
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .scopes
            .find(hash, is_it)
        {
            return with(budget);
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = shard.scopes.find(hash, is_it) {
            return with(budget);
        }
        if shard.scopes.len() >= shard.next_sweep {
            shard.sweep(inner.seed);
        }
        let budget = inner.new_budget(key);
        let answer = with(&budget);
        shard.scopes.insert_unique(hash, budget, |budget| inner.seed.of(budget));
        answer
    }
}

impl Inner {
    /// The table takes the lowest and the highest bits of the same hash; these are between them.
    fn shard(&self, hash: u64) -> Option<&RwLock<Shard>> {
        let place = usize::try_from((hash >> 32) & 0xFFFF).unwrap_or_default();
        self.shards.get(place % SHARDS)
    }

    fn new_budget(&self, key: &str) -> RateBudget {
        RateBudget::keyed(Box::from(key), self.terms(key))
    }

    fn terms(&self, key: &str) -> Arc<Terms> {
        let provider = key.split_once(':').map_or(key, |(provider, _)| provider);
        let known = self.providers.get(key).or_else(|| self.providers.get(provider));
        Arc::clone(known.unwrap_or(&self.others))
    }
}

impl Shard {
    fn sweep(&mut self, seed: Seed) {
        self.scopes.retain(|budget| {
            let state = &budget.state;
            // Nobody gets hold of it meanwhile: that takes this shard's lock.
            Arc::strong_count(state) > 1 || !state.is_idle(state.now())
        });
        self.scopes
            .shrink_to(self.scopes.len().saturating_mul(2), |budget| seed.of(budget));
        self.next_sweep = self.scopes.len().saturating_mul(2).max(FIRST_SWEEP);
    }
}

/// What a provider's settings say.
fn terms_of(provider: &Provider) -> Terms {
    let contract = provider.contract().cloned();
    let by_contract = contract.as_ref().and_then(|contract| contract.max_concurrency);
    Terms {
        max_in_flight: provider.max_in_flight().or(by_contract),
        rules: provider.lanes().to_vec(),
        base: Box::from(provider.base_path()),
        provider: Box::from(provider.name()),
        contract,
        of_scopes: true,
        ..Terms::new(provider.rate())
    }
}

/// What they say of its token endpoint.
fn terms_of_tokens(provider: &Provider) -> Terms {
    let oauth2 = provider.credential().and_then(Credential::oauth2);
    Terms {
        provider: Box::from(provider.name()),
        contract: provider.contract().cloned(),
        of_scopes: true,
        ..Terms::new(oauth2.and_then(OAuth2::rate))
    }
}
