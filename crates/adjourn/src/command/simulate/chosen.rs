//! Scenarios as they were typed: a name that comes with adjourn, one of its variants, or a file.

use std::{
    fs::File,
    io::{self, Read},
    path::{MAIN_SEPARATOR, Path},
};

use adjourn_sim::pacing::{BuiltIn, MAX_SCENARIO_BYTES, Scenario};

use crate::ending::Failure;

/// A scenario with those of its variants that are played.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) scenario: Scenario,
    pub(super) variants: Vec<Scenario>,
}

impl Chosen {
    /// Every scenario that comes with adjourn.
    pub(super) fn all() -> Result<Vec<Self>, Failure> {
        BuiltIn::all().map(Self::built_in).collect()
    }

    /// What was typed: a name goes before a file of the same name, `./NAME` is the file.
    pub(super) fn find(typed: &str) -> Result<Self, Failure> {
        if let Some(built_in) = BuiltIn::find(typed) {
            return Self::built_in(built_in);
        }
        if let Some((name, variant)) = typed.split_once('/')
            && let Some(built_in) = BuiltIn::find(name)
        {
            return Self::built_in(built_in)?.only(variant);
        }
        let path = Path::new(typed);
        let is_file = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
            || typed.contains(['/', MAIN_SEPARATOR])
            || path.exists();
        if is_file {
            return Self::read(path);
        }
        let shown: String = typed.chars().take(60).collect();
        Err(Failure::bad(format!(
            "--scenario: there is no file and no scenario of the name {shown:?}{}",
            BuiltIn::unknown(&shown)
        )))
    }

    fn built_in(built_in: BuiltIn) -> Result<Self, Failure> {
        let scenario = built_in.scenario();
        scenario
            .map(Self::of)
            .map_err(|error| Failure::bad(format!("{}: {error}", built_in.name())))
    }

    fn of(scenario: Scenario) -> Self {
        let variants = scenario.variants();
        Self { scenario, variants }
    }

    fn only(mut self, variant: &str) -> Result<Self, Failure> {
        let name = format!("{}/{variant}", self.scenario.name);
        let names: Vec<String> = self.variants.iter().map(|variant| variant.name.clone()).collect();
        self.variants.retain(|variant| variant.name == name);
        if self.variants.is_empty() {
            return Err(Failure::bad(format!(
                "--scenario: {} has no variant {variant:?}; allowed: {}",
                self.scenario.name,
                names.join(", ")
            )));
        }
        Ok(self)
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = text_of(path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                return Failure::bad(format!(
                    "{shown}: there is no such file; `adjourn simulate --list` has the scenarios that come with adjourn"
                ));
            }
            Failure::bad(format!("{shown}: cannot be read: {error}"))
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Scenario::parse(&name, &text)
            .map(Self::of)
            .map_err(|error| Failure::bad(format!("{shown}: {error}")))
    }
}

/// A file's text, but never more of it than would be one byte too much.
fn text_of(path: &Path) -> io::Result<String> {
    let most = u64::try_from(MAX_SCENARIO_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_SCENARIO_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_SCENARIO_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        io::Error::other(format!("it is no UTF-8 text: the byte at {place} begins no character"))
    })
}
