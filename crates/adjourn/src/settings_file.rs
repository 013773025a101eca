//! `adjourn.toml`: found, read, and its mistakes told with the file's name.

use std::{fs, io, path::Path};

use adjourn_http::{Credentials, Settings};

use crate::{
    cli::{DEFAULT_CONFIG, Everywhere},
    ending::Failure,
    environment::Environment,
};

/// Reads the settings that were named, or those that lie here, for a command that can do without.
pub(crate) fn read_if_there(everywhere: &Everywhere) -> Result<Option<Settings>, Failure> {
    if everywhere.config.is_none() && !Path::new(DEFAULT_CONFIG).exists() {
        return Ok(None);
    }
    read(everywhere.config()).map(Some)
}

/// Reads and checks the settings that `--config` names.
pub(crate) fn read(config: &str) -> Result<Settings, Failure> {
    if let Some(parameter) = config.strip_prefix("ssm:") {
        return Err(Failure::bad(format!(
            "--config ssm:{parameter}: a parameter is read by the deployed function; here, name a file"
        )));
    }
    let text = fs::read_to_string(config).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Failure::bad(format!(
                "{config}: there is no such file; write one with a [providers.NAME] table and its base_url, \
                 or name another by --config FILE (or ADJOURN_CONFIG)"
            ));
        }
        Failure::bad(format!("{config}: cannot be read: {error}"))
    })?;
    Settings::parse(&text).map_err(|error| Failure::bad(format!("{config}: {error}")))
}

/// Reads the credentials that the settings name from the environment.
pub(crate) fn credentials(config: &str, settings: &Settings) -> Result<Credentials, Failure> {
    Credentials::read(settings, |name| Environment::variable(name).ok())
        .map_err(|error| Failure::bad(format!("{config}: {error}")))
}
