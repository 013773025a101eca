//! `adjourn.toml`: what it means, and everything that can be wrong with it.

use std::time::Duration;

use adjourn_core::{DeferralPolicy, Fallback, Fifo, Monthly, Policy, RetryPolicy, UnsafeRedelivery};
use http::Method;
use proptest::prelude::*;

use super::*;

const ACME: &str = "[providers.acme]\nbase_url = \"https://api.acme.example/v2\"\n";

fn problems(text: &str) -> Vec<String> {
    Settings::parse(text)
        .unwrap_err()
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn every_setting() {
    let ms = Duration::from_millis;
    let settings = Settings::parse(
        r#"
        [providers.acme]
        base_url = "https://api.acme.example/v2"
        timeout_ms = 2_500
        idempotency_header = "Idempotency-Key"
        repeat_unknown = true
        credential = { header = "Authorization", prefix = "Bearer ", env = "ACME_TOKEN" }
        max_in_flight = 8
        rate = { requests = 100, per_ms = 10000 }
        results = "store"
        [providers.acme.retry]
        max_attempts = 2
        backoff_ms = [5]
        [providers."other.v1"]
        base_url = "http://127.0.0.1:8080"
        results = "none"
        [deferral]
        max_deferrals = 3
        max_deferred_ms = 1000
        max_hops = 5
        ladder_ms = [1, 2]
        unknown_max_ms = 6
        probe_interval_ms = 7000
        monthly = "probe"
        fallback = "hops"
        fifo = "relaxed"
        on_exhausted = "dead-letter"
        min_retry_after_ms = 8
        clock_skew_ms = 9
        unsafe_redelivery = "repeat"
        [retry]
        max_attempts = 4
        backoff_ms = [10, 11]
        [worker]
        concurrency = 12
        max_in_process_wait_ms = 13
        "#,
    )
    .unwrap();
    let acme = settings.provider("acme").unwrap();
    assert_eq!(acme.base_url().as_str(), "https://api.acme.example/v2");
    assert_eq!(
        (acme.timeout(), acme.max_in_flight(), acme.results()),
        (ms(2500), Some(8), Results::Store)
    );
    assert_eq!(acme.idempotency_header().unwrap(), "idempotency-key");
    assert_eq!(acme.rate(), Some(crate::Rate::new(100, ms(10_000))));
    assert_eq!(
        acme.retry(),
        Some(&RetryPolicy {
            max_attempts: 2,
            backoff: vec![ms(5)]
        })
    );
    assert_eq!(
        (
            acme.credential().unwrap().env(),
            acme.credential().unwrap().header().as_str()
        ),
        ("ACME_TOKEN", "authorization")
    );
    let other = settings.provider("other.v1").unwrap();
    assert_eq!(
        (other.timeout(), other.results(), other.rate(), other.retry()),
        (ms(10_000), Results::None, None, None)
    );
    assert_eq!(settings.concurrency(), 12);
    assert_eq!(settings.longest_timeout(), ms(10_013));
    let deferral = DeferralPolicy {
        max_deferrals: 3,
        max_deferred: ms(1000),
        max_hops: 5,
        ladder: vec![ms(1), ms(2)],
        unknown_max: ms(6),
        probe_interval: ms(7000),
        monthly: Monthly::Probe,
        fallback: Fallback::Hops,
        fifo: Fifo::Relaxed,
        min_retry_after: ms(8),
        clock_skew: ms(9),
        max_in_process_wait: ms(13),
        unsafe_redelivery: UnsafeRedelivery::Repeat,
    };
    let retry = RetryPolicy {
        max_attempts: 4,
        backoff: vec![ms(10), ms(11)],
    };
    assert_eq!(*settings.policy(), Policy { deferral, retry });
}

#[test]
fn what_is_not_set_has_the_default() {
    let settings = Settings::parse(ACME).unwrap();
    assert_eq!((settings.policy(), settings.concurrency()), (&Policy::default(), 10));
    assert_eq!(
        Settings::parse(&format!("{ACME}[deferral]\n[retry]\n[worker]\n")).unwrap(),
        settings
    );
}

#[test]
fn a_call_may_be_repeated_by_its_method_its_header_or_the_settings() {
    for (setting, post) in [
        ("", false),
        ("idempotency_header = \"K\"", true),
        ("repeat_unknown = true", true),
    ] {
        let settings = Settings::parse(&format!("{ACME}{setting}")).unwrap();
        let acme = settings.provider("acme").unwrap();
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
            assert!(acme.repeats(&method));
        }
        assert_eq!(
            (acme.repeats(&Method::POST), acme.repeats(&Method::PATCH)),
            (post, post)
        );
    }
}

