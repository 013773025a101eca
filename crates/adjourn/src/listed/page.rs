//! docs/providers.md: the catalogue as a page.

use std::io::{self, Write};

use adjourn_http::Contract;

use super::{basis_words, scope_word, window_words};
use crate::moment;

/// Writes the page.
pub(crate) fn page(out: &mut impl Write, providers: &[(&str, Contract)]) -> io::Result<()> {
    writeln!(
        out,
        "<!-- Generated from crates/adjourn-http/catalogue by `make docs`. Change the catalogue, not this page. -->\n\
         # Providers\n\n\
         What is known of {} providers: their limits, and how they say \"not now\". Name one in `adjourn.toml` as \
         `contract = \"NAME\"`, read a response\nof theirs with `adjourn explain --provider NAME`, or extend an entry by \
         `[providers.X.contract]` with `extends = \"NAME\"`. What is not known is left out.\n\n\
         The scope is the key that shares a limit: a credential (a user or token), an entity (an account, a shop, an \
         organisation), the app (all its\ncustomers together), a function (each class of calls). Where it is unknown, a \
         refusal closes the whole provider.\n",
        providers.len()
    )?;
    writeln!(out, "| provider | name | scope | windows | read on |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for (name, contract) in providers {
        let title = contract.title.as_deref().unwrap_or(name);
        writeln!(
            out,
            "| [{}](#{name}) | `{name}` | {} | {} | {} |",
            cell(title),
            scope_word(contract.scope),
            contract.windows.len(),
            contract.read_on.as_deref().unwrap_or("unknown")
        )?;
    }
    for (name, contract) in providers {
        section(out, name, contract)?;
    }
    Ok(())
}

fn section(out: &mut impl Write, name: &str, contract: &Contract) -> io::Result<()> {
    let title = contract.title.as_deref().unwrap_or(name);
    writeln!(out, "\n<a id=\"{name}\"></a>\n\n## {}\n", text(title))?;
    let mut head = format!("`{name}`");
    for alias in &contract.aliases {
        head = format!("{head}, {}", text(alias));
    }
    writeln!(out, "{head}. Scope: {}.", scope_word(contract.scope))?;
    let items = |out: &mut dyn Write, heading: &str, items: &[String]| -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{heading}\n")?;
        items.iter().try_for_each(|item| writeln!(out, "- {}", text(item)))
    };
    items(out, "Limits:", &contract.limits)?;
    items(out, "How it says so:", &contract.signals)?;
    let mut known: Vec<String> = contract.windows.iter().map(window_words).collect();
    known.extend(
        contract
            .max_concurrency
            .map(|calls| format!("at the same time: {calls} calls")),
    );
    known.extend(
        contract
            .min_retry_after_ms
            .map(|ms| format!("pause after a refusal: at least {}", moment::span(ms))),
    );
    known.extend(
        contract
            .idempotency_window_ms
            .map(|ms| format!("idempotency keys: remembered for {}", moment::span(ms))),
    );
    items(out, "What adjourn computes with:", &known)?;
    let read_on = contract.read_on.as_deref().unwrap_or("an unknown day");
    match &contract.source {
        Some(source) => writeln!(
            out,
            "\n[Source]({source}), read on {read_on}; from {}.",
            basis_words(contract)
        ),
        None => writeln!(out, "\nRead on {read_on}; from {}.", basis_words(contract)),
    }
}

/// Words that Markdown leaves as they are.
fn text(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        if matches!(c, '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The same in a table.
fn cell(words: &str) -> String {
    text(words).replace('|', "\\|")
}
