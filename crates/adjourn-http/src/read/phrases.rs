//! How long a text asks to wait, in the words and forms that providers share.

use std::sync::LazyLock;

use regex::Regex;

/// How much of a body is searched for words: a message stands at its beginning.
const SEARCHED: usize = 16 * 1024;

/// The beginning of a text, in which words are looked for.
pub(super) fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SEARCHED)).unwrap_or_default()
}

/// `try again in 2m3.5s`, `Please retry this request in 12 seconds`, `You must wait 31 seconds`, `replenished in 22.14:18:12`,
/// `retry after 35`.
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by the tests")]
static SPAN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:(?:again|try|retry|retrying|retried|wait|available|resets?|reset again|back ?off|cooldown|resume|expires?|unlocked|lifted|replenished|renew(?:s|ed)?|refresh(?:es|ed)?|restored)\b",
        r"[\s:]*(?:(?:this|the|your|request|call|operation|it|is|be|of|in|after|for|at least|at|another|period|about|approximately|~)[\s:]+){0,4}",
        // What is asked for comes after a while, or somebody is kept out for it.
        r"|(?:requests?|calls?|api)\s+(?:again\s+)?after\s+|(?:blocked|banned|locked(?: out)?|suspended|throttled|paused|limited|timed out)\s+for\s+)",
        r"~?((?:\d+(?:\.\d+)?\s*(?:milliseconds?|millis|microseconds?|seconds?|minutes?|hours?|days?|weeks?|msecs?|secs?|mins?|hrs?|ms|us|µs|s|m|h|d)[\s,]*(?:and\s+)?){1,6})",
        r"|\b(?:again|retry|available|resets?|replenished|renewed|refreshed)\s+(?:is\s+|be\s+)?in\s+((?:[0-9]{1,3}\.)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)",
        r"|\bretry[ _-]after[\s:]+([0-9]{1,7}(?:\.[0-9]+)?)"
    ))
    .expect("the pattern is sound")
});

/// `try again at 2026-07-10T20:15:00Z`, `until 2026-07-10 20:15 UTC`, `banned until 1783714727228`.
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by the tests")]
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:again|retry|until|after|resets?|wait|available|access)\b[\s:]*(?:(?:is|be|on|at|after|until)[\s:]+){0,2}",
        r"(\d{4}-(?:\d\d|[A-Z]{3})-\d\d(?:[T ]| at )\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s*(?:Z|UTC|GMT|[+-]\d\d:?\d\d)|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]\d{4})|(?:[0-9]{10}|[0-9]{13})\b)"
    ))
    .expect("the pattern is sound")
});

/// The span or the date that a text asks to wait, as it stands there.
pub(super) fn wait(text: &str) -> Option<&str> {
    let text = head(text);
    let hold = Holds::of(text);
    let spans = hold.span.then(|| SPAN.captures_iter(text).take(8));
    let span = spans.into_iter().flatten().find_map(|found| {
        let (units, clock, bare) = (found.get(1), found.get(2), found.get(3));
        let rest = |of: regex::Match<'_>| text.get(of.end()..);
        if let Some(bare) = bare {
            // "Retry after 35", and nothing that it would be 35 of.
            let next = rest(bare)?.trim_start().chars().next();
            let ends =
                next.is_none_or(|next| matches!(next, '.' | ',' | ';' | ')' | '}' | ']' | '"' | '\'' | '<' | '\\'));
            return ends.then_some(bare.as_str());
        }
        if let Some(clock) = clock {
            return super::span::clock(clock.as_str()).map(|_| clock.as_str());
        }
        let span = units?;
        // "30 some" is no 30 s: the unit's letters end the word.
        let next = rest(span)?.chars().next();
        let ends = span.as_str().ends_with([' ', ',']) || !next.is_some_and(char::is_alphanumeric);
        let span = span.as_str().trim_end_matches(|c: char| c.is_whitespace() || c == ',');
        let span = span.strip_suffix(" and").unwrap_or(span).trim_end();
        (ends && super::span::millis(span).is_some()).then_some(span)
    });
    span.or_else(|| {
        let found = hold.date.then(|| DATE.captures(text))??;
        found.get(1).map(|date| date.as_str())
    })
}

