//! A response is pasted: what a program is told of it, and what is refused.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::scene::{Scene, files, settings};

pub(crate) const RECEIVED: &str = "2026-07-10T20:13:47Z";

/// What GitHub answers when the hour's requests are spent.
pub(crate) const GITHUB: &str = "HTTP/2 403\r\ndate: Fri, 10 Jul 2026 20:13:47 GMT\r\nx-ratelimit-limit: 5000\r\n\
                      x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1783715627\r\n\r\n\
                      {\"message\":\"API rate limit exceeded for user ID 1.\"}";

/// The facts of one response.
#[track_caller]
fn facts(text: &str, options: &[&str]) -> Value {
    let arguments = [&["explain", "--json", "--received-at", RECEIVED], options].concat();
    Scene::new().adjourn_with(&arguments, text).ok().json()
}

#[test]
fn json_has_the_facts_under_their_names() {
    let told = facts(GITHUB, &["--provider", "GitHub REST"]);
    let expected = json!({
        "rateLimited": true,
        "kind": "short",
        "scopeHint": "user",
        "retryAt": "2026-07-10T20:33:47.000Z",
        "waitMs": 1_200_000,
        "saturated": false,
        "source": "parser",
        "parser": "reset-headers",
        "reason": "primary",
        "clockUncertaintyMs": 1000,
        "decision": {"kind": "defer", "mechanism": "schedule", "until": "2026-07-10T20:33:47.000Z"},
    });
    for (field, expected) in expected.as_object().unwrap() {
        assert_eq!(told[field], *expected, "{field}: {told}");
    }
}

#[test]
fn a_response_without_a_time_has_none_and_the_decision_is_ours() {
    let told = facts("HTTP/1.1 429 Too Many Requests\n\n", &[]);
    assert_eq!(
        (&told["retryAt"], &told["waitMs"], &told["source"], &told["parser"]),
        (&Value::Null, &Value::Null, &json!("none"), &Value::Null)
    );
    // The first rung of the ladder.
    assert_eq!(
        told["decision"],
        json!({"kind": "defer", "mechanism": "delay", "until": "2026-07-10T20:13:49.000Z"})
    );
}

#[test]
fn a_value_beyond_time_is_clamped_and_ends_the_job() {
    let told = facts("HTTP/2 429\nretry-after: 99999999999999999999999999\n\n", &[]);
    assert_eq!(
        (&told["saturated"], &told["decision"]["kind"]),
        (&json!(true), &json!("exhaust"))
    );
    assert!(told["retryAt"].is_string(), "{told}");
}

#[test]
fn no_limit_is_a_success_too() {
    for (status, decision) in [(200, "complete"), (404, "reject"), (401, "reject"), (500, "retry")] {
        let told = facts(&format!("HTTP/2 {status}\n\nbody"), &[]);
        assert_eq!(
            (&told["rateLimited"], &told["decision"]["kind"]),
            (&json!(false), &json!(decision)),
            "{status}"
        );
    }
}

#[test]
fn what_curl_prints_in_all_its_forms_is_read() {
    let head = "HTTP/2 429 \nretry-after: 30\n";
    for (form, text) in [
        ("LF", format!("{head}\n{{}}")),
        ("CRLF", format!("{head}\n{{}}").replace('\n', "\r\n")),
        ("headers alone", head.to_string()),
        ("2 MB", format!("{head}\n{}", "x".repeat(2_000_000))),
        ("100-continue", format!("HTTP/1.1 100 Continue\n\n{head}\n{{}}")),
        (
            "a proxy and a redirect",
            format!("HTTP/1.1 200 Connection established\n\nHTTP/1.1 302 Found\nLocation: /b\n\n{head}\n{{}}"),
        ),
        ("JSON over lines", json_over_lines()),
    ] {
        assert_eq!(facts(&text, &[])["waitMs"], 30_000, "{form}");
    }
}

fn json_over_lines() -> String {
    serde_json::to_string_pretty(&json!({"status": 429, "headers": {"Retry-After": ["10", "30"]}, "body": {}})).unwrap()
}

#[test]
fn a_file_is_read_like_stdin_and_nothing_is_made() {
    let scene = Scene::new();
    scene.write("response.txt", GITHUB);
    let told = scene.adjourn(&["explain", "response.txt", "--json"]).ok().json();
    assert_eq!(told["retryAt"], "2026-07-10T20:33:47.000Z");
    assert_eq!(files(&scene.path("")), ["response.txt"]);
}

