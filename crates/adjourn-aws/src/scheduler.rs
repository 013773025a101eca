//! The scheduler port on EventBridge Scheduler: one-time schedules with a universal target.

use std::{sync::Arc, time::Duration};

use adjourn_core::{Envelope, Identity, MAX_ENVELOPE_BYTES, QueueKind, Reading, ScheduleReach, Timestamp};
use adjourn_worker::{
    AttributeValue, Clock, ENVELOPE_ATTRIBUTE, Message,
    port::{Accepted, PortError, ScheduledCopy, Scheduler},
};
use async_trait::async_trait;
use aws_sdk_scheduler::{
    Client,
    operation::{create_schedule::CreateScheduleInput, get_schedule::GetScheduleOutput},
    types::{ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, RetryPolicy, Target},
};

use crate::{
    Clients,
    calls::bounded,
    failure::Failure,
    outgoing::Outgoing,
    schedule_input::{decode, encode},
    settings::{QueueSettings, ScheduleSettings},
};

/// The universal target (Scheduler User Guide, universal targets).
const TARGET: &str = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage";
const MINUTE: Duration = Duration::from_secs(60);
/// The most bytes of an Input. The API's model names no limit, and neither does the User Guide, so this bound is our own:
/// what EventBridge takes of an event. An Input that is refused in spite of it goes by another route.
const MAX_INPUT_BYTES: usize = 256 * 1024;
/// The service's own maxima, written out: an update of a schedule or a change of the defaults would drop them.
const RETRY_ATTEMPTS: i32 = 185;
const RETRY_AGE_S: i32 = 86_400;
/// How often a schedule that is being deleted is asked again, and how long after.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// How many schedules are made side by side.
const CALLS_AT_A_TIME: usize = 16;

const CONFLICT: &[&str] = &["ConflictException"];
const GONE: &[&str] = &["ResourceNotFoundException"];

/// One-time schedules in a group of the worker's own, which send copies to its queue.
#[derive(Clone, Debug)]
pub struct EventBridgeScheduler {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    settings: ScheduleSettings,
    queue_url: String,
    kind: QueueKind,
    max_message_bytes: usize,
    clock: Arc<dyn Clock>,
}

impl EventBridgeScheduler {
    /// Schedules as `settings` say, for the queue that `queue` names.
    #[must_use]
    pub fn new(clients: &Clients, settings: ScheduleSettings, queue: &QueueSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                client: clients.scheduler.clone(),
                settings,
                queue_url: queue.url.clone(),
                kind: queue.kind,
                max_message_bytes: queue.max_message_bytes,
                clock,
            }),
        }
    }
}

#[async_trait]
impl Scheduler for EventBridgeScheduler {
    fn reach(&self) -> ScheduleReach {
        ScheduleReach {
            step: MINUTE,
            lead: MINUTE,
        }
    }

    fn carries(&self, message: &Message) -> bool {
        // The Input is longer than the message: JSON escapes, and base64 where there were bytes. Building it tells exactly.
        let envelope = "\"".repeat(MAX_ENVELOPE_BYTES);
        let identity = Identity::first(adjourn_core::DeferralId::new(&message.id));
        !message.upsets_a_scheduler()
            && message.customer_bytes() <= MAX_INPUT_BYTES
            && encode(
                Outgoing::copy(message, &identity, Some(envelope), self.inner.kind),
                &self.inner.queue_url,
                self.inner.kind,
            )
            .is_ok_and(|input| input.len() <= MAX_INPUT_BYTES)
    }

    async fn schedule(&self, copies: &[ScheduledCopy]) -> Vec<Result<Accepted, PortError>> {
        let made = copies
            .iter()
            .map(|copy| {
                let (inner, copy) = (Arc::clone(&self.inner), copy.clone());
                async move { inner.schedule(&copy).await }
            })
            .collect();
        let results = bounded(CALLS_AT_A_TIME, made).await.into_iter().zip(copies);
        results
            .map(|(result, copy)| {
                let name =
                    result.unwrap_or_else(|| Err(Failure::unaccounted("CreateSchedule: the call was broken off")))?;
                Ok(Accepted {
                    identity: copy.envelope.identity.clone(),
                    name,
                })
            })
            .collect()
    }
}

/// What a schedule of the wanted name turned out to be.
enum Standing {
    /// Ours, and due when we want it or later.
    Serves,
    /// Ours, but due earlier.
    Earlier,
    /// Somebody else's.
    Foreign,
    /// Being deleted, or gone by now.
    Gone,
}

