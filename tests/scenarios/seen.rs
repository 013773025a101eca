//! Law 10: a person can see every wait, and can cancel it.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Kind, Mechanism, ScopeKey, Signal, Timestamp};
use adjourn_local::{JobDetail, NewJob, Poller, PollerOptions, Selection, State, Store};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Message, Terms, Transition, Undecodable, VirtualClock};

/// A provider whose day's quota is spent until a moment.
struct Spent {
    clock: Arc<VirtualClock>,
    until: Timestamp,
}

impl Handler for Spent {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        Ok(Terms {
            provider: "acme".to_string(),
            scope: ScopeKey::provider("acme"),
            ..Terms::of(message)
        })
    }

    async fn handle(&self, _job: Job) -> Result<Done, Interrupt> {
        let now = self.clock.now();
        if now >= self.until {
            return Ok(Done::new().status(200));
        }
        let refusal = Signal::new("acme", now)
            .status(429)
            .kind(Kind::Daily)
            .reason("the day's quota of 1000 calls is spent")
            .retry_at(self.until);
        Err(Interrupt::throttled(refusal))
    }
}

struct Machine {
    clock: Arc<VirtualClock>,
    store: Store,
    until: Timestamp,
    _directory: tempfile::TempDir,
}

impl Machine {
    async fn with(jobs: &[&str]) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(
            Timestamp::parse("2026-07-10T20:13:47Z").unwrap(),
        ));
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("adjourn.db"), clock.clone()).unwrap();
        let jobs = jobs.iter().map(|id| NewJob::new(id, "acme", "{}")).collect();
        store.send(jobs, false).await.unwrap();
        Self {
            until: clock.now() + Duration::from_secs(4 * 3600),
            clock,
            store,
            _directory: directory,
        }
    }

    /// Runs for this long, or until nothing is left to do.
    async fn run(&self, span: Duration) {
        let handler = Spent {
            clock: self.clock.clone(),
            until: self.until,
        };
        let worker = self.store.worker(handler).clock(self.clock.clone()).build();
        let options = PollerOptions::default().until_idle();
        Poller::run(worker, self.store.clone(), options, self.clock.sleep(span))
            .await
            .unwrap();
    }

    async fn job(&self, id: &str) -> JobDetail {
        self.store.job(id).await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn law_10_a_person_can_see_it() {
    let machine = Machine::with(&["invoice-7"]).await;
    machine.run(Duration::from_secs(60)).await;
    let waiting = machine.job("invoice-7").await;
    assert_eq!(waiting.job.state, State::Waiting);
    assert!(waiting.job.retry_at.unwrap() >= machine.until, "it has a due time");
    assert!(
        waiting
            .job
            .reason
            .unwrap()
            .contains("the day's quota of 1000 calls is spent"),
        "and a reason in words"
    );
    assert_ne!(waiting.job.mechanism, Mechanism::None, "and a way in which it is held");
    assert_eq!((waiting.job.deferrals, waiting.job.last_status), (1, Some(429)));
    let deferred = waiting
        .receipts
        .iter()
        .find(|line| line.transition == Transition::Deferred)
        .unwrap();
    let seen = deferred.observation.as_ref().unwrap();
    assert_eq!((seen.status, seen.earliest_retry_at), (Some(429), Some(machine.until)));
    let status = machine.store.status().await.unwrap();
    assert_eq!(status.waiting, 1);
    assert_eq!(status.gates[0].scope_key.as_str(), "acme");

    machine.run(Duration::from_secs(5 * 3600)).await;
    let done = machine.job("invoice-7").await;
    assert_eq!(done.job.state, State::Done);
    let told: Vec<_> = done.receipts.iter().map(|line| line.transition).collect();
    assert_eq!(told.first(), Some(&Transition::Sent));
    assert_eq!(told.last(), Some(&Transition::Done));
    assert!(
        done.receipts.is_sorted_by_key(|line| line.at),
        "its history is in its order"
    );
}

#[tokio::test(start_paused = true)]
async fn law_10_cancel_wins_over_every_wake_up_that_has_not_started() {
    let machine = Machine::with(&["keep", "stop"]).await;
    machine.run(Duration::from_secs(60)).await;
    let report = machine
        .store
        .cancel(Selection::Ids(vec!["stop".to_string()]))
        .await
        .unwrap();
    assert!(report.is_complete(), "{report:?}");
    machine.run(Duration::from_secs(6 * 3600)).await;
    assert_eq!(machine.job("stop").await.job.state, State::Cancelled);
    assert_eq!(machine.job("keep").await.job.state, State::Done);
    let again = machine
        .store
        .cancel(Selection::Ids(vec!["keep".to_string()]))
        .await
        .unwrap();
    assert!(
        !again.is_complete(),
        "what has ended cannot be cancelled, and that is said"
    );
}
