//! A provider of the catalogue as JSON. What is not known is null, an empty list, or the word unknown.

use std::collections::BTreeMap;

use adjourn_core::{Kind, ScopeHint};
use adjourn_http::{Basis, Contract, Cost, LimitHeaders, Operation, Parser, Pointer, Resets, Unit, UserHint};
use serde::Serialize;

use super::scope_word;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Facts<'c> {
    name: &'c str,
    title: Option<&'c str>,
    aliases: &'c [String],
    source: Option<&'c str>,
    read_on: Option<&'c str>,
    basis: Option<Basis>,
    scope: &'static str,
    kind: Kind,
    limits: &'c [String],
    signals: &'c [String],
    windows: Vec<WindowFacts<'c>>,
    operations: Vec<OperationFacts<'c>>,
    costs: Vec<CostFacts<'c>>,
    headers: Vec<HeaderFacts<'c>>,
    parsers: Option<&'c [Parser]>,
    idempotency_window_ms: Option<u64>,
    max_concurrency: Option<u32>,
    min_retry_after_ms: Option<u64>,
    user_hints: &'c BTreeMap<String, UserHint>,
    rules: usize,
    cases: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WindowFacts<'c> {
    name: &'c str,
    limit: Option<u64>,
    per_ms: Option<u64>,
    resets: Option<Resets>,
    kind: Kind,
    scope: Option<ScopeHint>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationFacts<'c> {
    name: &'c str,
    methods: &'c [String],
    path: &'c str,
    window: Option<&'c str>,
    shares: Option<&'c str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CostFacts<'c> {
    operation: Option<&'c str>,
    points: Option<u64>,
    field: Option<&'c Pointer>,
    header: Option<&'c str>,
    window: Option<&'c str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderFacts<'c> {
    limit: Option<&'c str>,
    remaining: Option<&'c str>,
    used: Option<&'c str>,
    reset: Option<&'c str>,
    unit: Unit,
    windows: &'c [String],
}

impl<'c> Facts<'c> {
    pub(crate) fn of(name: &'c str, contract: &'c Contract) -> Self {
        Self {
            name,
            title: contract.title.as_deref(),
            aliases: &contract.aliases,
            source: contract.source.as_deref(),
            read_on: contract.read_on.as_deref(),
            basis: contract.basis,
            scope: scope_word(contract.scope),
            kind: contract.kind.unwrap_or_default(),
            limits: &contract.limits,
            signals: &contract.signals,
            windows: contract
                .windows
                .iter()
                .map(|window| WindowFacts {
                    name: &window.name,
                    limit: window.limit,
                    per_ms: window.per_ms,
                    resets: window.resets,
                    kind: window.limit_kind(),
                    scope: window.scope,
                })
                .collect(),
            operations: contract.operations.iter().map(operation).collect(),
            costs: contract.costs.iter().map(cost).collect(),
            headers: contract.headers.iter().map(header).collect(),
            parsers: contract.parsers.as_deref(),
            idempotency_window_ms: contract.idempotency_window_ms,
            max_concurrency: contract.max_concurrency,
            min_retry_after_ms: contract.min_retry_after_ms,
            user_hints: &contract.user_hints,
            rules: contract.classify.len(),
            cases: contract.cases.len(),
        }
    }
}

fn operation(operation: &Operation) -> OperationFacts<'_> {
    OperationFacts {
        name: &operation.name,
        methods: &operation.methods,
        path: &operation.path,
        window: operation.window.as_deref(),
        shares: operation.shares.as_deref(),
    }
}

fn cost(cost: &Cost) -> CostFacts<'_> {
    CostFacts {
        operation: cost.operation.as_deref(),
        points: cost.points,
        field: cost.field.as_ref(),
        header: cost.header.as_deref(),
        window: cost.window.as_deref(),
    }
}

fn header(headers: &LimitHeaders) -> HeaderFacts<'_> {
    HeaderFacts {
        limit: headers.limit.as_deref(),
        remaining: headers.remaining.as_deref(),
        used: headers.used.as_deref(),
        reset: headers.reset.as_deref(),
        unit: headers.unit,
        windows: &headers.windows,
    }
}
