//! `adjourn.toml` as a user gets it wrong: every mistake at once, with its line, what was found and what is allowed.

use crate::scene::{Scene, ended, files, settings};

#[test]
fn a_missing_file_says_where_it_was_looked_for_and_how_to_name_another() {
    let scene = Scene::new();
    for command in [&["run", "--until-idle"][..], &["send"]] {
        let said = scene.adjourn(command);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(
            said.stderr.contains("adjourn.toml") && said.stderr.contains("--config"),
            "{command:?}: {said:?}"
        );
    }
    assert_eq!(files(&scene.path("")), Vec::<String>::new(), "no store was made");
}

#[test]
fn a_parameter_is_refused_here_with_what_to_do() {
    let scene = Scene::new();
    let said = scene.adjourn(&["run", "--config", "ssm:adjourn"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("ssm:adjourn") && said.stderr.contains("file"),
        "{said:?}"
    );
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let acme = settings("http://127.0.0.1:9", "");
    let table: Vec<(String, &[&str])> = vec![
        (String::new(), &["empty"]),
        ("providers = [".into(), &["line 1"]),
        ("[providers.acme]\ntimeout_ms = 1000\n".into(), &["base_url"]),
        (
            "[providers.acme]\nbase_ulr = \"http://127.0.0.1:9\"\n".into(),
            &["line 2", "base_ulr", "base_url"],
        ),
        (
            "[providers.acme]\nbase_url = \"ftp://127.0.0.1\"\n".into(),
            &["line 2", "base_url", "ftp"],
        ),
        (
            "[providers.acme]\nbase_url = \"http://127.0.0.1:9\"\ntimeout_ms = \"soon\"\n".into(),
            &["line 3", "timeout_ms", "soon"],
        ),
        (format!("{acme}max_in_flight = 0\n"), &["line 5", "max_in_flight", "0"]),
        (
            format!("{acme}rate = {{ requests = 10 }}\n"),
            &["line 5", "rate", "per_ms"],
        ),
        (
            format!("{acme}[worker]\nconcurrency = -1\n"),
            &["line 6", "concurrency", "-1"],
        ),
        (
            format!("{acme}[deferral]\nmax_deferrals = \"many\"\n"),
            &["line 6", "max_deferrals", "many"],
        ),
        (
            format!("{acme}[deferral]\nmonthly = \"never\"\n"),
            &["line 6", "monthly", "never", "exhaust", "probe"],
        ),
        (
            format!("{acme}[retries]\nmax_attempts = 1\n"),
            &["line 5", "retries", "retry"],
        ),
    ];
    for (text, expected) in table {
        let scene = Scene::new();
        scene.write("adjourn.toml", &text);
        let said = scene.adjourn(&["run", "--until-idle"]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{text}: {said:?}");
        assert!(said.stderr.contains("adjourn.toml"), "{text}: {said:?}");
        assert!(
            expected.iter().all(|part| said.stderr.contains(part)),
            "{text}: {expected:?}: {said:?}"
        );
        assert_eq!(files(&scene.path("")), ["adjourn.toml"], "{text}: no store was made");
    }
}

#[test]
fn all_mistakes_come_at_once() {
    let scene = Scene::new();
    scene.write(
        "adjourn.toml",
        "[providers.acme]\nbase_url = 7\ntimeout_ms = 0\n\n[retry]\nmax_attempts = 0\n\n[worker]\nthreads = 4\n",
    );
    let said = scene.adjourn(&["run"]);
    assert_eq!(said.code, Some(2));
    for line in [2, 3, 6, 9] {
        assert!(said.stderr.contains(&format!("line {line}")), "line {line}: {said:?}");
    }
}

#[test]
fn settings_of_parts_that_are_not_built_yet_are_refused_by_name() {
    let acme = settings("http://127.0.0.1:9", "");
    for (text, key) in [
        (format!("{acme}results = \"crm\"\n"), "results"),
        (format!("{acme}[deferral]\non_exhausted = \"review\"\n"), "on_exhausted"),
    ] {
        let scene = Scene::new();
        scene.write("adjourn.toml", &text);
        let said = scene.adjourn(&["run", "--until-idle"]);
        assert_eq!(said.code, Some(2), "{key}: {said:?}");
        assert!(
            said.stderr.contains(key) && said.stderr.contains("not built"),
            "{key}: {said:?}"
        );
    }
}

#[test]
fn a_missing_credential_names_the_variable_and_never_its_value() {
    let scene = Scene::new();
    let credential =
        "credential = { header = \"Authorization\", prefix = \"Bearer \", env = \"ACME_TOKEN_OF_THE_TEST\" }\n";
    scene.write("adjourn.toml", &settings("http://127.0.0.1:9", credential));
    let said = scene.adjourn(&["run", "--until-idle"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("ACME_TOKEN_OF_THE_TEST") && said.stderr.contains("line 5"),
        "{said:?}"
    );
    let mut command = scene.command(&["run", "--until-idle"]);
    command.env("ACME_TOKEN_OF_THE_TEST", "hush\nhush");
    let said = ended(command);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("ACME_TOKEN_OF_THE_TEST") && !said.stderr.contains("hush"),
        "{said:?}"
    );
}
