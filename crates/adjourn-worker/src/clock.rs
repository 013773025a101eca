//! The one place where the wall clock is read and slept by.

use std::time::Duration;

use adjourn_core::Timestamp;
use async_trait::async_trait;

/// Tells the time and waits.
#[async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// This moment.
    fn now(&self) -> Timestamp;
    /// Returns once `span` has passed.
    async fn sleep(&self, span: Duration);
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// A clock that follows tokio's, which tests pause and move: `tokio::time::advance`, or on its own when nothing else can
/// run.
#[cfg(feature = "test-util")]
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: tokio::time::Instant,
}

#[cfg(feature = "test-util")]
impl VirtualClock {
    /// A clock that shows `start` now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where virtual time is read")]
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            origin: tokio::time::Instant::now(),
        }
    }
}

#[cfg(feature = "test-util")]
#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start + self.origin.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
