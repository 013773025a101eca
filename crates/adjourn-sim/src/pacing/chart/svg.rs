//! A small writer of SVG: what a chart is drawn with.

use std::fmt::Write as _;

/// Shapes, in the order in which they are drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Svg {
    body: String,
}

/// Where a text stands to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A stretch on a plane: from (x, y), so wide, so high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(self) -> f64 {
        self.y + self.height
    }
}

impl Svg {
    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let words = escaped(words);
        self.line(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\"{anchor}>{words}</text>"
        ));
    }

    pub(super) fn rect(&mut self, frame: Frame, class: &str) {
        let Frame { x, y, width, height } = frame;
        self.line(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn rule(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.line(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn path(&mut self, path: &str, class: &str) {
        if !path.is_empty() {
            self.line(&format!("<path d=\"{path}\" class=\"{class}\"/>"));
        }
    }

    /// Opens a group, which programs that read aloud call by its words.
    pub(super) fn open(&mut self, words: &str) {
        self.line(&format!("<g><title>{}</title>", escaped(words)));
    }

    pub(super) fn close(&mut self) {
        self.line("</g>");
    }

    /// Puts another drawing there.
    pub(super) fn place(&mut self, y: f64, other: &Self) {
        self.line(&format!("<g transform=\"translate(0 {y:.1})\">"));
        self.body.push_str(&other.body);
        self.line("</g>");
    }

    fn line(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// The whole document, of that size.
    pub(super) fn document(&self, width: f64, height: f64, style: &str, title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"adjourn\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n<style>\n{style}</style>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// A path along the tops of steps: each from its x to the next one's, the last one to `end`.
pub(super) fn steps(tops: &[(f64, f64)], end: f64) -> String {
    let mut path = String::new();
    let mut level = None;
    for &(x, y) in tops {
        match level {
            None => path = format!("M{x:.1} {y:.1}"),
            Some(level) if level == y => {}
            Some(_) => {
                // A String takes whatever is written.
                let _ = write!(path, "H{x:.1}V{y:.1}");
            }
        }
        level = Some(y);
    }
    if level.is_some() {
        let _ = write!(path, "H{end:.1}");
    }
    path
}

/// The area between the tops of steps and a base line.
pub(super) fn area(tops: &[(f64, f64)], end: f64, base: f64) -> String {
    let Some((start, _)) = tops.first() else {
        return String::new();
    };
    format!("{}V{base:.1}H{start:.1}Z", steps(tops, end))
}

/// A text as XML and HTML take it.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_their_level_until_the_next() {
        let tops = [(0.0, 5.0), (1.0, 5.0), (2.0, 3.0)];
        assert_eq!(steps(&tops, 4.0), "M0.0 5.0H2.0V3.0H4.0");
        assert_eq!(area(&tops, 4.0, 9.0), "M0.0 5.0H2.0V3.0H4.0V9.0H0.0Z");
        assert_eq!((steps(&[], 4.0), area(&[], 4.0, 9.0)), (String::new(), String::new()));
    }

    #[test]
    fn a_text_stays_a_text() {
        assert_eq!(escaped("a<b> & \"c\"\u{1b}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}");
    }
}
