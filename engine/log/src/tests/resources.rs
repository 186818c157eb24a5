use runtime::testing::{TempDir, run};
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::*;

const PARTITIONS: i32 = 1000;
const OPEN_FILES: usize = 100;

fn disk_bytes(path: &Path) -> u64 {
    let mut sum = fs::metadata(path).unwrap().blocks() * 512;
    if path.is_dir() {
        sum += fs::read_dir(path).unwrap().map(|e| disk_bytes(&e.unwrap().path())).sum::<u64>();
    }
    sum
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A tenth of 10 000 partitions with one record each, and a tenth of the disk those may take.
#[test]
fn many_partitions_with_one_record_each_stay_small() {
    run(|| async {
        let temp = TempDir::new("log-many");
        let before = open_files();
        let start = |path: PathBuf| async move {
            Node::start_with(&path, |c| {
                c.open_files = OPEN_FILES;
                c.cache_bytes = 4 << 20;
            })
            .await
        };
        let node = start(temp.path().to_path_buf()).await;
        let mut logs = Vec::new();
        for partition in 0..PARTITIONS {
            let mut spec = node.spec("t", LogConfig::default());
            spec.key.partition = PartitionIndex(partition);
            logs.push(node.shard.create_partition(spec).await.unwrap());
        }
        assert!(!temp.path().join("t-0").exists(), "folders come with the first append");
        for log in &logs {
            append(log, &batch_of(&[1], 500));
        }
        for log in &logs {
            log.wait_durable(Offset(1)).await.unwrap();
        }

        let stats = node.shard.stats();
        assert_eq!(stats.open_files, OPEN_FILES, "no place is kept free for readers that are not there: {stats:?}");
        // Other tests of this process open files at the same time.
        assert!(open_files() < before + OPEN_FILES + 600, "{} files", open_files());
        assert!(stats.cached_bytes <= 8 << 20, "{stats:?}");
        let disk = disk_bytes(temp.path());
        assert!(disk <= 1536 * (1 << 20) / 10, "{disk} bytes on disk");
        assert!(size_of::<PartitionLog>() < 4096);
        drop(logs);
        node.stop().await;

        let node = start(temp.path().to_path_buf()).await;
        assert!(node.dir.was_clean());
        assert_eq!(node.dir.found().len(), PARTITIONS as usize);
        let began = runtime::clock::now_ms();
        for partition in 0..PARTITIONS {
            let mut spec = node.spec("t", LogConfig::default());
            spec.key.partition = PartitionIndex(partition);
            let mode = node.dir.start_mode(spec.key);
            assert!(matches!(mode, StartMode::Clean(_)));
            let log = node.shard.open_partition(spec, mode).await.unwrap().log;
            assert_eq!(log.log_end_offset(), Offset(1));
        }
        let took = runtime::clock::now_ms() - began;
        assert!(took < 1000, "a clean start of {PARTITIONS} partitions took {took} ms");
        assert_eq!(node.shard.stats().open_files, 0);
        node.stop().await;
    });
}
