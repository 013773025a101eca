//! A response's body that holds its call's place in flight.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};

use super::InFlight;

/// A body whose call counts as in flight until it is read to its end, breaks off or is dropped.
#[derive(Debug)]
pub struct HeldBody<B> {
    body: Pin<Box<B>>,
    in_flight: Option<InFlight>,
}

impl<B: Body> HeldBody<B> {
    pub(super) fn new(in_flight: InFlight, body: B) -> Self {
        let mut held = Self {
            body: Box::pin(body),
            in_flight: Some(in_flight),
        };
        held.release_at_end();
        held
    }

    /// Nobody need ask for a frame that is known not to come.
    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.in_flight = None;
        }
    }
}

impl<B: Body> Body for HeldBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = self.body.as_mut().poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(_))) => self.release_at_end(),
            Poll::Ready(Some(Err(_)) | None) => self.in_flight = None,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
