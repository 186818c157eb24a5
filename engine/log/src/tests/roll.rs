use runtime::testing::{TempDir, run};

use super::*;

fn log_files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|n| n.ends_with(".log")).collect();
    names.sort();
    names
}

#[test]
fn a_segment_rolls_by_size_and_reads_cross_the_boundary() {
    run(|| async {
        let temp = TempDir::new("log-roll");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        let mut expect = Vec::new();
        for i in 0..50 {
            expect.push((append(&log, &batch_of(&[i, i], 120)).base_offset.0, 2));
        }
        log.wait_durable(Offset(100)).await.unwrap();
        log.settle().await.unwrap();
        assert!(log.segment_count() > 3);
        for max_bytes in [1, 700, 5000, 1 << 20] {
            assert_eq!(read_all(&log, 0, max_bytes).await, expect);
        }
        log.drop_tail();
        for max_bytes in [1, 700, 5000, 1 << 20] {
            assert_eq!(read_all(&log, 0, max_bytes).await, expect, "from disk, {max_bytes}");
        }
        for from in 0..100 {
            assert_eq!(read(&log, from, everything()).await.unwrap()[0].0, from / 2 * 2);
        }
        let dir = log.dir().to_path_buf();
        drop(log);
        node.stop().await;
        // Files are trimmed to whole batches, and named by their first offset.
        for name in log_files(&dir) {
            let bytes = std::fs::read(dir.join(&name)).unwrap();
            assert!(bytes.len() as u64 <= small().segment_bytes);
            assert_eq!(name, format!("{:020}.log", BatchView::parse(&bytes).unwrap().header.base_offset));
        }
    });
}

#[test]
fn a_batch_as_large_as_the_segment_stays_in_it() {
    run(|| async {
        let temp = TempDir::new("log-roll-exact");
        let node = Node::start(temp.path()).await;
        let one = batch_of(&[1], 500);
        let config = LogConfig { segment_bytes: 2 * one.len() as u64, ..small() };
        let log = node.open("t", config).await;
        for _ in 0..4 {
            put(&log, &one).await;
        }
        log.settle().await.unwrap();
        assert_eq!(log.segment_count(), 2);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_segment_rolls_by_its_records_time() {
    run(|| async {
        let temp = TempDir::new("log-roll-time");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { segment_ms: 1000, ..LogConfig::default() }).await;
        put(&log, &batch(&[5000])).await;
        put(&log, &batch(&[6000])).await;
        assert_eq!(log.segment_count(), 1);
        put(&log, &batch(&[6001])).await;
        assert_eq!(log.segment_count(), 2);
        log.settle().await.unwrap();
        // Without a batch the clock counts from the segment's creation, however old its records are.
        let now = runtime::clock::wall_ms();
        assert_eq!(log.roll_if_due(now).await.unwrap(), Rolled::NotDue);
        assert_eq!(log.roll_if_due(now + 1001).await.unwrap(), Rolled::Rolled);
        assert_eq!((log.segment_count(), log.log_end_offset()), (3, Offset(3)));
        assert_eq!(log.roll_if_due(i64::MAX).await.unwrap(), Rolled::NotDue);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(3));
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(3));
        assert_eq!(read_all(&log, 0, 1 << 20).await, vec![(0, 1), (1, 1), (2, 1), (3, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_segment_rolls_when_its_index_is_full() {
    run(|| async {
        let temp = TempDir::new("log-roll-index");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_index_bytes: 24, index_interval_bytes: 0, ..LogConfig::default() };
        let log = node.open("t", config).await;
        for i in 0..9 {
            put(&log, &batch(&[i])).await;
        }
        log.settle().await.unwrap();
        assert!(log.segment_count() > 2, "{}", log.segment_count());
        assert_eq!(read_all(&log, 0, 1 << 20).await.len(), 9);
        drop(log);
        node.stop().await;
    });
}
