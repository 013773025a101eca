//! A provider's credential: where it is found, and how it is kept from being printed.

use std::{collections::BTreeMap, fmt};

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::{
    OAuth2, Problem, Settings, SettingsError, oauth2,
    sheet::{Sheet, Table},
};

/// Where a provider's credential is found and which header carries it. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    header: HeaderName,
    prefix: String,
    origin: Origin,
    line: usize,
}

/// Where a credential comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// The environment variable that holds it.
    Env(String),
    /// A token that is asked for.
    OAuth2(OAuth2),
}

impl Credential {
    /// The header that carries it.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// The environment variable that holds it, or the secret that a token is asked for with.
    #[must_use]
    pub fn env(&self) -> &str {
        match &self.origin {
            Origin::Env(env) => env,
            Origin::OAuth2(oauth2) => oauth2.secret_env(),
        }
    }

    /// How a token is asked for, where it is one.
    #[must_use]
    pub fn oauth2(&self) -> Option<&OAuth2> {
        match &self.origin {
            Origin::Env(_) => None,
            Origin::OAuth2(oauth2) => Some(oauth2),
        }
    }

    /// The header's value with a token.
    pub(crate) fn header_value(&self, token: &SecretString) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{}{}", self.prefix, token.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The key that names the variable in the settings.
    fn env_key(&self) -> &'static str {
        match self.origin {
            Origin::Env(_) => "env",
            Origin::OAuth2(_) => "oauth2.client_secret.env",
        }
    }
}

/// The secrets of the settings' providers. They are not printed, and are wiped when they are dropped.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The bare secrets.
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
            let secret = environment(credential.env()).map(SecretString::from);
            let wrong = match &secret {
                None => Some("is not set"),
                Some(secret) if secret.expose_secret().is_empty() => Some("is empty"),
                Some(secret) if HeaderValue::from_str(secret.expose_secret()).is_err() => {
                    Some("holds a line break, a control or a non-ASCII character, which a header may not")
                }
                Some(_) => None,
            };
            if let Some(wrong) = wrong {
                let key = format!("providers.{}.credential.{}", provider.name(), credential.env_key());
                let words = format!("the environment variable {} {wrong}", credential.env());
                problems.push(Problem::new(credential.line, &key, words));
            } else if let Some(secret) = secret {
                by_provider.insert(provider.name().to_string(), secret);
            }
        }
        SettingsError::check(problems)?;
        Ok(Self { by_provider })
    }

    /// The bare secret of a provider.
    pub(crate) fn secret(&self, provider: &str) -> Option<&SecretString> {
        self.by_provider.get(provider)
    }
}

/// The text with secrets blotted out, should the provider have repeated them.
pub(crate) fn redacted<'s>(text: &str, secrets: impl Iterator<Item = &'s SecretString>) -> String {
    let mut text = text.to_string();
    for secret in secrets {
        let bare = secret.expose_secret();
        if !bare.is_empty() {
            text = text.replace(bare, "[credential]");
        }
    }
    text
}

const ALLOWED: &str =
    "{ header = \"Authorization\", prefix = \"Bearer \", env = \"ACME_TOKEN\" }; prefix may be left out";
/// What comes later, wherever a secret is named.
pub(super) const LATER: [(&str, &str); 2] = [
    ("secret", "a credential in a secret store"),
    ("parameter", "a credential in a parameter store"),
];

pub(super) fn read(sheet: &mut Sheet<'_>, provider: &Table<'_>) -> Option<Credential> {
    let table = sheet.table(provider, "credential")?;
    sheet.keys(&table, &["header", "prefix", "env", "oauth2"], &LATER);
    if let Some(value) = table.get("oauth2") {
        if let Some(env) = table.get("env") {
            let words = "stands beside oauth2; allowed: one of both, and the client's secret in oauth2.client_secret";
            sheet.problem(env.span().start, &table.key("env"), words);
        }
        let oauth2 = sheet
            .as_table(&table, "oauth2", value)
            .and_then(|of| oauth2::read(sheet, &of));
        let header = match sheet.text(&table, "header", "a header's name") {
            Some(text) => header_name(sheet, &table, "header", text)?,
            None => http::header::AUTHORIZATION,
        };
        let prefix = match table.get("prefix") {
            Some(_) => prefix(sheet, &table)?,
            None => "Bearer ".to_string(),
        };
        return Some(Credential {
            header,
            prefix,
            origin: Origin::OAuth2(oauth2?),
            line: table.line,
        });
    }
    let comes_later = LATER.iter().any(|(key, _)| table.get(key).is_some());
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
        origin: Origin::Env(env?),
        line: table.line,
    })
}

pub(super) fn env(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<String> {
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
