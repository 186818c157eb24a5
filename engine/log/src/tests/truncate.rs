use runtime::testing::{TempDir, run};

use super::*;

async fn three_epochs(node: &Node) -> Rc<PartitionLog> {
    let log = node.open("t", small()).await;
    for epoch in 1..=3 {
        log.begin_epoch(LeaderEpoch(epoch));
        for i in 0..20 {
            log.append(&batch_of(&[i, i], 100), Patch::leader(LeaderEpoch(epoch))).unwrap();
        }
    }
    log.wait_durable(Offset(120)).await.unwrap();
    log
}

#[test]
fn epochs_answer_where_they_ended() {
    run(|| async {
        let temp = TempDir::new("log-epochs");
        let node = Node::start(temp.path()).await;
        let log = three_epochs(&node).await;
        let check = |log: &PartitionLog| {
            assert_eq!(log.epoch_end(LeaderEpoch(0)), Some((LeaderEpoch(0), Offset(0))));
            assert_eq!(log.epoch_end(LeaderEpoch(1)), Some((LeaderEpoch(1), Offset(40))));
            assert_eq!(log.epoch_end(LeaderEpoch(9)), Some((LeaderEpoch(3), Offset(120))));
            assert_eq!(log.epoch_for_offset(Offset(79)), Some(LeaderEpoch(2)));
        };
        check(&log);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        check(&log);
        drop(log);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        check(&log);
        log.begin_epoch(LeaderEpoch(7));
        assert_eq!(log.epoch_end(LeaderEpoch(3)), Some((LeaderEpoch(3), Offset(120))));
        assert_eq!(log.latest_epoch(), Some(LeaderEpoch(7)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_cut_is_durable_and_appends_go_on_behind_it() {
    run(|| async {
        let temp = TempDir::new("log-truncate");
        for (case, offset, end) in [(0, 119, 118), (1, 60, 60), (2, 41, 40), (3, 1, 0), (4, 120, 120)] {
            let path = temp.path().join(format!("{case}"));
            let node = Node::start(&path).await;
            let log = three_epochs(&node).await;
            log.put_producer_snapshot(Offset(120), vec![1]).await.unwrap();
            log.truncate_to(Offset(offset)).await.unwrap();
            assert_eq!((log.log_end_offset(), log.durable_end()), (Offset(end), Offset(end)));
            let expect: Vec<_> = (0..end / 2).map(|i| (i * 2, 2)).collect();
            assert_eq!(read_all(&log, 0, 3000).await, expect);
            assert!(log.latest_epoch().is_none_or(|e| e.0 <= 1 + (end.max(1) as i32 - 1) / 40));
            if case % 2 == 0 {
                drop(log);
                node.crash().await;
            } else {
                put(&log, &batch(&[9])).await;
                drop(log);
                node.stop().await;
            }
            let node = Node::start(&path).await;
            let opened = node.try_open("t", small()).await.unwrap();
            let mut expect = expect;
            if case % 2 == 1 {
                expect.push((end, 1));
            }
            assert_eq!(read_all(&opened.log, 0, 3000).await, expect, "case {case}");
            assert_eq!(opened.producer_snapshot.is_some(), case == 4);
            put(&opened.log, &batch(&[9])).await;
            drop(opened);
            node.stop().await;
        }
    });
}

#[test]
fn the_log_start_comes_down_with_the_batch_that_held_it() {
    run(|| async {
        let temp = TempDir::new("log-cut-start");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        put(&log, &batch(&[1, 1, 1])).await;
        put(&log, &batch(&[2])).await;
        log.delete_records_before(Offset(1)).await.unwrap();
        log.truncate_to(Offset(1)).await.unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(0), Offset(0)));
        put(&log, &batch(&[3, 3])).await;
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        assert_eq!(log.log_start_offset(), Offset(0), "what was appended below the old start is not hidden");
        assert_eq!(read_all(&log, 0, 3000).await, vec![(0, 2)]);
        drop(log);
        node.stop().await;
    });
}
