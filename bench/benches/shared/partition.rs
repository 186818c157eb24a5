//! A fresh partition on a shard of the bench's own.

use std::path::Path;
use std::rc::Rc;

use log::{DataDir, LogConfig, LogShard, PartitionLog, PartitionSpec};
use model::{PartitionIndex, PartitionKey, TopicId};

pub async fn partition(shard: &Rc<LogShard>, path: &Path) -> Rc<PartitionLog> {
    let spec = PartitionSpec {
        data_dir: DataDir::open(path).await.expect("a fresh folder"),
        topic: "bench".to_string(),
        key: PartitionKey { topic_id: TopicId([7; 16]), partition: PartitionIndex(0) },
        config: LogConfig::default(),
        uses_reserve: false,
    };
    shard.create_partition(spec).await.expect("a fresh partition")
}
