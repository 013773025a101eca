//! What a worker is told by its environment, read once at start; every wrong item is named at once.

use std::{collections::BTreeMap, error::Error, fmt, time::Duration};

use adjourn_core::{Fifo, Policy, QueueKind};
use url::Url;

/// The most bytes of a message that SQS takes (SQS API, CreateQueue).
const MAX_MESSAGE_BYTES: usize = 1_048_576;

/// The variables that a process was started with.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// These variables.
    #[must_use]
    pub fn new<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// This process's variables. Called where a program starts, and nowhere else.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self::new(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// A variable's value; an empty one counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }
}

/// Everything that a worker on AWS is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The queue.
    pub queue: QueueSettings,
    /// The schedules; none where long waits are not scheduled.
    pub schedules: Option<ScheduleSettings>,
    /// By how much this machine's clock may run ahead of AWS's (`ADJOURN_CLOCK_SKEW_MS`, 0 to 60,000, default 250).
    pub clock_skew: Duration,
}

/// A queue, as its own attributes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// `ADJOURN_QUEUE_URL`.
    pub url: String,
    /// FIFO where the queue's name ends in `.fifo`.
    pub kind: QueueKind,
    /// `ADJOURN_DLQ_URL`, of the same kind.
    pub dead_letter_url: Option<String>,
    /// `ADJOURN_VISIBILITY_S`: the queue's VisibilityTimeout, 0 to 43,200 s.
    pub visibility_timeout: Duration,
    /// `ADJOURN_RETENTION_S`: the queue's MessageRetentionPeriod, 60 to 1,209,600 s.
    pub retention: Duration,
    /// `ADJOURN_MAX_RECEIVE_COUNT`: the redrive policy's maxReceiveCount, 1 to 1,000; none where it is not known.
    pub max_receive_count: Option<u32>,
    /// `ADJOURN_MAX_MESSAGE_BYTES`: the queue's MaximumMessageSize, 1,024 to 1,048,576, which is the default.
    pub max_message_bytes: usize,
}

/// Where one-time schedules are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSettings {
    /// `ADJOURN_SCHEDULE_GROUP`: a schedule group of this worker's own.
    pub group: String,
    /// `ADJOURN_SCHEDULE_ROLE_ARN`: the role with which a schedule sends to the queue.
    pub role_arn: String,
    /// `ADJOURN_SCHEDULE_DLQ_ARN`: where a schedule that could not send leaves its Input. A standard queue.
    pub dead_letter_arn: String,
}

/// One wrong item: which, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The setting's name.
    pub setting: &'static str,
    /// What was found; none where it is missing.
    pub found: Option<String>,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{}: found {found:?}; allowed: {}", self.setting, self.allowed),
            None => write!(f, "{}: missing; needed: {}", self.setting, self.allowed),
        }
    }
}

/// Everything that is wrong with an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(Mistake::to_string).collect();
        write!(f, "{} wrong in the environment: {}", lines.len(), lines.join(" | "))
    }
}

impl Error for Mistakes {}

impl Settings {
    /// What a worker needs.
    ///
    /// # Errors
    /// Every wrong or missing item at once.
    pub fn read(environment: &Environment) -> Result<Self, Mistakes> {
        let mut reader = Reader::new(environment);
        reader.require(
            "ADJOURN_VISIBILITY_S",
            "the queue's VisibilityTimeout, 0 to 43200 seconds",
        );
        reader.require(
            "ADJOURN_RETENTION_S",
            "the queue's MessageRetentionPeriod, 60 to 1209600 seconds",
        );
        let queue = reader.queue();
        let schedules = reader.schedules();
        let skew = reader
            .number("ADJOURN_CLOCK_SKEW_MS", 0..=60_000, "milliseconds")
            .unwrap_or(250);
        let settings = Self {
            queue,
            schedules,
            clock_skew: Duration::from_millis(skew),
        };
        reader.finish(settings)
    }

