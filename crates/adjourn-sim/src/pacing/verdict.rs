//! Whether a run reached what its scenario must reach, and which part of it was missed, in words.

use std::time::Duration;

use super::{Against, BrokenOff, Must, Run, Scenario, ideal, reference};

/// How long a run may take beyond its share: moments are rounded to a millisecond by those who report them.
const SLACK: Duration = Duration::from_millis(1);

/// What the runs of a scenario are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yardstick {
    /// The time that the limits themselves need; zero where they need none, or let nothing pass.
    pub limit: Duration,
    /// The time of what the scenario is compared with.
    pub reference: Duration,
}

impl Yardstick {
    /// Plays what the runs of a scenario are held against.
    #[must_use]
    pub fn of(scenario: &Scenario, seed: u64) -> Self {
        let ideal = ideal(scenario, seed);
        Self {
            limit: ideal,
            reference: match scenario.must.against {
                Against::Limit => ideal,
                Against::Independent | Against::Patient | Against::Ladder => reference(scenario, seed),
            },
        }
    }
}

/// One over the other; none where the other is nothing.
#[must_use]
pub fn ratio(span: Duration, of: Duration) -> Option<f64> {
    (!of.is_zero()).then(|| span.as_secs_f64() / of.as_secs_f64())
}

/// Each part of `must` that a run missed, in words. No call may be early, no job lost, and none done twice, whatever a scenario says.
#[must_use]
pub fn missed(scenario: &Scenario, run: &Run, reference: Duration) -> Vec<String> {
    let must = &scenario.must;
    let mut missed = laws_broken(run);
    if let Some(most) = must.ratio
        && run.makespan.as_secs_f64() > most * reference.as_secs_f64() + SLACK.as_secs_f64()
    {
        let took = ratio(run.makespan, reference).map_or_else(String::new, |ratio| format!(", {ratio:.2} times"));
        missed.push(format!(
            "it took {}{took} the {} of {}; allowed: {most} times",
            seconds(run.makespan),
            seconds(reference),
            must.against.words(),
        ));
    }
    if let Some(most) = must.refused_share.filter(|&most| run.refused_share() > most) {
        missed.push(format!(
            "{:.1} % of the calls were refused ({} of {}); allowed: {} %",
            100.0 * run.refused_share(),
            run.refusals,
            run.calls,
            hundredths(most),
        ));
    }
    if let Some(most) = must.calls.filter(|&most| run.calls > most) {
        missed.push(format!("it called {} times; allowed: {most}", run.calls));
    }
    if run.failed > must.given_up {
        missed.push(format!("it gave up {} jobs; allowed: {}", run.failed, must.given_up));
    }
    missed
}

/// What no run may do.
#[must_use]
pub fn laws_broken(run: &Run) -> Vec<String> {
    let mut broken = Vec::new();
    if run.early > 0 {
        broken.push(format!(
            "{} calls came before the moment that their refusal named; allowed: none",
            run.early
        ));
    }
    if run.lost > 0 {
        let why = match run.broken_off {
            Some(BrokenOff::Calls) => format!(" (it was broken off after {} calls)", run.calls),
            Some(BrokenOff::Time) => " (it took too long to be played)".to_string(),
            None => String::new(),
        };
        broken.push(format!("{} jobs came to no end{why}; allowed: none", run.lost));
    }
    if run.duplicates > 0 {
        broken.push(format!("{} jobs were done twice; allowed: none", run.duplicates));
    }
    broken
}

impl Must {
    /// What must be reached, in a line.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if let Some(ratio) = self.ratio {
            parts.push(format!("at most {ratio} times the time of {}", self.against.words()));
        }
        if let Some(share) = self.refused_share {
            parts.push(format!("at most {} % refused", hundredths(share)));
        }
        if let Some(calls) = self.calls {
            parts.push(format!("at most {calls} calls"));
        }
        parts.push(match self.given_up {
            0 => "every job done".to_string(),
            jobs => format!("at most {jobs} jobs given up"),
        });
        parts.join(", ")
    }
}

impl Against {
    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Independent => "independent",
            Self::Patient => "patient",
            Self::Ladder => "ladder",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Limit => "the limit itself",
            Self::Independent => "independent retries",
            Self::Patient => "a single patient job",
            Self::Ladder => "the plain ladder",
        }
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.2} s", span.as_secs_f64())
}

/// A share in percent, with as many places as it needs.
fn hundredths(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(must: &str) -> Scenario {
        let text = format!("title = \"t\"\njobs = 10\n[must]\n{must}");
        Scenario::parse("t", &text).unwrap()
    }

    fn run() -> Run {
        Run {
            done: 10,
            calls: 20,
            refusals: 2,
            makespan: Duration::from_millis(11_000),
            ..Run::default()
        }
    }

    #[test]
    fn each_part_is_met_at_its_bound_and_missed_beyond_it() {
        let ten = Duration::from_secs(10);
        for (met, not, words) in [
            (
                "ratio = 1.1",
                "ratio = 1.0998",
                "it took 11.00 s, 1.10 times the 10.00 s of the limit itself",
            ),
            (
                "refused_share = 0.1",
                "refused_share = 0.09",
                "10.0 % of the calls were refused (2 of 20); allowed: 9 %",
            ),
            ("calls = 20", "calls = 19", "it called 20 times; allowed: 19"),
        ] {
            assert_eq!(missed(&scenario(met), &run(), ten), Vec::<String>::new(), "{met}");
            let words_of = missed(&scenario(not), &run(), ten);
            assert!(words_of.len() == 1 && words_of[0].starts_with(words), "{words_of:?}");
        }
        let gave_up = Run { failed: 1, ..run() };
        assert_eq!(missed(&scenario("given_up = 1"), &gave_up, ten), Vec::<String>::new());
        assert_eq!(missed(&scenario(""), &gave_up, ten), ["it gave up 1 jobs; allowed: 0"]);
    }

    #[test]
    fn the_laws_hold_whatever_a_scenario_says() {
        for (broken, words) in [
            (Run { early: 1, ..run() }, "1 calls came before"),
            (
                Run {
                    lost: 2,
                    broken_off: Some(BrokenOff::Time),
                    ..run()
                },
                "2 jobs came to no end (it took too long to be played); allowed: none",
            ),
            (Run { duplicates: 3, ..run() }, "3 jobs were done twice"),
        ] {
            let missed = missed(&scenario(""), &broken, Duration::ZERO);
            assert!(missed.len() == 1 && missed[0].starts_with(words), "{missed:?}");
        }
    }

    #[test]
    fn what_must_be_reached_is_told_in_a_line() {
        let must = scenario("ratio = 1.05\nrefused_share = 0.05\ncalls = 15\ngiven_up = 2").must;
        assert_eq!(
            must.words(),
            "at most 1.05 times the time of the limit itself, at most 5 % refused, at most 15 calls, at most 2 jobs given up"
        );
        assert_eq!(Must::default().words(), "every job done");
    }
}
