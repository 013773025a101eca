//! The work that is counted and timed: what a worker adds to a job that was refused.

mod growth;
mod hostile;
mod reading;

pub use growth::{Growth, growth};
pub use hostile::{Hostile, SHAPES};
pub use reading::Answer;

use std::time::Duration;

use adjourn_core::{
    Content, Counters, Decision, DeferralId, Envelope, Facts, Outcome, Plan, Policy, QueueKind, Reach, Reading,
    Refused, Route, RouteFacts, ScheduleReach, Timestamp, Verdict, decide, route,
};
use adjourn_http::{ContractReader, ReadResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode};

/// 2026-07-10T20:13:47Z.
const NOW: Timestamp = Timestamp::from_unix_ms(1_783_714_427_000);

const BODY: &[u8] =
    br#"{"error":{"code":"rate_limited","message":"Too many requests. Try again later.","request":"req_81"}}"#;

/// A refused call, with everything that decides where its job waits.
#[derive(Debug)]
pub struct Refusal {
    reader: ContractReader,
    headers: HeaderMap,
    policy: Policy,
    reach: Reach,
    facts: Facts,
    message: RouteFacts,
    envelope: Envelope,
}

impl Refusal {
    /// A refusal with these headers beside the usual ones, of a job that was refused twice before.
    #[must_use]
    pub fn with(headers: &[(&'static str, &'static str)]) -> Self {
        let usual = [
            ("content-type", "application/json; charset=utf-8"),
            ("date", "Fri, 10 Jul 2026 20:13:45 GMT"),
            ("server", "acme-edge"),
            ("x-request-id", "0b6a8a0e-6c2f-4f52-9d4a-3f1a5f0f8a11"),
            ("strict-transport-security", "max-age=31536000"),
            ("cache-control", "no-store"),
        ];
        let headers = usual.iter().chain(headers);
        let envelope = envelope();
        Self {
            reader: ContractReader::default(),
            headers: headers
                .map(|&(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect(),
            policy: Policy::default(),
            reach: Reach {
                kind: QueueKind::Standard,
                max_delay: Duration::from_secs(900),
                delay_step: Duration::from_secs(1),
                schedule: Some(ScheduleReach {
                    step: Duration::from_secs(60),
                    lead: Duration::from_secs(60),
                }),
                max_visibility: Duration::from_secs(43_200),
                visibility_timeout: Duration::from_secs(90),
                retention: Duration::from_secs(345_600),
                max_receive_count: Some(5),
            },
            facts: Facts {
                counters: envelope.counters,
                unexplained_receives: 0,
                first_deferred_at: envelope.first_deferred_at,
                unnamed_since: None,
                deadline: Some(NOW + Duration::from_secs(86_400)),
                found_turn: None,
            },
            message: RouteFacts {
                sent_at: NOW - Duration::from_secs(40),
                received_at: NOW - Duration::from_secs(1),
                receive_count: 1,
                has_room: true,
                schedulable: true,
                holds_are_recorded: false,
                repeatable: true,
            },
            envelope,
        }
    }

    /// Reads the response, decides, and chooses the road.
    #[must_use]
    pub fn answer(&self) -> (Decision, Option<Route>) {
        let response = Response {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: &self.headers,
            body: BODY,
            received_at: NOW,
        };
        let reading = self.reader.read("acme", &response);
        let outcome = if reading.is_limited() {
            Outcome::Throttled(reading.into_signal())
        } else {
            Outcome::Done
        };
        let entropy = self.envelope.identity.next().entropy();
        let decision = decide(&self.policy, &self.facts, &outcome, &Verdict::Default, NOW, entropy);
        let road = match &decision {
            Decision::Wait(wait) => {
                let plan = Plan::Wait { until: wait.until };
                Some(route(
                    &self.policy,
                    &self.reach,
                    plan,
                    &self.message,
                    Refused::NONE,
                    NOW,
                ))
            }
            Decision::Complete | Decision::Drop { .. } | Decision::End(_) => None,
        };
        (decision, road)
    }
}

fn envelope() -> Envelope {
    let id = DeferralId::new("5fea7756-0ea4-451a-a703-a558b933e274");
    let mut envelope = Envelope::first(id, NOW - Duration::from_secs(600), content());
    envelope.identity.sequence = 2;
    envelope.due = NOW;
    envelope.rest = Some(Duration::from_millis(250));
    envelope.first_deferred_at = Some(NOW - Duration::from_secs(400));
    envelope.counters = Counters {
        deferrals: 2,
        hops: 1,
        failures: 1,
        unnamed: 0,
    };
    envelope.reason = "Too many requests. Try again later.".to_string();
    envelope
}

fn content() -> Content {
    let body = br#"{"provider":"acme","method":"POST","path":"/orders","body":{"sku":"A-1044","count":2}}"#;
    Content::of("https://sqs.eu-central-1.amazonaws.com/123456789012/jobs", None, body)
}

/// The text of an envelope, as a message carries it.
#[must_use]
pub fn attribute() -> String {
    envelope().write()
}

/// Decodes an envelope, bound to its message, and encodes the one of the next step. None when it is not read.
#[must_use]
pub fn pass_on(attribute: &str) -> Option<String> {
    match Envelope::read(Some(attribute), content(), NOW) {
        Reading::Read { mut envelope, .. } => {
            envelope.identity = envelope.identity.next();
            Some(envelope.write())
        }
        Reading::Absent | Reading::Rejected(_) => None,
    }
}
