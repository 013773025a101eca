//! What each answer means.

use std::time::Duration;

use adjourn_core::{Fault, Kind, Outcome, Signal, Timestamp};
use http::StatusCode;

use crate::{Executed, LimitState, Provider, Reading};

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it means for the job.
    pub outcome: Outcome,
    /// The status of the response, where there was one.
    pub status: Option<u16>,
    /// The response's body, where the settings say that it is stored.
    pub result: Option<String>,
    /// The state of the provider's limits, as far as the headers of a response of any status tell it: what pacing learns from.
    pub limits: Vec<LimitState>,
    /// The moment before which the provider wants no further call, also where this one went well.
    pub not_before: Option<Timestamp>,
}

impl Answer {
    /// An outcome without a response.
    pub(super) fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            result: None,
            limits: Vec::new(),
            not_before: None,
        }
    }
}

/// The outcome of a response of the provider of that name. `floor_ms` is the least wait after a refusal that its contract
/// states; `said` is the beginning of the response's body.
pub(crate) fn meaning(
    name: &str,
    status: StatusCode,
    reading: Reading,
    floor_ms: Option<u64>,
    said: impl FnOnce() -> String,
) -> Outcome {
    if reading.is_limited() && reading.executed() == Some(Executed::Some) {
        // Repeated whole, its done parts would be done twice.
        return Outcome::Rejected(fault(
            status,
            &format!(
                "partly done: {name} carried out a part of it and refused the rest: {}",
                reading.signal().why()
            ),
        ));
    }
    if reading.is_limited() {
        return Outcome::Throttled(floored(reading.into_signal(), floor_ms));
    }
    if reading.signal().limit_kind() == Kind::AccountDisabled {
        return Outcome::Rejected(fault(
            status,
            &format!("account disabled, no wait helps: {name} answered {status}"),
        ));
    }
    let not_before = reading.not_before();
    match status.as_u16() {
        200..=299 if reading.executed() == Some(Executed::None) => Outcome::Rejected(fault(
            status,
            &with_words(format!("refused: {name} answered {status} and did nothing"), said()),
        )),
        200..=299 => Outcome::Done,
        // What a provider says of a token may hold the token: its words are left out.
        401 | 403 => Outcome::Rejected(fault(status, &format!("unauthorized: {name} answered {status}"))),
        408 | 425 | 500.. => {
            let fault = fault(status, &with_words(format!("{name} answered {status}"), said()));
            Outcome::Failed(match not_before {
                Some(at) => fault.retry_at(at),
                None => fault,
            })
        }
        _ => Outcome::Rejected(fault(
            status,
            &with_words(format!("refused: {name} answered {status}"), said()),
        )),
    }
}

/// A moment that is earlier than the provider's documentation asks for is put off to that.
pub(crate) fn floored(signal: Signal, floor_ms: Option<u64>) -> Signal {
    let floor = floor_ms.map(|ms| signal.observation().observed_at + Duration::from_millis(ms));
    match (signal.earliest_retry_at(), floor) {
        (Some(at), Some(floor)) if at < floor => signal.retry_at(floor),
        _ => signal,
    }
}

/// A redirect that is not followed.
pub(super) fn unfollowed(provider: &Provider, status: StatusCode, why: &str) -> Answer {
    let words = format!(
        "refused: {} answered {status}, a redirect that is not followed: {why}",
        provider.name()
    );
    Answer {
        status: Some(status.as_u16()),
        ..Answer::of(Outcome::Rejected(fault(status, &words)))
    }
}

/// A redirect that came when no time was left to follow it: what it asks for was not sent, and what asked for it did nothing.
pub(super) fn out_of_time(provider: &Provider, status: StatusCode) -> Answer {
    let words = format!(
        "{} answered {status}, and no time was left to follow the redirect; nothing more was sent",
        provider.name()
    );
    Answer {
        status: Some(status.as_u16()),
        ..Answer::of(Outcome::Failed(fault(status, &words)))
    }
}

/// A call that got no answer: a failure if it never reached the provider or may be repeated, otherwise unknown.
pub(super) fn unanswered(provider: &Provider, error: &reqwest::Error, repeats: bool) -> Answer {
    let words = format!("{} did not answer: {}", provider.name(), chain(error));
    Answer::of(if repeats || error.is_connect() || error.is_builder() {
        Outcome::Failed(Fault::new(&words))
    } else {
        Outcome::Unknown(Fault::new(&format!(
            "{words}; the call may have had its effect and cannot be repeated safely"
        )))
    })
}

fn fault(status: StatusCode, words: &str) -> Fault {
    Fault::new(words).status(status.as_u16())
}

fn with_words(words: String, said: String) -> String {
    let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if said.trim().is_empty() {
        words
    } else {
        format!("{words}: {}", said.trim())
    }
}

/// An error with its causes; without its URL, whose query may hold what is nobody's business.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut words = if error.is_timeout() {
        "timed out".to_string()
    } else {
        String::new()
    };
    let mut link = std::error::Error::source(error);
    while let Some(cause) = link {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            if !words.is_empty() {
                words.push_str(": ");
            }
            words.push_str(&cause_words);
        }
        link = cause.source();
    }
    if words.is_empty() {
        "no connection".to_string()
    } else {
        words
    }
}
