//! The scheduler port on EventBridge Scheduler: one-time schedules with a universal target.

#[cfg(test)]
mod tests;

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
