//! SIGINT and SIGTERM as futures.

use tokio::signal::unix::{self, SignalKind};

use crate::ending::{Failure, Signal};

/// The signals that ask this process to end. From the moment it is made, they no longer end it by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| unix::signal(kind).map_err(|error| Failure::no(format!("cannot listen for signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