#[test]
fn an_empty_file_is_an_error() {
    for text in ["", "\n\n", "# only words\n"] {
        assert_eq!(
            problems(text),
            ["line 1: found an empty file; allowed: one or more tables [providers.NAME] with a base_url"]
        );
    }
    assert_eq!(problems("[retry]\nmax_attempts = 3\n").len(), 1);
    assert_eq!(
        problems("[providers]\n"),
        ["line 1: providers: is empty; allowed: tables [providers.NAME]"]
    );
}

#[test]
fn each_mistake_says_where_what_was_found_and_what_is_allowed() {
    for (text, expected) in [
        (
            "timeout_ms = \"10\"",
            "line 3: providers.acme.timeout_ms: found \"10\"; allowed: a whole number from 1 to 900000",
        ),
        (
            "timeout_ms = 0",
            "line 3: providers.acme.timeout_ms: found 0; allowed: a whole number from 1 to 900000",
        ),
        (
            "timeout_ms = 1.5",
            "line 3: providers.acme.timeout_ms: found 1.5; allowed: a whole number",
        ),
        (
            "timeout_ms = -1",
            "line 3: providers.acme.timeout_ms: found -1; allowed: a whole number",
        ),
        (
            "timeout_ms = 99999999999999999999",
            "line 3: providers.acme.timeout_ms: found 99999999999999999999; allowed",
        ),
        (
            "timeuot_ms = 1",
            "line 3: providers.acme.timeuot_ms: is not known; the nearest known is \"timeout_ms\"; allowed: base_url",
        ),
        (
            "repeat_unknown = \"yes\"",
            "line 3: providers.acme.repeat_unknown: found \"yes\"; allowed: true or false",
        ),
        (
            "idempotency_header = \"a b\"",
            "line 3: providers.acme.idempotency_header: found \"a b\"; allowed: a header's name",
        ),
        (
            "idempotency_header = \"Host\"",
            "line 3: providers.acme.idempotency_header: found \"Host\"; allowed: a header's name",
        ),
        (
            "lanes = 5",
            "line 3: providers.acme.lanes: found 5; allowed: a list of tables, [[lanes]]",
        ),
        (
            "lanes = [{ path = \"exports\", rate = { requests = 6, per_ms = 60000 } }]",
            "line 3: providers.acme.lanes[0].path: found \"exports\"; allowed: one or more whole segments of a path, such as \"/exports\"",
        ),
        (
            "lanes = [{ path = \"/exports\" }]",
            "line 3: providers.acme.lanes[0].rate: is missing; it is required: rate = { requests = 100, per_ms = 10000 }, or points in place of requests",
        ),
        (
            "lanes = [{ path = \"/exports\", rate = { requests = 0, per_ms = 60000 } }]",
            "line 3: providers.acme.lanes[0].rate.requests: found 0; allowed: a whole number from 1 to 1000000",
        ),
        (
            "lanes = [{ path = \"/exports\", rate = { requests = 6, per_ms = 60000 }, speed = 1 }]",
            "line 3: providers.acme.lanes[0].speed:",
        ),
        (
            "max_in_flight = 0",
            "line 3: providers.acme.max_in_flight: found 0; allowed: a whole number from 1",
        ),
        (
            "rate = 5",
            "line 3: providers.acme.rate: found an integer; allowed: a table",
        ),
        (
            "rate = { requests = 5 }",
            "line 3: providers.acme.rate.per_ms: is missing; it is required",
        ),
        (
            "rate = { requests = 0, per_ms = 1 }",
            "line 3: providers.acme.rate.requests: found 0; allowed",
        ),
        (
            "rate = { requests = 1, per_s = 1, per_ms = 1 }",
            "line 3: providers.acme.rate.per_s: is not known; the nearest known is \"per_ms\"",
        ),
        (
            "rate = { points = 0, per_ms = 1 }",
            "line 3: providers.acme.rate.points: found 0; allowed: a whole number from 1 to 1000000000",
        ),
        (
            "rate = { points = 5, requests = 5, per_ms = 1 }",
            "line 3: providers.acme.rate.requests: found 5; allowed: requests or points, and not both",
        ),
        (
            "rate = { points = 4, per_ms = 1 }\n[[providers.acme.contract.costs]]\npoints = 5",
            "line 3: providers.acme.rate.points: found 4, but any call costs 5 by the contract; allowed: at least 5",
        ),
        (
            "rate = { points = 99, per_ms = 1 }\ncontract = \"youtube\"",
            "line 3: providers.acme.rate.points: found 99, but the operation \"search\" costs 100 by the contract; allowed: at least 100",
        ),
        (
            "lanes = [{ path = \"/search\", rate = { points = 99, per_ms = 1 } }]\nrate = { points = 5, per_ms = 1 }\ncontract = \"youtube\"",
            "line 3: providers.acme.lanes[0].rate.points: found 99, but the operation \"search\" costs 100 by the contract; allowed: at least 100",
        ),
        (
            "retry = { max_attempts = 0 }",
            "line 3: providers.acme.retry.max_attempts: found 0; allowed",
        ),
        (
            "results = 5",
            "line 3: providers.acme.results: found 5; allowed: \"none\" or \"store\"",
        ),
        (
            "credential = \"s3cret\"",
            "line 3: providers.acme.credential: found a string; allowed: a table",
        ),
        (
            "credential = { env = \"A\" }",
            "line 3: providers.acme.credential.header: is missing; it is required: { header = ",
        ),
        (
            "credential = { header = \"A\" }",
            "line 3: providers.acme.credential.env: is missing; it is required",
        ),
        (
            "credential = { header = \"A\", env = \"s3cret-token\" }",
            "line 3: providers.acme.credential.env: is no variable's name",
        ),
        (
            "credential = { header = \"A\", env = \"B\", prefix = \"a\\n\" }",
            "line 3: providers.acme.credential.prefix: allowed: a string",
        ),
        (
            "idempotency_header = \"A\"\ncredential = { header = \"a\", env = \"B\" }",
            "line 3: providers.acme.idempotency_header: found \"A\"; allowed: another header",
        ),
        (
            "[deferral]\nladder_ms = []",
            "line 4: deferral.ladder_ms: found a list; allowed: a list of one or more whole numbers",
        ),
        (
            "[deferral]\nladder_ms = [1,\n \"x\"]",
            "line 5: deferral.ladder_ms[1]: found \"x\"; allowed: a whole number from 1",
        ),
        (
            "[deferral]\nmonthly = \"wait\"",
            "line 4: deferral.monthly: found \"wait\"; allowed: \"exhaust\" or \"probe\"",
        ),
        (
            "[deferral]\nfallback = 1",
            "line 4: deferral.fallback: found 1; allowed: \"visibility\" or \"hops\"",
        ),
        (
            "[deferral]\non_exhausted = \"drop\"",
            "line 4: deferral.on_exhausted: found \"drop\"; allowed: \"dead-letter\"",
        ),
        (
            "[worker]\nconcurency = 1",
            "line 4: worker.concurency: is not known; the nearest known is \"concurrency\"",
        ),
        (
            "[retry]\nbackoff_ms = 1000",
            "line 4: retry.backoff_ms: found 1000; allowed: a list of one or more whole numbers",
        ),
        (
            "[wroker]\n",
            "line 3: wroker: is not known; the nearest known is \"worker\"; allowed: providers, deferral, retry, worker",
        ),
        (
            "[providers.\"a:b\"]\nbase_url = \"http://x\"",
            "line 3: providers.\"a:b\": is no provider's name; allowed: 1 to 64 of",
        ),
        (
            "[providers.b]\n",
            "line 3: providers.b.base_url: is missing; it is required: an http or https URL",
        ),
        (
            "[providers.b]\nbase_url = \"api.example\"",
            "line 4: providers.b.base_url: is no URL (relative URL without a base)",
        ),
        (
            "[providers.b]\nbase_url = \"ftp://x\"",
            "line 4: providers.b.base_url: found the scheme \"ftp\"; allowed: an http or https URL",
        ),
        (
            "[providers.b]\nbase_url = \"https://u:p@x\"",
            "line 4: providers.b.base_url: found a user in it; use credential",
        ),
        (
            "[providers.b]\nbase_url = \"https://x/?a=b\"",
            "line 4: providers.b.base_url: found a query in it",
        ),
        (
            "[providers.b]\nbase_url = \"https://x/#a\"",
            "line 4: providers.b.base_url: found a fragment in it",
        ),
    ] {
        let found = problems(&format!("{ACME}{text}"));
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert!(
            found[0].starts_with(expected),
            "{text}\n  says {}\n  not  {expected}",
            found[0]
        );
        assert!(
            !found[0].contains("s3cret"),
            "a secret in the wrong place is not repeated: {}",
            found[0]
        );
    }
}

