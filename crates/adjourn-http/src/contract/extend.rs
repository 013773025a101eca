//! A contract that starts from another one.

use super::Contract;

impl Contract {
    /// This contract over `base`: what it states counts, the rest is the base's. Windows, operations and hints replace those of
    /// their name, rules stand before the base's; every other list that it states replaces the base's.
    #[must_use]
    pub fn over(self, base: &Self) -> Self {
        let base = base.clone();
        Self {
            name: self.name.or(base.name),
            title: self.title.or(base.title),
            aliases: stated(self.aliases, base.aliases),
            source: self.source.or(base.source),
            read_on: self.read_on.or(base.read_on),
            basis: self.basis.or(base.basis),
            scope: self.scope.or(base.scope),
            kind: self.kind.or(base.kind),
            limits: stated(self.limits, base.limits),
            signals: stated(self.signals, base.signals),
            idempotency_window_ms: self.idempotency_window_ms.or(base.idempotency_window_ms),
            max_concurrency: self.max_concurrency.or(base.max_concurrency),
            min_retry_after_ms: self.min_retry_after_ms.or(base.min_retry_after_ms),
            parsers: self.parsers.or(base.parsers),
            windows: by_name(self.windows, base.windows, |window| &window.name),
            operations: by_name(self.operations, base.operations, |operation| &operation.name),
            costs: stated(self.costs, base.costs),
            headers: stated(self.headers, base.headers),
            classify: self.classify.into_iter().chain(base.classify).collect(),
            user_hints: base.user_hints.into_iter().chain(self.user_hints).collect(),
            cases: stated(self.cases, base.cases),
        }
    }
}

fn stated<T>(own: Vec<T>, base: Vec<T>) -> Vec<T> {
    if own.is_empty() { base } else { own }
}

fn by_name<T>(own: Vec<T>, base: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    let kept: Vec<T> = base
        .into_iter()
        .filter(|old| !own.iter().any(|new| name(new) == name(old)))
        .collect();
    own.into_iter().chain(kept).collect()
}
