//! One exchange with a provider: the request that goes out, the redirects that are followed, and what comes back.

use std::time::Duration;

use adjourn_core::{Fault, Outcome, Timestamp};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use super::{
    Answer, Attempt, MAX_RESULT_BYTES, Requester, answer,
    outgoing::{Call, Order},
    paced::{Started, Unmade},
    redirect,
};
use crate::{Provider, READ_BYTES, Results, Token};

const MAX_REDIRECTS: usize = 5;

/// One answer, received.
pub(super) struct Received {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether that is all of the body.
    pub(super) whole: bool,
    /// When its head came.
    pub(super) at: Timestamp,
}

impl Requester {
    /// Sends a call, which may take what is `left`.
    pub(super) fn send(
        &self,
        provider: &Provider,
        call: Call,
        left: Duration,
    ) -> impl Future<Output = Result<reqwest::Response, reqwest::Error>> + use<> {
        self.inner.clients.of(provider).execute(call.request(left))
    }

    /// Receives what the first call of an order is answered, and makes those that its redirects ask for. `token` is among the
    /// headers of each.
    pub(super) async fn follow(
        &self,
        order: &Order<'_>,
        sent: impl Future<Output = Result<reqwest::Response, reqwest::Error>>,
        ends_at: Timestamp,
        token: Option<&Token>,
        started: Option<Started>,
    ) -> Result<Attempt, Unmade> {
        match self.receive(order, sent).await {
            Ok((received, redirect::Target::None)) => Ok(self.answer(order, received, token, started)),
            // Seldom, and large: what every call would have to carry along otherwise.
            Ok((received, next)) => Box::pin(self.redirected(order, received, next, ends_at, token, started)).await,
            Err(error) => Ok(unanswered(order, &error)),
        }
    }

    /// Makes the calls that redirects ask for, from the first answer that is one. Each takes a turn of its own, by its own path.
    async fn redirected(
        &self,
        order: &Order<'_>,
        mut received: Received,
        mut next: redirect::Target,
        mut ends_at: Timestamp,
        token: Option<&Token>,
        mut started: Option<Started>,
    ) -> Result<Attempt, Unmade> {
        let provider = order.provider;
        for redirects in 1..=MAX_REDIRECTS + 1 {
            let url = match next {
                redirect::Target::None => return Ok(self.answer(order, received, token, started)),
                redirect::Target::Refused(words) => {
                    self.hear(order, &received, started.as_ref());
                    return Ok(answer::unfollowed(provider, received.status, &words).into());
                }
                redirect::Target::Follow(url) => url,
            };
            self.hear(order, &received, started.as_ref());
            // Its place is free for the next one.
            drop(started.take());
            if redirects > MAX_REDIRECTS {
                let words = format!("it was the redirect number {redirects} in a row");
                return Ok(answer::unfollowed(provider, received.status, &words).into());
            }
            // The request was given away when it was sent; nobody keeps a copy for a redirect.
            let Some(again) = order.call() else { break };
            let again = match token {
                Some(token) => again.with_token(provider, token),
                None => again,
            };
            let waits_since = (self.inner.now)();
            if ends_at <= waits_since {
                return Ok(answer::out_of_time(provider, received.status).into());
            }
            let path = redirect::path_below(provider.base_url(), &url);
            started = self.turn(order, path, Some(received.status)).await?;
            ends_at = self.ends_later(order, ends_at, waits_since);
            let left = ends_at.since((self.inner.now)());
            let sent = self.send(provider, again.to(*url), left);
            (received, next) = match self.receive(order, sent).await {
                Ok(answered) => answered,
                Err(error) => return Ok(unanswered(order, &error)),
            };
        }
        Ok(Answer::of(Outcome::Failed(Fault::new("redirected too often"))).into())
    }

    /// Receives what a call is answered: all of the head, and of the body as much as is asked for. And where it redirects to.
    async fn receive(
        &self,
        order: &Order<'_>,
        sent: impl Future<Output = Result<reqwest::Response, reqwest::Error>>,
    ) -> Result<(Received, redirect::Target), reqwest::Error> {
        let provider = order.provider;
        let mut response = sent.await?;
        let at = (self.inner.now)();
        // Whatever decodes the body has read them already.
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let next = redirect::target(provider.base_url(), &order.job.method, response.url(), status, &headers);
        let (body, whole) = read_body(&mut response, most(provider, status)).await;
        let received = Received {
            status,
            headers,
            body,
            whole,
            at,
        };
        Ok((received, next))
    }
}

fn unanswered(order: &Order<'_>, error: &reqwest::Error) -> Attempt {
    let repeats = order.provider.repeats(&order.job.method);
    answer::unanswered(order.provider, error, repeats).into()
}

/// How much of a body is asked for.
fn most(provider: &Provider, status: StatusCode) -> usize {
    if status.is_success() && provider.results() == Results::Store {
        MAX_RESULT_BYTES
    } else {
        READ_BYTES
    }
}

/// The first `most` bytes of a body, and whether that is all of it. What breaks off has still been answered: its status and
/// headers stand.
pub(crate) async fn read_body(response: &mut reqwest::Response, most: usize) -> (Bytes, bool) {
    // Most bodies come in one piece, which need not be copied.
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let whole = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = most - first.len().max(all.len());
                let fits = chunk.len() <= room;
                let chunk = chunk.slice(..chunk.len().min(room));
                if first.is_empty() {
                    first = chunk;
                } else {
                    if all.is_empty() {
                        all.extend_from_slice(&first);
                    }
                    all.extend_from_slice(&chunk);
                }
                if !fits {
                    break false;
                }
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    (if all.is_empty() { first } else { all.freeze() }, whole)
}
