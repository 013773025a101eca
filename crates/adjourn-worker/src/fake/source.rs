//! The receiving side of [`FakeQueue`]: what an event source mapping does with a queue and a batch's answer.

use std::collections::BTreeSet;

use super::{FakeQueue, faults::failed, lock, store::Departed};
use crate::{Message, port::PortError};

impl FakeQueue {
    /// Receives up to `most` messages, at most 10. An empty answer is no numbered step.
    ///
    /// # Errors
    /// Over the limit of messages in flight, or by a planned fault.
    pub async fn receive(&self, most: usize) -> Result<Vec<Message>, PortError> {
        if self.next_receivable_at().is_none_or(|at| at > self.now()) {
            return Ok(Vec::new());
        }
        let call = self.process.begin("source.receive").await?;
        if call.fails_an_entry() {
            return Err(failed("source.receive"));
        }
        let mut departed = Departed::default();
        let received = lock(&self.shared.store).receive(most, self.now(), &self.shared.settings, &mut departed);
        if !departed.expired.is_empty() || !departed.redriven.is_empty() {
            self.depart(departed);
            self.note_change();
        }
        let mut messages = call.end(received).await??;
        let now = self.own_clock.now();
        for message in &mut messages {
            message.received_at = now;
        }
        Ok(messages)
    }

    /// Takes the answer to a batch: deletes exactly what is not in `failures` (message ids). An empty answer is complete
    /// success. With an id that is not in the batch the whole batch comes back, as after an invocation that died.
    ///
    /// # Errors
    /// By a planned fault.
    pub async fn respond(&self, batch: &[Message], failures: &[String]) -> Result<(), PortError> {
        let call = self.process.begin("source.respond").await?;
        if call.fails_an_entry() {
            return Err(failed("source.respond"));
        }
        let ids: BTreeSet<&str> = batch.iter().map(|message| message.id.as_str()).collect();
        let stay: BTreeSet<&str> = failures.iter().map(String::as_str).collect();
        if stay.is_subset(&ids) {
            let now = self.now();
            let mut store = lock(&self.shared.store);
            for message in batch.iter().filter(|message| !stay.contains(message.id.as_str())) {
                if let Err(error) = store.delete(&message.receipt, now) {
                    tracing::warn!(message_id = %message.id, %error, "the source could not delete a message");
                }
            }
        }
        self.note_change();
        call.end(()).await
    }
}
