//! One strategy's row: figures at the left, calls a second in the middle, the backlog at the right.

use std::time::Duration;

use super::{
    MARGIN, Most, Track,
    scale::{self, written},
    svg::{Anchor, Frame, Svg, area, steps},
};
use crate::pacing::{Bin, Bins};

/// Where the rates are drawn, from the top of a row.
pub(super) const RATE: Frame = Frame {
    x: 236.0,
    y: 12.0,
    width: 420.0,
    height: 92.0,
};
/// Where the backlog is drawn.
pub(super) const BACKLOG: Frame = Frame {
    x: 716.0,
    y: 12.0,
    width: 300.0,
    height: 92.0,
};

/// What a row is drawn from.
pub(super) struct Row<'c> {
    pub(super) track: &'c Track,
    pub(super) ideal: &'c Bins,
    pub(super) stretch: Duration,
    pub(super) most: Most,
}

impl Row<'_> {
    pub(super) fn draw(&self, svg: &mut Svg, y: f64) {
        let track = self.track;
        svg.open(&format!("{}: {}", track.strategy, track.notes.join(", ")));
        svg.text((MARGIN, y + 26.0), "strategy", Anchor::Start, &track.strategy);
        let mut line = y + 46.0;
        for note in &track.notes {
            svg.text((MARGIN, line), "words", Anchor::Start, note);
            line += 18.0;
        }
        let (class, words) = if track.missed {
            ("miss", "must: missed")
        } else {
            ("met", "must: met")
        };
        svg.text((MARGIN, line), class, Anchor::Start, words);
        self.rates(svg, Frame { y: y + RATE.y, ..RATE });
        self.backlog(
            svg,
            Frame {
                y: y + BACKLOG.y,
                ..BACKLOG
            },
        );
        svg.close();
    }

    fn rates(&self, svg: &mut Svg, frame: Frame) {
        grid(svg, frame, self.most.rate, self.most.span);
        let bins = joined(&self.track.bins, self.stretch);
        let own = Plot {
            frame,
            span: self.most.span,
            most: self.most.rate,
            width: bins.width(),
        };
        let seconds = bins.width().as_secs_f64();
        // The highest first, so that each covers the lower part of the one before.
        for layer in [Layer::Failed, Layer::Refused, Layer::Passed] {
            let (tops, end) = own.tops(bins.bins(), |bin| f64::from(layer.top(bin)) / seconds);
            svg.path(&area(&tops, end, frame.bottom()), layer.class());
        }
        let ideal = joined(self.ideal, self.stretch);
        let ideal_seconds = ideal.width().as_secs_f64();
        let plot = Plot {
            width: ideal.width(),
            ..own
        };
        let (tops, end) = plot.tops(ideal.bins(), |bin| f64::from(bin.passed) / ideal_seconds);
        svg.path(&steps(&tops, end), "ideal");
        svg.rule((frame.x, frame.bottom()), (frame.right(), frame.bottom()), "base");
        let highest = bins.bins().iter().map(|bin| Layer::Failed.top(bin));
        let highest = f64::from(highest.max().unwrap_or_default()) / seconds;
        if highest > self.most.rate {
            let words = format!("\u{2191} up to {}", written(short(highest)));
            svg.text((frame.right() - 4.0, frame.y + 10.0), "mark", Anchor::End, &words);
        }
    }

    fn backlog(&self, svg: &mut Svg, frame: Frame) {
        grid(svg, frame, self.most.backlog, self.most.span);
        let plot = |bins: &Bins| Plot {
            frame,
            span: self.most.span,
            most: self.most.backlog,
            width: bins.width(),
        };
        let of = |bins: &Bins| plot(bins).tops(bins.bins(), |bin| f64::from(bin.backlog));
        let (tops, end) = of(&self.track.bins);
        svg.path(&area(&tops, end, frame.bottom()), "backlog");
        svg.path(&steps(&tops, end), "edge");
        let (tops, end) = of(self.ideal);
        svg.path(&steps(&tops, end), "ideal");
        svg.rule((frame.x, frame.bottom()), (frame.right(), frame.bottom()), "base");
        if self.track.makespan > self.most.span {
            let unit = scale::unit(self.track.makespan);
            let until = self.track.makespan.as_secs_f64() / unit.seconds;
            let words = format!("goes on until {} {} \u{2192}", written(short(until)), unit.name);
            svg.text((frame.right() - 4.0, frame.y + 12.0), "mark", Anchor::End, &words);
        }
    }
}

