//! The set on real folders. A `start` is one start of a node with one topic of six partitions.
#![allow(clippy::unwrap_used)]

use std::fs;

use model::{NodeId, PartitionIndex};
use runtime::testing::{TempDir, run};

use super::*;
use crate::data_dir::META;
use crate::error::DataDirError;
use crate::format::identity::Identity;
use crate::format::{names, partition_metadata};

const TOPIC: TopicId = TopicId([7; 16]);
const PARTITIONS: usize = 6;

fn owner() -> Identity {
    Identity { cluster_id: "c".into(), node_id: NodeId(1) }
}

fn key(partition: usize) -> PartitionKey {
    PartitionKey { topic_id: TOPIC, partition: PartitionIndex(partition as i32) }
}

async fn try_start(paths: &[PathBuf], topics: usize) -> Result<(Arc<DataDirs>, Vec<String>), DataDirError> {
    let metadata = DataDir::open(&paths[0]).await?;
    metadata.adopt(&owner()).await?;
    let specs: Vec<FolderSpec> =
        paths.iter().map(|path| FolderSpec { path: path.clone(), takes_partitions: true }).collect();
    let topics = (0..topics).map(|_| (TOPIC, PARTITIONS)).collect();
    let owner = &owner();
    DataDirs::open(OpenFolders { metadata, specs: &specs, owner, reserve_bytes: 0, topics: &topics }).await
}

async fn start(paths: &[PathBuf]) -> (Arc<DataDirs>, Vec<String>) {
    try_start(paths, 1).await.unwrap()
}

fn three(temp: &TempDir) -> Vec<PathBuf> {
    ["a", "b", "c"].iter().map(|name| temp.path().join(name)).collect()
}

fn homes(dirs: &DataDirs) -> Vec<Option<usize>> {
    (0..PARTITIONS).map(|partition| dirs.number_of(key(partition))).collect()
}

/// A partition's folder with a segment of so many bytes from `base` on, as a clean stop leaves it.
fn make_partition(folder: &Path, partition: usize, base: i64, bytes: usize) {
    let dir = folder.join(format!("t-{partition}"));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(names::METADATA_FILE), partition_metadata::encode(TOPIC)).unwrap();
    fs::write(dir.join(format!("{base:020}.log")), vec![1; bytes]).unwrap();
}

#[test]
fn partitions_go_round_and_keep_their_homes() {
    run(|| async {
        let temp = TempDir::new("folders-round");
        let paths = three(&temp);
        let (dirs, notes) = start(&paths).await;
        assert!(notes.is_empty(), "{notes:?}");
        let before = homes(&dirs);
        assert_eq!((0..3).map(|number| dirs.load(number)).collect::<Vec<_>>(), [2, 2, 2], "one disk: {before:?}");
        drop(dirs);
        // Whatever the order in which they are named next time: numbers may differ, folders may not.
        let path_of = |dirs: &DataDirs, n: Option<usize>| dirs.folders()[n.unwrap()].path.clone();
        let was: Vec<PathBuf> = before.iter().map(|home| paths[home.unwrap()].clone()).collect();
        let (dirs, _) = start(&[paths[0].clone(), paths[2].clone(), paths[1].clone()]).await;
        assert_eq!(homes(&dirs).into_iter().map(|home| path_of(&dirs, home)).collect::<Vec<_>>(), was);
        // A topic that went leaves room.
        dirs.forget(TOPIC);
        assert_eq!((0..3).map(|number| dirs.load(number)).sum::<usize>(), 0);
    });
}

#[test]
fn one_folder_keeps_no_record_and_a_second_one_is_adopted() {
    run(|| async {
        let temp = TempDir::new("folders-one");
        let paths = three(&temp);
        let (dirs, _) = start(&paths[..1]).await;
        assert!(dirs.home(key(0)).is_ok());
        assert!(!paths[0].join(record::FILE).exists());
        drop(dirs);
        make_partition(&paths[0], 3, 0, 10);
        let (dirs, notes) = start(&paths[..2]).await;
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(dirs.number_of(key(3)), Some(0), "where it was found");
        assert_eq!((dirs.load(0), dirs.load(1)), (3, 3));
    });
}

