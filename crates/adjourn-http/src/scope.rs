//! Which limit a job shares, and which scopes a refusal closes.

use adjourn_core::{ScopeHint, ScopeKey, Signal};

use crate::{Contract, HttpJob, LimitScope, Operation, job::Scope};

/// The key of the limit that a job shares: what the job names, otherwise the contract's scope; where that needs an id and
/// the job has none, the whole provider. A class of calls with a limit of its own has a key of its own.
pub(crate) fn of_job(job: &HttpJob, contract: Option<&Contract>) -> ScopeKey {
    let Some(contract) = contract else {
        return job.scope_key();
    };
    if let Some(class) = class(job, contract) {
        let id = match &job.scope {
            None => class.to_string(),
            Some(Scope::Entity(id) | Scope::Credential(id) | Scope::Custom(id)) => format!("{class}:{id}"),
        };
        return ScopeKey::scoped(&job.provider, "function", &id);
    }
    match (&job.scope, contract.scope) {
        (None, Some(LimitScope::App)) => ScopeKey::app(&job.provider),
        (Some(_), _)
        | (
            None,
            None | Some(LimitScope::Credential | LimitScope::Entity | LimitScope::Function | LimitScope::Custom),
        ) => job.scope_key(),
    }
}

/// The key of a lane: calls that have a rate of their own by the settings, for each scope that the job names.
pub(crate) fn of_lane(job: &HttpJob, lane: &str) -> ScopeKey {
    let id = match &job.scope {
        None => lane.to_string(),
        Some(Scope::Entity(id) | Scope::Credential(id) | Scope::Custom(id)) => format!("{lane}:{id}"),
    };
    ScopeKey::scoped(&job.provider, "lane", &id)
}

/// A refusal with the keys that it closes: the job's own scope, unless it concerns one endpoint alone, and further ones where
/// it concerns more than the job's scope.
pub(crate) fn closing(signal: Signal, hints: &[ScopeHint], job: &HttpJob, contract: Option<&Contract>) -> Signal {
    let own = of_job(job, contract);
    // Under a contract that limits by class, the job's own scope is the class already, or all that is known of it.
    let by_class =
        contract.is_some_and(|contract| contract.scope == Some(LimitScope::Function) || class(job, contract).is_some());
    let signal = if hints == [ScopeHint::Endpoint] && !by_class {
        let call = format!("{} {}", job.method, job.path.as_str());
        signal.scope_key(ScopeKey::scoped(&job.provider, "function", &call))
    } else {
        // Without a key of its own it closes the job's scope.
        signal
    };
    hints.iter().fold(signal, |signal, hint| {
        let wider = match (hint, &job.scope) {
            (ScopeHint::App | ScopeHint::Global, _) => Some(ScopeKey::provider(&job.provider)),
            (ScopeHint::Account, Some(Scope::Entity(_))) | (ScopeHint::User, Some(Scope::Credential(_))) => {
                Some(job.scope_key())
            }
            (ScopeHint::Account | ScopeHint::User | ScopeHint::Endpoint | ScopeHint::Unknown, _) => None,
        };
        match wider.filter(|key| *key != own) {
            Some(key) => signal.also_closes(key),
            None => signal,
        }
    })
}

/// The class of calls that a job belongs to, where that has a limit of its own: by the operation whose limit it shares.
fn class<'c>(job: &HttpJob, contract: &'c Contract) -> Option<&'c str> {
    let mut operation = contract
        .operations
        .iter()
        .find(|operation| operation.takes(job.method.as_str(), job.path.as_str()))?;
    // A chain of sharers that leads back to itself ends after as many steps as there are operations.
    for _ in 0..contract.operations.len() {
        let Some(shared) = operation.shares.as_deref() else {
            break;
        };
        let Some(next) = contract.operations.iter().find(|other| other.name == shared) else {
            break;
        };
        operation = next;
    }
    Some(&operation.name)
}

