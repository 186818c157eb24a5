use runtime::testing::{TempDir, run};

use super::*;
use crate::reserve::{BALLAST, SpaceLook};

/// More than any disk has.
const ALL: u64 = 1 << 60;

#[test]
fn clients_leave_the_reserve_alone_and_go_on_by_themselves_once_there_is_room() {
    run(|| async {
        let temp = TempDir::new("log-reserve");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let mut internal = node.spec("internal", LogConfig::default());
        internal.uses_reserve = true;
        let internal = node.shard.create_partition(internal).await.unwrap();
        put(&log, &batch(&[1])).await;
        node.dir.set_reserve(ALL);
        // What fits into the space that was taken before still goes.
        put(&log, &batch(&[2])).await;
        let large = append(&log, &batch_of(&[3], 200 << 10));
        let started = runtime::clock::now_ms();
        while !log.full.get() {
            assert!(runtime::clock::now_ms() - started < 5000, "the reserve was not seen");
            runtime::clock::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(log.failure().is_none());
        assert!(matches!(log.append(&batch(&[4]), Patch::leader(EPOCH)), Err(LogError::Full(_))));
        let durable = ReadLimits { upper_bound: log.durable_end(), ..everything() };
        assert_eq!(read(&log, 0, durable).await.unwrap(), vec![(0, 1), (1, 1)], "what is durable is served");
        put(&internal, &batch_of(&[1], 200 << 10)).await;
        node.dir.set_reserve(0);
        log.wait_durable(large.next_offset).await.unwrap();
        put(&log, &batch(&[5])).await;
        assert_eq!(read_all(&log, 0, 1 << 20).await.len(), 4);
        drop((log, internal));
        node.stop().await;
    });
}

#[test]
fn the_ballast_comes_with_room_and_goes_without_a_reserve() {
    run(|| async {
        let temp = TempDir::new("log-ballast");
        let dir = DataDir::open_with(temp.path(), 1 << 20).await.unwrap();
        let ballast = temp.path().join(BALLAST);
        assert_eq!(dir.mind_space().await.unwrap(), SpaceLook::BallastMade);
        assert_eq!(std::fs::metadata(&ballast).unwrap().len(), 256 << 10);
        assert_eq!(dir.mind_space().await.unwrap(), SpaceLook::Nothing);
        dir.set_reserve(0);
        assert!(matches!(dir.mind_space().await.unwrap(), SpaceLook::BallastReleased { .. }));
        assert!(!ballast.exists());
        assert_eq!(dir.mind_space().await.unwrap(), SpaceLook::Nothing);
        // Without room for it, it does not come.
        dir.set_reserve(ALL);
        assert_eq!(dir.mind_space().await.unwrap(), SpaceLook::Nothing);
    });
}

#[test]
fn what_is_granted_counts_until_it_is_taken() {
    run(|| async {
        let temp = TempDir::new("log-grants");
        let free = runtime::fs::space(temp.path()).await.unwrap().free;
        // Half of what is free is held back; other programs may take some meanwhile.
        let reserve = crate::reserve::Reserve::new(free / 2);
        let first = reserve.grant(temp.path(), free / 4).await;
        assert!(first.is_some());
        assert!(reserve.grant(temp.path(), free / 3).await.is_none(), "a quarter is promised already");
        drop(first);
        assert!(reserve.grant(temp.path(), free / 3).await.is_some());
    });
}

#[test]
fn a_quota_holds_clients_back_until_space_is_freed() {
    run(|| async {
        let temp = TempDir::new("log-quota");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let mut internal = node.spec("internal", LogConfig::default());
        internal.uses_reserve = true;
        let internal = node.shard.create_partition(internal).await.unwrap();
        put(&log, &batch_of(&[1], 300 << 10)).await;
        std::fs::write(temp.path().join("other"), vec![1; 600 << 10]).unwrap();
        node.dir.set_quota(Some(1 << 20));
        node.dir.mind_space().await.unwrap();
        let large = append(&log, &batch_of(&[2], 400 << 10));
        let started = runtime::clock::now_ms();
        while !log.full.get() {
            assert!(runtime::clock::now_ms() - started < 5000, "the quota was not seen");
            runtime::clock::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(matches!(log.append(&batch(&[3]), Patch::leader(EPOCH)), Err(LogError::Full(_))));
        let refusal = node.dir.reserve().refusal(1 << 20);
        assert!(refusal.contains("of the 1048576 of its quota"), "{refusal}");
        put(&internal, &batch_of(&[1], 400 << 10)).await;
        // What is freed is seen at the next measurement.
        std::fs::remove_file(temp.path().join("other")).unwrap();
        node.dir.set_quota(Some(2 << 20));
        let measured = async {
            while log.full.get() {
                node.dir.mind_space().await.unwrap();
                runtime::clock::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        runtime::sync::before(runtime::clock::now_ms() + 10_000, measured).await.unwrap();
        log.wait_durable(large.next_offset).await.unwrap();
        node.dir.set_quota(None);
        put(&log, &batch_of(&[5], 4 << 20)).await;
        drop((log, internal));
        node.stop().await;
    });
}

#[test]
fn what_the_checkpoint_knows_counts_before_the_first_measurement() {
    run(|| async {
        let temp = TempDir::new("log-quota-known");
        let reserve = crate::reserve::Reserve::new(0);
        reserve.set_quota(Some(100), || 60);
        assert!(reserve.grant(temp.path(), 41).await.is_none());
        assert!(reserve.grant(temp.path(), 40).await.is_some());
        assert!(reserve.grant(temp.path(), 1).await.is_none(), "taken, whether or not the grant is held");
        reserve.measure_if_due(temp.path()).await.unwrap();
        assert!(reserve.grant(temp.path(), 100).await.is_some(), "the folder is empty");
    });
}