#[test]
fn what_comes_later_is_refused_by_name_and_not_ignored() {
    for (text, expected) in [
        (
            "credential = { header = \"A\", secret = \"arn:x\" }",
            "line 3: providers.acme.credential.secret: a credential in a secret store: not built yet",
        ),
        (
            "credential = { header = \"A\", parameter = \"/x\" }",
            "line 3: providers.acme.credential.parameter: a credential in a parameter store: not built yet",
        ),
        (
            "credential = { oauth2 = { token_url = \"https://a\", client_id = \"a\", client_secret = { secret = \"arn:x\" } } }",
            "line 3: providers.acme.credential.oauth2.client_secret.secret: a credential in a secret store: not built yet",
        ),
        (
            "credential = { oauth2 = { token_url = \"https://a\", client_id = \"a\", client_secret = { parameter = \"/x\" } } }",
            "line 3: providers.acme.credential.oauth2.client_secret.parameter: a credential in a parameter store: not built yet",
        ),
        (
            "results = \"crm\"",
            "line 3: providers.acme.results: found \"crm\": sinks for results are not built yet",
        ),
        (
            "[deferral]\non_exhausted = \"review\"",
            "line 4: deferral.on_exhausted: found \"review\": leaving a job to a person is not built yet",
        ),
        (
            "[sinks.crm]\nurl = \"x\"",
            "line 3: sinks: sinks for results: not built yet; leave it out",
        ),
    ] {
        let found = problems(&format!("{ACME}{text}"));
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert!(
            found[0].starts_with(expected),
            "{text}\n  says {}\n  not  {expected}",
            found[0]
        );
    }
}