/// What a text may hold by a look at its digits, which costs a fraction of a search for a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holds {
    span: bool,
    date: bool,
}

impl Holds {
    /// A span follows a word, with blanks, colons and tildes between them; a date has a time of day, with a digit on both sides of its
    /// colon, or is a Unix time, of ten digits behind a blank. Bytes beyond ASCII may be a digit, a blank or a letter of other scripts, so they count as each.
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let digit = |byte: u8| byte.is_ascii_digit() | !byte.is_ascii();
        let gap = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' ' | b':' | b'~') | !byte.is_ascii();
        let mut holds = Self::default();
        let pairs = || bytes.iter().zip(bytes.get(1..).unwrap_or_default());
        // Without a branch, so that many bytes are looked at in one step; most texts are done with it.
        let digits = bytes.iter().fold(false, |any, &byte| any | digit(byte));
        let behind = |(&last, &byte): (&u8, &u8)| gap(last) & digit(byte) | digit(last) & (byte == b':');
        if !digits || !pairs().fold(false, |any, pair| any | behind(pair)) {
            return holds;
        }
        for (index, (&last, &byte)) in pairs().enumerate() {
            // Digits and the colon are neighbours.
            if byte.wrapping_sub(b'0') > 10 && byte.is_ascii() {
                continue;
            }
            if byte == b':' {
                holds.date |= digit(last) && bytes.get(index + 2).is_some_and(|&next| digit(next));
            } else if gap(last) && digit(byte) {
                let digits = bytes.get(index + 1..index + 11);
                holds.date |= digits.is_some_and(|digits| digits.iter().all(|&byte| digit(byte)));
                let before = bytes.get(..=index).unwrap_or_default();
                let mut word = before.iter().rev().skip_while(|&&byte| gap(byte) && byte.is_ascii());
                holds.span |= word
                    .next()
                    .is_some_and(|last| last.is_ascii_alphabetic() || *last == b'~' || !last.is_ascii());
            }
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_and_dates_in_prose() {
        for (text, expected) in [
            (
                "Rate limit reached. Please try again in 41.724s. Visit",
                Some("41.724s"),
            ),
            ("Please try again in 7m12s.", Some("7m12s")),
            ("try again in 486ms", Some("486ms")),
            (
                "quota exceeded! maximum admitted 600 per Minute. Try again in 55 seconds.",
                Some("55 seconds"),
            ),
            (
                "You must wait 31 seconds before trying this endpoint again.",
                Some("31 seconds"),
            ),
            ("Please retry in 12 seconds", Some("12 seconds")),
            (
                "Please retry after 2 minutes and 3 seconds, thank you",
                Some("2 minutes and 3 seconds"),
            ),
            ("Expected available in 14 seconds.", Some("14 seconds")),
            ("Please wait for at least 5 minutes", Some("5 minutes")),
            ("Limit resets in: 1h 2m", Some("1h 2m")),
            ("try again at 2026-07-10T20:15:00Z", Some("2026-07-10T20:15:00Z")),
            ("blocked until 2026-07-10 20:15 UTC", Some("2026-07-10 20:15 UTC")),
            // Words between what is asked for and how long.
            ("Please try after 150 seconds.", Some("150 seconds")),
            ("You can retry this request in 30 seconds", Some("30 seconds")),
            (
                "Quota has been exhausted. You can submit the request after 49 seconds",
                Some("49 seconds"),
            ),
            ("This address is blocked for 10 minutes.", Some("10 minutes")),
            (
                "exceeded 150 requests within a 10 second period, and have been timed out for 60 seconds.",
                Some("60 seconds"),
            ),
            ("Your rate limit resets in ~8s.", Some("8s")),
            ("Try again in 2 weeks", Some("2 weeks")),
            // As a clock shows it, and without a unit.
            (
                "Out of call volume quota. Quota will be replenished in 22.14:18:12.",
                Some("22.14:18:12"),
            ),
            ("Limit resets in 00:00:17", Some("00:00:17")),
            ("Too Many Requests: retry after 35", Some("35")),
            (r#"{"description":"retry after 35"}"#, Some("35")),
            ("Retry-After: 12.5, please", Some("12.5")),
            // A moment in other forms.
            ("IP banned until 1783714727228. Please use", Some("1783714727228")),
            (
                "It will reset at 2026-08-09 23:59:59 +0800 CST.",
                Some("2026-08-09 23:59:59 +0800"),
            ),
            (
                "You will regain access on 2026-08-01 at 00:00 UTC.",
                Some("2026-08-01 at 00:00 UTC"),
            ),
            (
                "You can access API after 2026-Jul-10 20:15:00+0000 UTC",
                Some("2026-Jul-10 20:15:00+0000"),
            ),
            (
                "limit exceeded, try again after: Fri, 10 Jul 2026 21:10:00 UTC",
                Some("Fri, 10 Jul 2026 21:10:00 UTC"),
            ),
            ("Try again later", None),
            ("Retry after 5 more days without errors", None),
            ("retry after 3 attempts", None),
            ("available at 20:15:00", None),
            ("banned after 10 attempts in 5 minutes", None),
            ("retry limit of 5 calls in 10 seconds", None),
            ("after 20260710", None),
            ("wait 30 sheep", None),
            ("maximum of 600 per minute", None),
            ("limited to 10 requests in 5 seconds", None),
            ("", None),
        ] {
            assert_eq!(wait(text), expected, "{text}");
        }
    }

    #[test]
    fn a_look_at_the_digits_passes_over_no_span_and_no_date() {
        for (text, span, date) in [
            ("Try again later, req_81", false, false),
            (r#"{"code":429,"limit":"2"}"#, false, false),
            ("wait: 5 s", true, false),
            ("in ~\u{a0}5s", true, false),
            ("in ~8s", true, false),
            ("in\n\n7 s", true, false),
            ("until 2026-07-10T20:15Z", true, true),
            ("until 1783714727", true, true),
            ("until 178371472", true, false),
            ("10:20", false, true),
            ("\u{665}:\u{665}", true, true),
            ("5 s", false, false),
            ("", false, false),
        ] {
            assert_eq!(Holds::of(text), Holds { span, date }, "{text}");
        }
    }

    fn fragments() -> impl Strategy<Value = String> {
        let known = concat!(
            " | | |: |\n|\u{a0}|~|again|Retry|wait|after|in|is|until|at|about|5|30|1.5|\u{665}|s|\u{17f}|seconds|m| and |,|",
            "2026-07-10T20:15Z|2026-07-10 20:15:00 UTC|Fri, 10 Jul 2026 20:15:47 GMT|rate|limit|exceeded|per|day|daily|month|",
            "minute|has been|requests|_|-|/|\u{fc}|try|blocked|for|1783714727|1783714727228|22.14:18:12|00:00:17|retry after|",
            "2026-Jul-10 20:15:00+0000|Fri, 10 Jul 2026 20:15:47 UTC"
        );
        let fragment = prop::sample::select(known.split('|').collect::<Vec<_>>());
        prop::collection::vec(fragment, 0..12).prop_map(|fragments| fragments.concat())
    }

    proptest! {
        #[test]
        fn no_span_and_no_date_is_passed_over(text in fragments()) {
            let hold = Holds::of(&text);
            prop_assert!(hold.span || !SPAN.is_match(&text), "{text}");
            prop_assert!(hold.date || !DATE.is_match(&text), "{text}");
        }
    }
}
