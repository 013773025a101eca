//! The walls of the house: who may depend on whom, and which words name no room.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Which rooms each room may enter. `adjourn-tests` and the benchmarks may enter any.
const DOORS: &[(&str, &[&str])] = &[
    ("adjourn-core", &[]),
    ("adjourn-pace", &["adjourn-core"]),
    ("adjourn-worker", &["adjourn-core"]),
    ("adjourn-http", &["adjourn-core", "adjourn-pace"]),
    ("adjourn-aws", &["adjourn-core", "adjourn-worker"]),
    ("adjourn-local", &["adjourn-core", "adjourn-worker"]),
    (
        "adjourn-sim",
        &[
            "adjourn-core",
            "adjourn-worker",
            "adjourn-pace",
            "adjourn-http",
            "adjourn-local",
        ],
    ),
    (
        "adjourn-functions",
        &[
            "adjourn-core",
            "adjourn-worker",
            "adjourn-http",
            "adjourn-pace",
            "adjourn-aws",
            "adjourn-local",
        ],
    ),
    (
        "adjourn",
        &[
            "adjourn-core",
            "adjourn-worker",
            "adjourn-http",
            "adjourn-pace",
            "adjourn-aws",
            "adjourn-local",
            "adjourn-sim",
        ],
    ),
];
/// A door that opens by a feature alone: room, other room, feature.
const DOORS_BY_FEATURE: &[(&str, &str, &str)] = &[("adjourn-http", "adjourn-worker", "handler")];
/// What belongs under one room alone.
const KEPT: &[(&str, &[&str])] = &[
    ("aws-sdk-", &["adjourn-aws"]),
    ("aws-config", &["adjourn-aws"]),
    ("rusqlite", &["adjourn-local"]),
    ("reqwest", &["adjourn-http"]),
];
/// Where packages stand that are rooms. What tries them out (tests, benchmarks, examples) stands elsewhere.
const ROOMS: &[&str] = &["crates", "functions"];
/// Words that name nothing.
const FORBIDDEN: &[&str] = &[
    "types", "common", "util", "utils", "config", "error", "errors", "macros", "testing", "helpers",
];

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests are a folder of the workspace")
        .to_path_buf()
}

fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .no_deps()
            .other_options(vec!["--offline".to_string()])
            .exec()
            .expect("cargo metadata")
    })
}

fn rooms() -> impl Iterator<Item = &'static Package> {
    metadata().packages.iter().filter(|package| {
        let path = package.manifest_path.as_std_path().strip_prefix(root());
        path.is_ok_and(|path| ROOMS.iter().any(|room| path.starts_with(room)))
    })
}