    /// Whether this policy can be kept here.
    ///
    /// # Errors
    /// On a FIFO queue, `fifo = "relaxed"` asks for schedules.
    pub fn check(&self, policy: &Policy) -> Result<(), Mistakes> {
        let relaxed = self.queue.kind == QueueKind::Fifo && policy.deferral.fifo == Fifo::Relaxed;
        if relaxed && self.schedules.is_none() {
            return Err(Mistakes(vec![Mistake {
                setting: "ADJOURN_SCHEDULE_GROUP",
                found: None,
                allowed: "a schedule group, since fifo = \"relaxed\" schedules what one hold cannot cover".to_string(),
            }]));
        }
        Ok(())
    }
}

impl QueueSettings {
    /// What somebody needs who only sends and counts: the two URLs. What is not given has the default of SQS.
    ///
    /// # Errors
    /// Every wrong or missing item at once.
    pub fn for_operator(environment: &Environment) -> Result<Self, Mistakes> {
        let mut reader = Reader::new(environment);
        let queue = reader.queue();
        reader.finish(queue)
    }

    /// The region that the queue's URL names, where it is one of AWS's.
    #[must_use]
    pub fn region(&self) -> Option<String> {
        let url = Url::parse(&self.url).ok()?;
        let region = url.host_str()?.strip_prefix("sqs.")?.split_once(".amazonaws.com")?.0;
        Some(region.to_string())
    }
}

struct Reader<'a> {
    environment: &'a Environment,
    mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            mistakes: Vec::new(),
        }
    }

    fn finish<T>(self, settings: T) -> Result<T, Mistakes> {
        if self.mistakes.is_empty() {
            Ok(settings)
        } else {
            Err(Mistakes(self.mistakes))
        }
    }

    fn wrong(&mut self, setting: &'static str, found: Option<&str>, allowed: &str) {
        self.mistakes.push(Mistake {
            setting,
            found: found.map(str::to_string),
            allowed: allowed.to_string(),
        });
    }

    fn require(&mut self, setting: &'static str, allowed: &str) {
        if self.environment.get(setting).is_none() {
            self.wrong(setting, None, allowed);
        }
    }

    fn number(&mut self, setting: &'static str, range: std::ops::RangeInclusive<u64>, unit: &str) -> Option<u64> {
        let found = self.environment.get(setting)?;
        let number = found.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(
                setting,
                Some(found),
                &format!("{} to {} {unit}", range.start(), range.end()),
            );
        }
        number
    }

    fn text(&mut self, setting: &'static str, allowed: &str, fits: impl Fn(&str) -> bool) -> String {
        let found = self.environment.get(setting);
        if !found.is_some_and(fits) {
            self.wrong(setting, found, allowed);
        }
        found.unwrap_or_default().to_string()
    }

    fn queue(&mut self) -> QueueSettings {
        const URL: &str = "a queue's URL, as in https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";
        let url = self.text("ADJOURN_QUEUE_URL", URL, is_queue_url);
        let kind = kind_of(&url);
        let dead_letter_url = self.environment.get("ADJOURN_DLQ_URL").map(str::to_string);
        if let Some(found) = &dead_letter_url {
            if !is_queue_url(found) {
                self.wrong("ADJOURN_DLQ_URL", Some(found), URL);
            } else if kind_of(found) != kind {
                let same = "a queue of the same kind as ADJOURN_QUEUE_URL: both FIFO, or both standard";
                self.wrong("ADJOURN_DLQ_URL", Some(found), same);
            } else if *found == url {
                self.wrong("ADJOURN_DLQ_URL", Some(found), "another queue than ADJOURN_QUEUE_URL");
            }
        }
        let visibility = self.number("ADJOURN_VISIBILITY_S", 0..=43_200, "seconds").unwrap_or(30);
        let retention = self
            .number("ADJOURN_RETENTION_S", 60..=1_209_600, "seconds")
            .unwrap_or(345_600);
        let receives = self.number("ADJOURN_MAX_RECEIVE_COUNT", 1..=1000, "receives");
        let bytes = self.number("ADJOURN_MAX_MESSAGE_BYTES", 1024..=1_048_576, "bytes");
        QueueSettings {
            url,
            kind,
            dead_letter_url,
            visibility_timeout: Duration::from_secs(visibility),
            retention: Duration::from_secs(retention),
            max_receive_count: receives.and_then(|count| u32::try_from(count).ok()),
            max_message_bytes: bytes
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(MAX_MESSAGE_BYTES),
        }
    }

    fn schedules(&mut self) -> Option<ScheduleSettings> {
        const ALL: [&str; 3] = [
            "ADJOURN_SCHEDULE_GROUP",
            "ADJOURN_SCHEDULE_ROLE_ARN",
            "ADJOURN_SCHEDULE_DLQ_ARN",
        ];
        if ALL.iter().all(|setting| self.environment.get(setting).is_none()) {
            return None;
        }
        let [group, role, dead_letters] = ALL;
        Some(ScheduleSettings {
            group: self.text(group, "1 to 64 of A-Z a-z 0-9 _ - .", is_schedule_name),
            role_arn: self.text(
                role,
                "a role's ARN, as in arn:aws:iam::111122223333:role/schedules",
                |text| is_arn(text, "iam") && text.contains(":role/"),
            ),
            dead_letter_arn: self.text(
                dead_letters,
                "a standard queue's ARN, as in arn:aws:sqs:eu-west-1:111122223333:schedules-dead",
                |text| is_arn(text, "sqs") && !text.ends_with(".fifo"),
            ),
        })
    }
}

