//! The tests that docs/asks.md and docs/laws.md name exist.

use std::{collections::BTreeSet, fs, path::Path};

/// Every function of every Rust source below `folder`.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            functions(&path, names);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            names.extend(text.split("fn ").skip(1).filter_map(|rest| {
                let name: String = rest
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                (!name.is_empty()).then_some(name)
            }));
        }
    }
}

#[test]
fn every_test_that_the_docs_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names = BTreeSet::new();
    functions(root, &mut names);
    for page in ["docs/asks.md", "docs/laws.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() >= 10, "{page} has its rows");
        for row in rows.iter().filter(|row| !row.starts_with("| ---")) {
            let kept_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
            let named = kept_by.split('`').skip(1).step_by(2);
            for test in named.filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')) {
                assert!(names.contains(test), "{page} names {test}, and there is no such test");
            }
            assert!(
                kept_by.contains('`') || kept_by.contains("with "),
                "{page}: a row without an answer: {row}"
            );
        }
    }
}
