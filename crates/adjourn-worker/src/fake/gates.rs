//! A gate store in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use adjourn_core::{ScopeKey, Timestamp};
use async_trait::async_trait;

use super::{
    faults::{Faults, Process},
    lock,
};
use crate::port::{Closing, FoundPaceNote, GateStore, PortError};

/// Closed gates that several workers share. Its clones are the same store.
#[derive(Clone, Debug)]
pub struct FakeGateStore {
    closings: Arc<Mutex<BTreeMap<ScopeKey, Closing>>>,
    notes: Arc<Mutex<Vec<Vec<FoundPaceNote>>>>,
    process: Process,
}

impl Default for FakeGateStore {
    fn default() -> Self {
        Self {
            closings: Arc::default(),
            notes: Arc::default(),
            process: Faults::none().process(),
        }
    }
}

impl FakeGateStore {
    /// The same store as this process uses it.
    #[must_use]
    pub fn used_by(&self, process: &Process) -> Self {
        Self {
            process: process.clone(),
            ..self.clone()
        }
    }

    /// What was closed, until the latest moment of each scope.
    #[must_use]
    pub fn closings(&self) -> Vec<Closing> {
        lock(&self.closings).values().cloned().collect()
    }

    /// The found paces that were written down, write by write.
    #[must_use]
    pub fn notes(&self) -> Vec<Vec<FoundPaceNote>> {
        lock(&self.notes).clone()
    }
}

#[async_trait]
impl GateStore for FakeGateStore {
    async fn close(&self, closings: &[Closing]) -> Result<(), PortError> {
        self.process
            .call("gates.close", || {
                let mut stored = lock(&self.closings);
                for closing in closings {
                    let known = stored.get(&closing.scope).map(|known| known.until);
                    if known.is_none_or(|known| known < closing.until) {
                        stored.insert(closing.scope.clone(), closing.clone());
                    }
                }
            })
            .await
    }

    async fn closed(&self, scopes: &[ScopeKey]) -> Result<Vec<Option<(Timestamp, String)>>, PortError> {
        self.process
            .call("gates.read", || {
                let stored = lock(&self.closings);
                scopes
                    .iter()
                    .map(|scope| stored.get(scope).map(|closing| (closing.until, closing.reason.clone())))
                    .collect()
            })
            .await
    }

    async fn note_paces(&self, paces: &[FoundPaceNote]) -> Result<(), PortError> {
        self.process
            .call("gates.note", || lock(&self.notes).push(paces.to_vec()))
            .await
    }
}
