//! The worker's handler for HTTP jobs.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Outcome, Pace};
use adjourn_worker::{Clock, Done, Handler, Interrupt, Job, Message, Terms, Undecodable, port::FindPace};

use crate::{
    Allowance, ClientError, ContractReader, Credentials, FoundPace, HttpJob, RateRule, ReadResponse, Requester,
    Settings, counter, scope,
};

/// Performs the HTTP jobs of a queue under the settings.
#[derive(Clone, Debug)]
pub struct HttpHandler {
    requester: Requester,
    clock: Arc<dyn Clock>,
}

impl HttpHandler {
    /// A handler for the providers of `settings`, each read by its contract.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn new(settings: Settings, credentials: Credentials, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let reader = Arc::new(ContractReader::of(&settings));
        Self::with_reader(settings, credentials, clock, reader)
    }

    /// A handler whose responses `reader` reads.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn with_reader(
        settings: Settings,
        credentials: Credentials,
        clock: Arc<dyn Clock>,
        reader: Arc<dyn ReadResponse>,
    ) -> Result<Self, ClientError> {
        let now = Arc::clone(&clock);
        let requester = Requester::new(settings, credentials, reader, Arc::new(move || now.now()))?;
        // The worker's gates pace its jobs, and park them where a budget could only refuse.
        let requester = requester.pacing(None);
        Ok(Self { requester, clock })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.requester.settings()
    }

    /// How long a job may wait in process: not at all, unless an operator allows more.
    fn in_process(&self) -> Duration {
        self.settings().policy().deferral.max_in_process_wait
    }
}

/// A queue has its own limit for messages: one that was delivered is not refused for its size.
fn parse(body: &str) -> Result<HttpJob, String> {
    HttpJob::parse_within(body, usize::MAX).map_err(|error| format!("it is no HTTP job: {error}"))
}

impl Handler for HttpHandler {
    fn terms(&self, message: &Message) -> Result<Terms, Undecodable> {
        let job = parse(&message.body).map_err(|words| Undecodable::new(&words))?;
        let provider = job
            .check(self.settings())
            .map_err(|error| Undecodable::new(&format!("it is no job under these settings: {error}")))?;
        let contract = provider.contract().map(AsRef::as_ref);
        // A gate has one rate for its scope, so that a lane of the settings is a scope of its own.
        let lane = provider.lane_of(&job);
        let scope = job.scope_key_at(provider);
        let rate = lane.map_or_else(|| provider.rate(), RateRule::rate);
        let repeatable = provider.repeats(&job.method);
        let job_id = job.id.unwrap_or_else(|| message.id.clone());
        Ok(Terms {
            provider: job.provider,
            scope,
            tenant: job.tenant.or_else(|| message.group.clone()),
            run: Some(job.run.unwrap_or_else(|| job_id.clone())),
            job_id,
            not_before: job.not_before,
            deadline: job.deadline,
            repeatable,
            // A job that may wait in process has the call's own time besides.
            timeout: provider.timeout() + self.in_process(),
            pace: rate.map(|rate| Pace::new(rate.requests(), rate.period())),
            max_in_flight: provider.max_in_flight().or_else(|| contract?.max_concurrency),
            retry: provider.retry().cloned(),
        })
    }

    fn find_pace(&self) -> Option<Arc<dyn FindPace>> {
        self.settings()
            .find_pace()
            .then(|| Arc::new(FoundPace) as Arc<dyn FindPace>)
    }

