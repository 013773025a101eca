//! One budget for each scope.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashSet},
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Arc, PoisonError, RwLock},
};

use adjourn_core::ScopeKey;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{NoTurn, RateBudget, disabled::is_disabled, terms::Terms};
use crate::{Provider, Settings};

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
    providers: BTreeMap<Box<str>, Arc<Terms>>,
    others: Arc<Terms>,
    seed: Seed,
    shards: Vec<RwLock<Shard>>,
}

#[derive(Debug)]
struct Shard {
    scopes: HashSet<ByKey, Seed>,
    next_sweep: usize,
}

/// A budget that is looked up by its scope.
#[derive(Debug)]
struct ByKey(RateBudget);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        &self.0.state.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.state.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.state.key == other.0.state.key
    }
}

impl Eq for ByKey {}

/// Hashes keys: a short text at once, which the streaming hashers take much longer for.
#[derive(Clone, Copy, Debug)]
struct Seed(u64);

impl BuildHasher for Seed {
    type Hasher = KeyHash;

    fn build_hasher(&self) -> KeyHash {
        KeyHash(self.0)
    }
}

#[derive(Debug)]
struct KeyHash(u64);

impl Hasher for KeyHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u8(&mut self, _end_of_text: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Budgets {
    /// The budgets of the settings' providers: `rate`, `lanes` and `max_in_flight`, of which the last may come out of the provider's
    /// contract. A scope of a provider that the settings do not know is not limited; what its answers say holds all the same.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let terms = |provider: &Provider| (Box::from(provider.name()), Arc::new(terms_of(provider)));
        Self::with(settings.providers().map(terms).collect(), Terms::new(None))
    }

    /// A budget like `one` for each scope, whoever the provider is; nothing is shared with `one` itself.
    #[must_use]
    pub fn like(one: &RateBudget) -> Self {
        Self::with(BTreeMap::new(), Terms::clone(&one.state.terms))
    }

    fn with(providers: BTreeMap<Box<str>, Arc<Terms>>, others: Terms) -> Self {
        // Keys come out of jobs: whoever chooses them must not know where they fall.
        let seed = Seed(RandomState::new().hash_one(0_u8));
        let shard = || {
            RwLock::new(Shard {
                scopes: HashSet::with_hasher(seed),
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
                seed,
                shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
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
            shard.write().unwrap_or_else(PoisonError::into_inner).sweep();
        }
    }

    /// Does something with a scope's budget.
    fn at<T>(&self, key: &str, with: impl Fn(&RateBudget) -> T) -> T {
        let inner = &*self.inner;
        let mask = u64::try_from(SHARDS).unwrap_or(1).saturating_sub(1);
        // The map takes the lowest and the highest bits of the same hash.
        let place = (inner.seed.hash_one(key) >> 32) & mask;
        let place = usize::try_from(place).unwrap_or_default();
        let Some(shard) = inner.shards.get(place) else {
            return with(&RateBudget::keyed(Box::from(key), inner.terms(key)));
        };
        if let Some(ByKey(budget)) = shard.read().unwrap_or_else(PoisonError::into_inner).scopes.get(key) {
            return with(budget);
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ByKey(budget)) = shard.scopes.get(key) {
            return with(budget);
        }
        if shard.scopes.len() >= shard.next_sweep {
            shard.sweep();
        }
        let budget = RateBudget::keyed(Box::from(key), inner.terms(key));
        let answer = with(&budget);
        shard.scopes.insert(ByKey(budget));
        answer
    }
}

impl Inner {
    fn terms(&self, key: &str) -> Arc<Terms> {
        let provider = key.split_once(':').map_or(key, |(provider, _)| provider);
        Arc::clone(self.providers.get(provider).unwrap_or(&self.others))
    }
}

impl Shard {
    fn sweep(&mut self) {
        self.scopes.retain(|ByKey(budget)| {
            let state = &budget.state;
            // Nobody gets hold of it meanwhile: that takes this shard's lock.
            Arc::strong_count(state) > 1 || !state.is_idle(state.now())
        });
        self.scopes.shrink_to(self.scopes.len().saturating_mul(2));
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
        provider: Box::from(provider.name()),
        contract,
        of_scopes: true,
        ..Terms::new(provider.rate())
    }
}