#[test]
fn every_mistake_is_told_at_once_in_the_order_of_the_lines() {
    let text = "[providers.acme]\nbase_url = 7\nrate = { requests = \"x\" }\n[wroker]\n[deferral]\nfifo = \"no\"\n[providers.b]\nlanes = 1\n";
    let lines: Vec<usize> = Settings::parse(text)
        .unwrap_err()
        .problems()
        .iter()
        .map(Problem::line)
        .collect();
    assert_eq!(lines, [2, 3, 3, 4, 6, 7, 8]);
    let text = "[providers.acme]\nbase_url = \nbase_url = \"https://x\"\n= 3\nresults = \"nope\"\n";
    let found = problems(text);
    assert!(
        found.iter().any(|problem| problem.starts_with("line 2: is not TOML: ")),
        "{found:#?}"
    );
    assert!(
        found.iter().any(|problem| problem.starts_with("line 4: is not TOML: ")),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|problem| problem.starts_with("line 5: providers.acme.results: ")),
        "{found:#?}"
    );
}

#[test]
fn credentials_are_read_from_the_environment_and_never_printed() {
    let text = "[providers.a]\nbase_url = \"https://a\"\ncredential = { header = \"A\", prefix = \"Bearer \", env = \"A_TOKEN\" }\n\
                [providers.b]\nbase_url = \"https://b\"\ncredential = { header = \"B\", env = \"B_TOKEN\" }\n[providers.c]\nbase_url = \"https://c\"";
    let settings = Settings::parse(text).unwrap();
    let credentials = Credentials::read(&settings, |name| Some(format!("s3cret-{name}"))).unwrap();
    let header = |name: &str| {
        let credential = settings.provider(name).unwrap().credential()?;
        credential.header_value(credentials.secret(name)?)
    };
    assert_eq!(header("a").unwrap().as_bytes(), b"Bearer s3cret-A_TOKEN");
    assert!(header("a").unwrap().is_sensitive());
    assert_eq!(header("c"), None);
    assert!(!format!("{credentials:?}{settings:?}").contains("s3cret"));

    let missing = Credentials::read(&settings, |_| None).unwrap_err();
    assert_eq!(
        missing.problems().iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "line 3: providers.a.credential.env: the environment variable A_TOKEN is not set",
            "line 6: providers.b.credential.env: the environment variable B_TOKEN is not set",
        ]
    );
    let odd = |name: &str| {
        Some(if name == "A_TOKEN" {
            String::new()
        } else {
            "s3cret\n".to_string()
        })
    };
    let found = Credentials::read(&settings, odd).unwrap_err().to_string();
    assert!(
        found.contains("A_TOKEN is empty") && found.contains("B_TOKEN holds a line break") && !found.contains("s3cret"),
        "{found}"
    );
}

