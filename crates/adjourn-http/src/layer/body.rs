//! A response's body whose beginning was read already, and which may hold its call's place in flight.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

use crate::{HeldBody, InFlight};

/// A response's body: what was read of it to understand the response, and then the rest. Where the beginning broke off, so does it,
/// after the bytes that came.
#[derive(Debug)]
pub struct ReadBody<B: Body> {
    read: Bytes,
    next: Next<B::Error>,
    rest: Rest<B>,
}

/// What came after the bytes that were read: trailers, or the error by which the body breaks off. Boxed, since it is seldom there.
type Next<E> = Option<Box<Result<Frame<Bytes>, E>>>;

#[derive(Debug)]
enum Rest<B> {
    Bare(Pin<Box<B>>),
    /// Counts as in flight until it is read to its end or dropped.
    Held(HeldBody<Pin<Box<B>>>),
    /// Nothing more comes; so much was announced and did not come.
    Ended(SizeHint),
}

impl<B: Body> ReadBody<B> {
    pub(super) fn new(beginning: Beginning<B::Error>, rest: Pin<Box<B>>) -> Self {
        let Beginning { read, next } = beginning;
        let rest = match next.as_deref() {
            Some(Err(_)) => Rest::Ended(rest.size_hint()),
            Some(Ok(_)) | None => Rest::Bare(rest),
        };
        let read = Bytes::from(read);
        Self { read, next, rest }
    }

    /// The bytes that were read.
    pub(super) fn read(&self) -> Bytes {
        self.read.clone()
    }

    pub(super) fn held(self, in_flight: InFlight) -> Self {
        let rest = match self.rest {
            Rest::Bare(rest) => Rest::Held(in_flight.body(rest)),
            // The provider is done with a call whose answer broke off.
            other @ (Rest::Held(_) | Rest::Ended(_)) => other,
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
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(*next));
        }
        let polled = match &mut self.rest {
            Rest::Bare(rest) => rest.as_mut().poll_frame(context),
            Rest::Held(rest) => Pin::new(rest).poll_frame(context),
            Rest::Ended(_) => Poll::Ready(None),
        };
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.rest = Rest::Ended(SizeHint::with_exact(0));
        }
        polled.map_ok(|frame| frame.map_data(bytes))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && self.next.is_none()
            && match &self.rest {
                Rest::Bare(rest) => rest.is_end_stream(),
                Rest::Held(rest) => rest.is_end_stream(),
                Rest::Ended(_) => true,
            }
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.rest {
            Rest::Bare(rest) => rest.size_hint(),
            Rest::Held(rest) => rest.size_hint(),
            Rest::Ended(missing) => *missing,
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

/// The next frame of a body; none at its end.
async fn frame<B: Body>(body: &mut Pin<Box<B>>) -> Option<Result<Frame<B::Data>, B::Error>> {
    std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
}

/// What is being read of a body. A reading that is dropped while it waits has lost nothing.
#[derive(Debug)]
pub(super) struct Beginning<E> {
    read: Vec<u8>,
    next: Next<E>,
}

impl<E> Beginning<E> {
    pub(super) const fn new() -> Self {
        Self {
            read: Vec::new(),
            next: None,
        }
    }

    /// Reads a little over `most` bytes at most, and not past trailers or an error.
    pub(super) async fn read<B: Body<Error = E>>(&mut self, body: &mut Pin<Box<B>>, most: usize) {
        while self.read.len() < most && self.next.is_none() {
            let Some(frame) = frame(body).await else { return };
            match frame.map(|frame| frame.map_data(bytes).into_data()) {
                Ok(Ok(data)) => self.read.extend_from_slice(&data),
                Ok(Err(trailers)) => self.next = Some(Box::new(Ok(trailers))),
                Err(error) => self.next = Some(Box::new(Err(error))),
            }
        }
    }
}
