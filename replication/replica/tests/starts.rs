//! What opening a partition reads for its producers: what lies behind the newest snapshot, however long the log is.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use log::{DataDir, LogShard, LogShardConfig, PartitionSpec};
use model::builder::BatchBuilder;
use model::config::{BrokerConfig, TopicConfig};
use model::{LeaderEpoch, PartitionIndex, PartitionKey, ProducerEpoch, ProducerId, TopicId};
use ringlog_replica::{self as replica, ProducerStates, Replica, ReplicaSpec};
use runtime::testing::{TempDir, run};
use runtime::{ChunkPool, clock};

const SEGMENT_BYTES: u32 = 16 << 10;
/// Headers that a start may read: two segments' worth of batches of 130 bytes and more.
const TAIL_BATCHES: u64 = 2 * SEGMENT_BYTES as u64 / 130;

struct Node {
    dir: Arc<DataDir>,
    shard: Rc<LogShard>,
    producers: Rc<ProducerStates>,
}

impl Node {
    async fn start(path: &Path) -> Node {
        let mut config = LogShardConfig::new(0, ChunkPool::new(8 << 20));
        config.io_bytes = 2 << 20;
        let producers = Rc::new(ProducerStates::new(1_000));
        Node { dir: DataDir::open(path).await.unwrap(), shard: LogShard::new(config), producers }
    }

    fn spec(&self) -> ReplicaSpec {
        let no_pairs: [(&str, &str); 0] = [];
        let mut config = TopicConfig::resolve(&BrokerConfig::default(), no_pairs).unwrap();
        config.segment_bytes = SEGMENT_BYTES as _;
        let key = PartitionKey { topic_id: TopicId::from_random([7; 16]), partition: PartitionIndex(0) };
        let log = PartitionSpec {
            data_dir: self.dir.clone(),
            topic: "t".to_owned(),
            key,
            config: replica::log_config(&config),
            uses_reserve: false,
        };
        ReplicaSpec { log, topic: "t".into(), config, leader_epoch: LeaderEpoch(1), producers: self.producers.clone() }
    }

    async fn reopen(&self) -> Rc<Replica> {
        let spec = self.spec();
        let opened = self.shard.open_partition(spec.log.clone(), self.dir.start_mode(spec.log.key)).await.unwrap();
        Replica::adopt(opened, &spec).await.unwrap()
    }

    async fn stop(self, replica: Rc<Replica>) {
        replica.save_producers().await.unwrap();
        drop(replica);
        self.shard.stop_clean().await.unwrap();
        self.dir.close_clean().await.unwrap();
    }
}

/// One batch each.
async fn write(replica: &Rc<Replica>, ids: std::ops::Range<i64>) {
    for id in ids {
        let batch = BatchBuilder::new().producer(ProducerId(id), ProducerEpoch(0), 0).record(1, None, Some(&[7; 60]));
        let placed = replica.produce(&batch.finish(), clock::wall_ms()).unwrap();
        if id % 10 == 9 {
            replica.committed(placed.next_offset, clock::now_ms() + 30_000).await.unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_start_reads_what_lies_behind_the_newest_snapshot_however_long_the_log_is() {
    run(|| async {
        let (temp, crashed) = (TempDir::new("replica-starts"), TempDir::new("replica-starts-crashed"));
        let node = Node::start(temp.path()).await;
        let replica = Replica::create(&node.shard, &node.spec()).await.unwrap();
        for written in [500, 3_000] {
            write(&replica, replica.log().log_end_offset().0..written).await;
            assert!(replica.log().segment_count() as i64 > written / 200);
            assert!(node.producers.len() <= 1_000);
            // What a crash finds.
            let after = crashed.path().join(written.to_string());
            copy(temp.path(), &after);
            let again = Node::start(&after).await;
            let reopened = again.reopen().await;
            assert_eq!(reopened.log().log_end_offset().0, written);
            assert!(reopened.replayed_batches() <= TAIL_BATCHES, "{written}: {}", reopened.replayed_batches());
            assert_eq!(reopened.producer_count() as i64, written.min(1_000));
            again.stop(reopened).await;
        }
        node.stop(replica).await;
        let node = Node::start(temp.path()).await;
        let replica = node.reopen().await;
        assert_eq!((replica.replayed_batches(), replica.producer_count()), (0, 1_000));
        // The last that wrote are those that are left.
        let newest = replica.with_producers(|table| table.to_vec().first().map(|(id, _)| id.0));
        assert_eq!(newest, Some(2_000));
        node.stop(replica).await;
    });
}
