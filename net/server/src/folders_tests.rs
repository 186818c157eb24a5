#![allow(clippy::unwrap_used)]

use std::fs;

use runtime::testing::TempDir;

use super::*;

fn planned(dirs: &[&Path], more: &[(&str, &str)]) -> Result<FolderPlan, StartError> {
    let list = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(",");
    let pairs = [&[("log.dirs", list.as_str())], more].concat();
    plan(&BrokerConfig::from_pairs(pairs).unwrap())
}

#[test]
fn the_metadata_log_is_where_it_is_found() {
    let temp = TempDir::new("server-folders");
    let (a, b, c) = (temp.path().join("a"), temp.path().join("b"), temp.path().join("c"));
    let planned_metadata = |dirs: &[&Path]| planned(dirs, &[]).unwrap().metadata;
    assert_eq!(planned_metadata(&[&a, &b]), a, "a new node's is in the first");
    fs::create_dir_all(b.join(METADATA_DIR)).unwrap();
    assert_eq!(planned_metadata(&[&a, &b]), b);
    let named = |dir: &Path| planned(&[&a, &b], &[("metadata.log.dir", dir.to_str().unwrap())]);
    assert_eq!(named(&b).unwrap().metadata, b);
    let error = named(&a).unwrap_err().to_string();
    assert!(error.contains("lies in") && error.contains(a.to_str().unwrap()), "{error}");
    fs::create_dir_all(c.join(METADATA_DIR)).unwrap();
    assert!(matches!(planned(&[&b, &c], &[]), Err(StartError::MetadataTwice { .. })));
    let alone = planned(&[&a], &[("metadata.log.dir", c.to_str().unwrap())]).unwrap();
    let takes: Vec<bool> = alone.specs.iter().map(|spec| spec.takes_partitions).collect();
    assert_eq!((alone.metadata, takes), (c, vec![true, false]), "a folder for the metadata log alone");
}

#[test]
fn used_folders_without_the_metadata_log_start_no_new_cluster() {
    let temp = TempDir::new("server-folders-used");
    let (a, b) = (temp.path().join("a"), temp.path().join("b"));
    fs::create_dir_all(&a).unwrap();
    fs::create_dir_all(&b).unwrap();
    fs::write(b.join(META), "of a cluster").unwrap();
    let error = planned(&[&a, &b], &[]).unwrap_err().to_string();
    assert!(error.contains("none of log.dirs holds the metadata log"), "{error}");
    assert_eq!(fs::read_dir(&a).unwrap().count(), 0, "nothing is written");
    assert!(matches!(planned(&[&a, &a.join("in")], &[]), Err(StartError::Host(_))));
    assert!(matches!(planned(&[&a], &[("cordoned.log.dirs", "/other")]), Err(StartError::Cordoned { .. })));
}