impl Inner {
    /// Makes the schedule of one copy and answers its name.
    async fn schedule(&self, copy: &ScheduledCopy) -> Result<String, Failure> {
        let name = copy.envelope.identity.name();
        match self.create_or_find(&name, copy).await? {
            Standing::Serves => Ok(name),
            Standing::Foreign => Err(foreign(&name)),
            Standing::Gone => Err(lingering(&name)),
            Standing::Earlier => {
                // Never updated: what an update leaves out falls back to its default. The later one is durable before the
                // earlier one goes; a crash in between leaves an early wake-up, which is parked for the rest.
                let revised = revision(&name, copy.envelope.due);
                match self.create_or_find(&revised, copy).await? {
                    Standing::Serves => {}
                    Standing::Earlier | Standing::Foreign => return Err(foreign(&revised)),
                    Standing::Gone => return Err(lingering(&revised)),
                }
                self.remove(&name).await;
                Ok(revised)
            }
        }
    }

    /// Makes a schedule; where the name is taken, says by what. A new schedule serves.
    async fn create_or_find(&self, name: &str, copy: &ScheduledCopy) -> Result<Standing, Failure> {
        for look in 0..LOOKS {
            if look > 0 {
                self.clock.sleep(BETWEEN_LOOKS).await;
            }
            let request = self.request(name, copy)?;
            match self.create(request).await {
                Ok(()) => return Ok(Standing::Serves),
                Err(failure) if failure.has_code(CONFLICT) => {}
                Err(failure) => return Err(failure),
            }
            match self.find(name, copy).await? {
                Standing::Gone => {}
                standing @ (Standing::Serves | Standing::Earlier | Standing::Foreign) => return Ok(standing),
            }
        }
        Ok(Standing::Gone)
    }

    async fn create(&self, request: CreateScheduleInput) -> Result<(), Failure> {
        let call = self
            .client
            .create_schedule()
            .set_name(request.name)
            .set_group_name(request.group_name)
            .set_client_token(request.client_token)
            .set_schedule_expression(request.schedule_expression)
            .set_schedule_expression_timezone(request.schedule_expression_timezone)
            .set_flexible_time_window(request.flexible_time_window)
            .set_action_after_completion(request.action_after_completion)
            .set_target(request.target);
        call.send()
            .await
            .map(drop)
            .map_err(|error| Failure::of_call("CreateSchedule", error))
    }

    async fn find(&self, name: &str, copy: &ScheduledCopy) -> Result<Standing, Failure> {
        let call = self.client.get_schedule().name(name).group_name(&self.settings.group);
        match call.send().await {
            Ok(found) => Ok(standing(&found, copy, self.clock.now())),
            Err(error) => {
                let failure = Failure::of_call("GetSchedule", error);
                if failure.has_code(GONE) {
                    Ok(Standing::Gone)
                } else {
                    Err(failure)
                }
            }
        }
    }

    async fn remove(&self, name: &str) {
        let call = self
            .client
            .delete_schedule()
            .name(name)
            .group_name(&self.settings.group);
        if let Err(error) = call.send().await {
            let failure = Failure::of_call("DeleteSchedule", error);
            if !failure.has_code(GONE) {
                tracing::warn!(schedule = name, error = %failure, "an earlier schedule stays and will wake the job early");
            }
        }
    }

    fn request(&self, name: &str, copy: &ScheduledCopy) -> Result<CreateScheduleInput, Failure> {
        let now = self.clock.now();
        let identity = &copy.envelope.identity;
        let message = Outgoing::copy(&copy.original, identity, Some(copy.envelope.write()), self.kind);
        message.check(self.kind, self.max_message_bytes)?;
        let input = encode(message, &self.queue_url, self.kind)?;
        if input.len() > MAX_INPUT_BYTES {
            let bytes = input.len();
            return Err(Failure::local(format!(
                "an Input of {bytes} bytes; at most {MAX_INPUT_BYTES} are scheduled"
            )));
        }
        let settings = &self.settings;
        let target = Target::builder()
            .arn(TARGET)
            .role_arn(&settings.role_arn)
            .input(input)
            .retry_policy(
                RetryPolicy::builder()
                    .maximum_retry_attempts(RETRY_ATTEMPTS)
                    .maximum_event_age_in_seconds(RETRY_AGE_S)
                    .build(),
            )
            .dead_letter_config(DeadLetterConfig::builder().arn(&settings.dead_letter_arn).build())
            .build()
            .map_err(|error| Failure::local(error.to_string()))?;
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build();
        CreateScheduleInput::builder()
            .name(name)
            .group_name(&settings.group)
            // The same step with the same due time is the same request, whoever repeats it.
            .client_token(revision(&identity.name(), copy.envelope.due))
            .schedule_expression(expression(copy.at, now)?)
            .schedule_expression_timezone("UTC")
            .flexible_time_window(window.map_err(|error| Failure::local(error.to_string()))?)
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(target)
            .build()
            .map_err(|error| Failure::local(error.to_string()))
    }
}

