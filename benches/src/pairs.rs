//! Interleaved pairs: both sides in turn, the first alternately, and the median of the ratios within each pair.

use std::time::Duration;

use crate::Failure;

/// What alternations came to, in seconds.
pub(crate) struct Compared {
    /// Median of our side.
    pub(crate) ours: f64,
    /// Median of the other side.
    pub(crate) other: f64,
    /// Median over the pairs of ours by the other's.
    pub(crate) ratio: f64,
}

/// Runs both sides `pairs` times in turn. `side` is asked with true for our side, with false for the other.
pub(crate) async fn alternate(
    pairs: u32,
    mut side: impl AsyncFnMut(bool) -> Result<Duration, Failure>,
) -> Result<Compared, Failure> {
    let (mut ours, mut others, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let first = side(pair % 2 == 0).await?.as_secs_f64();
        let second = side(pair % 2 != 0).await?.as_secs_f64();
        let (our, other) = if pair % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        ours.push(our);
        others.push(other);
        ratios.push(our / other);
    }
    Ok(Compared {
        ours: median(ours)?,
        other: median(others)?,
        ratio: median(ratios)?,
    })
}

fn median(mut values: Vec<f64>) -> Result<f64, Failure> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied();
    let lower = values.get(values.len().saturating_sub(1) / 2).copied();
    match (lower, upper) {
        (Some(lower), Some(upper)) => Ok(f64::midpoint(lower, upper)),
        _ => Err("nothing was measured".into()),
    }
}

/// A running stopwatch.
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "what is measured here is real time")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn read(&self) -> Duration {
        self.0.elapsed()
    }
}
