//! Each wait is an event that says why.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjourn_http::{Rate, RateBudget};
use tracing_subscriber::fmt::MakeWriter;

use crate::calls::{S, refused, send, settle};

/// What was logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    /// Reason and milliseconds of each wait.
    fn waits(&self) -> Vec<(String, Option<u64>)> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let waits = events.filter(|event| event["fields"]["message"] == "a call waits for its turn");
        waits
            .map(|event| {
                assert_eq!(event["fields"]["provider"], "acme");
                let reason = event["fields"]["reason"].as_str().unwrap().to_string();
                (reason, event["fields"]["wait_ms"].as_u64())
            })
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn each_wait_is_an_event_with_its_reason() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(lines.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let budget = RateBudget::new(Rate::new(1, S)).contract("acme", None).max_in_flight(1);

    drop(send(&budget, "/").await);
    assert_eq!(lines.waits(), [], "the first does not wait");
    let second = send(&budget, "/").await;
    assert_eq!(lines.waits(), [("paced".to_string(), Some(1000))]);

    tokio::time::advance(5 * S).await;
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { drop(send(&budget, "/").await) }
    });
    settle().await;
    drop(second);
    waiting.await.unwrap();
    assert_eq!(lines.waits()[1], ("in_flight".to_string(), None));

    let wait = refused(&budget, &[("Retry-After", "30")]).await.retry_after.unwrap();
    budget.pushback(wait, None).await.unwrap();
    drop(send(&budget, "/").await);
    let rest = lines.waits().split_off(2);
    // The refused call itself waited for its start first.
    assert_eq!(rest[0].0, "paced");
    assert_eq!(rest[1], ("pushback".to_string(), u64::try_from(wait.as_millis()).ok()));

    refused(&budget, &[]).await;
    drop(send(&budget, "/").await);
    assert_eq!(
        lines.waits().last().unwrap(),
        &("throttled".to_string(), Some(4000)),
        "a quarter of the rate"
    );

    refused(&budget, &[("Retry-After", "30")]).await;
    drop(send(&budget, "/").await);
    let last = lines.waits().pop().unwrap();
    assert_eq!(last.0, "paused");
    assert!(last.1.is_some_and(|ms| Duration::from_millis(ms) >= 30 * S));
}