#[test]
fn a_token_is_asked_for_as_the_settings_say() {
    let oauth2 = |inside: &str| format!("{ACME}credential = {{ {inside} }}");
    let whole = r#"oauth2 = { token_url = "https://login.acme.example/token", client_id = "us", client_secret = { env = "S" }, scope = "a b", client_auth = "body" }"#;
    let settings = Settings::parse(&oauth2(whole)).unwrap_or_else(|error| panic!("{error}"));
    let credential = settings.provider("acme").unwrap().credential().unwrap();
    let asked = credential.oauth2().unwrap();
    assert_eq!(
        (
            credential.header().as_str(),
            credential.env(),
            asked.token_url().as_str()
        ),
        ("authorization", "S", "https://login.acme.example/token")
    );
    assert_eq!(
        (asked.client_id(), asked.scope(), asked.client_auth()),
        ("us", Some("a b"), crate::ClientAuth::Body)
    );
    let missing = Credentials::read(&settings, |_| None).unwrap_err().to_string();
    assert!(
        missing.contains("providers.acme.credential.oauth2.client_secret.env: the environment variable S is not set"),
        "{missing}"
    );
    for (inside, expected) in [
        (
            r#"oauth2 = { client_id = "us", client_secret = { env = "S" } }"#,
            "line 3: providers.acme.credential.oauth2.token_url: is missing",
        ),
        (
            r#"oauth2 = { token_url = "ftp://u:s3cret@x", client_id = "us", client_secret = { env = "S" } }"#,
            "line 3: providers.acme.credential.oauth2.token_url: is no URL of a token endpoint; allowed: an http or https URL",
        ),
        (
            r#"oauth2 = { token_url = "https://x", client_id = "us", client_secret = "s3cret" }"#,
            "line 3: providers.acme.credential.oauth2.client_secret: found a string; allowed: a table",
        ),
        (
            r#"oauth2 = { token_url = "https://x", client_id = "us", client_secret = { env = "s3cret/+" } }"#,
            "line 3: providers.acme.credential.oauth2.client_secret.env: is no variable's name",
        ),
        (
            r#"env = "T", oauth2 = { token_url = "https://x", client_id = "us", client_secret = { env = "S" } }"#,
            "line 3: providers.acme.credential.env: stands beside oauth2",
        ),
        (
            r#"oauth2 = { token_url = "https://x", client_id = "us", client_secret = { env = "S" }, grant = "password" }"#,
            "line 3: providers.acme.credential.oauth2.grant: is not known",
        ),
    ] {
        let found = problems(&oauth2(inside));
        assert_eq!(found.len(), 1, "{inside}: {found:#?}");
        assert!(
            found[0].starts_with(expected) && !found[0].contains("s3cret"),
            "{}",
            found[0]
        );
    }
}

proptest! {
    #[test]
    fn no_text_panics_the_settings(
        lines in prop::collection::vec(
            prop_oneof![
                Just("[providers.a]"), Just("base_url = \"https://x\""), Just("[deferral]"), Just("ladder_ms = [1,"), Just("]"),
                Just("timeout_ms = 0x10"), Just("rate = {"), Just("é = \"\"\""), Just("credential = { header = 1 }"), Just("[[providers]]"),
                Just("[providers.a.retry]"), Just("contract.x = 1979-05-27"), Just("= ="), Just("[sinks]"),
            ].prop_map(str::to_string).boxed().prop_union("\\PC{0,20}".boxed()),
            0..12,
        )
    ) {
        let text = lines.join("\n");
        if let Err(error) = Settings::parse(&text) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(error.problems().iter().all(|problem| problem.line() <= lines.len().max(1)));
        }
    }
}

