//! Scenario files: read, checked as a whole, and every mistake told with its line.

mod check;
mod problem;
mod schema;
#[cfg(test)]
mod tests;
mod together;

use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

pub use problem::{Problem, ScenarioError};

use super::Scenario;
use check::Sheet;

/// The most bytes of a scenario file.
pub const MAX_SCENARIO_BYTES: usize = 1024 * 1024;

impl Scenario {
    /// Reads a scenario file. `name` is what the scenario is called where the file does not say.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, each with its line, what was found and what is allowed.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut sheet = Sheet::new(text);
        if text.len() > MAX_SCENARIO_BYTES {
            let words = format!("found {} bytes; allowed: at most {MAX_SCENARIO_BYTES}", text.len());
            sheet.problem(0, "", &words);
            return Err(ScenarioError::of(sheet.problems));
        }
        let (document, syntax) = DeTable::parse_recoverable(text);
        for error in &syntax {
            let start = error.span().map_or(0, |span| span.start);
            sheet.problem(start, "", &format!("is not TOML: {}", error.message()));
        }
        let root = document.get_ref();
        if text.trim().is_empty() {
            sheet.problem(
                0,
                "",
                "found an empty file; allowed: a scenario, with title and jobs at least",
            );
        } else {
            sheet.table("", 0, root, schema::SCENARIO, &[]);
            together::check(&mut sheet, root);
        }
        if !sheet.problems.is_empty() {
            return Err(ScenarioError::of(sheet.problems));
        }
        match Self::deserialize(Deserializer::from(document)) {
            Ok(mut scenario) => {
                if scenario.name.is_empty() {
                    scenario.name = name.to_string();
                }
                Ok(scenario)
            }
            // The list of fields and the structs agree, so there is nothing left for it to find.
            Err(error) => {
                sheet.problem(error.span().map_or(0, |span| span.start), "", error.message());
                Err(ScenarioError::of(sheet.problems))
            }
        }
    }
}
