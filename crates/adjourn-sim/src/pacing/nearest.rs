//! The known name nearest to one that is not known, for the words of an error.

/// The known name with the fewest edits to `found`, without regard to case; none only where nothing is known.
pub(super) fn of<'k>(found: &str, known: &[&'k str]) -> Option<&'k str> {
    let found = found.to_lowercase();
    let edits = |name: &&&str| strsim::damerau_levenshtein(&found, &name.to_lowercase());
    known.iter().min_by_key(edits).copied()
}

/// What a name may have meant, and all that is allowed, to follow what was found.
pub(super) fn known(found: &str, names: &[&str]) -> String {
    let meant = of(found, names).map_or_else(String::new, |name| format!("; the nearest known is {name:?}"));
    format!("{meant}; allowed: {}", names.join(", "))
}