#[test]
fn a_missing_folder_leaves_its_partitions_offline_and_comes_back() {
    run(|| async {
        let temp = TempDir::new("folders-missing");
        let paths = three(&temp);
        let (dirs, _) = start(&paths).await;
        let before = homes(&dirs);
        drop(dirs);
        let away = temp.path().join("away");
        fs::rename(&paths[1], &away).unwrap();
        // Away, and in its place nothing, then an empty folder, and then not named any more.
        for round in 0..3 {
            let named = if round < 2 { &paths[..] } else { &[paths[0].clone(), paths[2].clone()][..] };
            let (dirs, notes) = start(named).await;
            assert!(notes.len() == 1 && notes[0].contains("/b is offline"), "round {round}: {notes:?}");
            assert!(notes[0].contains("2 partitions"), "{notes:?}");
            let offline = (0..PARTITIONS).filter(|&partition| dirs.home(key(partition)).is_err());
            let expected: Vec<usize> = (0..PARTITIONS).filter(|&p| before[p] == Some(1)).collect();
            assert_eq!(offline.collect::<Vec<_>>(), expected, "round {round}");
            // New partitions go elsewhere.
            let other = TopicId([9; 16]);
            dirs.place(&[(other, 4)]).await.unwrap();
            let other = |p| PartitionKey { topic_id: other, partition: PartitionIndex(p) };
            assert!((0..4).all(|p| dirs.home(other(p)).is_ok()));
            drop(dirs);
            match round {
                0 => fs::create_dir(&paths[1]).unwrap(),
                1 => {
                    assert_eq!(fs::read_dir(&paths[1]).unwrap().count(), 0, "what may be a mount point stays empty");
                    fs::remove_dir(&paths[1]).unwrap();
                }
                _ => {}
            }
        }
        // Back, in another place.
        let (dirs, notes) = start(&[paths[0].clone(), paths[2].clone(), away]).await;
        assert!(notes.iter().any(|note| note.contains("was") && note.contains("/b when")), "{notes:?}");
        assert!((0..PARTITIONS).all(|partition| dirs.home(key(partition)).is_ok()));
    });
}

/// What a version that knew one folder wrote.
#[test]
fn a_folder_without_an_id_of_its_own_gets_one() {
    run(|| async {
        let temp = TempDir::new("folders-upgrade");
        let paths = three(&temp);
        fs::create_dir(&paths[0]).unwrap();
        let old = crate::format::identity::FolderIdentity { owner: owner(), directory_id: None }.encode();
        fs::write(paths[0].join(META), &old).unwrap();
        let mut ids = Vec::new();
        for _ in 0..2 {
            let (dirs, _) = start(&paths[..1]).await;
            ids.push(dirs.metadata().directory_id().unwrap());
            assert!(fs::read_to_string(paths[0].join(META)).unwrap().contains(&ids[0].to_string()));
        }
        assert_eq!(ids[0], ids[1]);
    });
}

#[test]
fn a_missing_folder_that_holds_nothing_is_made_anew() {
    run(|| async {
        let temp = TempDir::new("folders-anew");
        let paths = three(&temp);
        drop(try_start(&paths, 0).await.unwrap());
        fs::remove_dir_all(&paths[2]).unwrap();
        let (dirs, notes) = start(&paths).await;
        assert!(notes.is_empty() && dirs.load(2) == 2, "{notes:?}");
    });
}

#[test]
fn found_wins_over_the_record() {
    run(|| async {
        let temp = TempDir::new("folders-found");
        let paths = three(&temp);
        let (dirs, _) = start(&paths).await;
        let home = dirs.number_of(key(0)).unwrap();
        drop(dirs);
        let other = (home + 1) % 3;
        make_partition(&paths[other], 0, 0, 10);
        for _ in 0..2 {
            let (dirs, _) = start(&paths).await;
            assert_eq!(dirs.number_of(key(0)), Some(other));
        }
    });
}

#[test]
fn of_two_copies_the_longer_counts_and_the_other_goes_out_of_the_way() {
    run(|| async {
        let temp = TempDir::new("folders-twice");
        let paths = three(&temp);
        for (partition, a, b) in [(0, (0, 10), (50, 5)), (1, (0, 10), (0, 5)), (2, (0, 5), (0, 5))] {
            make_partition(&paths[0], partition, a.0, a.1);
            make_partition(&paths[1], partition, b.0, b.1);
        }
        // Never stopped cleanly: lengths say nothing, first offsets do.
        let (dirs, notes) = start(&paths).await;
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert_eq!(homes(&dirs)[..3], [Some(1), None, None]);
        assert!(dirs.home(key(1)).is_err(), "neither is used");
        for dir in dirs.online() {
            dir.invalidate().await.unwrap();
            let untouched = dir.close_clean().await;
            untouched.unwrap();
        }
        drop(dirs);
        for path in &paths {
            mark_clean(path);
        }
        let (dirs, notes) = start(&paths).await;
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(homes(&dirs)[..3], [Some(1), Some(0), Some(0)]);
        let names: Vec<String> = fs::read_dir(&paths[0])
            .unwrap()
            .chain(fs::read_dir(&paths[1]).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.iter().filter(|name| name.ends_with(names::STRAY_SUFFIX)).count(), 3, "{names:?}");
        drop(dirs);
        let (dirs, notes) = start(&paths).await;
        assert!(notes.is_empty() && homes(&dirs)[..3] == [Some(1), Some(0), Some(0)], "{notes:?}");
    });
}

