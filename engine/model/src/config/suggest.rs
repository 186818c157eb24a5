//! The nearest known name to a mistyped one.

use super::property::Scope;
use super::table;

/// A name longer than this is no typing error, and comparing it would take quadratic time.
const MAX_NAME_LEN: usize = 128;

/// The known name with the fewest edits, when they are few for its length.
pub(super) fn nearest(scope: Scope, name: &str) -> Option<&'static str> {
    if name.len() > MAX_NAME_LEN {
        return None;
    }
    let wanted = name.to_ascii_lowercase().replace(['_', '-'], ".");
    table::all()
        .filter(|property| property.scope == scope)
        .map(|property| (edits(wanted.as_bytes(), property.name.as_bytes()), property.name))
        .min()
        .filter(|(edits, known)| *edits <= 1 + known.len() / 5)
        .map(|(_, known)| known)
}

/// Levenshtein distance, one row at a time.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
