//! Words that providers share: that it is a limit, which one, and whom it concerns.

use std::sync::LazyLock;

use adjourn_core::{Kind, ScopeHint};

use super::{phrases::head, word_set::WordSet};

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

    /// Each word by itself, as a set of patterns tells it.
    static EACH: LazyLock<RegexSet> = LazyLock::new(|| {
        let mut each = RegexSetBuilder::new(WORDS);
        each.case_insensitive(true).unicode(false).build().unwrap()
    });

    fn fragments() -> impl Strategy<Value = String> {
        let known = concat!(
            " | | |\n|\u{a0}|5|24|s|minutes| and |,|rate|limit|exceeded|per|day|daily|month|minute|user|account|has been|disabled|",
            "quota|storage|too many|requests|concurrent|_|-|/|permission|\u{fc}|in|every|each|out of|o|spend|record"
        );
        let fragment = prop::sample::select(known.split('|').collect::<Vec<_>>());
        prop::collection::vec(fragment, 0..12).prop_map(|fragments| fragments.concat())
    }

    proptest! {
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