/// How calls were answered: layers of one column, the refused above the passed, the failed above both.
#[derive(Clone, Copy)]
pub(super) enum Layer {
    Passed,
    Refused,
    Failed,
}

impl Layer {
    /// The calls of this layer and of those below it.
    pub(super) fn top(self, bin: &Bin) -> u32 {
        let refused = bin.passed.saturating_add(bin.refused);
        match self {
            Self::Passed => bin.passed,
            Self::Refused => refused,
            Self::Failed => refused.saturating_add(bin.failed),
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// From counts and moments to places.
#[derive(Clone, Copy)]
struct Plot {
    frame: Frame,
    span: Duration,
    most: f64,
    width: Duration,
}

impl Plot {
    /// The top of each bin that is shown, and where the last one ends.
    fn tops(&self, bins: &[Bin], value: impl Fn(&Bin) -> f64) -> (Vec<(f64, f64)>, f64) {
        let frame = self.frame;
        let step = frame.width * self.width.as_secs_f64() / self.span.as_secs_f64();
        let mut x = frame.x;
        let mut tops = Vec::new();
        for bin in bins {
            if x >= frame.right() {
                break;
            }
            let share = (value(bin) / self.most).clamp(0.0, 1.0);
            tops.push((x, frame.bottom() - share * frame.height));
            x += step;
        }
        (tops, x.min(frame.right()))
    }
}

/// A number with as many places as one reads.
fn short(number: f64) -> f64 {
    if number < 10.0 {
        (number * 10.0).round() / 10.0
    } else {
        number.round()
    }
}

/// Bins that are no finer than `stretch`.
pub(super) fn joined(bins: &Bins, stretch: Duration) -> Bins {
    let mut joined = bins.clone();
    while joined.width() < stretch {
        joined = joined.coarser();
    }
    joined
}

fn grid(svg: &mut Svg, frame: Frame, most: f64, span: Duration) {
    for mark in scale::marks(most, 4) {
        let y = frame.bottom() - mark / most * frame.height;
        svg.rule((frame.x, y), (frame.right(), y), "grid");
        svg.text((frame.x - 6.0, y + 4.0), "mark", Anchor::End, &written(mark));
    }
    for (x, _) in moments(frame, span) {
        svg.rule((x, frame.y), (x, frame.bottom()), "grid");
    }
}

/// Where the marks of time stand, and what they say.
fn moments(frame: Frame, span: Duration) -> Vec<(f64, String)> {
    let unit = scale::unit(span);
    let most = span.as_secs_f64() / unit.seconds;
    // The narrower the frame, the fewer labels stand side by side.
    let marks = scale::marks(most, if frame.width < 400.0 { 4 } else { 6 });
    let place = |mark: f64| (frame.x + frame.width * mark / most, written(mark));
    marks.into_iter().map(place).collect()
}

/// The axis of time below the last row.
pub(super) fn time_axis(svg: &mut Svg, y: f64, span: Duration) {
    for frame in [RATE, BACKLOG] {
        let marks = moments(frame, span);
        let last = marks.len().saturating_sub(1);
        for (place, (x, words)) in marks.into_iter().enumerate() {
            let words = if place == last {
                format!("{words} {}", scale::unit(span).name)
            } else {
                words
            };
            svg.text((x, y - 8.0), "mark", Anchor::Middle, &words);
        }
    }
}
