//! A response is pasted: what a person is told of it, on a terminal and off it.

use crate::{
    explain::{GITHUB, RECEIVED},
    scene::{Ended, Scene, ended},
    terminal::{is_coloured, on_terminal},
};

/// The answer in words, in Berlin, where it was 22:13:47.
fn in_words(text: &str, options: &[&str]) -> Ended {
    let scene = Scene::new();
    scene.write("response.txt", text);
    let mut command = scene.command(&[&["explain", "response.txt", "--received-at", RECEIVED], options].concat());
    // Berlin's rule, for a machine without a database of zones.
    command.env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
    ended(command).ok()
}

#[test]
fn in_words_it_says_what_until_when_by_which_field_and_what_then() {
    let said = in_words(GITHUB, &["--provider", "github"]);
    for part in [
        "403 Forbidden: a limit, and a short one",
        "until     Fri 10 Jul 2026, 22:33:47 +02:00 (2026-07-10 20:33:47 UTC): 20 min after it was received",
        "told by   x-ratelimit-reset: 1783715627, seconds since 1970",
        "concerns  the user",
        "adjourn   puts the job off until then, by a one-time schedule; it costs no attempt",
        "limit     primary: 0 of 5000 left, anew then",
        "tell them GitHub allows",
        "read by   the contract of GitHub (github)",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    assert!(!is_coloured(&said.stdout) && said.stderr.is_empty(), "{said:?}");
}

#[test]
fn in_words_it_says_what_was_ignored_and_why() {
    let said = in_words(
        "HTTP/2 429\nretry-after: soon\nx-ratelimit-remaining: 7\nx-ratelimit-reset: 1783716120\n\n",
        &[],
    );
    assert!(said.stdout.contains("the response names no time"), "{}", said.stdout);
    for field in [
        "ignored   retry-after: \"soon\", since it ",
        "ignored   x-ratelimit-reset: \"1783716120\", since it ",
    ] {
        assert!(said.stdout.contains(field), "{field}: {}", said.stdout);
    }
    assert!(said.stdout.contains("a time of its own choice"), "{}", said.stdout);
}

#[test]
fn in_words_each_end_of_a_job_is_told() {
    for (text, part) in [
        ("HTTP/2 200\n\n", "completes the job"),
        ("HTTP/2 404\n\n", "ends the job as failed"),
        ("HTTP/2 503\n\n", "it counts as a failure"),
        ("HTTP/2 429\n\nMonthly quota exceeded", "ends the job as exhausted"),
        (
            "HTTP/2 429\n\n{\"error\":{\"code\":\"insufficient_quota\"}}",
            "no wait helps: the account is closed",
        ),
    ] {
        let said = in_words(text, &[]);
        assert!(said.stdout.contains(part), "{text}: {}", said.stdout);
    }
}

#[test]
fn what_comes_from_outside_cannot_steer_a_terminal() {
    let said = in_words(
        "{\"status\":429,\"headers\":{\"X-RateLimit-Remaining\":\"1\"},\"body\":{\"retry_after\":\"\\u001b[31msoon\\u0007\"}}",
        &[],
    );
    assert!(!said.stdout.contains(['\u{1b}', '\u{7}']), "{said:?}");
    assert!(said.stdout.contains("[31msoon"), "the value was shown: {said:?}");
}

#[test]
fn on_a_terminal_it_is_coloured_unless_no_color_is_set() {
    let scene = Scene::new();
    scene.write("response.txt", GITHUB);
    for (environment, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let said = on_terminal(&scene, &["explain", "response.txt"], environment).ok();
        assert!(said.stdout.contains("403 Forbidden"), "{said:?}");
        assert_eq!(is_coloured(&said.stdout), coloured, "{environment:?}: {said:?}");
    }
    let json = on_terminal(&scene, &["explain", "response.txt", "--json"], &[]).ok();
    assert!(!is_coloured(&json.stdout), "{json:?}");
}
