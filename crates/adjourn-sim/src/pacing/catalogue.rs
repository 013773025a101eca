//! The scenarios that come with adjourn, compiled in.

use super::{Scenario, ScenarioError, nearest};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        const SCENARIOS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*];
    };
}

scenarios![
    "alone-1",
    "alone-2",
    "alone-3",
    "always",
    "always-hinted",
    "bucket-0-5",
    "bucket-1",
    "bucket-10",
    "bucket-100",
    "bucket-2",
    "bucket-3",
    "burst-1",
    "burst-50",
    "doubles",
    "first-is-bad",
    "five-at-a-time",
    "flaky-10",
    "flaky-20",
    "flaky-5",
    "halves",
    "hinted-0-5",
    "hinted-1",
    "hinted-10",
    "hinted-100",
    "hinted-2",
    "hinted-3",
    "one-bad-item",
    "one-early-hint",
    "outage",
    "processes-10",
    "processes-2",
    "processes-50",
    "random-503",
    "second-client",
    "sliding-minute",
    "stray-hints",
    "tree",
    "unlimited",
    "window-counted",
    "window-hour",
    "window-minute",
    "window-minute-start",
];

/// A scenario that comes with adjourn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    name: &'static str,
    text: &'static str,
}

impl BuiltIn {
    /// Each of them, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        SCENARIOS.iter().map(|&(name, text)| Self { name, text })
    }

    /// The one of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|scenario| scenario.name == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Its file.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.text
    }

    /// What its file says.
    ///
    /// # Errors
    ///
    /// None while the tests pass: they read each of them.
    pub fn scenario(self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(self.name, self.text)
    }

    /// The words for a name that nobody has: the nearest, and all there are.
    #[must_use]
    pub fn unknown(found: &str) -> String {
        let names: Vec<&str> = Self::all().map(Self::name).collect();
        nearest::known(found, &names)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_compiled_in_and_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let names = fs::read_dir(folder).unwrap().map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".toml").map(str::to_string).unwrap_or(name)
        });
        let built_in: BTreeSet<String> = BuiltIn::all().map(|scenario| scenario.name.to_string()).collect();
        assert_eq!(names.collect::<BTreeSet<_>>(), built_in);
        for built_in in BuiltIn::all() {
            let scenario = built_in
                .scenario()
                .unwrap_or_else(|error| panic!("{}: {error}", built_in.name));
            assert_eq!(scenario.name, built_in.name);
        }
    }

    #[test]
    fn a_name_that_nobody_has_is_told_its_nearest() {
        assert!(BuiltIn::find("bucket-4").is_none());
        let words = BuiltIn::unknown("unlimted");
        assert!(
            words.starts_with("; the nearest known is \"unlimited\"; allowed: alone-1, "),
            "{words}"
        );
    }
}