/// What a clean stop leaves.
fn mark_clean(folder: &Path) {
    let checkpoint = crate::format::checkpoint::encode(5, [].iter());
    fs::write(folder.join(crate::data_dir::CHECKPOINT), checkpoint).unwrap();
    fs::write(folder.join(crate::data_dir::CLEAN), crate::format::clean_mark::encode(5)).unwrap();
    for part in fs::read_dir(folder).unwrap().flatten() {
        if crate::data_dir::is_part(&part.file_name().to_string_lossy()) {
            fs::remove_file(part.path()).unwrap();
        }
    }
}

#[test]
fn folders_of_others_and_copies_of_folders_are_refused() {
    run(|| async {
        let temp = TempDir::new("folders-others");
        let paths = three(&temp);
        drop(start(&paths[..2]).await);
        let ours = fs::read(paths[1].join(META)).unwrap();
        fs::create_dir(&paths[2]).unwrap();
        fs::write(paths[2].join(META), &ours).unwrap();
        assert!(matches!(try_start(&paths, 1).await, Err(DataDirError::SameFolder { .. })));
        let other = crate::format::identity::FolderIdentity {
            owner: Identity { cluster_id: "c".into(), node_id: NodeId(2) },
            directory_id: Some(DirectoryId::of_bytes([3; 16])),
        };
        fs::write(paths[2].join(META), other.encode()).unwrap();
        assert!(matches!(try_start(&paths, 1).await, Err(DataDirError::OtherNode { .. })));
        fs::write(paths[2].join(META), "version=9\n").unwrap();
        assert!(matches!(try_start(&paths, 1).await, Err(DataDirError::Unreadable { .. })));
        fs::write(paths[0].join(record::FILE), b"damaged").unwrap();
        assert!(matches!(try_start(&paths[..2], 1).await, Err(DataDirError::Unreadable { .. })));
    });
}

#[test]
fn cordoned_and_failed_folders_take_nothing_new() {
    run(|| async {
        let temp = TempDir::new("folders-cordoned");
        let paths = three(&temp);
        let (dirs, _) = try_start(&paths, 0).await.unwrap();
        dirs.set_cordoned(&[paths[0].display().to_string()]);
        dirs.folders()[2].dir().unwrap().fail("for the test");
        dirs.place(&[(TOPIC, PARTITIONS)]).await.unwrap();
        assert_eq!((dirs.load(0), dirs.load(1), dirs.load(2)), (0, PARTITIONS, 0));
        dirs.set_cordoned(&paths[..2].iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
        let other = TopicId([9; 16]);
        dirs.place(&[(other, 1)]).await.unwrap();
        let other_key = PartitionKey { topic_id: other, partition: PartitionIndex(0) };
        assert!(dirs.home(other_key).is_err() && !dirs.takes_new_partitions(), "nobody takes it");
        dirs.set_cordoned(&[]);
        dirs.place(&[(other, 1)]).await.unwrap();
        assert!(dirs.home(other_key).is_ok());
    });
}

#[test]
fn the_record_is_written_anew_when_it_has_grown() {
    run(|| async {
        let temp = TempDir::new("folders-growth");
        let paths = three(&temp);
        let (dirs, _) = start(&paths).await;
        let len = || fs::metadata(paths[0].join(record::FILE)).unwrap().len();
        let mut longest = 0;
        for round in 0..30u8 {
            let topic = TopicId([round + 100; 16]);
            dirs.place(&[(topic, 50_000)]).await.unwrap();
            dirs.forget(topic);
            longest = longest.max(len());
        }
        assert!(longest > crate::limits::HOMES_GROWTH / 2 && longest < 2 * crate::limits::HOMES_GROWTH, "{longest}");
        drop(dirs);
        let (dirs, _) = start(&paths).await;
        assert!(len() < 1000);
        assert!((0..PARTITIONS).all(|partition| dirs.home(key(partition)).is_ok()));
    });
}
