//! Colours for a person at a terminal, and none elsewhere.

use std::fmt;

use clap::builder::styling::{AnsiColor, Style};

use crate::environment::Environment;

/// Whether and how words are coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    coloured: bool,
}

/// What a word is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// What matters most.
    Strong,
    /// It has to wait.
    Wait,
    /// All is well.
    Good,
    /// No wait helps.
    Bad,
    /// A label, or what is beside the point.
    Quiet,
}

impl Paint {
    /// Colours where stdout is a terminal and NO_COLOR does not forbid them.
    pub(crate) fn stdout(environment: &Environment) -> Self {
        Self {
            coloured: environment.stdout_is_terminal && !environment.no_color,
        }
    }

    /// Words in that tone.
    pub(crate) fn words(self, tone: Tone, words: impl fmt::Display) -> String {
        if !self.coloured {
            return words.to_string();
        }
        let style = match tone {
            Tone::Strong => Style::new().bold(),
            Tone::Wait => AnsiColor::Yellow.on_default().bold(),
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Quiet => Style::new().dimmed(),
        };
        format!("{style}{words}{style:#}")
    }
}

/// A text that came from outside, so that it cannot move a terminal's cursor or colour what follows.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}
