//! A provider's credential: where it is found, and how it is kept from being printed.

use std::{collections::BTreeMap, fmt};

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Problem, Settings, SettingsError,
    sheet::{Sheet, Table},
};

/// Where a provider's credential is found and which header carries it. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    header: HeaderName,
    prefix: String,
    env: String,
    line: usize,
}

impl Credential {
    /// The header that carries it.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// The environment variable that holds it.
    #[must_use]
    pub fn env(&self) -> &str {
        &self.env
    }
}

/// The secrets of the settings' providers. They are not printed, and are wiped when they are dropped.
#[derive(Clone, Default)]
pub struct Credentials {
    by_provider: BTreeMap<String, SecretString>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_provider.keys()).finish()
    }
}

impl Credentials {
    /// Reads every provider's credential from `environment`.
    ///
    /// # Errors
    /// Names every variable that is missing, empty or no header's value; never what it holds.
    pub fn read(settings: &Settings, environment: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let mut problems = Vec::new();
        let mut by_provider = BTreeMap::new();
        for provider in settings.providers() {
            let Some(credential) = provider.credential() else {
                continue;
            };
            let secret =
                environment(&credential.env).map(|value| SecretString::from(format!("{}{value}", credential.prefix)));
            let wrong = match &secret {
                None => Some("is not set"),
                Some(secret) if secret.expose_secret().len() == credential.prefix.len() => Some("is empty"),
                Some(secret) if HeaderValue::from_str(secret.expose_secret()).is_err() => {
                    Some("holds a line break, a control or a non-ASCII character, which a header may not")
                }
                Some(_) => None,
            };
            if let Some(wrong) = wrong {
                let key = format!("providers.{}.credential.env", provider.name());
                let words = format!("the environment variable {} {wrong}", credential.env);
                problems.push(Problem::new(credential.line, &key, words));
            } else if let Some(secret) = secret {
                by_provider.insert(provider.name().to_string(), secret);
            }
        }
        SettingsError::check(problems)?;
        Ok(Self { by_provider })
    }

    /// The header's value for a provider, marked as sensitive.
    pub(crate) fn header_value(&self, provider: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(self.by_provider.get(provider)?.expose_secret()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The text with this provider's credential blotted out, should the provider have repeated it.
    pub(crate) fn redact(&self, credential: Option<&Credential>, provider: &str, text: &str) -> String {
        let Some(secret) = self.by_provider.get(provider).map(ExposeSecret::expose_secret) else {
            return text.to_string();
        };
        let bare = credential.map_or(secret, |credential| {
            secret.get(credential.prefix.len()..).unwrap_or(secret)
        });
        if bare.is_empty() {
            text.to_string()
        } else {
            text.replace(bare, "[credential]")
        }
    }
}

const ALLOWED: &str =
    "{ header = \"Authorization\", prefix = \"Bearer \", env = \"ACME_TOKEN\" }; prefix may be left out";

pub(super) fn read(sheet: &mut Sheet<'_>, provider: &Table<'_>) -> Option<Credential> {
    let table = sheet.table(provider, "credential")?;
    let later = [
        ("secret", "a credential in a secret store"),
        ("parameter", "a credential in a parameter store"),
        ("oauth2", "a credential by OAuth 2"),
    ];
    sheet.keys(&table, &["header", "prefix", "env"], &later);
    let comes_later = later.iter().any(|(key, _)| table.get(key).is_some());
    for key in ["header", "env"] {
        if table.get(key).is_none() && !comes_later {
            sheet.missing(&table, key, ALLOWED);
        }
    }
    let header = sheet
        .text(&table, "header", "a header's name")
        .and_then(|text| header_name(sheet, &table, "header", text));
    let env = env(sheet, &table);
    let prefix = prefix(sheet, &table);
    Some(Credential {
        header: header?,
        prefix: prefix?,
        env: env?,
        line: table.line,
    })
}

fn env(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<String> {
    let value = table.get("env")?;
    let name = value.get_ref().as_str().filter(|name| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    if name.is_none() {
        // Somebody may have put the secret itself here: it is not repeated.
        let words = "is no variable's name; allowed: the name of an environment variable (A-Z a-z 0-9 _), not the secret itself";
        sheet.problem(value.span().start, &table.key("env"), words);
    }
    name.map(str::to_string)
}

fn prefix(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<String> {
    let Some(value) = table.get("prefix") else {
        return Some(String::new());
    };
    let prefix = value
        .get_ref()
        .as_str()
        .filter(|prefix| HeaderValue::from_str(prefix).is_ok());
    if prefix.is_none() {
        sheet.problem(
            value.span().start,
            &table.key("prefix"),
            "allowed: a string of visible ASCII and blanks, such as \"Bearer \"",
        );
    }
    prefix.map(str::to_string)
}

/// A header's name that is neither the connection's nor broken.
pub(super) fn header_name(sheet: &mut Sheet<'_>, table: &Table<'_>, key: &str, text: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .ok()
        .filter(|name| !crate::headers::belongs_to_the_connection(name));
    if name.is_none()
        && let Some(value) = table.get(key)
    {
        sheet.refuse(
            table,
            key,
            value,
            "a header's name that does not belong to the connection",
        );
    }
    name
}
