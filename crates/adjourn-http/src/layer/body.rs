//! A response's body whose beginning was read already, and which may hold its call's place in flight.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

use crate::{HeldBody, InFlight};

/// A response's body: what was read of it to understand the response, and then the rest.
#[derive(Debug)]
pub struct ReadBody<B> {
    read: Bytes,
    rest: Rest<B>,
}

#[derive(Debug)]
enum Rest<B> {
    Bare(Pin<Box<B>>),
    /// Counts as in flight until it is read to its end or dropped.
    Held(HeldBody<Pin<Box<B>>>),
    Ended,
}

impl<B: Body> ReadBody<B> {
    pub(super) fn new(read: Bytes, rest: Pin<Box<B>>) -> Self {
        Self {
            read,
            rest: Rest::Bare(rest),
        }
    }

    pub(super) fn held(self, in_flight: InFlight) -> Self {
        let rest = match self.rest {
            Rest::Bare(rest) => Rest::Held(in_flight.body(rest)),
            other @ (Rest::Held(_) | Rest::Ended) => other,
        };
        Self { rest, ..self }
    }
}

impl<B: Body> Body for ReadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.read)))));
        }
        let polled = match &mut self.rest {
            Rest::Bare(rest) => rest.as_mut().poll_frame(context),
            Rest::Held(rest) => Pin::new(rest).poll_frame(context),
            Rest::Ended => Poll::Ready(None),
        };
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.rest = Rest::Ended;
        }
        polled.map_ok(|frame| frame.map_data(bytes))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && match &self.rest {
                Rest::Bare(rest) => rest.is_end_stream(),
                Rest::Held(rest) => rest.is_end_stream(),
                Rest::Ended => true,
            }
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.rest {
            Rest::Bare(rest) => rest.size_hint(),
            Rest::Held(rest) => rest.size_hint(),
            Rest::Ended => SizeHint::with_exact(0),
        };
        let read = u64::try_from(self.read.len()).unwrap_or(u64::MAX);
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(read));
        }
        whole
    }
}

fn bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

/// The next frame of a body; none at its end, and where it breaks off.
async fn frame<B: Body>(body: &mut Pin<Box<B>>) -> Option<Result<Frame<B::Data>, B::Error>> {
    std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
}

/// Reads the beginning of a body, a little over `most` bytes at most, into `read`. Dropped while it waits, it loses nothing.
pub(super) async fn begin<B: Body>(read: &mut Vec<u8>, body: &mut Pin<Box<B>>, most: usize) {
    while read.len() < most {
        match frame(body).await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&bytes(data));
                }
            }
            Some(Err(_)) | None => return,
        }
    }
}
