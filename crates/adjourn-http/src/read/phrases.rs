//! Words that providers share: how long, which limit, and that it is one.

use std::sync::LazyLock;

use adjourn_core::{Kind, ScopeHint};
use regex::Regex;

use super::word_set::WordSet;

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
        r"[\s:]*(?:(?:this|the|your|request|call|operation|it|is|be|of|in|after|for|at least|at|another|about|approximately|~)[\s:]+){0,4}",
        // What is asked for comes after a while, or somebody is kept out for it.
        r"|(?:requests?|calls?|api)\s+(?:again\s+)?after\s+|(?:blocked|banned|locked(?: out)?|suspended|throttled|paused)\s+for\s+)",
        r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|millis|microseconds?|seconds?|minutes?|hours?|days?|weeks?|msecs?|secs?|mins?|hrs?|ms|us|µs|s|m|h|d)[\s,]*(?:and\s+)?){1,6})",
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
    /// A span follows a word, with blanks and colons between them; a date has a time of day, with a digit on both sides of its
    /// colon, or is a Unix time, of ten digits behind a blank. Bytes beyond ASCII may be a digit, a blank or a letter of other scripts, so they count as each.
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let digit = |byte: u8| byte.is_ascii_digit() | !byte.is_ascii();
        let gap = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' ' | b':') | !byte.is_ascii();
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

/// What a text says in the words that [`WORDS`] knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) limited: bool,
    pub(super) disabled: bool,
    pub(super) forbidden: bool,
    pub(super) stored: bool,
    concurrent: bool,
    monthly: bool,
    daily: bool,
    short: bool,
    by_app: bool,
    by_account: bool,
    by_user: bool,
}

/// "Per" ends other words too: of those that are written as one, "developer" and "super" are told by the letter before.
const WORDS: [&str; 11] = [
    // A rate or a quota that is used up.
    concat!(
        r"too[ _-]?many[ _-]?(?:api[ _-]?)?(?:requests|calls|concurrent)|rate[ _-]?limit(?:s|ed|ing)?[ _-]?(?:has been |have been |was |is |of [ -~]{0,30} )?(?:exceeded|reached|hit|error)",
        r"|rate[ _-]?limited|(?:exceed(?:s|ed|ing)?|reached|hit|over)[ _.,:'-]{1,3}(?:\w+[ _.,:'-]{1,3}){0,5}(?:rate[ _-]?limits?|(?:request|call|usage|api|sending|message|e?mail|recipient|query) (?:limit|quota)|quota)",
        r"|quota[ _-]?(?:has been |was |is |limit )?(?:exceeded|reached|exhausted)|(?:request|call|usage|api|query|daily|hourly|minutely|monthly|concurrent|concurrency)s?[ _-]?(?:rate )?(?:limit|quota)[ _-]?(?:has been |have been |was |is )?(?:exceeded|reached|hit)",
        r"|throttl(?:ed|ing)\b|throttlingexception|slow[ _-]?down|request[ _-]?rate[ _-]?(?:is )?too|resource[ _-]?exhausted|enhance your calm|ratelimitexceeded|limitexceeded\b[ -~]{0,20}rate|error code: 1015|usage[ _-]?cap[ _-]?exceeded",
        r"|out of (?:\w+ ){0,3}quota|quota violation|\brate (?:threshold )?exceeded|per (?:second|minute|hour) (?:is |are )?(?:over|above)\b"
    ),
    // No wait helps.
    concat!(
        r"insufficient[ _-]?(?:quota|funds|credits?|balance)|(?:account|user|customer|organi[sz]ation|workspace|subscription|tenant|api key|app)(?: has been| is| was|[ _-])(?:currently |temporarily )?[ _-]?(?:disabled|suspended|deactivated|inactive|closed|blocked|terminated|deleted|banned)",
        r"|billing[ _-]?(?:hard[ _-]?limit|not[ _-]?(?:active|enabled)|disabled|required)|payment[ _-]?required|plan and billing|out of credits|enough[ _-]credits|spend(?:ing)?[ _-]?(?:limit|cap)\b|credit balance is too low|no[ _-]?(?:active )?subscription|trial (?:has )?(?:expired|ended)|user disabled"
    ),
    // A permission is missing.
    r"permission|not (?:authori[sz]ed|permitted|allowed)|unauthori[sz]ed|must have|access denied|insufficient[ _-]?scope|missing[ _-]?scope|invalid (?:token|key|credentials)|admin rights",
    // Room for things, not for calls.
    r"storage|disk|mailbox|max(?:imum)? (?:file|upload) size|seats?\b|projects\b|(?:record|object|document|contact|member|licen[cs]e|row|index|domain)s? (?:quota|limit)",
    r"concurren|simultaneous|in[ -]parallel|parallel requests|at the same time|in[ -]flight|too many connections",
    r"monthly|(?:^|[\t-@\[-`{-~])per[ _-]?month|[a-np-tv-z]permonth|this month|month's|calendar month|/ ?month|(?:every|each) month",
    r"daily|(?:^|[\t-@\[-`{-~])per[ _-]?day|[a-np-tv-z]perday|\bday\b|24[ -]?hours?\b|for today|today's|per 24h",
    concat!(
        r"(?:^|[\t-@\[-`{-~])per[ _-]?(?:second|minute|hour|sec|min)|[a-np-tv-z]per(?:second|minute|hour|sec|min)|hourly|secondly|minutely|/ ?(?:s|sec|min|minute|second|hour)\b|burst",
        // A count of hours is a day's from 20.
        r"|(?:per|every|each|last) (?:[0-9]+ ?(?:s|sec|second|m|min|minute)s?|1?[0-9] ?h(?:our)?s?|second|minute|hour)\b|(?:requests|calls) (?:in|within) [0-9]+ ?(?:s|sec|second|m|min|minute)s?\b"
    ),
    r"(?:^|[\t-@\[-`{-~])per[ _-]?(?:project|app)\b|[a-np-tv-z]perproject|for (?:this |the )?(?:project|application)|application request limit|\bapp limit",
    r"(?:^|[\t-@\[-`{-~])per[ _-]?(?:account|organi[sz]ation|tenant|workspace|team|company|portal|location)|[a-np-tv-z]per(?:account|organi[sz]ation|tenant|workspace|team|company|portal|location)|(?:for|in|of) (?:your |this |the )?(?:organi[sz]ation|account|workspace|tenant)\b",
    r"(?:^|[\t-@\[-`{-~])per[ _-]?user|[a-np-tv-z]peruser|\buser[ _-]?rate[ _-]?limit|for (?:this |the )?user\b",
];

