//! The suites on one SQLite file.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use adjourn_core::{Mechanism, Timestamp};
use adjourn_local::{JobFilter, JobView, NewJob, State, Store};
use adjourn_worker::{
    Clock, Message, VirtualClock,
    fake::Outgoing,
    port::{Queue, Scheduler},
};
use async_trait::async_trait;
use tempfile::TempDir;

use super::{ScheduleSite, Site};

pub(crate) struct File {
    clock: Arc<VirtualClock>,
    store: Store,
    sent: AtomicU32,
    _directory: TempDir,
}

async fn site(_case: &str) -> File {
    let clock = Arc::new(VirtualClock::starting_at(
        Timestamp::parse("2026-07-10T20:13:47Z").unwrap(),
    ));
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("adjourn.db"), clock.clone()).unwrap();
    File {
        clock,
        store,
        sent: AtomicU32::new(0),
        _directory: directory,
    }
}

impl File {
    async fn jobs(&self, state: Option<State>) -> Vec<JobView> {
        let mut listed = self.store.jobs(JobFilter {
            state,
            ..JobFilter::default()
        });
        let mut jobs = Vec::new();
        while let Some(job) = listed.recv().await {
            jobs.push(job.unwrap());
        }
        jobs
    }
}

#[async_trait]
impl Site for File {
    fn queue(&self) -> Arc<dyn Queue> {
        Arc::new(self.store.clone())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn send(&self, outgoing: Outgoing) {
        let id = format!("job-{}", self.sent.fetch_add(1, Ordering::Relaxed));
        let mut job = NewJob::new(&id, "acme", &outgoing.body);
        job.attributes = outgoing.attributes;
        job.trace_header = outgoing.trace_header;
        job.tenant = outgoing.group;
        self.store.send(vec![job], false).await.unwrap();
    }

    async fn receive(&self) -> Vec<Message> {
        let taken = self.store.take(10).await.unwrap();
        let messages = taken.leases.into_iter().map(|lease| lease.message);
        messages.map(|message| Message::clone(&message)).collect()
    }

    async fn next(&self, within: Duration) -> Vec<Message> {
        let ends = self.clock.now() + within;
        loop {
            let taken = self.store.take(10).await.unwrap();
            if !taken.leases.is_empty() {
                let messages = taken.leases.into_iter().map(|lease| lease.message);
                return messages.map(|message| Message::clone(&message)).collect();
            }
            match taken.next.filter(|at| *at <= ends) {
                Some(at) => self.clock.sleep(at.since(self.clock.now())).await,
                None => return Vec::new(),
            }
        }
    }

    async fn dead_letters(&self) -> Vec<String> {
        let jobs = self.jobs(Some(State::Failed)).await;
        jobs.into_iter().map(|job| job.reason.unwrap_or_default()).collect()
    }

    fn is_transactional(&self) -> bool {
        true
    }

    fn has_the_limits_of_sqs(&self) -> bool {
        false
    }
}

#[async_trait]
impl ScheduleSite for File {
    fn scheduler(&self) -> Arc<dyn Scheduler> {
        Arc::new(self.store.clone())
    }

    async fn schedules(&self) -> Vec<(String, Timestamp)> {
        let mut schedules = Vec::new();
        for job in self.jobs(Some(State::Waiting)).await {
            if job.mechanism == Mechanism::Schedule {
                let identity = adjourn_core::Identity {
                    id: adjourn_core::DeferralId::new(&job.deferral_id),
                    epoch: job.epoch,
                    sequence: job.sequence,
                };
                schedules.push((identity.name(), job.retry_at.unwrap()));
            }
        }
        schedules
    }

    async fn occupy(&self, _name: &str, _at: Timestamp) -> bool {
        false
    }
}

suite!(
    queue,
    [start_paused = true],
    crate::conformance::sqlite::site,
    crate::conformance::queue,
    [
        a_copy_is_accepted_by_its_step_and_arrives_with_it,
        a_copy_is_the_customers_message,
        a_delayed_copy_comes_after_its_delay,
        a_held_message_is_hidden_and_comes_back_as_itself,
        a_hold_of_nothing_gives_the_message_back_at_once,
        a_dead_letter_says_why,
        what_is_deleted_is_gone_and_deleting_again_harms_nothing,
        a_hand_off_is_a_copy_and_then_a_deletion,
        more_than_a_batch_is_answered_in_its_order,
        nothing_is_asked_and_nothing_is_answered,
        one_entry_that_is_refused_hurts_no_other,
    ]
);

suite!(
    schedules,
    [start_paused = true],
    crate::conformance::sqlite::site,
    crate::conformance::scheduler,
    [
        a_schedule_is_accepted_by_its_step,
        making_the_same_again_is_a_success_and_makes_no_second,
        one_of_ours_that_is_later_serves_too,
        a_schedule_sends_its_copy_within_its_minute_and_is_gone,
    ]
);