fn kind_of(url: &str) -> QueueKind {
    if url.ends_with(".fifo") {
        QueueKind::Fifo
    } else {
        QueueKind::Standard
    }
}

fn is_queue_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let name = url
            .path_segments()
            .and_then(|mut segments| segments.next_back().map(str::to_string));
        matches!(url.scheme(), "http" | "https") && url.has_host() && name.is_some_and(|name| !name.is_empty())
    })
}

fn is_schedule_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn is_arn(text: &str, service: &str) -> bool {
    let mut parts = text.splitn(6, ':');
    let partition = (
        parts.next(),
        parts.next().is_some_and(|partition| partition.starts_with("aws")),
    );
    let found = parts.next();
    let account = parts.nth(1);
    partition == (Some("arn"), true)
        && found == Some(service)
        && account.is_some_and(|account| account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()))
        && parts.next().is_some_and(|resource| !resource.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs";

    fn whole() -> Vec<(&'static str, &'static str)> {
        vec![
            ("ADJOURN_QUEUE_URL", URL),
            (
                "ADJOURN_DLQ_URL",
                "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs-dead",
            ),
            ("ADJOURN_VISIBILITY_S", "180"),
            ("ADJOURN_RETENTION_S", "1000000"),
            ("ADJOURN_MAX_RECEIVE_COUNT", "10"),
            ("ADJOURN_SCHEDULE_GROUP", "adjourn-jobs"),
            (
                "ADJOURN_SCHEDULE_ROLE_ARN",
                "arn:aws:iam::111122223333:role/path/schedules",
            ),
            (
                "ADJOURN_SCHEDULE_DLQ_ARN",
                "arn:aws:sqs:eu-west-1:111122223333:schedules-dead",
            ),
        ]
    }

    fn with(changes: &[(&'static str, &'static str)]) -> Environment {
        Environment::new(whole().into_iter().chain(changes.iter().copied()))
    }

    fn wrong(changes: &[(&'static str, &'static str)]) -> Vec<&'static str> {
        let mistakes = Settings::read(&with(changes)).unwrap_err();
        mistakes.0.iter().map(|mistake| mistake.setting).collect()
    }

    #[test]
    fn a_whole_environment_is_read() {
        let settings = Settings::read(&with(&[])).unwrap();
        assert_eq!(settings.queue.kind, QueueKind::Standard);
        assert_eq!(settings.queue.visibility_timeout, Duration::from_secs(180));
        assert_eq!(settings.queue.max_receive_count, Some(10));
        assert_eq!(settings.queue.max_message_bytes, 1_048_576);
        assert_eq!(settings.queue.region().as_deref(), Some("eu-west-1"));
        assert_eq!(settings.clock_skew, Duration::from_millis(250));
        assert_eq!(settings.schedules.unwrap().group, "adjourn-jobs");
    }

    #[test]
    fn every_wrong_item_is_named_at_once_with_what_was_found_and_what_is_allowed() {
        let environment = Environment::new([
            ("ADJOURN_QUEUE_URL", "jobs"),
            ("ADJOURN_RETENTION_S", "4 days"),
            ("ADJOURN_CLOCK_SKEW_MS", "-1"),
            ("ADJOURN_SCHEDULE_GROUP", "a group"),
        ]);
        let mistakes = Settings::read(&environment).unwrap_err();
        let text = mistakes.to_string();
        assert_eq!(mistakes.0.len(), 7, "{text}");
        for words in [
            "ADJOURN_QUEUE_URL: found \"jobs\"; allowed: a queue's URL",
            "ADJOURN_VISIBILITY_S: missing; needed: the queue's VisibilityTimeout, 0 to 43200 seconds",
            "ADJOURN_RETENTION_S: found \"4 days\"; allowed: 60 to 1209600 seconds",
            "ADJOURN_CLOCK_SKEW_MS: found \"-1\"; allowed: 0 to 60000 milliseconds",
            "ADJOURN_SCHEDULE_GROUP: found \"a group\"; allowed: 1 to 64",
            // One of the schedules' three settings is there, so the other two are missing.
            "ADJOURN_SCHEDULE_ROLE_ARN: missing",
            "ADJOURN_SCHEDULE_DLQ_ARN: missing",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn a_wrong_item_is_found_one_by_one() {
        assert_eq!(wrong(&[("ADJOURN_QUEUE_URL", "https://host")]), ["ADJOURN_QUEUE_URL"]);
        assert_eq!(
            wrong(&[("ADJOURN_QUEUE_URL", "https://host/1/jobs.fifo")]),
            ["ADJOURN_DLQ_URL"],
            "kinds differ"
        );
        assert_eq!(
            wrong(&[("ADJOURN_DLQ_URL", URL)]),
            ["ADJOURN_DLQ_URL"],
            "a queue is not its own dead-letter queue"
        );
        assert_eq!(wrong(&[("ADJOURN_VISIBILITY_S", "43201")]), ["ADJOURN_VISIBILITY_S"]);
        assert_eq!(
            wrong(&[("ADJOURN_VISIBILITY_S", "")]),
            ["ADJOURN_VISIBILITY_S"],
            "empty is missing"
        );
        assert_eq!(
            wrong(&[("ADJOURN_MAX_RECEIVE_COUNT", "0")]),
            ["ADJOURN_MAX_RECEIVE_COUNT"]
        );
        assert_eq!(
            wrong(&[("ADJOURN_MAX_MESSAGE_BYTES", "5")]),
            ["ADJOURN_MAX_MESSAGE_BYTES"]
        );
        assert_eq!(
            wrong(&[("ADJOURN_SCHEDULE_ROLE_ARN", "arn:aws:iam::1:role/x")]),
            ["ADJOURN_SCHEDULE_ROLE_ARN"]
        );
        assert_eq!(
            wrong(&[(
                "ADJOURN_SCHEDULE_DLQ_ARN",
                "arn:aws:sqs:eu-west-1:111122223333:dead.fifo"
            )]),
            ["ADJOURN_SCHEDULE_DLQ_ARN"]
        );
    }

    #[test]
    fn relaxed_fifo_without_schedules_stops_at_start() {
        let environment = Environment::new([
            (
                "ADJOURN_QUEUE_URL",
                "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs.fifo",
            ),
            ("ADJOURN_VISIBILITY_S", "180"),
            ("ADJOURN_RETENTION_S", "345600"),
        ]);
        let settings = Settings::read(&environment).unwrap();
        let mut policy = Policy::default();
        assert_eq!(settings.check(&policy), Ok(()));
        policy.deferral.fifo = Fifo::Relaxed;
        assert!(
            settings
                .check(&policy)
                .unwrap_err()
                .to_string()
                .contains("ADJOURN_SCHEDULE_GROUP: missing")
        );
        assert_eq!(
            Settings {
                schedules: Settings::read(&with(&[])).unwrap().schedules,
                ..settings
            }
            .check(&policy),
            Ok(())
        );
    }

    #[test]
    fn whoever_only_sends_needs_the_url_alone() {
        let queue =
            QueueSettings::for_operator(&Environment::new([("ADJOURN_QUEUE_URL", "http://127.0.0.1:1/1/jobs")]));
        assert_eq!(queue.unwrap().region(), None);
        assert!(QueueSettings::for_operator(&Environment::default()).is_err());
    }
}
