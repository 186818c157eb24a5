use model::Codec;
use model::compression::deflate;
use runtime::testing::{TempDir, run};

use super::*;

const TIMES: [i64; 8] = [2, 4, 6, 8, 100, 500, 200, 300];

async fn check(log: &PartitionLog) {
    let bound = log.log_end_offset();
    let at = async |ms| log.offset_for_time(ms, bound).await.unwrap().map(|h| (h.offset.0, h.timestamp_ms));
    assert_eq!(at(3).await, Some((1, 4)));
    assert_eq!(at(9).await, Some((4, 100)));
    assert_eq!(at(250).await, Some((5, 500)));
    assert_eq!(at(501).await, None);
    assert_eq!(at(0).await, Some((0, 2)));
    assert_eq!(at(500).await, Some((5, 500)));
    let max = log.max_timestamp_hit(bound).await.unwrap().unwrap();
    assert_eq!((max.offset, max.timestamp_ms, max.leader_epoch), (Offset(5), 500, EPOCH));
    // What is not visible yet is not found.
    assert_eq!(log.offset_for_time(250, Offset(5)).await.unwrap(), None);
}

fn compressed(codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new().attributes(codec as i16);
    for ms in TIMES {
        builder.push(ms, None, Some(b"v"), &[]);
    }
    let mut payload = Vec::new();
    deflate(codec, builder.payload(), &mut payload).unwrap();
    builder.finish_with_payload(&payload)
}

/// The same eight records in one batch, one batch each, over a segment's end, and compressed.
#[test]
fn the_exact_record_is_found_however_records_are_batched() {
    run(|| async {
        let temp = TempDir::new("log-times");
        let config = LogConfig { retention_ms: -1, ..LogConfig::default() };
        let over = LogConfig { segment_bytes: 200, index_interval_bytes: 0, ..config };
        let node = Node::start(temp.path()).await;
        let one = node.open("one", config).await;
        put(&one, &batch(&TIMES)).await;
        let (several, rolled) = (node.open("several", config).await, node.open("rolled", over).await);
        for ms in TIMES {
            put(&several, &batch(&[ms])).await;
            put(&rolled, &batch(&[ms])).await;
        }
        assert!(rolled.segment_count() > 2);
        let mut topics = vec!["one", "several", "rolled"];
        for (codec, name) in
            [(Codec::Gzip, "gzip"), (Codec::Snappy, "snappy"), (Codec::Lz4, "lz4"), (Codec::Zstd, "zstd")]
        {
            put(&*node.open(name, config).await, &compressed(codec)).await;
            topics.push(name);
        }
        for topic in &topics {
            check(&node.shard.partition(key(topic)).unwrap()).await;
        }
        drop((one, several, rolled));
        node.stop().await;
        // The same after a restart.
        let node = Node::start(temp.path()).await;
        for topic in &topics {
            check(&*node.open(topic, if *topic == "rolled" { over } else { config }).await).await;
        }
        node.stop().await;
    });
}

#[test]
fn an_empty_log_and_one_without_timestamps_have_no_largest() {
    run(|| async {
        let temp = TempDir::new("log-times-none");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.max_timestamp_hit(Offset(i64::MAX)).await.unwrap(), None);
        assert_eq!(log.offset_for_time(0, Offset(i64::MAX)).await.unwrap(), None);
        put(&log, &batch(&[-1, -1])).await;
        assert_eq!(log.max_timestamp_hit(Offset(i64::MAX)).await.unwrap(), None);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn log_append_time_and_log_start_are_respected() {
    run(|| async {
        let temp = TempDir::new("log-times-append");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let stamped = Patch::leader(EPOCH).with_timestamps(Timestamps::LogAppendTime(1000));
        log.append(&batch(&[1, 2, 3]), stamped).unwrap();
        log.append(&batch(&[1, 2, 3]), stamped.with_timestamps(Timestamps::LogAppendTime(2000))).unwrap();
        log.wait_durable(Offset(6)).await.unwrap();
        let at =
            async |ms| log.offset_for_time(ms, Offset(i64::MAX)).await.unwrap().map(|h| (h.offset.0, h.timestamp_ms));
        assert_eq!(at(2).await, Some((0, 1000)));
        assert_eq!(at(1001).await, Some((3, 2000)));
        log.delete_records_before(Offset(1)).await.unwrap();
        assert_eq!(at(2).await, Some((1, 1000)));
        log.delete_records_before(Offset(4)).await.unwrap();
        assert_eq!(at(2).await, Some((4, 2000)));
        drop(log);
        node.stop().await;
    });
}
