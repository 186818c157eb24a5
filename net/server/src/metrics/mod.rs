//! Figures of a running node for whoever watches it. Off the produce and fetch way: shards add to plain numbers of their own
//! ([`Counters`]), and a task of each answers when it is asked, with a copy ([`ShardFigures`]).
//!
//! The asker is an ordinary thread (`tools/ringlog` serves `/metrics` from one). It asks through a bounded channel for each
//! shard and never waits for a shard: what has not answered by its deadline is left out. A shard that hangs keeps at most
//! [`ASKS_WAITING`] questions; a shard that stops answers no more, and nobody waits for the asker.
//!
//! Budget: a question costs what a walk over the shard's open partitions does, some tens of nanoseconds each, with a pause for
//! others after every [`FIGURES_LOOKS`] of them. Nothing here outlives the process.

mod counters;
mod figures;
mod look;
mod stalls;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::pulse::PulseState;

pub use counters::Counters;
pub use figures::{
    ApiFigures, FolderFigures, GroupFigures, PartitionFigures, PartitionRow, ShardFigures, TrafficFigures,
};

use crate::limits::ASKS_WAITING;
use crate::shard::Shard;

/// What is asked of every shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// A row for each open partition, up to [`crate::limits::FIGURES_ROWS`] of the process.
    pub partitions: bool,
}

/// A question to one shard.
#[derive(Debug)]
pub struct Ask {
    query: Query,
    answer: flume::Sender<ShardFigures>,
}

/// The asking end: of any thread, as many as want it.
#[derive(Clone, Debug)]
pub struct FiguresSource {
    shards: Vec<flume::Sender<Ask>>,
    turned_away: Arc<AtomicU64>,
}

impl FiguresSource {
    /// One whose questions the caller keeps: for tests of whoever asks.
    pub fn for_tests(shards: usize) -> (FiguresSource, Vec<flume::Receiver<Ask>>) {
        FiguresSource::new(shards, Arc::default())
    }

    pub(crate) fn new(shards: usize, turned_away: Arc<AtomicU64>) -> (FiguresSource, Vec<flume::Receiver<Ask>>) {
        let (senders, receivers) = (0..shards).map(|_| flume::bounded(ASKS_WAITING)).unzip();
        (FiguresSource { shards: senders, turned_away }, receivers)
    }

    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Connections that were closed as soon as they were accepted.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Asks all shards at once. The answers come in any order; the channel ends when no more will come.
    pub fn ask(&self, query: Query) -> flume::Receiver<ShardFigures> {
        let (answer, answers) = flume::bounded(self.shards.len());
        for shard in &self.shards {
            // One that has too many to answer already, or is gone, is as good as down.
            let _ = shard.try_send(Ask { query, answer: answer.clone() });
        }
        answers
    }
}

/// Answers until the shard stops. Its owner joins it before the event loop ends, so that nobody wakes a dead one.
pub(crate) async fn answer(shard: Rc<Shard>, asks: flume::Receiver<Ask>, pulse: Arc<PulseState>) {
    let looker = look::Looker::new(pulse);
    while !shard.is_stopping() {
        let next = async { asks.recv_async().await.ok() };
        let stopped = async {
            shard.stopped().await;
            None
        };
        let Some(ask) = futures_lite::future::or(next, stopped).await else { return };
        if ask.answer.is_disconnected() {
            // Nobody waits for it any more.
            continue;
        }
        let figures = looker.look(&shard, ask.query).await;
        let _ = ask.answer.try_send(figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_does_not_answer_keeps_a_bounded_number_of_questions() {
        let (source, receivers) = FiguresSource::new(2, Arc::default());
        let waiting: Vec<_> = (0..ASKS_WAITING + 5).map(|_| source.ask(Query::default())).collect();
        assert_eq!(receivers[1].len(), ASKS_WAITING);
        assert!(waiting[ASKS_WAITING].is_disconnected(), "one too many is answered by nobody at once");
        assert!(!waiting[0].is_disconnected());
        drop(receivers);
        assert!(source.ask(Query::default()).is_disconnected());
    }
}