/// The expression of a one-time schedule: whole seconds, no offset (Scheduler User Guide, schedule types).
fn expression(at: Timestamp, now: Timestamp) -> Result<String, Failure> {
    if at.floor_to(Duration::from_secs(1)) != at {
        return Err(Failure::local(format!("a schedule at {at}; whole seconds are allowed")));
    }
    if at < now + MINUTE {
        return Err(Failure::local(format!(
            "a schedule at {at}; it has to be a minute or more after {now}"
        )));
    }
    let text = at.to_string();
    Ok(format!("at({})", text.get(..19).unwrap_or(&text)))
}

/// A name for the step with this due time: 36 and up to 12 characters more of the 64 that a name and a token may have.
fn revision(name: &str, due: Timestamp) -> String {
    format!("{name}-{:x}", due.as_unix_ms())
}

fn standing(found: &GetScheduleOutput, copy: &ScheduledCopy, now: Timestamp) -> Standing {
    let envelope = found
        .target()
        .filter(|target| target.arn() == TARGET)
        .and_then(|target| {
            let (_, message) = decode(target.input()?).ok()?;
            let attribute = message.attributes.get(ENVELOPE_ATTRIBUTE)?;
            let AttributeValue::Text(text) = &attribute.value else {
                return None;
            };
            match Envelope::read(Some(text), copy.envelope.content, now) {
                Reading::Read { envelope, .. } => Some(envelope),
                Reading::Absent | Reading::Rejected(_) => None,
            }
        });
    match envelope {
        Some(envelope) if envelope.identity != copy.envelope.identity => Standing::Foreign,
        Some(envelope) if envelope.due >= copy.envelope.due => Standing::Serves,
        Some(_) => Standing::Earlier,
        None => Standing::Foreign,
    }
}

fn foreign(name: &str) -> Failure {
    Failure::local(format!("the schedule {name} exists and is not this step's"))
}