    async fn handle(&self, job: Job) -> Result<Done, Interrupt> {
        let http_job = parse(job.body()).map_err(|words| Interrupt::rejected(adjourn_core::Fault::new(&words)))?;
        let allowance = Allowance::of(self.in_process()).until(job.must_end_by());
        let call = self.requester.call(&http_job, job.identity().id.as_str());
        let answer = allowance.scope(call).await.map_err(|refusal| {
            let signal = refusal.into_signal();
            let provider = self.settings().provider(&http_job.provider);
            match provider.filter(|provider| provider.lane_of(&http_job).is_some()) {
                // The limit that refused need not be the lane's: everybody who shares the job's scope waits.
                Some(provider) if signal.closes().is_none() => {
                    signal.also_closes(scope::of_job(&http_job, provider.contract().map(AsRef::as_ref)))
                }
                _ => signal,
            }
        });
        let answer = answer.map_err(Interrupt::throttled)?;
        let counters = counter::told(&answer.limits, self.clock.now());
        let interrupt = match answer.outcome {
            Outcome::Done => {
                let done = answer.status.into_iter().fold(Done::new(), Done::status);
                let done = answer.result.into_iter().fold(done, Done::result);
                return Ok(counters.fold(done, Done::counting));
            }
            Outcome::Throttled(signal) => Interrupt::throttled(signal),
            Outcome::Failed(fault) => Interrupt::failed(fault),
            Outcome::Unknown(fault) => Interrupt::unknown(fault),
            Outcome::Rejected(fault) => Interrupt::rejected(fault),
        };
        Err(counters.fold(interrupt, Interrupt::counting))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use adjourn_core::{Envelope, Reading, RetryPolicy, ScopeKey, Timestamp};
    use adjourn_worker::{VirtualClock, Worker, fake::FakeQueue};

    use super::*;
    use crate::requester::loopback::{Act, Loopback};

    const NOW: &str = "2026-07-10T20:13:47Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn clock() -> Arc<VirtualClock> {
        Arc::new(VirtualClock::starting_at(at(NOW)))
    }

    fn handler(settings: &str, clock: Arc<dyn Clock>) -> HttpHandler {
        let settings = Settings::parse(settings).unwrap_or_else(|error| panic!("{error}"));
        HttpHandler::new(settings, Credentials::default(), clock).unwrap()
    }

    fn message(body: &str) -> Message {
        Message {
            id: "m-1".to_string(),
            receipt: "r".to_string(),
            queue: "jobs".to_string(),
            body: body.to_string(),
            attributes: BTreeMap::new(),
            group: Some("g".to_string()),
            deduplication_id: None,
            trace_header: None,
            sent_at: at(NOW),
            first_received_at: at(NOW),
            received_at: at(NOW),
            receive_count: 1,
        }
    }

    const SETTINGS: &str = r#"
        [providers.acme]
        base_url = "https://api.acme.example"
        timeout_ms = 5000
        rate = { requests = 10, per_ms = 1000 }
        max_in_flight = 3
        retry = { max_attempts = 2, backoff_ms = [7] }
        [providers.plain]
        base_url = "https://plain.example"
        idempotency_header = "Idempotency-Key"
    "#;

    #[tokio::test]
    async fn the_terms_of_a_job() {
        let handler = handler(SETTINGS, clock());
        let terms = handler
            .terms(&message(
                r#"{"provider":"acme","method":"POST","path":"/","id":"a","tenant":"t","run":"r","scope":{"entity":"7"},
                    "notBefore":"2026-07-10T20:14:00Z","deadline":"2026-07-10T20:15:00Z"}"#,
            ))
            .unwrap();
        let expected = Terms {
            job_id: "a".to_string(),
            provider: "acme".to_string(),
            scope: ScopeKey::scoped("acme", "entity", "7"),
            tenant: Some("t".to_string()),
            run: Some("r".to_string()),
            not_before: Some(at("2026-07-10T20:14:00Z")),
            deadline: Some(at("2026-07-10T20:15:00Z")),
            repeatable: false,
            timeout: Duration::from_secs(5),
            pace: Some(Pace {
                interval: Duration::from_millis(100),
                burst: 10,
            }),
            max_in_flight: Some(3),
            retry: Some(RetryPolicy {
                max_attempts: 2,
                backoff: vec![Duration::from_millis(7)],
            }),
        };
        assert_eq!(terms, expected);

