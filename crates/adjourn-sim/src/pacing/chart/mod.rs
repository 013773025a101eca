//! Pictures of runs: calls a second, refusals and backlog over time, one row for each strategy.

mod row;
mod scale;
mod style;
mod svg;

use std::time::Duration;

use super::Bins;

pub use style::STYLE;
pub use svg::escaped;

use row::Row;
use svg::{Anchor, Frame, Svg};

/// How wide a chart is, in CSS pixels.
const WIDTH: f64 = 1040.0;
const MARGIN: f64 = 24.0;
/// Title, what must be reached, legend.
const HEAD: f64 = 126.0;
const ROW: f64 = 128.0;
const FOOT: f64 = 30.0;
/// How many times the middle run's length the axis shows at most.
const STRETCH: u32 = 3;
/// How many stretches of time the rates are shown in: no more than the first; fewer than the second only where there is nothing finer.
const STRETCHES: (u128, u128) = (100, 40);
/// Calls in a stretch, on average: with fewer, a rate shows the beat of round trips and stretches, or noise.
const CALLS_IN_A_STRETCH: u64 = 20;

/// One strategy's run.
#[derive(Clone, Debug)]
pub struct Track {
    /// Its name.
    pub strategy: String,
    /// What happened, over time.
    pub bins: Bins,
    /// From the start to the last job's end.
    pub makespan: Duration,
    /// A few lines of figures beside it.
    pub notes: Vec<String>,
    /// Whether something that must be reached was missed.
    pub missed: bool,
}

/// A scenario's runs in a picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it is called.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// What must be reached, in a line.
    pub must: String,
    /// Who knows the limit, to compare with.
    pub ideal: Bins,
    /// The runs.
    pub tracks: Vec<Track>,
}

/// Charts in one document, one below the other.
#[must_use]
pub fn document(charts: &[Chart]) -> String {
    let mut whole = Svg::default();
    let height: f64 = charts.iter().map(Chart::height).sum();
    whole.rect(
        Frame {
            x: 0.0,
            y: 0.0,
            width: WIDTH,
            height,
        },
        "ground",
    );
    let mut y = 0.0;
    for chart in charts {
        whole.place(y, &chart.draw());
        y += chart.height();
    }
    let title = match charts {
        [chart] => format!("{}: {}", chart.name, chart.title),
        _ => format!("{} scenarios", charts.len()),
    };
    whole.document(WIDTH, height, STYLE, &title)
}

impl Chart {
    fn height(&self) -> f64 {
        HEAD + FOOT + self.tracks.iter().map(|_| ROW).sum::<f64>()
    }

    fn draw(&self) -> Svg {
        let mut svg = Svg::default();
        svg.text((MARGIN, 36.0), "name", Anchor::Start, &self.name);
        svg.text((MARGIN, 57.0), "words", Anchor::Start, &self.title);
        svg.text((MARGIN, 76.0), "quiet", Anchor::Start, &format!("must: {}", self.must));
        legend(&mut svg);
        for (frame, words) in [(row::RATE, "calls a second"), (row::BACKLOG, "jobs not yet ended")] {
            svg.text((frame.x, HEAD - 1.0), "quiet", Anchor::Start, words);
        }
        let shown = self.shown();
        let width = self.stretch(shown);
        let most = Most {
            span: shown,
            rate: self.highest_rate(width),
            backlog: self.highest_backlog(),
        };
        let mut y = HEAD;
        for track in &self.tracks {
            let row = Row {
                track,
                ideal: &self.ideal,
                stretch: width,
                most,
            };
            row.draw(&mut svg, y);
            y += ROW;
        }
        row::time_axis(&mut svg, y, shown);
        svg
    }

    /// How much of the time is shown: all of it, unless some run goes on far beyond the others.
    fn shown(&self) -> Duration {
        let mut spans: Vec<Duration> = self.tracks.iter().map(|track| track.makespan).collect();
        spans.sort_unstable();
        let longest = spans.last().copied().unwrap_or_default();
        let middle = spans.get(spans.len() / 2).copied().unwrap_or_default();
        longest
            .min(middle.saturating_mul(STRETCH))
            .max(Duration::from_millis(1))
    }

    /// How long the stretches are in which calls are counted.
    fn stretch(&self, shown: Duration) -> Duration {
        let all = self.tracks.iter().map(|track| &track.bins).chain([&self.ideal]);
        let finest = all.map(Bins::width).max().unwrap_or_default();
        let calls = self.tracks.iter().map(|track| {
            let passed = track.bins.bins().iter().map(|bin| u64::from(bin.passed));
            passed.sum::<u64>()
        });
        let calls = u128::from(calls.max().unwrap_or_default() / CALLS_IN_A_STRETCH);
        let (most, fewest) = STRETCHES;
        let wanted = calls.clamp(fewest, most);
        let mut width = finest.max(Duration::from_millis(1));
        while shown.as_nanos() / width.as_nanos().max(1) > wanted {
            width = width.saturating_mul(2);
        }
        width
    }