#[expect(clippy::expect_used, reason = "constant patterns, compiled by the tests")]
static SAID: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(&WORDS).expect("the patterns are sound"));

impl Said {
    /// What the beginning of a text says.
    pub(super) fn in_text(text: &str) -> Self {
        let text = head(text);
        if text.is_empty() {
            return Self::default();
        }
        let held = SAID.held_by(text);
        let is = |index| held.has(index);
        Self {
            limited: is(0),
            disabled: is(1),
            forbidden: is(2),
            stored: is(3),
            concurrent: is(4),
            monthly: is(5),
            daily: is(6),
            short: is(7),
            by_app: is(8),
            by_account: is(9),
            by_user: is(10),
        }
    }

    /// What the title of a page says: that it is a limit, and no more, since the rest of it names the site.
    pub(super) fn in_title(title: &str) -> Self {
        Self {
            limited: Self::in_text(title).limited,
            ..Self::default()
        }
    }

    /// Which limit; unknown where the words name more than one.
    pub(super) fn kind(self) -> Kind {
        if self.concurrent {
            return Kind::Concurrency;
        }
        match (self.monthly, self.daily, self.short) {
            (true, false, false) => Kind::Monthly,
            (false, true, false) => Kind::Daily,
            (false, false, true) => Kind::Short,
            _ => Kind::Unknown,
        }
    }

    pub(super) fn scope(self) -> ScopeHint {
        match (self.by_app, self.by_account, self.by_user) {
            (true, false, false) => ScopeHint::App,
            (false, true, false) => ScopeHint::Account,
            (false, false, true) => ScopeHint::User,
            _ => ScopeHint::Unknown,
        }
    }

