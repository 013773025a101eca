//! `curl -i`, `curl -sD -` and `curl -v`: header blocks, and the body of the last.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::PastedError;

const ALLOWED: &str =
    "the text of `curl -i`, which begins with a line such as \"HTTP/2 429\"; or JSON with status, headers and body";

/// The status, the headers and the body of the last response in the text.
pub(super) fn read(text: &[u8]) -> Result<(StatusCode, HeaderMap, &[u8]), PastedError> {
    let verbose = unquoted(text);
    if let Some(text) = verbose {
        // The lines of `curl -v` are copied, so the body is left out with them; it follows unmarked and is seldom whole.
        let (status, headers, _) = last(&text)?;
        return Ok((status, headers, &[]));
    }
    last(text)
}

fn last(text: &[u8]) -> Result<(StatusCode, HeaderMap, &[u8]), PastedError> {
    let start = find_status(text).ok_or_else(|| PastedError(format!("no response was found; allowed: {ALLOWED}")))?;
    let mut rest = text.get(start..).unwrap_or_default();
    loop {
        let (status, headers, after) = block(rest)?;
        match next(status, &headers, after) {
            Some(following) => rest = following,
            None => return Ok((status, headers, after)),
        }
    }
}

/// One block of headers, and what follows its empty line.
fn block(text: &[u8]) -> Result<(StatusCode, HeaderMap, &[u8]), PastedError> {
    let (first, mut rest) = line(text);
    let status =
        status_of(first).ok_or_else(|| PastedError(format!("its first line is no status line; allowed: {ALLOWED}")))?;
    let mut headers = HeaderMap::new();
    let mut previous: Option<(HeaderName, Vec<u8>)> = None;
    loop {
        let ended = rest.is_empty();
        let (current, after) = line(rest);
        rest = after;
        // A line that begins with a blank continues the one before (RFC 9112, section 5.2).
        if let Some((_, value)) = &mut previous
            && current.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
            && !current.trim_ascii().is_empty()
        {
            value.push(b' ');
            value.extend_from_slice(current.trim_ascii());
            continue;
        }
        if let Some((name, value)) = previous.take()
            && let Ok(value) = HeaderValue::from_bytes(&value)
        {
            headers.append(name, value);
        }
        if ended || current.trim_ascii().is_empty() {
            return Ok((status, headers, rest));
        }
        // What is no header is passed over: a terminal's line breaks and prompts end up in what people paste.
        if let Some(colon) = current.iter().position(|&byte| byte == b':')
            && let (Some(name), Some(value)) = (current.get(..colon), current.get(colon + 1..))
            && let Ok(name) = HeaderName::from_bytes(name.trim_ascii())
        {
            previous = Some((name, value.trim_ascii().to_vec()));
        }
    }
}

/// What follows a block that is not the last: an interim answer, a proxy's, a redirect's, or one that asked for a password.
fn next<'t>(status: StatusCode, headers: &HeaderMap, after: &'t [u8]) -> Option<&'t [u8]> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.trim().parse::<usize>().ok());
    let skipped = length.and_then(|length| after.get(length..)).unwrap_or_default();
    for candidate in [after, skipped] {
        let start = candidate.trim_ascii_start();
        if status_of(line(start).0).is_some() {
            return Some(start);
        }
    }
    if status.is_redirection()
        || status == StatusCode::UNAUTHORIZED
        || status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
    {
        // A body without a last line break runs into the next block.
        return find_status(after).and_then(|at| after.get(at..));
    }
    None
}

/// Where the next status line begins.
fn find_status(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.windows(5).position(|window| window == b"HTTP/") {
        let at = from + at;
        if status_of(line(text.get(at..)?).0).is_some() {
            return Some(at);
        }
        from = at + 5;
    }
    None
}

/// `HTTP/1.1 429 Too Many Requests`, `HTTP/2 429`.
fn status_of(line: &[u8]) -> Option<StatusCode> {
    let text = line
        .get(..line.len().min(200))
        .and_then(|line| std::str::from_utf8(line).ok())?;
    let rest = text.strip_prefix("HTTP/")?;
    let mut words = rest.split_ascii_whitespace();
    let version = words.next()?;
    if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let status = words.next().filter(|status| status.len() == 3)?;
    StatusCode::from_bytes(status.as_bytes()).ok()
}

/// The first line without its end, and the rest.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b'\n');
    let (line, rest) = match end {
        Some(end) => (
            text.get(..end).unwrap_or_default(),
            text.get(end + 1..).unwrap_or_default(),
        ),
        None => (text, &[][..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// The lines of `curl -v` that were received, without their mark; none where the text is not of that kind.
fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let is_verbose = text
        .split(|&byte| byte == b'\n')
        .take(200)
        .any(|line| line.starts_with(b"< HTTP/"));
    if !is_verbose {
        return None;
    }
    let mut received = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        if let Some(line) = line.strip_prefix(b"<") {
            received.extend_from_slice(line.strip_prefix(b" ").unwrap_or(line));
            received.push(b'\n');
        }
    }
    Some(received)
}
