//! A program's sources as its functions: which of them wait for a provider, and whether somebody said how long.

use std::{collections::BTreeSet, ops::Range};

/// What makes a client that waits.
const CLIENTS: [&str; 4] = ["Requester::new(", "RetryLayer::", "RateLimitLayer::", "Requester::with"];
/// How such a client is made to call.
const CALLS: [&str; 4] = [".call(", ".oneshot(", ".execute(", ".send()"];
/// Whoever has one of these is called by nobody of the program.
const BEGINS: [&str; 3] = ["#[tokio::main", "#[tokio::test", "#[test]"];

struct Function {
    name: String,
    begins: bool,
    /// Its body, less whatever runs under an allowance.
    body: String,
}

/// The functions where a program begins and from where it reaches a call that waits, with no `Allowance` around it. What only a
/// worker calls is none: a worker sets it.
pub(crate) fn forgetful<'t>(sources: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let texts: Vec<String> = sources.into_iter().map(blanked).collect();
    if !texts
        .iter()
        .any(|text| CLIENTS.iter().any(|client| text.contains(client)))
    {
        return Vec::new();
    }
    let functions: Vec<Function> = texts.iter().flat_map(|text| functions(text)).collect();
    let mut waiting = BTreeSet::<&str>::new();
    loop {
        let found = functions.iter().filter(|function| {
            CALLS.iter().any(|call| function.body.contains(call))
                || waiting.iter().any(|name| calls(&function.body, name))
        });
        let found: BTreeSet<&str> = found.map(|function| function.name.as_str()).collect();
        if found == waiting {
            break;
        }
        waiting = found;
    }
    let begins = functions.iter().filter(|function| function.begins);
    let forgetful = begins.filter(|function| waiting.contains(function.name.as_str()));
    forgetful.map(|function| function.name.clone()).collect()
}

/// How many calls a program makes under an allowance.
pub(crate) fn guarded(text: &str) -> usize {
    let text = blanked(text);
    under_allowances(&text).len()
}

/// Whether a text calls a function of that name, by itself or as a method.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(is_of_word)
            && text[at + name.len()..].starts_with('(')
            && !text[..at].trim_end().ends_with("fn")
    })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn word(text: &str) -> &str {
    text.split(|letter| !is_of_word(letter)).next().unwrap_or_default()
}

fn functions(text: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("fn ") {
        let name = word(&text[at + 3..]);
        if text[..at].chars().next_back().is_some_and(is_of_word) || name.is_empty() {
            continue;
        }
        let Some(body) = body(text, at) else { continue };
        let since = text[..at].rfind(['}', ';', '{']).unwrap_or(0);
        let attributes = &text[since..at];
        let mut own = text[body.clone()].to_string();
        for guarded in under_allowances(&own) {
            own.replace_range(guarded.clone(), &" ".repeat(guarded.len()));
        }
        found.push(Function {
            name: name.to_string(),
            begins: name == "main" || BEGINS.iter().any(|begins| attributes.contains(begins)),
            body: own,
        });
    }
    found
}

/// The body of the function whose signature begins there; none of a declaration.
fn body(text: &str, at: usize) -> Option<Range<usize>> {
    let mut nested = 0;
    for (offset, letter) in text[at..].char_indices() {
        match letter {
            '(' | '[' => nested += 1,
            ')' | ']' => nested -= 1,
            ';' if nested == 0 => return None,
            '{' if nested == 0 => return closed(text, at + offset),
            _ => {}
        }
    }
    None
}

/// What stands between the bracket there and the one that closes it.
fn closed(text: &str, at: usize) -> Option<Range<usize>> {
    let mut nested = 0;
    for (offset, letter) in text[at..].char_indices() {
        match letter {
            '(' | '[' | '{' => nested += 1,
            ')' | ']' | '}' => nested -= 1,
            _ => {}
        }
        if nested == 0 {
            return Some(at + 1..at + offset);
        }
    }
    None
}

/// The arguments of `Allowance::….scope(…)`, and of `scope` of a variable that is one. A layer has a `scope` as well, and says nothing of
/// time by it.
fn under_allowances(text: &str) -> Vec<Range<usize>> {
    let variables = text.match_indices("= Allowance::").map(|(at, _)| {
        let before = text[..at].trim_end();
        let start = before.rfind(|letter| !is_of_word(letter)).map_or(0, |at| at + 1);
        &before[start..]
    });
    let named = variables.filter(|name| !name.is_empty()).flat_map(|name| {
        let starts = text.match_indices(name).map(|(at, _)| at);
        starts.filter(|at| !text[..*at].chars().next_back().is_some_and(is_of_word))
    });
    let built = text.match_indices("Allowance::").map(|(at, _)| at);
    built.chain(named).filter_map(|at| scoped(text, at)).collect()
}

/// The argument of `scope` in the chain of calls that begins there.
fn scoped(text: &str, mut at: usize) -> Option<Range<usize>> {
    let mut last = "";
    while let Some(letter) = text[at..].chars().next() {
        if letter == '(' {
            let argument = closed(text, at)?;
            if last == "scope" {
                return Some(argument);
            }
            at = argument.end + 1;
            continue;
        }
        let name = word(&text[at..]);
        if !name.is_empty() {
            last = name;
            at += name.len();
        } else if letter == ':' || letter == '.' || letter.is_whitespace() {
            at += letter.len_utf8();
        } else {
            return None;
        }
    }
    None
}

/// The text with comments and what is within literals made blank.
fn blanked(text: &str) -> String {
    let mut blank = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = literal(rest, blank.chars().next_back());
        let (taken, left) = rest.split_at(length.unwrap_or(letter.len_utf8()));
        match length {
            Some(_) => blank.extend(taken.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' })),
            None => blank.push(letter),
        }
        rest = left;
    }
    blank
}

/// How long the comment or literal is that a text begins with.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    let hashes = text
        .strip_prefix('r')
        .map(|raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(hashes) = hashes
        && !before.is_some_and(is_of_word)
        && text[1 + hashes..].starts_with('"')
    {
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = 2 + hashes;
        return Some(
            text[inside..]
                .find(&end)
                .map_or(text.len(), |at| inside + at + end.len()),
        );
    }
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return Some(at + 1),
            // A lifetime.
            _ if quote == '\'' && at > 1 && !text.starts_with("'\\") => return None,
            _ => {}
        }
    }
    None
}
