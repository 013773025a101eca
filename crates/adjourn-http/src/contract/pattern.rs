//! Patterns of a contract: regular expressions without backtracking, bounded in size.

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};

/// The most bytes that a compiled pattern may take.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// The most bytes of a pattern's text.
const MAX_TEXT_BYTES: usize = 500;

/// A regular expression in the syntax of the regex crate. Its cost is linear in the text that it searches.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// A pattern.
    ///
    /// # Errors
    /// In words, where the text is no regular expression or a larger one than is allowed.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "has {} bytes; allowed: a regular expression of 1 to {MAX_TEXT_BYTES} bytes",
                text.len()
            ));
        }
        let built = RegexBuilder::new(text)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build();
        built.map(Self).map_err(|error| {
            // The crate draws the place over several lines; its last one has the words.
            let words = error.to_string();
            let last = words.lines().last().unwrap_or_default().trim();
            format!(
                "is no regular expression ({}); allowed: the syntax of Rust's regex, without look-around and back-references",
                last.trim_start_matches("error: ")
            )
        })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it matches somewhere in a text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first group of its first match, or the whole match where it has no group.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        found.get(1).or_else(|| found.get(0)).map(|group| group.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
