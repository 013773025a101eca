//! The catalogue for people: a table of all, and one provider in full.

use std::io::{self, Write};

use adjourn_http::Contract;

use super::{amount, basis_words, scope_word, window_words};
use crate::{
    moment,
    paint::{Paint, Tone},
};

/// So many windows are told in the table; `adjourn providers NAME` has all.
const TOLD: usize = 3;

/// Every provider, one a line.
pub(crate) fn table(out: &mut impl Write, providers: &[(&str, Contract)], paint: Paint) -> io::Result<()> {
    let title = |contract: &Contract| contract.title.clone().unwrap_or_default();
    let name_width = providers.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let title_width = providers
        .iter()
        .map(|(_, contract)| title(contract).chars().count())
        .max();
    let title_width = title_width.unwrap_or(0);
    let head = format!(
        "{:name_width$}  {:title_width$}  {:<10}  {:<10}  WINDOWS",
        "NAME", "TITLE", "SCOPE", "READ ON"
    );
    writeln!(out, "{}", paint.words(Tone::Quiet, head))?;
    for (name, contract) in providers {
        let name = paint.words(Tone::Strong, format_args!("{name:name_width$}"));
        writeln!(
            out,
            "{name}  {:title_width$}  {:<10}  {:<10}  {}",
            title(contract),
            scope_word(contract.scope),
            contract.read_on.as_deref().unwrap_or("unknown"),
            windows(contract)
        )?;
    }
    Ok(())
}

fn windows(contract: &Contract) -> String {
    let told = contract.windows.iter().take(TOLD);
    let told: Vec<String> = told
        .map(|window| format!("{} {}", window.name, amount(window)))
        .collect();
    match contract.windows.len().saturating_sub(TOLD) {
        0 if told.is_empty() => "-".to_string(),
        0 => told.join(", "),
        more => format!("{}, and {more} more", told.join(", ")),
    }
}

/// One provider in full.
pub(crate) fn detail(out: &mut impl Write, name: &str, contract: &Contract, paint: Paint) -> io::Result<()> {
    let title = contract.title.as_deref().unwrap_or(name);
    writeln!(out, "{} ({name})", paint.words(Tone::Strong, title))?;
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !contract.aliases.is_empty() {
        rows.push(("also", contract.aliases.join(", ")));
    }
    rows.push(("scope", scope_word(contract.scope).to_string()));
    rows.extend(list("limits", &contract.limits));
    rows.extend(list("signals", &contract.signals));
    rows.extend(list(
        "windows",
        &contract.windows.iter().map(window_words).collect::<Vec<_>>(),
    ));
    if let Some(calls) = contract.max_concurrency {
        rows.push(("at once", format!("{calls} calls")));
    }
    if let Some(ms) = contract.min_retry_after_ms {
        rows.push(("pause", format!("at least {} after a refusal", moment::span(ms))));
    }
    if let Some(ms) = contract.idempotency_window_ms {
        rows.push((
            "keys",
            format!("idempotency keys are remembered for {}", moment::span(ms)),
        ));
    }
    let classes = contract.operations.iter().map(|class| {
        let methods = if class.methods.is_empty() {
            "any method".to_string()
        } else {
            class.methods.join(" ")
        };
        format!("{}: {methods} {}", class.name, class.path)
    });
    rows.extend(list("classes", &classes.collect::<Vec<_>>()));
    rows.push((
        "source",
        contract.source.clone().unwrap_or_else(|| "unknown".to_string()),
    ));
    let read_on = contract.read_on.as_deref().unwrap_or("unknown");
    rows.push(("read on", format!("{read_on}, from {}", basis_words(contract))));
    for (label, words) in rows {
        writeln!(
            out,
            "  {} {words}",
            paint.words(Tone::Quiet, format_args!("{label:<8}"))
        )?;
    }
    Ok(())
}

/// A list of which the first row has the label.
fn list<'l>(label: &'l str, items: &[String]) -> Vec<(&'l str, String)> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(items.iter().cloned()).collect()
}
