//! credential.oauth2: where a token is asked for, as whom, and for what.

use url::Url;

use super::{
    credential, provider,
    sheet::{Sheet, Table},
};
use crate::Rate;

/// How a token is asked for: the client credentials grant of OAuth 2 (RFC 6749, section 4.4). It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth2 {
    token_url: Url,
    client_id: String,
    secret_env: String,
    scope: Option<String>,
    client_auth: ClientAuth,
    rate: Option<Rate>,
}

/// How the client says who it is (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ClientAuth {
    /// By HTTP's basic scheme, which every server has to take.
    #[default]
    Basic,
    /// In the request's body, which some servers take alone.
    Body,
}

impl OAuth2 {
    /// The token endpoint.
    #[must_use]
    pub fn token_url(&self) -> &Url {
        &self.token_url
    }

    /// Who asks.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The environment variable with the client's secret.
    #[must_use]
    pub fn secret_env(&self) -> &str {
        &self.secret_env
    }

    /// What is asked for; absent: what the client always has.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// How the client says who it is.
    #[must_use]
    pub fn client_auth(&self) -> ClientAuth {
        self.client_auth
    }

    /// How fast tokens may be asked for; absent: as fast as the endpoint lets.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

const ALLOWED: &str = "oauth2 = { token_url = \"https://...\", client_id = \"...\", client_secret = { env = \"ACME_SECRET\" }, scope = \"...\" }; \
                       scope may be left out";

pub(super) fn read(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<OAuth2> {
    sheet.keys(
        table,
        &[
            "token_url",
            "client_id",
            "client_secret",
            "scope",
            "client_auth",
            "rate",
        ],
        &[],
    );
    for key in ["token_url", "client_id", "client_secret"] {
        if table.get(key).is_none() {
            sheet.missing(table, key, ALLOWED);
        }
    }
    let token_url = token_url(sheet, table);
    let client_id = sheet.text(table, "client_id", "the client's id");
    let secret_env = sheet.table(table, "client_secret").and_then(|secret| {
        sheet.keys(&secret, &["env"], &credential::LATER);
        let comes_later = credential::LATER.iter().any(|(key, _)| secret.get(key).is_some());
        if secret.get("env").is_none() && !comes_later {
            sheet.missing(&secret, "env", ALLOWED);
        }
        credential::env(sheet, &secret)
    });
    let scope = sheet.text(
        table,
        "scope",
        "what is asked for, such as \"orders.read orders.write\"",
    );
    let client_auth = sheet
        .one_of(
            table,
            "client_auth",
            &[("basic", ClientAuth::Basic), ("body", ClientAuth::Body)],
        )
        .unwrap_or_default();
    let rate = provider::rate(sheet, table);
    Some(OAuth2 {
        token_url: token_url?,
        client_id: client_id?.to_string(),
        secret_env: secret_env?,
        scope: scope.map(str::to_string),
        client_auth,
        rate,
    })
}

/// A URL with a password in it is not repeated.
fn token_url(sheet: &mut Sheet<'_>, table: &Table<'_>) -> Option<Url> {
    const ALLOWED: &str = "an http or https URL without user and fragment";
    let text = sheet.text(table, "token_url", ALLOWED)?;
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    });
    if url.is_none()
        && let Some(value) = table.get("token_url")
    {
        let words = format!("is no URL of a token endpoint; allowed: {ALLOWED}");
        sheet.problem(value.span().start, &table.key("token_url"), words);
    }
    url
}