        let terms = handler
            .terms(&message(r#"{"provider":"plain","method":"POST","path":"/"}"#))
            .unwrap();
        let expected = Terms {
            job_id: "m-1".to_string(),
            provider: "plain".to_string(),
            scope: ScopeKey::provider("plain"),
            tenant: Some("g".to_string()),
            run: Some("m-1".to_string()),
            not_before: None,
            deadline: None,
            repeatable: true,
            timeout: Duration::from_secs(10),
            pace: None,
            max_in_flight: None,
            retry: None,
        };
        assert_eq!(terms, expected);
    }

    #[tokio::test]
    async fn a_lane_has_a_scope_and_a_rate_of_its_own() {
        let settings = r#"
            [providers.acme]
            base_url = "https://api.acme.example"
            rate = { requests = 10, per_ms = 1000 }
            lanes = [ { path = "/exports", rate = { requests = 6, per_ms = 60000 } } ]
        "#;
        let handler = handler(settings, clock());
        for (path, scope, interval_ms) in [
            ("/exports/7", "acme:lane:exports:7", 10_000),
            ("/orders", "acme:entity:7", 100),
        ] {
            let body = format!(r#"{{"provider":"acme","method":"GET","path":"{path}","scope":{{"entity":"7"}}}}"#);
            let terms = handler.terms(&message(&body)).unwrap();
            let interval = terms.pace.map(|pace| pace.interval.as_millis());
            assert_eq!((terms.scope.as_str(), interval), (scope, Some(interval_ms)));
        }
    }

    #[tokio::test]
    async fn a_refusal_of_a_lane_holds_the_lane_and_the_job_s_own_scope() {
        let server = Loopback::playing(vec![Act::status(429, "retry-after: 30\r\n", "")]).await;
        let lanes = "lanes = [ { path = \"/exports\", rate = { requests = 6, per_ms = 60000 } } ]";
        let settings = format!("[providers.acme]\nbase_url = \"{}\"\n{lanes}", server.url);
        let clock = clock();
        let queue = FakeQueue::standard("jobs", clock.clone());
        let worker = Worker::builder(handler(&settings, clock.clone()), Arc::new(queue.clone()))
            .clock(clock.clone())
            .build();
        queue
            .send_body(r#"{"provider":"acme","method":"GET","path":"/exports","scope":{"entity":"7"}}"#)
            .unwrap();
        let batch = queue.receive(10).await.unwrap();
        worker.run_batch(batch, None).await;
        let closed = worker.gates().closed(clock.now());
        let mut keys: Vec<&str> = closed.iter().map(|(key, ..)| key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["acme:entity:7", "acme:lane:exports:7"]);
    }

    #[tokio::test]
    async fn a_message_that_is_no_job_says_why() {
        let handler = handler(SETTINGS, clock());
        for (body, expected) in [
            (
                "hello",
                "it is no HTTP job: is not a job: expected value at line 1 column 1; allowed: one JSON object",
            ),
            (
                r#"{"provider":"acne","method":"GET","path":"/"}"#,
                "it is no job under these settings: provider: \"acne\" is not known; the nearest known is \"acme\"; allowed: acme, plain",
            ),
            (
                r#"{"provider":"acme","method":"GET","path":"/%2e%2e"}"#,
                "it is no HTTP job: path: \"/%2e%2e\": found \"..\" under 1 percent-encoding(s); a path may not leave the provider's base_url",
            ),
        ] {
            assert_eq!(handler.terms(&message(body)).unwrap_err().why(), expected);
        }
    }

    /// Sends a job, and runs what is in the queue.
    async fn run_one(worker: &Worker<HttpHandler>, queue: &FakeQueue) {
        queue
            .send_body(r#"{"provider":"acme","method":"GET","path":"/"}"#)
            .unwrap();
        let batch = queue.receive(10).await.unwrap();
        worker.run_batch(batch.clone(), None).await;
        queue.respond(&batch, &[]).await.unwrap();
    }

    /// Runs one job whose first answer is a refusal for `seconds`: how many calls it took, and whether it waits on the queue.
    async fn refused_once(worker: &str, seconds: u64) -> (usize, bool) {
        let refusal = Act::status(429, &format!("retry-after: {seconds}\r\n"), "");
        let server = Loopback::playing(vec![refusal, Act::status(200, "", "")]).await;
        let settings = format!("[providers.acme]\nbase_url = \"{}\"\n{worker}", server.url);
        let settings = Settings::parse(&settings).unwrap_or_else(|error| panic!("{error}"));
        let (clock, policy) = (clock(), settings.policy().clone());
        let queue = FakeQueue::standard("jobs", clock.clone());
        let handler = HttpHandler::new(settings, Credentials::default(), clock.clone()).unwrap();
        let worker = Worker::builder(handler, Arc::new(queue.clone()))
            .clock(clock)
            .policy(policy)
            .build();
        run_one(&worker, &queue).await;
        (server.asked().len(), !queue.messages().is_empty())
    }

    /// Runs two jobs of one provider, the second once the first is answered so: how often the provider was asked.
    async fn asked_after(settings: &str, headers: &str) -> usize {
        let server = Loopback::playing(vec![Act::status(200, headers, ""), Act::status(200, "", "")]).await;
        let settings = format!("[providers.acme]\nbase_url = \"{}\"\n{settings}", server.url);
        let clock = clock();
        let queue = FakeQueue::standard("jobs", clock.clone());
        let worker = Worker::builder(handler(&settings, clock.clone()), Arc::new(queue.clone()))
            .clock(clock)
            .build();
        for _ in 0..2 {
            run_one(&worker, &queue).await;
        }
        server.asked().len()
    }

    #[tokio::test]
    async fn a_success_that_says_that_nothing_is_left_holds_what_follows_until_the_reset() {
        let left =
            |left: u32| format!("x-ratelimit-limit: 10\r\nx-ratelimit-remaining: {left}\r\nx-ratelimit-reset: 30\r\n");
        assert_eq!(asked_after("", &left(0)).await, 1);
        assert_eq!(asked_after("", "ratelimit: \"default\";r=0;t=30\r\n").await, 1);
        let bytes = "ratelimit-policy: \"bytes\";q=1000;w=60;qu=\"content-bytes\"\r\nratelimit: \"bytes\";r=0;t=30\r\n";
        for headers in [&*left(1), "x-ratelimit-remaining: 0\r\n", bytes, ""] {
            assert_eq!(asked_after("", headers).await, 2, "{headers}");
        }
        // A configured rate is all that is kept to, and so where nothing is to be found.
        let rate = "rate = { requests = 10, per_ms = 1000 }";
        assert_eq!(asked_after(rate, &left(0)).await, 2);
        assert_eq!(asked_after("[worker]\nfind_pace = false", &left(0)).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_defers_at_once_and_waits_in_process_as_far_as_the_operator_allows() {
        assert_eq!(refused_once("", 1).await, (1, true));
        assert_eq!(refused_once("[worker]\nmax_in_process_wait_ms = 0", 1).await, (1, true));
        let allows = "[worker]\nmax_in_process_wait_ms = 9000";
        assert_eq!(refused_once(allows, 8).await, (2, false), "beside the call's own 10 s");
        assert_eq!(refused_once(allows, 10).await, (1, true));
    }

    #[tokio::test]
    async fn a_batch_of_http_jobs_is_settled_by_what_was_answered() {
        let server = Loopback::playing(vec![Act::status(429, "retry-after: 30\r\n", "")]).await;
        let fine = Loopback::playing(vec![Act::status(200, "", "")]).await;
        let settings = format!(
            "[providers.acme]\nbase_url = \"{}\"\n[providers.fine]\nbase_url = \"{}\"",
            server.url, fine.url
        );
        let clock = clock();
        let queue = FakeQueue::standard("jobs", clock.clone());
        let worker = Worker::builder(handler(&settings, clock.clone()), Arc::new(queue.clone()))
            .clock(clock.clone())
            .build();
        queue
            .send_body(r#"{"provider":"fine","method":"GET","path":"/"}"#)
            .unwrap();
        queue
            .send_body(r#"{"provider":"acme","method":"GET","path":"/"}"#)
            .unwrap();
        queue
            .send_body(r#"{"provider":"nobody","method":"GET","path":"/"}"#)
            .unwrap();

        let batch = queue.receive(10).await.unwrap();
        let settled = worker.run_batch(batch.clone(), None).await;
        assert!(
            settled
                .iter()
                .all(|settled| matches!(settled.settlement, adjourn_worker::Settlement::Delete(_)))
        );
        queue.respond(&batch, &[]).await.unwrap();

        let [waiting] = queue.messages().try_into().unwrap();
        let Reading::Read { envelope, .. } = Envelope::read(waiting.envelope_text(), waiting.content(), clock.now())
        else {
            panic!("{waiting:?} carries no envelope")
        };
        assert_eq!(envelope.counters.deferrals, 1);
        assert!(envelope.due >= at(NOW) + Duration::from_secs(30), "never early");
        let [dead] = queue.dead_letters().try_into().unwrap();
        assert!(dead.body.contains("nobody"));
        assert_eq!((server.asked().len(), fine.asked().len()), (1, 1));
    }
}
