//! A failing seed with as few troubles as it still fails with: each is left out in turn, and stays out if the seed fails
//! without it, whatever it then says.

use std::collections::BTreeSet;

use super::world::run_without;

/// What the seed says in the end, and the troubles that it needs for that.
pub fn shrink(seed: u64) -> Option<(String, Vec<String>)> {
    let mut without = BTreeSet::new();
    let (outcome, mut left) = run_without(seed, false, &without);
    let mut says = outcome.violation?;
    for (at, _) in left.clone() {
        without.insert(at);
        let (outcome, told) = run_without(seed, false, &without);
        match outcome.violation {
            Some(text) => (says, left) = (text, told),
            None => {
                without.remove(&at);
            }
        }
    }
    Some((says, left.into_iter().map(|(_, text)| text).collect()))
}