    /// Whether a status that may be a limit is one by these words.
    pub(super) fn is_limit(self) -> bool {
        self.limited && !self.stored && !self.disabled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::{RegexSet, RegexSetBuilder};

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

    /// Each word by itself, as a set of patterns tells it.
    static EACH: LazyLock<RegexSet> = LazyLock::new(|| {
        let mut each = RegexSetBuilder::new(WORDS);
        each.case_insensitive(true).unicode(false).build().unwrap()
    });

    fn fragments() -> impl Strategy<Value = String> {
        let known = concat!(
            " | | |: |\n|\u{a0}|~|again|Retry|wait|after|in|is|until|at|about|5|30|1.5|\u{665}|s|\u{17f}|seconds|m| and |,|",
            "2026-07-10T20:15Z|2026-07-10 20:15:00 UTC|Fri, 10 Jul 2026 20:15:47 GMT|rate|limit|exceeded|per|day|daily|month|",
            "minute|user|account|has been|disabled|quota|storage|too many|requests|concurrent|_|-|/|permission|\u{fc}|try|blocked|for|",
            "1783714727|1783714727228|22.14:18:12|00:00:17|retry after|2026-Jul-10 20:15:00+0000|Fri, 10 Jul 2026 20:15:47 UTC|every|each|out of"
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

        #[test]
        fn one_walk_finds_each_word(text in fragments()) {
            let held = SAID.held_by(&text);
            for index in 0..WORDS.len() {
                prop_assert_eq!(held.has(index), EACH.matches(&text).matched(index), "{}: {}", index, text);
            }
        }
    }

    #[test]
    fn which_limit_by_its_words() {
        for (text, kind) in [
            ("Daily limit exceeded", Kind::Daily),
            ("Requests per day", Kind::Daily),
            ("GenerateRequestsPerDayPerProject", Kind::Daily),
            ("Monthly quota exceeded", Kind::Monthly),
            ("Concurrent request limit exceeded", Kind::Concurrency),
            ("limit of 10 simultaneous connections", Kind::Concurrency),
            ("600 per minute", Kind::Short),
            ("1000 API calls / month", Kind::Monthly),
            ("10 API calls / minute", Kind::Short),
            ("Rate limits reset every minute.", Kind::Short),
            ("500 requests per 5 minutes", Kind::Short),
            ("Queries per user per 100 seconds", Kind::Short),
            ("Limit is 40 requests in 1 seconds", Kind::Short),
            ("too many requests in the last hour", Kind::Short),
            ("more than 60 in each hour", Kind::Short),
            ("1000 per 24 hours", Kind::Daily),
            ("try again in 30 seconds", Kind::Unknown),
            ("60 per minute and 1000 per day", Kind::Unknown),
            ("Too Many Requests", Kind::Unknown),
        ] {
            assert_eq!(Said::in_text(text).kind(), kind, "{text}");
        }
    }

    #[test]
    fn whom_it_concerns_by_its_words() {
        for (text, scope) in [
            ("100 requests per user", ScopeHint::User),
            ("ReadRequestsPerMinutePerUser", ScopeHint::User),
            ("requests_per_account", ScopeHint::Account),
            ("Per tenant limit", ScopeHint::Account),
            ("600 notifications per second per project", ScopeHint::App),
            // Other words that end in the same letters.
            ("Developer accounts are limited to 100 requests", ScopeHint::Unknown),
            ("Ask a super user, or a superuser", ScopeHint::Unknown),
            ("Too Many Requests", ScopeHint::Unknown),
        ] {
            assert_eq!(Said::in_text(text).scope(), scope, "{text}");
        }
    }

    #[test]
    fn words_of_a_limit_and_words_that_only_look_like_it() {
        for text in [
            "API rate limit exceeded for user ID 1.",
            "You have exceeded a secondary rate limit.",
            "{\"error\":\"rate_limit_exceeded\"}",
            "{\"code\":\"TooManyRequests\"}",
            "User Rate Limit Exceeded",
            "quotaExceeded",
            "Daily Limit Exceeded",
            "You exceeded your current quota",
            "Request was throttled.",
            "ThrottlingException",
            "SlowDown",
            "You have reached your API call limit",
            "error code: 1015",
            "Exceed Sending Limit (daily)",
            "Out of call volume quota. Quota will be replenished in 22.14:18:12.",
            "Operations per second is over the account limit.",
            "Request Rate Threshold Exceeded",
            "Rate limit quota violation. Quota limit  exceeded.",
        ] {
            assert!(Said::in_text(text).is_limit(), "{text}");
        }
        for text in [
            "Your plan limits you to 3 projects.",
            "failed to load rate limit configuration",
            "The user's Drive storage quota has been exceeded.",
            "Record quota exceeded, change plan or delete records.",
            "Your organization has reached its monthly spend limit.",
            "Must have admin rights to Repository.",
            "503 Service Temporarily Unavailable",
            "insufficient_quota: You exceeded your current quota, please check your plan and billing details.",
            "This account has been disabled.",
            "",
        ] {
            assert!(!Said::in_text(text).is_limit(), "{text}");
        }
        for text in [
            "account_inactive",
            "This account has been disabled.",
            "User Disabled",
            "insufficient_quota",
        ] {
            assert!(Said::in_text(text).disabled, "{text}");
        }
    }
}