#[test]
fn a_contract_is_named_written_or_extended() {
    let settings = |contract: &str| {
        Settings::parse(&format!(
            "[providers.acme]\nbase_url = \"https://api.acme.example\"\n{contract}"
        ))
        .unwrap_or_else(|error| panic!("{error}"))
    };
    let named = settings("contract = \"hubspot\"");
    let contract = named.provider("acme").unwrap().contract().unwrap();
    assert_eq!(contract.title.as_deref(), Some("HubSpot"));

    let extended = settings(
        "[providers.acme.contract]\nextends = \"HubSpot\"\nscope = \"app\"\n[[providers.acme.contract.windows]]\n\
         name = \"daily\"\nlimit = 7\nresets = { at = \"day\", tz = \"Europe/Berlin\" }",
    );
    let over = extended.provider("acme").unwrap().contract().unwrap();
    assert_eq!(over.scope, Some(crate::LimitScope::App));
    assert_eq!(over.window("daily").unwrap().limit, Some(7));
    assert_eq!(
        over.windows.len(),
        contract.windows.len(),
        "a window of the same name is replaced"
    );
    assert_eq!(over.classify, contract.classify);

    let own = settings("contract = { min_retry_after_ms = 5 }");
    assert_eq!(
        own.provider("acme").unwrap().contract().unwrap().min_retry_after_ms,
        Some(5)
    );
    assert_eq!(settings("").provider("acme").unwrap().contract(), None);
}

#[test]
fn a_contract_that_is_wrong_is_told_with_its_line() {
    for (contract, expected) in [
        (
            "contract = \"hubspott\"",
            "line 3: providers.acme.contract: \"hubspott\" is not known; the nearest known is \"hubspot\"",
        ),
        (
            "contract = 7",
            "line 3: providers.acme.contract: found 7; allowed: a name of the catalogue",
        ),
        (
            "[providers.acme.contract]\nwindow = 1",
            "line 4: providers.acme.contract.window: is not known; the nearest known is \"windows\"",
        ),
        (
            "[providers.acme.contract]\nextends = \"nobody\"",
            "line 4: providers.acme.contract.extends: \"nobody\" is not known",
        ),
    ] {
        let text = format!("[providers.acme]\nbase_url = \"https://api.acme.example\"\n{contract}");
        let error = Settings::parse(&text).unwrap_err();
        assert!(error.problems()[0].to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_rate_counts_points_where_it_says_so_and_then_every_stated_cost_fits() {
    let read = |settings: &str| {
        let text = format!("[providers.acme]\nbase_url = \"https://acme.example\"\n{settings}");
        Settings::parse(&text).map(|settings| settings.provider("acme").unwrap().rate().unwrap())
    };
    let costs = "\n[[providers.acme.contract.costs]]\npoints = 5";
    let points = read(&format!("rate = {{ points = 5, per_ms = 1000 }}{costs}")).unwrap();
    assert_eq!(
        (points, points.counts_points()),
        (crate::Rate::per_second(5).in_points(), true)
    );
    let requests = read(&format!("rate = {{ requests = 4, per_ms = 1000 }}{costs}")).unwrap();
    assert!(!requests.counts_points(), "a limit of requests is none of points");
}

#[test]
fn a_job_s_lane_is_by_the_whole_path() {
    let text = "[providers.acme]\nbase_url = \"https://acme.example/v2/\"\nlanes = [\
                { path = \"/v2/exports\", rate = { requests = 1, per_ms = 1 } }, \
                { path = \"/imports\", rate = { requests = 1, per_ms = 1 } }]";
    let settings = Settings::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let lane = |path: &str| {
        let job = format!(r#"{{"provider":"acme","method":"GET","path":"{path}"}}"#);
        let job = crate::HttpJob::parse(&job).unwrap();
        let lane = settings.provider("acme").unwrap().lane_of(&job);
        lane.map(|lane| lane.fragment().to_string())
    };
    assert_eq!(lane("/exports/7").as_deref(), Some("v2/exports"));
    assert_eq!(lane("/all/imports").as_deref(), Some("imports"));
    assert_eq!(lane("/v1/exports"), None);
}
