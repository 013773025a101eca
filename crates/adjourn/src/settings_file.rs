//! `adjourn.toml`: found, read, and its mistakes told with the file's name.

use std::{fs, io};

use adjourn_http::{Credentials, Settings};

use crate::{ending::Failure, environment::Environment};

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