impl Operation {
    /// Whether a call belongs to it: its method, and the beginning of its path in whole segments.
    #[must_use]
    pub fn takes(&self, method: &str, path: &str) -> bool {
        if !self.methods.is_empty() && !self.methods.iter().any(|one| one == method) {
            return false;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut asked = path.trim_start_matches('/').split('/');
        let wanted = self.path.trim_matches('/');
        wanted.is_empty()
            || wanted.split('/').all(|segment| {
                asked
                    .next()
                    .is_some_and(|part| segment == "*" && !part.is_empty() || segment == part)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = r#"
        scope = "entity"
        [[operations]]
        name = "export"
        methods = ["POST"]
        path = "/exports"
        [[operations]]
        name = "import"
        path = "/accounts/*/import"
        shares = "export"
    "#;

    fn contract(text: &str) -> Contract {
        Contract::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn job(method: &str, path: &str, scope: &str) -> HttpJob {
        let text = format!(r#"{{"provider":"acme","method":"{method}","path":"{path}"{scope}}}"#);
        HttpJob::parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    const ENTITY: &str = r#","scope":{"entity":"7"}"#;

    #[test]
    fn the_key_of_a_job() {
        let by_class = contract(CONTRACT);
        let app = contract("scope = \"app\"");
        for (contract, job, expected) in [
            (&by_class, job("GET", "/orders", ""), "acme"),
            (&by_class, job("GET", "/orders", ENTITY), "acme:entity:7"),
            (&by_class, job("POST", "/exports", ""), "acme:function:export"),
            (
                &by_class,
                job("POST", "/exports/7/start", ENTITY),
                "acme:function:export:7",
            ),
            (&by_class, job("POST", "/exportsall", ""), "acme"),
            (&by_class, job("GET", "/exports", ""), "acme"),
            (&by_class, job("PUT", "/accounts/3/import", ""), "acme:function:export"),
            (&by_class, job("PUT", "/accounts/import", ""), "acme"),
            (&app, job("GET", "/", ""), "acme:app"),
            (&app, job("GET", "/", ENTITY), "acme:entity:7"),
        ] {
            assert_eq!(
                of_job(&job, Some(contract)).as_str(),
                expected,
                "{} {}",
                job.method,
                job.path.as_str()
            );
        }
        assert_eq!(of_job(&job("GET", "/", ENTITY), None).as_str(), "acme:entity:7");
    }

    #[test]
    fn what_a_refusal_closes() {
        let by_class = contract(CONTRACT);
        for (job, hints, own, further) in [
            (job("GET", "/a", ENTITY), vec![ScopeHint::Unknown], "", vec![]),
            (
                job("GET", "/a", ENTITY),
                vec![ScopeHint::Endpoint],
                "acme:function:GET /a",
                vec![],
            ),
            (job("POST", "/exports", ENTITY), vec![ScopeHint::Endpoint], "", vec![]),
            (job("GET", "/a", ENTITY), vec![ScopeHint::App], "", vec!["acme"]),
            (
                job("GET", "/a", ENTITY),
                vec![ScopeHint::Account, ScopeHint::Global],
                "",
                vec!["acme"],
            ),
            (
                job("POST", "/exports", ENTITY),
                vec![ScopeHint::Account],
                "",
                vec!["acme:entity:7"],
            ),
            (job("GET", "/a", ""), vec![ScopeHint::App], "", vec![]),
        ] {
            let signal = closing(
                Signal::new("acme", adjourn_core::Timestamp::EPOCH),
                &hints,
                &job,
                Some(&by_class),
            );
            let closed: Vec<&str> = signal.closes_too().iter().map(ScopeKey::as_str).collect();
            assert_eq!(
                (signal.closes().map(ScopeKey::as_str).unwrap_or_default(), closed),
                (own, further),
                "{hints:?}"
            );
        }
    }

    #[test]
    fn operations_that_share_in_a_ring_end() {
        let ring = contract(
            "[[operations]]\nname = \"a\"\npath = \"/\"\nshares = \"b\"\n[[operations]]\nname = \"b\"\npath = \"/b\"\nshares = \"a\"",
        );
        assert!(
            of_job(&job("GET", "/", ""), Some(&ring))
                .as_str()
                .starts_with("acme:function:")
        );
    }
}
