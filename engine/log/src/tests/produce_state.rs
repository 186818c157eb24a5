use runtime::testing::{TempDir, run};

use super::*;

#[test]
fn headers_are_walked_from_memory_and_from_disk() {
    run(|| async {
        let temp = TempDir::new("log-headers");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        for i in 0..40 {
            append(&log, &batch_of(&[i, i], 100));
        }
        log.wait_durable(Offset(80)).await.unwrap();
        log.settle().await.unwrap();
        for cold in [false, true] {
            if cold {
                log.drop_tail();
            }
            let mut scan = log.scan_headers(Offset(21));
            let mut found = Vec::new();
            while let Some(header) = scan.next().await.unwrap() {
                found.push(header.base_offset.0);
            }
            assert_eq!(found, (10..40).map(|i| i * 2).collect::<Vec<_>>());
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_newest_snapshot_within_the_log_comes_back() {
    run(|| async {
        let temp = TempDir::new("log-snapshots");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        assert_eq!(log.wants_producer_snapshot(), None);
        for i in 0..60 {
            put(&log, &batch_of(&[i], 200)).await;
            if let Some(at) = log.wants_producer_snapshot() {
                assert_eq!(at, log.log_end_offset());
                log.put_producer_snapshot(at, at.0.to_be_bytes().to_vec()).await.unwrap();
                assert_eq!(log.wants_producer_snapshot(), None);
            }
        }
        let names = std::fs::read_dir(log.dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|n| n.ends_with(".snapshot")).count(), 2);
        drop(log);
        node.crash().await;
        for _ in 0..2 {
            let node = Node::start(temp.path()).await;
            let opened = node.try_open("t", small()).await.unwrap();
            let (at, bytes) = opened.producer_snapshot.unwrap();
            assert_eq!(bytes, at.0.to_be_bytes());
            assert!(at > Offset(30) && at <= opened.log.log_end_offset());
            drop(opened.log);
            node.stop().await;
        }
    });
}

#[test]
fn a_snapshot_at_the_same_offset_is_not_written_again() {
    run(|| async {
        let temp = TempDir::new("log-snapshot-again");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        put(&log, &batch(&[1])).await;
        log.put_producer_snapshot(Offset(1), b"first".to_vec()).await.unwrap();
        log.put_producer_snapshot(Offset(1), b"second".to_vec()).await.unwrap();
        assert_eq!(log.newest_snapshot().await.unwrap(), Some((Offset(1), b"first".to_vec())));
        // One that is gone is written again.
        std::fs::remove_file(segment_file(log.dir(), 1, "snapshot")).unwrap();
        assert_eq!(log.newest_snapshot().await.unwrap(), None);
        log.put_producer_snapshot(Offset(1), b"third".to_vec()).await.unwrap();
        assert_eq!(log.newest_snapshot().await.unwrap(), Some((Offset(1), b"third".to_vec())));
        drop(log);
        node.stop().await;
    });
}
