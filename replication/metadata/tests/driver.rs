//! The node on a real shard and a real folder.
#![allow(clippy::unwrap_used)]

mod support;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use model::NodeId;
use ringlog_metadata::driver::{NoPeers, open};
use ringlog_metadata::{Command, DriverConfig, Image, MetadataError, MetadataHandle};
use runtime::TaskHandle;
use runtime::testing::{TempDir, run};
use support::{create, names, register};

type Published = Rc<RefCell<Vec<Arc<Image>>>>;

fn config(folder: &Path) -> DriverConfig {
    DriverConfig {
        folder: folder.join("metadata"),
        node: NodeId(0),
        voters: vec![NodeId(0)],
        cluster_id: None,
        tick_interval_ms: 20,
    }
}

async fn start(folder: &Path) -> (MetadataHandle, TaskHandle<Result<(), MetadataError>>, Published) {
    let published = Published::default();
    let sink = Rc::clone(&published);
    let publish = async move |image| sink.borrow_mut().push(image);
    let (handle, task) = open(config(folder), publish, Rc::new(NoPeers)).await.unwrap();
    handle.leading().await.unwrap();
    (handle, task, published)
}

async fn format(handle: &MetadataHandle) {
    let cluster_id = handle.cluster_id();
    handle.propose(&Command::FormatCluster { cluster_id, features: vec![] }).await.unwrap();
    handle.propose(&register(0)).await.unwrap();
}

#[test]
fn what_was_proposed_is_published_answered_and_there_after_a_restart() {
    let dir = TempDir::new("metadata-driver");
    let folder = dir.path().to_path_buf();
    run(move || {
        let folder = folder.clone();
        async move {
            let (handle, task, published) = start(&folder).await;
            format(&handle).await;
            for number in 0..20 {
                let committed = handle.propose(&create(number)).await.unwrap();
                assert!(published.borrow().last().unwrap().version() >= committed.version, "published before answered");
            }
            assert!(matches!(handle.propose(&create(3)).await, Err(MetadataError::Rejected(_))));
            let before = handle.image();
            handle.stop();
            task.join().await.unwrap().unwrap();
            assert_eq!(handle.propose(&create(99)).await, Err(MetadataError::Stopped));

            let (handle, task, _) = start(&folder).await;
            assert_eq!(handle.image(), before);
            assert_eq!(names(&handle.image()).len(), 20);
            assert_eq!(Some(&handle.cluster_id()), before.cluster_id());
            handle.stop();
            task.join().await.unwrap().unwrap();
        }
    });
}

#[test]
fn many_proposals_at_once_share_rounds_and_make_snapshots() {
    let dir = TempDir::new("metadata-driver");
    let folder = dir.path().to_path_buf();
    run(move || {
        let folder = folder.clone();
        async move {
            let (handle, task, _) = start(&folder).await;
            format(&handle).await;
            for round in 0..11 {
                let commands: Vec<Command> = (round * 1_000..(round + 1) * 1_000).map(create).collect();
                let results =
                    runtime::sync::all(commands.iter().map(|command| handle.propose(command)).collect()).await;
                assert!(results.iter().all(Result::is_ok));
            }
            // The snapshot's rotation is a round like any other.
            handle.propose(&create(11_000)).await.unwrap();
            let before = handle.image();
            handle.stop();
            task.join().await.unwrap().unwrap();
            let (handle, task, _) = start(&folder).await;
            assert_eq!(handle.image(), before);
            assert_eq!(before.topic_count(), 11_001);
            handle.stop();
            task.join().await.unwrap().unwrap();
        }
    });
    let names: Vec<_> =
        std::fs::read_dir(dir.path().join("metadata")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("snapshot-")));
}

#[test]
fn a_failing_disk_ends_the_driver_with_a_sentence() {
    let dir = TempDir::new("metadata-driver");
    let folder = dir.path().to_path_buf();
    run(move || {
        let folder = folder.clone();
        async move {
            let (handle, task, _) = start(&folder).await;
            std::fs::remove_dir_all(folder.join("metadata")).unwrap();
            let cluster_id = handle.cluster_id();
            let result = handle.propose(&Command::FormatCluster { cluster_id, features: vec![] }).await;
            assert_eq!(result, Err(MetadataError::Stopped));
            assert!(matches!(task.join().await.unwrap(), Err(MetadataError::Disk(_))));
        }
    });
}