    /// The highest rate that is shown. What a full bucket lets through in the first moment is far above all that follows.
    fn highest_rate(&self, stretch: Duration) -> f64 {
        let rates = |bins: &Bins| -> Vec<f64> {
            let bins = row::joined(bins, stretch);
            let counts = bins.bins().iter().map(|bin| row::Layer::Failed.top(bin));
            counts
                .filter(|&count| count > 0)
                .map(|count| f64::from(count) / bins.width().as_secs_f64())
                .collect()
        };
        let all = self.tracks.iter().flat_map(|track| rates(&track.bins));
        let highest = all.fold(0.0, f64::max);
        let mut ideal = rates(&self.ideal);
        ideal.sort_by(f64::total_cmp);
        let usual = ideal.get(ideal.len().saturating_mul(9) / 10).or(ideal.last());
        let most = usual.map_or(highest, |usual| highest.min(3.0 * usual));
        if most > 0.0 { most * 1.05 } else { 1.0 }
    }

    fn highest_backlog(&self) -> f64 {
        let tracks = self.tracks.iter().flat_map(|track| track.bins.bins());
        let most = tracks.map(|bin| bin.backlog).max().unwrap_or_default();
        f64::from(most.max(1)) * 1.05
    }
}

/// How far the axes go.
#[derive(Clone, Copy, Debug)]
struct Most {
    span: Duration,
    rate: f64,
    backlog: f64,
}

fn legend(svg: &mut Svg) {
    let mut x = row::RATE.x;
    for (class, words, room) in [
        ("passed", "passed", 76.0),
        ("refused", "refused", 80.0),
        ("failed", "failed", 68.0),
        ("backlog", "jobs not yet ended", 148.0),
    ] {
        svg.rect(
            Frame {
                x,
                y: HEAD - 38.0,
                width: 12.0,
                height: 10.0,
            },
            class,
        );
        svg.text((x + 17.0, HEAD - 29.0), "quiet", Anchor::Start, words);
        x += room;
    }
    svg.rule((x, HEAD - 33.0), (x + 22.0, HEAD - 33.0), "ideal");
    svg.text((x + 28.0, HEAD - 29.0), "quiet", Anchor::Start, "who knows the limit");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::{Named, Scenario, watch};

    fn track(scenario: &Scenario, strategy: &str) -> Track {
        let mut bins = Bins::default();
        let run = watch(scenario, Named::find(strategy).unwrap(), 1, &mut |seen| bins.see(seen));
        Track {
            strategy: strategy.to_string(),
            bins,
            makespan: run.makespan,
            notes: vec!["1.0 <times>".to_string()],
            missed: run.failed > 0,
        }
    }

    fn chart(file: &str, strategies: &[&str]) -> Chart {
        let scenario = Scenario::parse("mine", &format!("title = \"a & b\"\n{file}")).unwrap();
        Chart {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            must: scenario.must.words(),
            ideal: track(&scenario, "ideal").bins,
            tracks: strategies.iter().map(|strategy| track(&scenario, strategy)).collect(),
        }
    }

    /// Every number of every shape and text.
    fn numbers(svg: &str) -> impl Iterator<Item = f64> {
        svg.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
            .filter_map(|number| number.parse().ok())
    }

    #[test]
    fn whatever_happens_is_drawn_within_the_picture() {
        for file in [
            "jobs = 1",
            "jobs = 200\nlatency_ms = 50\n[[limits]]\nkind = \"bucket\"\nrate = 10\nburst = 50",
            "jobs = 20\n[[limits]]\nkind = \"window\"\ncalls = 5\nper_ms = 2678400000",
            "jobs = 5\n[[limits]]\nkind = \"always\"",
        ] {
            let svg = document(&[chart(file, &["fixed", "independent", "full-jitter"])]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(
                svg.contains("<title>mine: a &amp; b</title>") && svg.contains("1.0 &lt;times&gt;"),
                "{svg}"
            );
            let (_, body) = svg.split_once("</style>").unwrap();
            let shapes = body
                .lines()
                .filter(|line| !line.starts_with("<text") && !line.starts_with("<g>"));
            for shape in shapes {
                let inside = numbers(shape).all(|number| (0.0..=WIDTH).contains(&number));
                assert!(inside, "{shape}");
            }
        }
    }

    #[test]
    fn a_run_that_goes_on_far_beyond_the_others_is_cut_and_says_so() {
        let file = "jobs = 40\nlatency_ms = 10\n[[limits]]\nkind = \"bucket\"\nrate = 100\nburst = 1";
        let mut chart = chart(file, &["fixed", "fixed", "fixed"]);
        let whole = document(std::slice::from_ref(&chart));
        assert!(!whole.contains("goes on until"), "{whole}");
        let last = chart.tracks.last_mut().unwrap();
        last.makespan = Duration::from_secs(100);
        let cut = document(&[chart]);
        assert!(cut.contains("goes on until 100 s"), "{cut}");
    }

    #[test]
    fn charts_stand_below_each_other() {
        let one = chart("jobs = 3", &["fixed"]);
        let height = one.height();
        let both = document(&[one.clone(), one]);
        assert!(both.contains(&format!("translate(0 {height:.1})")), "{both}");
        assert!(
            both.contains(&format!("viewBox=\"0 0 {WIDTH:.0} {:.0}\"", 2.0 * height)),
            "{both}"
        );
    }
}