#[test]
fn json_lines_give_one_answer_a_line_in_order() {
    let scene = Scene::new();
    let text: String = (1..=50)
        .map(|n| format!("{{\"status\":429,\"headers\":{{\"Retry-After\":\"{n}\"}}}}\n"))
        .collect();
    let told = scene.adjourn_with(&["explain", "--json"], &text).ok().json_lines();
    let waits: Vec<u64> = told.iter().map(|told| told["waitMs"].as_u64().unwrap()).collect();
    assert_eq!(waits, (1..=50).map(|n| n * 1000).collect::<Vec<u64>>());
    let words = scene.adjourn_with(&["explain"], &text).ok();
    assert_eq!(words.stdout.lines().count(), 50, "{words:?}");
}

#[test]
fn a_bad_line_is_named_and_the_others_are_answered() {
    let text = "{\"status\":429}\n\n{\"status\":\"hush\"}\n{\"status\":200}\n";
    let said = Scene::new().adjourn_with(&["explain", "--json"], text);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = said.json_lines();
    assert_eq!(told.len(), 3);
    assert_eq!(
        (&told[0]["rateLimited"], &told[2]["rateLimited"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(told[1]["line"], 3);
    assert!(
        said.stderr.contains("line 3: ") && said.stderr.contains("1 of 3 lines"),
        "{said:?}"
    );
    assert!(
        !said.stderr.contains("hush") && !said.stdout.contains("hush"),
        "{said:?}"
    );
}

#[test]
fn a_line_is_answered_before_the_next_one_comes() {
    let scene = Scene::new();
    let mut command = scene.command(&["explain", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for status in [429, 200] {
        writeln!(stdin, "{{\"status\":{status}}}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        let told: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(told["status"], status);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let scene = Scene::new();
    scene.write("many.jsonl", &"{\"status\":429}\n".repeat(5000));
    let mut child = scene
        .command(&["explain", "many.jsonl", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
}

#[test]
fn what_is_no_response_is_exit_2_with_what_was_found_and_what_is_allowed() {
    for (text, parts) in [
        ("", &["found nothing", "curl -i"][..]),
        ("[{\"status\":429}]", &["found a JSON list", "jq -c"]),
        ("<html>", &["found markup without a status line", "curl -i"]),
        ("hush", &["found text without a status line", "HTTP/2 429"]),
        ("\u{0}\u{1}", &["found bytes that are no text"]),
        ("{\"status\":", &["ends too early", "allowed: {\"status\":429"]),
        ("{\"status\":42}", &["status: found 42", "100 to 999"]),
        ("{\"headers\":{}}", &["status: is missing"]),
        (
            "{\"status\":\"hush\"}",
            &["status: found a text; allowed: a number from 100 to 999"],
        ),
        ("{\"status\":429.5}", &["status: found a number that is not whole"]),
        (
            "{\"status\":429,\"headers\":[[\"a\",\"hush\"]]}",
            &["headers: found a list; allowed: an object"],
        ),
        (
            "{\n\"status\":429,\"received_at\":1783714427}",
            &["received_at: found a number", "RFC 3339"],
        ),
        (
            "{\"status\":429,\"received_at\":\"hush\"}",
            &["received_at: is no time", "RFC 3339"],
        ),
    ] {
        let said = Scene::new().adjourn_with(&["explain"], text);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{text:?}: {said:?}");
        assert!(said.stderr.starts_with("adjourn: stdin: "), "{text:?}: {said:?}");
        assert!(
            parts.iter().all(|part| said.stderr.contains(part)),
            "{text:?}: {said:?}"
        );
        assert!(!said.stderr.contains("hush"), "{text:?}: {said:?}");
    }
    let said = Scene::new().adjourn(&["explain", "nowhere.txt"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("nowhere.txt: cannot be read"), "{said:?}");
}

#[test]
fn an_unknown_provider_is_exit_2_and_the_nearest_is_named() {
    for (name, nearest) in [
        ("githb", "github"),
        ("Jira Clud", "Jira Cloud"),
        ("hubsport", "hubspot"),
    ] {
        let said = Scene::new().adjourn_with(&["explain", "--provider", name], GITHUB);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{name}: {said:?}");
        assert!(
            said.stderr.contains(&format!("{name:?}")) && said.stderr.contains(&format!("the nearest is {nearest:?}")),
            "{name}: {said:?}"
        );
    }
}

/// A daily limit told in a way that only a contract can know.
const ODD: &str = "HTTP/1.1 418 I'm a teapot\nX-Odd: spent\nX-Wait: 90\n\n";

const ODD_CONTRACT: &str = "[providers.acme.contract]\nparsers = [{ header = \"x-wait\", unit = \"s\" }]\n\
                            [[providers.acme.contract.classify]]\nstatus = 418\nheaders = { x-odd = \"spent\" }\n\
                            kind = \"daily\"\nreason = \"day\"\n";

#[test]
fn a_provider_of_the_settings_is_read_by_its_contract() {
    let scene = Scene::new();
    let text = settings("http://127.0.0.1:9", ODD_CONTRACT);
    scene.write("adjourn.toml", &text);
    scene.write("other.toml", &text.replace("daily", "monthly"));
    let told = |options: &[&str]| {
        scene
            .adjourn_with(&[&["explain", "--json"], options].concat(), ODD)
            .ok()
            .json()
    };
    let here = told(&["--provider", "acme"]);
    assert_eq!((&here["kind"], &here["waitMs"]), (&json!("daily"), &json!(90_000)));
    assert_eq!(
        told(&["--provider", "acme", "--config", "other.toml"])["kind"],
        "monthly"
    );
    assert_eq!(told(&[])["rateLimited"], false, "without its contract it is no limit");
}

#[test]
fn the_contract_of_the_settings_goes_before_the_catalogue_s() {
    let scene = Scene::new();
    let by = |contract: &str| {
        scene.write(
            "adjourn.toml",
            &format!(
                "[providers.github]\nbase_url = \"http://127.0.0.1:9\"\n[providers.github.contract]\n{contract}\n"
            ),
        );
        let ended = scene.adjourn_with(&["explain", "--json", "--provider", "github"], GITHUB);
        ended.ok().json()["scopeHint"].clone()
    };
    assert_eq!(by("extends = \"github\""), "user");
    assert_eq!(by("extends = \"github\"\nscope = \"app\""), "app");
}

#[test]
fn the_settings_decide_what_becomes_of_the_job() {
    let scene = Scene::new();
    scene.write(
        "adjourn.toml",
        &settings(
            "http://127.0.0.1:9",
            "[deferral]\nladder_ms = [7000]\nmax_deferred_ms = 60000\n",
        ),
    );
    let told = |text: &str| {
        let arguments = ["explain", "--json", "--received-at", RECEIVED];
        scene.adjourn_with(&arguments, text).ok().json()["decision"].clone()
    };
    assert_eq!(told("HTTP/2 429\n\n")["until"], "2026-07-10T20:13:54.000Z");
    assert_eq!(told("HTTP/2 429\nretry-after: 61\n\n")["kind"], "exhaust");
}

#[test]
fn named_settings_that_are_missing_or_wrong_are_exit_2() {
    let scene = Scene::new();
    scene.write("wrong.toml", "[providers.acme]\nbase_ulr = \"http://127.0.0.1:9\"\n");
    for (config, part) in [("nowhere.toml", "there is no such file"), ("wrong.toml", "line 2")] {
        let said = scene.adjourn_with(&["explain", "--config", config], GITHUB);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{config}: {said:?}");
        assert!(said.stderr.contains(config) && said.stderr.contains(part), "{said:?}");
    }
}

#[test]
fn a_credential_is_never_echoed() {
    let text = "HTTP/2 429\r\nauthorization: Bearer SECRET-of-the-test\r\nset-cookie: sid=SECRET-of-the-test\r\n\
                x-api-key: SECRET0123456789abcdefgh\r\nproxy-authorization: Basic SECRET\r\nretry-after: Bearer SECRET\r\n\
                x-ratelimit-remaining: 0\r\nx-ratelimit-reset: SECRET0123456789abcdefgh\r\n\r\n\
                {\"token\":\"SECRET\",\"retry_after\":\"SECRET0123456789abcdefgh\"}";
    let json = json!({"status": 429, "headers": {"Authorization": "Bearer SECRET", "Retry-After": "Bearer SECRET"}});
    let scene = Scene::new();
    for text in [text.to_string(), json.to_string(), format!("{json}\n{json}\n")] {
        for options in [&["explain"][..], &["explain", "--json"], &["explain", "--json", "-vv"]] {
            let said = scene.adjourn_with(options, &text).ok();
            assert!(
                !said.stdout.contains("SECRET") && !said.stderr.contains("SECRET"),
                "{said:?}"
            );
        }
    }
}

#[test]
fn the_worked_contracts_read_their_responses() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/contracts");
    for (example, provider, kind, source) in [
        ("headers-and-body", "ledger", "daily", "parser"),
        ("documentation-only", "tides", "daily", "contract"),
        ("declares-nothing", "corner-shop", "unknown", "parser"),
    ] {
        let (response, config) = (format!("{folder}/{example}.http"), format!("{folder}/{example}.toml"));
        let arguments = [
            "explain",
            &response,
            "--provider",
            provider,
            "--config",
            &config,
            "--json",
        ];
        let told = Scene::new().adjourn(&arguments).ok().json();
        assert_eq!(
            (&told["rateLimited"], &told["kind"], &told["source"]),
            (&json!(true), &json!(kind), &json!(source)),
            "{example}: {told}"
        );
        assert!(told["retryAt"].is_string(), "{example}: {told}");
    }
}
