//! Commands that are named and not built yet: they say so, and pretend nothing.

use crate::scene::{Scene, files};

#[test]
fn each_says_by_exit_2_what_brings_it_and_what_to_do_until_then() {
    let table: &[(&[&str], &str)] = &[
        (&["doctor"], "deployment"),
        (&["gate", "ls"], "shared gates"),
        (
            &["gate", "close", "acme", "--until", "2026-07-10T20:13:47Z"],
            "shared gates",
        ),
    ];
    let scene = Scene::new();
    for (arguments, brought_by) in table {
        let said = scene.adjourn(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments:?}");
        assert!(
            said.stderr.contains("is not built yet") && said.stderr.contains(brought_by),
            "{arguments:?}: {said:?}"
        );
        assert!(said.stderr.contains("Until then: "), "{arguments:?}: {said:?}");
    }
    assert_eq!(files(&scene.path("")), Vec::<String>::new());
}
