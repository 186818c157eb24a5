//! A shard looks at itself: gathers its figures for one answer. State is read between awaits; figures of one answer may be a
//! moment apart, each is right by itself.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use replica::Replica;
use runtime::pulse::PulseState;
use runtime::sync::before;
use runtime::{Notify, clock};

use super::Query;
use super::figures::{FolderFigures, GroupFigures, PartitionFigures, PartitionRow, ShardFigures};
use super::stalls::Stalls;
use crate::limits::{FIGURES_LOOKS, FIGURES_ROWS, FIGURES_SPACE_WAIT_MS};
use crate::shard::Shard;

/// What is kept from one answer to the next.
pub struct Looker {
    pulse: Arc<PulseState>,
    stalls: Stalls,
    spaces: Rc<Spaces>,
}

impl Looker {
    pub fn new(pulse: Arc<PulseState>) -> Looker {
        Looker { pulse, stalls: Stalls::default(), spaces: Rc::default() }
    }

    pub async fn look(&self, shard: &Rc<Shard>, query: Query) -> ShardFigures {
        // First, so that the walk below is not among what it tells.
        let stall_us = self.stalls.longest_us(self.pulse.take_worst_us(), clock::now_ms());
        let mut figures = ShardFigures {
            shard: shard.index,
            stall_us,
            hops: shard.post.hops(),
            traffic: shard.counters.traffic(),
            connections: shard.connections.len(),
            accepted: shard.connections.accepted(),
            refused: shard.connections.refused(),
            fetch_sessions: shard.sessions.count(),
            log: shard.log.stats(),
            producers: shard.producers.len(),
            producers_evicted: shard.producers.evicted(),
            groups: groups(shard),
            cleaner: shard.cleaner_stats.get(),
            ..ShardFigures::default()
        };
        walk(shard, query, &mut figures).await;
        if shard.index == 0 {
            figures.folders = self.folders(shard).await;
        }
        figures
    }

    async fn folders(&self, shard: &Rc<Shard>) -> Vec<FolderFigures> {
        let dirs = &shard.facts.dirs;
        self.spaces.refresh(dirs.folders().iter().map(|folder| folder.path.clone()).collect()).await;
        let known = self.spaces.known.borrow();
        let folder = |(number, folder): (usize, &log::folders::Folder)| {
            let up = folder.failure().is_none();
            let space = known.get(number).copied().flatten().filter(|_| up);
            FolderFigures {
                path: folder.path.clone(),
                up,
                partitions: (known.len() > 1).then(|| dirs.load(number)),
                total_bytes: space.map(|(total, _)| total),
                free_bytes: space.map(|(_, free)| free),
                limits: folder.dir().map(|dir| dir.space_limits()).unwrap_or_default(),
                lost_partitions: folder.dir().map_or(0, |dir| dir.lost_partitions()),
            }
        };
        dirs.folders().iter().enumerate().map(folder).collect()
    }
}

/// Space of the folders' disks. A disk that hangs keeps one question in the pool and shows what it said last.
#[derive(Default)]
struct Spaces {
    /// Total and free bytes of each folder.
    known: RefCell<Vec<Option<(u64, u64)>>>,
    asking: Cell<bool>,
    done: Notify,
}

impl Spaces {
    async fn refresh(self: &Rc<Self>, paths: Vec<PathBuf>) {
        let seen = self.done.version();
        if !self.asking.replace(true) {
            let me = self.clone();
            runtime::spawn("folder space", async move {
                let mut known = Vec::with_capacity(paths.len());
                for path in &paths {
                    known.push(runtime::fs::space(path).await.ok().map(|space| (space.total, space.free)));
                }
                *me.known.borrow_mut() = known;
                me.asking.set(false);
                me.done.notify();
            });
        }
        let _ = before(clock::now_ms() + FIGURES_SPACE_WAIT_MS, self.done.changed_since(seen)).await;
    }
}

fn groups(shard: &Shard) -> GroupFigures {
    let mut sum = GroupFigures::default();
    for driver in shard.groups.all() {
        let counts = driver.look(|groups, _| (groups.group_count(), groups.member_count(), groups.offset_count()));
        if let Ok((groups, members, offsets)) = counts {
            sum.groups += groups;
            sum.members += members;
            sum.offsets += offsets;
        }
    }
    sum
}

async fn walk(shard: &Shard, query: Query, figures: &mut ShardFigures) {
    let open = shard.partitions.open();
    let mut sum = PartitionFigures {
        led: shard.view().placement.load(shard.index),
        open: open.len(),
        unopened: shard.partitions.failed_count(),
        ..PartitionFigures::default()
    };
    let rows_max = if query.partitions { FIGURES_ROWS / shard.post.shards() } else { 0 };
    for (at, replica) in open.iter().enumerate() {
        if at % FIGURES_LOOKS == FIGURES_LOOKS - 1 {
            runtime::task::yield_now().await;
        }
        let log = replica.log();
        sum.failed += usize::from(log.failure().is_some() || log.folder_failure().is_some());
        sum.damaged += usize::from(log.is_damaged());
        sum.full += usize::from(log.is_refused_space());
        sum.journal_debt_bytes += log.journal_debt_bytes();
        if figures.rows.len() < rows_max {
            figures.rows.push(row(replica));
        }
    }
    figures.rows_left_out = if query.partitions { open.len() - figures.rows.len() } else { 0 };
    figures.partitions = sum;
}

fn row(replica: &Replica) -> PartitionRow {
    let log = replica.log();
    PartitionRow {
        topic: Arc::from(&**replica.topic()),
        partition: replica.key().partition.0,
        log_start_offset: log.log_start_offset().0,
        high_watermark: replica.high_watermark().0,
        log_end_offset: log.log_end_offset().0,
        size_bytes: log.size_bytes(),
    }
}
