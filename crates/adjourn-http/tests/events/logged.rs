//! The one listener of the process, which keeps what each thread logs by itself.

use std::{cell::RefCell, io, sync::Once};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What this thread logged since it asked for it.
#[derive(Debug)]
pub(crate) struct Logged(());

impl Logged {
    /// Listens from now on. A test's runtime has to stay on the test's thread.
    pub(crate) fn listen() -> Self {
        static LISTENS: Once = Once::new();
        // Whoever comes second waits until the listener of the first is there.
        LISTENS.call_once(|| {
            tracing_subscriber::fmt()
                .json()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(ThisThread)
                .init();
        });
        LINES.take();
        Self(())
    }

    /// The events of this crate until now, and from now on only later ones.
    pub(crate) fn take(&self) -> Vec<Value> {
        let text = String::from_utf8(LINES.take()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .filter(|event| event["target"].as_str().unwrap().starts_with("adjourn"))
            .collect()
    }
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for ThisThread {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}