fn lingering(name: &str) -> Failure {
    Failure::unaccounted(format!(
        "the schedule {name} is being deleted and its name is not free yet"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Patience, clients::fakes, fixture};
    use adjourn_worker::VirtualClock;
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use aws_smithy_types::body::SdkBody;
    use serde_json::{Value, json};
    use std::{
        collections::{BTreeMap, VecDeque},
        sync::Mutex,
    };

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";

    /// What the service was asked: method, path with query, body.
    type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

    /// A scheduler that answers from a list, and what it was asked.
    async fn scheduler(answers: Vec<(u16, Value)>) -> (EventBridgeScheduler, Asked) {
        let asked = Asked::default();
        let (answers, noted) = (Mutex::new(VecDeque::from(answers)), Arc::clone(&asked));
        let http = infallible_client_fn(move |request: http::Request<SdkBody>| {
            let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap_or(Value::Null);
            noted
                .lock()
                .unwrap()
                .push((request.method().to_string(), request.uri().path().to_string(), body));
            let (status, body) = answers
                .lock()
                .unwrap()
                .pop_front()
                .expect("one call more than was expected");
            let response = http::Response::builder().status(status);
            let response = match body.get("__type").and_then(Value::as_str) {
                Some(code) => response.header("x-amzn-errortype", code),
                None => response,
            };
            response.body(SdkBody::from(body.to_string())).unwrap()
        });
        let clients = fakes::clients(Patience::WORKER, http).await;
        let environment = Environment::new([("ADJOURN_QUEUE_URL", URL)]);
        let queue = QueueSettings::for_operator(&environment).unwrap();
        let settings = ScheduleSettings {
            group: "adjourn-jobs".to_string(),
            role_arn: "arn:aws:iam::111122223333:role/schedules".to_string(),
            dead_letter_arn: "arn:aws:sqs:eu-west-1:111122223333:schedules-dead".to_string(),
        };
        let clock = Arc::new(VirtualClock::starting_at(fixture::now()));
        (EventBridgeScheduler::new(&clients, settings, &queue, clock), asked)
    }

    fn at() -> Timestamp {
        Timestamp::parse("2026-07-10T21:00:00Z").unwrap()
    }

    fn due() -> Timestamp {
        at() + Duration::from_millis(61_500)
    }

    fn made() -> (u16, Value) {
        (
            200,
            json!({"ScheduleArn": "arn:aws:scheduler:eu-west-1:111122223333:schedule/adjourn-jobs/x"}),
        )
    }

    fn failed(status: u16, code: &str) -> (u16, Value) {
        (status, json!({"__type": code, "Message": "no"}))
    }

    /// An existing schedule with this Input.
    fn stored(input: &str) -> (u16, Value) {
        (
            200,
            json!({"Name": "x", "Target": {"Arn": TARGET, "RoleArn": "r", "Input": input}}),
        )
    }

    fn input_due(due: Timestamp) -> String {
        let copy = fixture::scheduled(at(), due);
        let message = Outgoing::copy(
            &copy.original,
            &copy.envelope.identity,
            Some(copy.envelope.write()),
            QueueKind::Standard,
        );
        encode(message, URL, QueueKind::Standard).unwrap()
    }

    async fn one(scheduler: &EventBridgeScheduler) -> Result<Accepted, PortError> {
        scheduler
            .schedule(&[fixture::scheduled(at(), due())])
            .await
            .pop()
            .unwrap()
    }

    fn paths(asked: &Asked) -> Vec<String> {
        asked
            .lock()
            .unwrap()
            .iter()
            .map(|(method, path, _)| format!("{method} {path}"))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_is_one_time_exact_deleted_afterwards_and_has_its_own_dead_letters() {
        let (scheduler, asked) = scheduler(vec![made()]).await;
        let accepted = one(&scheduler).await.unwrap();
        let name = fixture::identity().name();
        assert_eq!(
            accepted,
            Accepted {
                identity: fixture::identity(),
                name: name.clone()
            }
        );
        let asked = asked.lock().unwrap();
        let (method, path, body) = &asked[0];
        assert_eq!((method.as_str(), path), ("POST", &format!("/schedules/{name}")));
        let input = body["Target"]["Input"].as_str().unwrap();
        let expected = json!({
            "GroupName": "adjourn-jobs",
            "ClientToken": format!("{name}-{:x}", due().as_unix_ms()),
            "ScheduleExpression": "at(2026-07-10T21:00:00)",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": TARGET,
                "RoleArn": "arn:aws:iam::111122223333:role/schedules",
                "Input": input,
                "RetryPolicy": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86_400},
                "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-1:111122223333:schedules-dead"},
            },
        });
        assert_eq!(body, &expected);
        let (url, message) = decode(input).unwrap();
        assert_eq!(
            (url.as_str(), message.body.as_str()),
            (URL, fixture::message().body.as_str())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_with_our_own_step_is_a_success() {
        for existing in [due(), due() + Duration::from_secs(60)] {
            let (scheduler, asked) =
                scheduler(vec![failed(409, "ConflictException"), stored(&input_due(existing))]).await;
            assert_eq!(one(&scheduler).await.unwrap().name, fixture::identity().name());
            assert_eq!(asked.lock().unwrap().len(), 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_one_of_ours_is_replaced_and_only_then_deleted() {
        let earlier = input_due(due() - Duration::from_secs(60));
        let answers = vec![
            failed(409, "ConflictException"),
            stored(&earlier),
            made(),
            (200, json!({})),
        ];
        let (scheduler, asked) = scheduler(answers).await;
        let name = fixture::identity().name();
        let revised = format!("{name}-{:x}", due().as_unix_ms());
        assert_eq!(one(&scheduler).await.unwrap().name, revised);
        let expected = [
            format!("POST /schedules/{name}"),
            format!("GET /schedules/{name}"),
            format!("POST /schedules/{revised}"),
            format!("DELETE /schedules/{name}"),
        ];
        assert_eq!(paths(&asked), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_deleted_does_not_undo_the_later_one() {
        let earlier = input_due(due() - Duration::from_secs(60));
        let answers = vec![
            failed(409, "ConflictException"),
            stored(&earlier),
            made(),
            failed(403, "AccessDeniedException"),
        ];
        assert!(one(&scheduler(answers).await.0).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_being_deleted_is_asked_again_a_few_times() {
        let gone = || {
            [
                failed(409, "ConflictException"),
                failed(404, "ResourceNotFoundException"),
            ]
        };
        let (free_at_last, _) = scheduler(gone().into_iter().chain([made()]).collect()).await;
        assert!(one(&free_at_last).await.is_ok());

        let (never_free, asked) = scheduler((0..3).flat_map(|_| gone()).collect()).await;
        let error = one(&never_free).await.unwrap_err();
        assert!(
            error.is_transient() && error.to_string().contains("being deleted"),
            "{error}"
        );
        assert_eq!(asked.lock().unwrap().len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_else_s_schedule_is_left_alone() {
        let mut other = fixture::scheduled(at(), due());
        other.envelope.identity = other.envelope.identity.next();
        let envelope = Some(other.envelope.write());
        let message = Outgoing::copy(&other.original, &other.envelope.identity, envelope, QueueKind::Standard);
        let another_step = encode(message, URL, QueueKind::Standard).unwrap();
        for input in [
            another_step.as_str(),
            "{\"QueueUrl\":\"u\",\"MessageBody\":\"b\"}",
            "not JSON",
        ] {
            let (scheduler, asked) = scheduler(vec![failed(409, "ConflictException"), stored(input)]).await;
            let error = one(&scheduler).await.unwrap_err();
            assert!(
                !error.is_transient() && error.to_string().contains("not this step's"),
                "{error}"
            );
            assert_eq!(asked.lock().unwrap().len(), 2, "nothing is deleted");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_service_says_becomes_what_the_port_says() {
        let table = [
            ("ServiceQuotaExceededException", 402, 1, false, false),
            ("ValidationException", 400, 1, false, false),
            ("ResourceNotFoundException", 404, 1, false, false),
            ("ThrottlingException", 429, 2, true, true),
            ("InternalServerException", 500, 2, false, true),
        ];
        for (code, status, tries, throttled, transient) in table {
            let (scheduler, asked) = scheduler(vec![failed(status, code); tries]).await;
            let error = one(&scheduler).await.unwrap_err();
            assert_eq!(
                (error.is_throttled(), error.is_transient()),
                (throttled, transient),
                "{code}: {error}"
            );
            assert_eq!(asked.lock().unwrap().len(), tries, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_that_the_service_would_take_wrongly_is_refused_before_any_call() {
        let (scheduler, asked) = scheduler(vec![]).await;
        let now = fixture::now();
        for at in [
            now - MINUTE,
            now,
            now + Duration::from_secs(59),
            at() + Duration::from_millis(1),
        ] {
            let result = scheduler
                .schedule(&[fixture::scheduled(at, due())])
                .await
                .pop()
                .unwrap();
            assert!(!result.unwrap_err().is_transient(), "{at}");
        }
        assert!(asked.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn only_what_comes_out_as_it_went_in_is_carried() {
        let (scheduler, _) = scheduler(vec![]).await;
        assert!(scheduler.carries(&fixture::plain_message()));
        assert!(!scheduler.carries(&fixture::message()), "a binary attribute");
        let with_body = |body: String| Message {
            body,
            ..fixture::plain_message()
        };
        assert!(!scheduler.carries(&with_body("<aws.scheduler.execution-id>".to_string())));
        assert!(scheduler.carries(&with_body("x".repeat(250_000))));
        assert!(!scheduler.carries(&with_body("x".repeat(262_144))));
        assert!(
            !scheduler.carries(&with_body("\"".repeat(140_000))),
            "it doubles when it is escaped"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn many_schedules_are_answered_in_their_order() {
        let http = infallible_client_fn(|request: http::Request<SdkBody>| {
            // Every third is refused.
            let refused = request.uri().path().bytes().map(u32::from).sum::<u32>() % 3 == 0;
            let response = http::Response::builder().status(if refused { 400 } else { 200 });
            response
                .header("x-amzn-errortype", "ValidationException")
                .body(SdkBody::from("{}"))
                .unwrap()
        });
        let clients = fakes::clients(Patience::WORKER, http).await;
        let (template, _) = scheduler(vec![]).await;
        let environment = Environment::new([("ADJOURN_QUEUE_URL", URL)]);
        let queue = QueueSettings::for_operator(&environment).unwrap();
        let clock = Arc::new(VirtualClock::starting_at(fixture::now()));
        let scheduler = EventBridgeScheduler::new(&clients, template.inner.settings.clone(), &queue, clock);
        let copies: Vec<_> = (0..40)
            .map(|n| {
                let mut copy = fixture::scheduled(at(), due());
                copy.envelope.identity = Identity::first(adjourn_core::DeferralId::new(&format!("m-{n}")));
                copy
            })
            .collect();
        let results = scheduler.schedule(&copies).await;
        let mut seen = BTreeMap::from([(true, 0), (false, 0)]);
        for (copy, result) in copies.iter().zip(results) {
            let name = copy.envelope.identity.name();
            let refused = format!("/schedules/{name}").bytes().map(u32::from).sum::<u32>() % 3 == 0;
            assert_eq!(result.is_err(), refused, "{name}");
            *seen.entry(refused).or_default() += 1;
        }
        assert!(seen[&true] > 0 && seen[&false] > 0);
    }
}
