//! Batch calls: splitting by number and bytes, accounting for every entry, and how many run at a time.

use std::{collections::BTreeMap, future::Future, ops::Range, sync::Arc};

use tokio::{sync::Semaphore, task::JoinSet};
use tracing::Instrument as _;

use crate::failure::Failure;

/// The most entries of a batch call (SQS API, SendMessageBatch).
pub(crate) const MAX_ENTRIES: usize = 10;

/// Cuts entries of these sizes, in their order, into batches of at most ten entries and `max_bytes` in all. An entry
/// that is too big on its own makes a batch alone, for the service to refuse.
pub(crate) fn split(sizes: &[usize], max_bytes: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0_usize);
    for (at, size) in sizes.iter().enumerate() {
        if at > start && (at - start == MAX_ENTRIES || bytes.saturating_add(*size) > max_bytes) {
            batches.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes = bytes.saturating_add(*size);
    }
    if start < sizes.len() {
        batches.push(start..sizes.len());
    }
    batches
}

/// What a batch call answered, by entry id. The id of an entry is its place in the call.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    said: BTreeMap<String, Vec<Result<String, Failure>>>,
}

impl Answer {
    /// The entry `id` was done, under this name.
    pub(crate) fn done(&mut self, id: &str, name: &str) {
        self.said.entry(id.to_string()).or_default().push(Ok(name.to_string()));
    }

    /// The entry `id` failed.
    pub(crate) fn failed(&mut self, id: &str, failure: Failure) {
        self.said.entry(id.to_string()).or_default().push(Err(failure));
    }

    /// One result for each of `count` entries. Only an entry that was answered exactly once is believed: whatever is
    /// missing or said twice may or may not have been done, and an answer for an entry that was not asked is nobody's.
    pub(crate) fn account(mut self, operation: &'static str, count: usize) -> Vec<Result<String, Failure>> {
        let results = (0..count)
            .map(|at| {
                let mut said = self.said.remove(&at.to_string()).unwrap_or_default();
                match (said.pop(), said.is_empty()) {
                    (Some(result), true) => result,
                    (Some(_), false) => Err(Failure::unaccounted(format!(
                        "{operation}: the answer names entry {at} more than once"
                    ))),
                    (None, _) => Err(Failure::unaccounted(format!(
                        "{operation}: the answer does not name entry {at}"
                    ))),
                }
            })
            .collect();
        if !self.said.is_empty() {
            let ids: Vec<_> = self.said.keys().collect();
            tracing::warn!(operation, ?ids, "the answer names entries that were not asked");
        }
        results
    }
}

/// Runs futures, at most `limit` at a time, and answers in their order; with a limit of one they also run in it. `None`
/// where one panicked.
pub(crate) async fn bounded<T, F>(limit: usize, futures: Vec<F>) -> Vec<Option<T>>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    if limit <= 1 || futures.len() == 1 {
        for (place, future) in results.iter_mut().zip(futures) {
            *place = tokio::spawn(future.in_current_span()).await.ok();
        }
        return results;
    }
    let permits = Arc::new(Semaphore::new(limit));
    let mut running = JoinSet::new();
    for (at, future) in futures.into_iter().enumerate() {
        let permits = Arc::clone(&permits);
        running.spawn(
            async move {
                // The semaphore is never closed, so a missing permit cannot happen.
                let _permit = permits.acquire_owned().await.ok();
                (at, future.await)
            }
            .in_current_span(),
        );
    }
    while let Some(joined) = running.join_next().await {
        if let Ok((at, result)) = joined
            && let Some(place) = results.get_mut(at)
        {
            *place = Some(result);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use adjourn_worker::port::PortError;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn batches_are_cut_by_ten_and_by_bytes() {
        assert!(split(&[], 100).is_empty());
        assert_eq!(split(&[1; 25], 100), vec![0..10, 10..20, 20..25]);
        assert_eq!(split(&[60, 40, 1], 100), vec![0..2, 2..3]);
        assert_eq!(
            split(&[1, 500, 1], 100),
            vec![0..1, 1..2, 2..3],
            "too big on its own goes alone"
        );
    }

    proptest! {
        #[test]
        fn a_split_keeps_order_and_leaves_nothing_out(sizes in proptest::collection::vec(0_usize..400, 0..60)) {
            let batches = split(&sizes, 1000);
            let flat: Vec<usize> = batches.iter().cloned().flatten().collect();
            prop_assert_eq!(flat, (0..sizes.len()).collect::<Vec<_>>());
            for batch in batches {
                prop_assert!(batch.len() <= 10 && sizes[batch].iter().sum::<usize>() <= 1000);
            }
        }
    }

    #[test]
    fn only_an_entry_that_was_answered_once_is_believed() {
        let mut answer = Answer::default();
        answer.done("0", "m-0");
        answer.done("1", "m-1");
        answer.done("1", "m-1b");
        answer.done("2", "m-2");
        answer.failed("2", Failure::local("no"));
        answer.failed("3", Failure::local("refused"));
        answer.done("99", "stray");
        answer.done("", "stray");
        let results = answer.account("SendMessageBatch", 5);
        assert_eq!(results[0].as_deref().ok(), Some("m-0"));
        for (at, doubtful) in [(1, true), (2, true), (3, false), (4, true)] {
            let error = PortError::from(results[at].clone().unwrap_err());
            assert_eq!(error.is_transient(), doubtful, "entry {at}: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_run_side_by_side_up_to_the_limit_and_answer_in_order() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let futures = (0..9_u64)
            .map(|n| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(std::time::Duration::from_secs(10 - n)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    n
                }
            })
            .collect();
        assert_eq!(bounded(3, futures).await, (0..9).map(Some).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }
}
