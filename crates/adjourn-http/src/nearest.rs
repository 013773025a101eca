//! The known name nearest to one that is not known, for the words of an error.

/// The known name with the fewest edits to `found`; the first of several, none only where nothing is known.
pub(crate) fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    // A name longer than any known one by far is not worth a matrix.
    let found: Vec<char> = found.chars().take(64).collect();
    known
        .iter()
        .copied()
        .min_by_key(|name| distance(&found, &name.chars().collect::<Vec<_>>()))
}

/// The words for a name that is not known: what it may have meant, and all that is allowed.
pub(crate) fn unknown(known: &[&str], found: &str) -> String {
    let meant = nearest(found, known).map_or_else(String::new, |name| format!("; the nearest known is {name:?}"));
    format!("is not known{meant}; allowed: {}", known.join(", "))
}

/// Edits between two names: insert, delete, replace, or swap two neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut swapped_above = None;
    for (row, &x) in a.iter().enumerate() {
        let mut line = Vec::with_capacity(above.len());
        let mut left = row + 1;
        line.push(left);
        let mut previous = None;
        for (column, (&y, pair)) in b.iter().zip(above.windows(2)).enumerate() {
            let &[diagonal, up] = pair else { continue };
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            let mut cost = replaced.min(up + 1).min(left + 1);
            if swapped_above == Some(y)
                && previous == Some(x)
                && let Some(&swapped) = column.checked_sub(1).and_then(|column| before.get(column))
            {
                cost = cost.min(swapped + 1);
            }
            line.push(cost);
            left = cost;
            previous = Some(y);
        }
        before = std::mem::replace(&mut above, line);
        swapped_above = Some(x);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(a: &str, b: &str) -> usize {
        distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
    }

    #[test]
    fn counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "path", 4),
            ("path", "", 4),
            ("path", "path", 0),
            ("apth", "path", 1),
            ("pth", "path", 1),
            ("bath", "path", 1),
            ("PATH", "path", 0),
            ("idempotency_key", "idempotencyKey", 1),
        ] {
            assert_eq!(edits(a, b), expected, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn names_the_nearest_and_all_that_is_allowed() {
        assert_eq!(nearest("headrs", &["body", "headers", "path"]), Some("headers"));
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(
            unknown(&["path", "query"], "pathh"),
            "is not known; the nearest known is \"path\"; allowed: path, query"
        );
    }
}