/// Every source file of a package.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_room_has_its_doors() {
    let mut wrong = Vec::new();
    for package in rooms() {
        let Some((_, doors)) = DOORS.iter().find(|(room, _)| *room == package.name.as_str()) else {
            wrong.push(format!(
                "{}: a room without doors; say here whom it may depend on",
                package.name
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let of_ours = dependency.name.starts_with("adjourn");
            // A crate's tests may use its own fakes, and those of the worker.
            let in_tests = dependency.kind == DependencyKind::Development;
            if !of_ours || in_tests || doors.contains(&dependency.name.as_str()) {
                continue;
            }
            let by_feature = DOORS_BY_FEATURE.iter().any(|(room, other, feature)| {
                *room == package.name.as_str()
                    && *other == dependency.name
                    && dependency.optional
                    && package
                        .features
                        .iter()
                        .filter(|(_, enables)| enables.iter().any(|one| one.contains(&dependency.name)))
                        .all(|(name, _)| name == feature)
            });
            if !by_feature {
                wrong.push(format!("{} must not depend on {}", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_command_line_carries_no_fakes() {
    let command_line = rooms().find(|package| package.name.as_str() == "adjourn");
    let carried: Vec<_> = command_line
        .expect("the command line is a room")
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .collect();
    let of = |name: &str| {
        carried
            .iter()
            .find(|dependency| dependency.name == name)
            .expect("it is carried")
    };
    // The simulator's workers stand on fakes; the pacing part does not.
    let simulator = of("adjourn-sim");
    assert!(
        !simulator.uses_default_features && simulator.features.is_empty(),
        "{simulator:?}"
    );
    assert!(
        !of("adjourn-worker")
            .features
            .iter()
            .any(|feature| feature == "test-util")
    );
}

#[test]
fn what_one_room_keeps_no_other_room_uses() {
    let mut wrong = Vec::new();
    for package in rooms() {
        for dependency in &package.dependencies {
            let tests_alone = dependency.kind == DependencyKind::Development;
            for (name, keepers) in KEPT {
                let kept = if name.ends_with('-') {
                    dependency.name.starts_with(name)
                } else {
                    dependency.name == *name
                };
                if kept && !tests_alone && !keepers.contains(&package.name.as_str()) {
                    wrong.push(format!(
                        "{} uses {}, which belongs under {keepers:?}",
                        package.name, dependency.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_core_has_no_std_and_no_clock() {
    let library = fs::read_to_string(root().join("crates/adjourn-core/src/lib.rs")).expect("the core");
    assert!(library.lines().any(|line| line == "#![no_std]"));
    let core = rooms()
        .find(|package| package.name.as_str() == "adjourn-core")
        .expect("the core");
    for dependency in &core.dependencies {
        let has_io = ["tokio", "rand", "getrandom", "tracing"].contains(&dependency.name.as_str());
        assert!(!has_io, "the core must not depend on {}", dependency.name);
        if dependency.name == "chrono" && dependency.kind == DependencyKind::Normal {
            let clock = dependency
                .features
                .iter()
                .any(|feature| feature == "clock" || feature == "now");
            assert!(!clock && !dependency.uses_default_features, "chrono without its clock");
        }
    }
}

#[test]
fn no_room_has_a_name_that_says_nothing() {
    let mut wrong = Vec::new();
    for package in rooms() {
        let own = package.name.as_str();
        if FORBIDDEN
            .iter()
            .any(|word| own == *word || own.ends_with(&format!("-{word}")))
        {
            wrong.push(own.to_string());
        }
        let folder = package.manifest_path.parent().expect("a package's folder").join("src");
        for path in sources(folder.as_std_path()) {
            let name = match path.file_stem().and_then(|stem| stem.to_str()) {
                Some("mod") => path.parent().and_then(Path::file_name).and_then(|name| name.to_str()),
                other => other,
            };
            // `adjourn-worker`'s ports have one opaque error, in the folder of the ports.
            let the_ports_error = path.ends_with("port/error.rs");
            if name.is_some_and(|name| FORBIDDEN.contains(&name)) && !the_ports_error {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "names that say nothing: {wrong:#?}");
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let mut silent = BTreeSet::new();
    for package in metadata().packages.iter() {
        let folder = package.manifest_path.parent().expect("a package's folder");
        for path in sources(folder.as_std_path()) {
            let text = fs::read_to_string(&path).expect("a source file");
            if !text.starts_with("//! ") {
                silent.insert(path.display().to_string());
            }
        }
    }
    assert!(
        silent.is_empty(),
        "files that do not open with a `//!` line: {silent:#?}"
    );
}

#[test]
fn every_version_is_chosen_once() {
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in metadata().packages.iter() {
        for dependency in &package.dependencies {
            if dependency.path.is_none() {
                versions
                    .entry(&dependency.name)
                    .or_default()
                    .insert(dependency.req.to_string());
            }
        }
        let manifest = fs::read_to_string(&package.manifest_path).expect("a manifest");
        let mut in_dependencies = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            }
            let chooses = line.contains("version =") || line.contains("= \"");
            if in_dependencies && chooses && !line.trim_start().starts_with('#') && !line.contains("workspace = true") {
                let own_fakes = line.contains("path = \".\"");
                if !own_fakes {
                    wrong.push(format!("{}: {line}", package.name));
                }
            }
        }
    }
    wrong.extend(
        versions
            .into_iter()
            .filter(|(_, versions)| versions.len() > 1)
            .map(|(name, versions)| format!("{name}: {versions:?}")),
    );
    assert!(
        wrong.is_empty(),
        "versions belong to [workspace.dependencies]:\n{}",
        wrong.join("\n")
    );
}
