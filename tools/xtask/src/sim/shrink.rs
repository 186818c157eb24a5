//! A failing seed with as few troubles as it still fails with: each is left out in turn, and stays out if the seed fails
//! without it, whatever it then says. A trouble is known by its number in the seed's plan, so that a command line can leave
//! out the same ones again.

use std::collections::BTreeSet;

use super::life::Outcome;

/// A trouble that is not left out: its number and a sentence.
pub type Kept = (usize, String);

/// What is left of a failing seed.
#[derive(Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// What it says in the end.
    pub says: String,
    /// The troubles that it needs for that, and those that it does not.
    pub needs: Vec<Kept>,
    pub without: BTreeSet<usize>,
}

/// `run` runs the seed without some troubles. `None`: it does not fail.
pub fn shrink(mut run: impl FnMut(&BTreeSet<usize>) -> (Outcome, Vec<Kept>)) -> Option<Shrunk> {
    let mut without = BTreeSet::new();
    let (outcome, mut needs) = run(&without);
    let mut says = outcome.violation?;
    for (at, _) in needs.clone() {
        without.insert(at);
        let (outcome, kept) = run(&without);
        match outcome.violation {
            Some(text) => (says, needs) = (text, kept),
            None => {
                without.remove(&at);
            }
        }
    }
    Some(Shrunk { says, needs, without })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Fails where `needed` holds of the troubles that are left, of six.
    fn shrunk(needed: impl Fn(&[usize]) -> bool) -> Option<Shrunk> {
        shrink(|without| {
            let left: Vec<usize> = (0..6).filter(|at| !without.contains(at)).collect();
            let violation = needed(&left).then(|| format!("{} troubles", left.len()));
            (Outcome { violation, ..Outcome::default() }, left.iter().map(|at| (*at, format!("number {at}"))).collect())
        })
    }

    #[test]
    fn only_what_is_needed_is_left() {
        let shrunk = shrunk(|left| left.contains(&1) && left.contains(&4)).unwrap();
        assert_eq!(shrunk.needs, [(1, "number 1".to_string()), (4, "number 4".to_string())]);
        assert_eq!((shrunk.says.as_str(), shrunk.without), ("2 troubles", BTreeSet::from([0, 2, 3, 5])));
    }

    #[test]
    fn a_seed_may_need_none_and_one_that_is_good_is_not_shrunk() {
        assert_eq!(shrunk(|_| true).unwrap().needs, []);
        assert_eq!(shrunk(|_| false), None);
    }
}
