//! Faults put into this crate on purpose: the proof that the simulator finds what it is there to find. One at a time is
//! chosen for the thread; without the feature `mutants` the question is a constant and costs nothing.

/// What is left out or done in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Consumers see, and producers are told of, what lies in memory only.
    HighWatermarkAhead,
}

#[cfg(feature = "mutants")]
mod chosen {
    use std::cell::Cell;

    use super::Mutant;

    impl Mutant {
        pub const ALL: &[Mutant] = &[Mutant::HighWatermarkAhead];
    }

    thread_local! {
        static CHOSEN: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Chooses the mutant of this thread.
    pub fn choose(mutant: Option<Mutant>) {
        CHOSEN.set(mutant);
    }

    pub(crate) fn active(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub(crate) use chosen::active;
#[cfg(feature = "mutants")]
pub use chosen::choose;

#[cfg(not(feature = "mutants"))]
pub(crate) const fn active(_mutant: Mutant) -> bool {
    false
}
